"""What a peer's host asks of the links to its neighbours, and the queue through which links speak to it.

A transport delivers whole frames or nothing, from a neighbour that it has authenticated. It may lose, repeat and
reorder them: the protocol says things again. It never blocks its caller.
"""

import queue
import threading
from dataclasses import dataclass
from typing import Any, Protocol

from fedelect.protocol import FRAME_LIMIT

WAITING_LIMIT = 2 * FRAME_LIMIT
"""So many bytes of one neighbour may wait to be read; what is beyond that is dropped."""

_COST = 256  # what a frame costs beside its bytes, so that empty ones are not free


@dataclass(frozen=True, slots=True)
class Frame:
    """Bytes that came from `neighbour`, which the transport has authenticated."""

    neighbour: int
    content: bytes


@dataclass(frozen=True, slots=True)
class LinkUp:
    """What is sent to `neighbour` from now on can arrive."""

    neighbour: int


@dataclass(frozen=True, slots=True)
class LinkDown:
    """`neighbour` cannot be reached at present."""

    neighbour: int


class Inbox:
    """What waits for a host: frames, links that came up or went down, and whatever else it is told.

    Any thread may put; one thread gets. A neighbour that sends faster than it is read loses its own frames, not
    those of others. Of a link that comes and goes faster than that, only the last state waits.
    """

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._bytes: dict[int, int] = {}
        self._links: dict[int, LinkUp | LinkDown] = {}
        self._lock = threading.Lock()
        self.dropped = 0

    def put(self, event: object) -> None:
        """Something that must not be lost; a link's state takes the place of an earlier one that still waits."""
        if isinstance(event, LinkUp | LinkDown):
            with self._lock:
                waits = event.neighbour in self._links
                self._links[event.neighbour] = event
            if waits:
                return
        self._waiting.put(event)

    def offer(self, frame: Frame) -> bool:
        """A frame; returns whether there was room for it."""
        cost = len(frame.content) + _COST
        with self._lock:
            waiting = self._bytes.get(frame.neighbour, 0)
            if len(frame.content) > FRAME_LIMIT or waiting + cost > WAITING_LIMIT:
                self.dropped += 1
                return False
            self._bytes[frame.neighbour] = waiting + cost
        self._waiting.put(frame)
        return True

    def get(self, wait_s: float) -> Any | None:
        """The next event, or None if none comes within `wait_s` seconds."""
        try:
            event = self._waiting.get(timeout=wait_s) if wait_s > 0.0 else self._waiting.get_nowait()
        except queue.Empty:
            return None
        if isinstance(event, Frame):
            with self._lock:
                self._bytes[event.neighbour] -= len(event.content) + _COST
        elif isinstance(event, LinkUp | LinkDown):
            with self._lock:
                return self._links.pop(event.neighbour)
        return event


class Transport(Protocol):
    """The links of one peer to its neighbours."""

    def start(self, inbox: Inbox) -> None:
        """Open the links; frames, `LinkUp` and `LinkDown` go to `inbox` from now on."""

    def send(self, neighbour: int, frame: bytes) -> None:
        """Send if the link is up and has room, else drop; never waits."""

    def close(self) -> None:
        """Close all links. Nothing goes to the inbox afterwards. Does nothing the second time."""
