"""Frames between neighbours: one small interface, real links behind it, and a twin in memory for tests.

`ZenohTransport` needs the extra `peer` and is imported from its own module, so that the twin does not.
"""

from fedelect.runtime.transport.base import Frame as Frame
from fedelect.runtime.transport.base import Inbox as Inbox
from fedelect.runtime.transport.base import LinkDown as LinkDown
from fedelect.runtime.transport.base import LinkUp as LinkUp
from fedelect.runtime.transport.base import Transport as Transport
from fedelect.runtime.transport.memory import MemoryNetwork as MemoryNetwork
from fedelect.runtime.transport.memory import MemoryTransport as MemoryTransport
from fedelect.runtime.transport.watch import LinkWatch as LinkWatch

__all__ = ["Frame", "Inbox", "LinkDown", "LinkUp", "LinkWatch", "MemoryNetwork", "MemoryTransport", "Transport"]
