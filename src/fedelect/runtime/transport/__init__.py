"""Frames between neighbours: one interface, real links and links in memory for tests.

`ZenohTransport` needs the extra `peer`; import it from its own module.
"""

from fedelect.runtime.transport.base import Frame, Inbox, LinkDown, LinkUp, Transport
from fedelect.runtime.transport.link_watch import LinkWatch
from fedelect.runtime.transport.memory import MemoryNetwork, MemoryTransport

__all__ = ["Frame", "Inbox", "LinkDown", "LinkUp", "LinkWatch", "MemoryNetwork", "MemoryTransport", "Transport"]
