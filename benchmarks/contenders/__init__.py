"""Who takes part in `benchmarks/engine.py`: one module for each contender, and the process each of them runs in."""
