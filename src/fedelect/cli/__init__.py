"""The command line: parse, call, print; no logic of its own."""

from fedelect.cli.main import main

__all__ = ["main"]
