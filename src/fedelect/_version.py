"""The version, apart from `fedelect` itself so that every layer may read it."""

__version__ = "0.1.0"
"""The version of fedelect."""
