"""Frames between neighbours: one interface, real links and links in memory for tests.

`TlsTransport` is in `fedelect.runtime.transport.tls_links`.
"""

from fedelect.runtime.transport.base import Frame, Inbox, LinkDown, LinkUp, Transport, frame_limit
from fedelect.runtime.transport.link_watch import LinkWatch
from fedelect.runtime.transport.memory import MemoryNetwork, MemoryTransport

__all__ = [
    "Frame",
    "Inbox",
    "LinkDown",
    "LinkUp",
    "LinkWatch",
    "MemoryNetwork",
    "MemoryTransport",
    "Transport",
    "frame_limit",
]
