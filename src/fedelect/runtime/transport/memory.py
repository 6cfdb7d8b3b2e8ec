"""Links within one process, for tests: queues instead of a network, which may lose frames too."""

import threading
from collections.abc import Callable

from fedelect.runtime.transport.base import Frame, Inbox, LinkDown, LinkUp

Tamper = Callable[[int, int, bytes], bytes | None]
"""(sender, receiver, frame) -> the frame that arrives; None if it is lost."""


class MemoryNetwork:
    """Network of the `MemoryTransport`s of one process.

    Args:
        tamper: Changes or drops frames; by default they arrive.
    """

    def __init__(self, tamper: Tamper | None = None) -> None:
        self.tamper = tamper
        self._lock = threading.Lock()
        self._open: dict[int, tuple[Inbox, frozenset[int]]] = {}

    def join(self, client: int, neighbours: frozenset[int], inbox: Inbox) -> None:
        """Open the links of `client`."""
        with self._lock:
            self._open[client] = (inbox, neighbours)
            for other in neighbours:
                if other in self._open and client in self._open[other][1]:
                    inbox.put(LinkUp(other))
                    self._open[other][0].put(LinkUp(client))

    def leave(self, client: int) -> None:
        """Close the links of `client`."""
        with self._lock:
            gone = self._open.pop(client, None)
            for other in gone[1] if gone is not None else ():
                if other in self._open and client in self._open[other][1]:
                    self._open[other][0].put(LinkDown(client))

    def carry(self, sender: int, receiver: int, frame: bytes) -> None:
        """Deliver a frame along a link, if both ends are open."""
        content = frame if self.tamper is None else self.tamper(sender, receiver, frame)
        with self._lock:
            there = self._open.get(receiver)
            if content is not None and there is not None and sender in there[1] and sender in self._open:
                there[0].offer(Frame(sender, content))


class MemoryTransport:
    """One peer's links in a `MemoryNetwork`.

    Args:
        network: The network.
        client: The client whose links these are.
        neighbours: Its neighbours.
    """

    def __init__(self, network: MemoryNetwork, client: int, neighbours: frozenset[int]) -> None:
        self._network = network
        self._client = client
        self._neighbours = neighbours

    def start(self, inbox: Inbox) -> None:
        """See `Transport`."""
        self._network.join(self._client, self._neighbours, inbox)

    def send(self, neighbour: int, frame: bytes) -> None:
        """See `Transport`."""
        if neighbour in self._neighbours:
            self._network.carry(self._client, neighbour, frame)

    def close(self) -> None:
        """See `Transport`."""
        self._network.leave(self._client)
