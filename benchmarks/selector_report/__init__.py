"""The published comparison of selectors: where they play, what is kept of it, and the pages made from that."""
