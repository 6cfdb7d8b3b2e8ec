"""The fast engine for linear models on the CPU."""
