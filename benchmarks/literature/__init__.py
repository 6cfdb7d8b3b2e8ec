"""All selectors of docs/results/literature.md in one table, tuned with the same budget."""
