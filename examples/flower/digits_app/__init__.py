"""An ordinary Flower app whose ServerApp lets a selector decide who trains."""
