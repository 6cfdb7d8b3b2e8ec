"""A Flower app in XGBoost, shaped as Flower's own; only its strategy is wrapped."""
