"""Interface of a peer's links to its neighbours, and the queue of their events.

A transport delivers whole frames from authenticated neighbours. It may lose, repeat and reorder them: the protocol
repeats messages. It never blocks its caller.
"""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from fedelect.protocol import FRAME_LIMIT
from fedelect.runtime.transport.pace import Pace

WAITING_LIMIT = 2 * FRAME_LIMIT
"""Largest number of bytes of one neighbour that wait to be read; more are dropped."""

READ_RATE = float(1 << 20)
"""Bytes a second of one neighbour that are read in the long run."""

READ_BURST = float(1 << 22)
"""Bytes of one neighbour that are read at once after it has been quiet."""

FRAME_COST = 256
"""Bytes that a frame counts beside its content, so that empty ones are not free."""

REFUSED_COST = 1 << 16
"""Bytes that a refused message counts in addition."""


def frame_limit(clients: int) -> int:
    """Return the largest frame in bytes that peers of a federation of this size need: `HISTORY_LIMIT` certificates.

    >>> frame_limit(20), frame_limit(1000) == FRAME_LIMIT
    (720896, True)
    """
    return min(65536 + 32768 * clients, FRAME_LIMIT)


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

    Any thread may put; one thread gets. Commands and links come first, then frames, of each neighbour in turn: one
    that sends much delays the others by a frame. A neighbour that sends faster than it is read loses its own frames,
    not those of others. Of each link only the last state waits.

    Args:
        clock: Seconds since any moment.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tokens: queue.SimpleQueue[None] = queue.SimpleQueue()  # one for each waiting event
        self._events: deque[Any] = deque()
        self._frames: dict[int, deque[Frame]] = {}  # of neighbours that have any, in the order of their turns
        self._bytes: dict[int, int] = {}
        self._links: dict[int, LinkUp | LinkDown] = {}
        self._paces: dict[int, Pace] = {}
        self._lock = threading.Lock()
        self.dropped = 0

    def put(self, event: object) -> None:
        """Add an event that must not be lost; a link's state replaces an earlier one that still waits."""
        with self._lock:
            if isinstance(event, LinkUp | LinkDown):
                waits = event.neighbour in self._links
                self._links[event.neighbour] = event
                if waits:
                    return
            self._events.append(event)
        self._tokens.put(None)

    def offer(self, frame: Frame) -> bool:
        """Add a frame if there is room; return whether there was."""
        cost = len(frame.content) + FRAME_COST
        with self._lock:
            waiting = self._bytes.get(frame.neighbour, 0)
            if len(frame.content) > FRAME_LIMIT or waiting + cost > WAITING_LIMIT:
                self.dropped += 1
                return False
            self._bytes[frame.neighbour] = waiting + cost
            self._frames.setdefault(frame.neighbour, deque()).append(frame)
        self._tokens.put(None)
        return True

    def charge(self, neighbour: int, cost: float) -> float:
        """Charge a neighbour for bytes that were read of it, or for work that they made.

        Returns:
            Seconds for which nothing more should be read of it.
        """
        with self._lock:
            pace = self._paces.get(neighbour)
            if pace is None:
                pace = Pace(rate=READ_RATE, burst=READ_BURST, debt=float(FRAME_LIMIT))
                self._paces[neighbour] = pace
            return pace.charge(cost, self._clock())

    def get(self, wait_s: float) -> Any | None:
        """Return the next event, or None after `wait_s` seconds."""
        try:
            _ = self._tokens.get(timeout=wait_s) if wait_s > 0.0 else self._tokens.get_nowait()
        except queue.Empty:
            return None
        with self._lock:
            if self._events:
                event = self._events.popleft()
                return self._links.pop(event.neighbour) if isinstance(event, LinkUp | LinkDown) else event
            neighbour, waiting = next(iter(self._frames.items()))
            frame = waiting.popleft()
            del self._frames[neighbour]
            if waiting:
                self._frames[neighbour] = waiting  # behind the others
            self._bytes[neighbour] -= len(frame.content) + FRAME_COST
            return frame


class Transport(Protocol):
    """The links of one peer to its neighbours."""

    def start(self, inbox: Inbox) -> None:
        """Open the links; frames, `LinkUp` and `LinkDown` go to `inbox` from now on."""

    def send(self, neighbour: int, frame: bytes) -> None:
        """Send if the link is up and has room, else drop; never waits."""

    def close(self) -> None:
        """Close all links. Nothing goes to the inbox afterwards. Does nothing the second time."""
