"""Frames between neighbours: one small interface, real links behind it, and a twin in memory for tests.

`ZenohTransport` needs the extra `peer` and is imported from its own module, so that the twin does not.
"""

from fedelect.runtime.transport.base import Frame, Inbox, LinkDown, LinkUp, Transport
from fedelect.runtime.transport.link_watch import LinkWatch
from fedelect.runtime.transport.memory import MemoryNetwork, MemoryTransport

__all__ = ["Frame", "Inbox", "LinkDown", "LinkUp", "LinkWatch", "MemoryNetwork", "MemoryTransport", "Transport"]
