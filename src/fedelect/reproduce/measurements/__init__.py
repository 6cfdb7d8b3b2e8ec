"""What experiments need besides runs: each a function of a `Context` that returns one plain value, kept as JSON."""
