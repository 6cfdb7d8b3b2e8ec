"""A Flower app whose clients elect among themselves who trains next."""
