"""A Flower app in scikit-learn, shaped as Flower's own; only its strategy is wrapped."""
