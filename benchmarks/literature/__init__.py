"""All selectors of docs/LITERATURE.md in one table, tuned with the same budget."""
