"""A Flower app in PyTorch, shaped as Flower's own; only its strategy is wrapped."""
