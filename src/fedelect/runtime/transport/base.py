"""Interface of a peer's links to its neighbours, and the queue of their events.

A transport delivers whole frames from authenticated neighbours. It may lose, repeat and reorder them: the protocol
repeats messages. It never blocks its caller.
"""

import queue
import threading
from dataclasses import dataclass
from typing import Any, Protocol

from fedelect.protocol import FRAME_LIMIT

WAITING_LIMIT = 2 * FRAME_LIMIT
"""Largest number of bytes of one neighbour that wait to be read; more are dropped."""

_COST = 256  # bytes that a frame counts beside its content, so that empty ones are not free


@dataclass(frozen=True, slots=True)
class Frame:
    """Bytes from `neighbour`, which the transport has authenticated."""

    neighbour: int
    content: bytes


@dataclass(frozen=True, slots=True)
class LinkUp:
    """Frames to `neighbour` can arrive from now on."""

    neighbour: int


@dataclass(frozen=True, slots=True)
class LinkDown:
    """`neighbour` cannot be reached at present."""

    neighbour: int


class Inbox:
    """Queue of a host: frames, links that came up or went down, commands.

    Any thread may put; one thread gets. A neighbour that sends faster than it is read loses its own frames, not
    those of others. Of each link only the last state waits.
    """

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._bytes: dict[int, int] = {}
        self._links: dict[int, LinkUp | LinkDown] = {}
        self._lock = threading.Lock()
        self.dropped = 0

    def put(self, event: object) -> None:
        """Add an event that must not be lost; a link's state replaces an earlier one that still waits."""
        if isinstance(event, LinkUp | LinkDown):
            with self._lock:
                waits = event.neighbour in self._links
                self._links[event.neighbour] = event
            if waits:
                return
        self._waiting.put(event)

    def offer(self, frame: Frame) -> bool:
        """Add a frame if there is room; return whether there was."""
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
        """Return the next event, or None after `wait_s` seconds."""
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
