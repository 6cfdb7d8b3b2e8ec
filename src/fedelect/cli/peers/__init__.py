"""Commands about elections among peers."""

from fedelect.cli.peers.chaos import chaos as chaos

__all__ = ["chaos"]
