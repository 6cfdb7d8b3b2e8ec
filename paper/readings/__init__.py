"""Readings of the paper's Algorithms 1 and 2, played on the atlas in seconds."""
