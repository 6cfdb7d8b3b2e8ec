"""Models that are PyTorch modules: how they are built, laid out flat and trained by one client. Imports torch."""
