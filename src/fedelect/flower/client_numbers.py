"""The clients of a run: which number each name has, and where it is now."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from fedelect.errors import AvailabilityError, ConfigurationError
from fedelect.flower.exchange import LOG
from fedelect.flower.nodes import NAME_REMEDY
from fedelect.vocabulary import ClientId

_LOOK_EVERY_S = 0.5


class NameSource(Protocol):
    """Names of the connected nodes; `Directory` is one."""

    def present(self) -> Mapping[str, int]:
        """Name -> node id of every connected node that has a name; the same object while nothing changes."""

    @property
    def nameless(self) -> list[int]:
        """Ids of the nodes seen that have no name."""

    @property
    def registered(self) -> list[str]:
        """The names seen so far that are more than a node's word."""

    def recall(self, registered: Iterable[str]) -> None:
        """Go on with the registered names of a saved run."""


def count_nodes(names: NameSource, *, needed: int, wait_s: float) -> int:
    """Return how many nodes are there, once there are enough and their number has not changed for a while.

    Raises:
        AvailabilityError: Fewer than `needed` are there when the time is up.
    """
    until, count, since = time.monotonic() + wait_s, -1, 0.0
    while True:
        now, before = time.monotonic(), count
        count = len(names.present())
        since = now if count != before else since
        if now >= until or (count >= needed and now - since >= _SETTLED_S):
            break
        time.sleep(min(_LOOK_EVERY_S, until - now))
    if count < needed:
        raise AvailabilityError(
            f"{count} clients are there after {wait_s:g} s and {needed} are needed; start more nodes, then start again"
        )
    return count


_SETTLED_S = 3.0  # nodes of one federation come within seconds


class Clients:
    """The N clients of a run: which number each name has, and where it is now. A name keeps its number.

    Args:
        directory: The names of the nodes that are connected.
        count: N.
        names: The names known so far: client 0, client 1 and so on.
    """

    def __init__(self, directory: NameSource, count: int, names: Iterable[str] = ()) -> None:
        self._directory = directory
        self._refused: set[str] = set()
        self._present: Mapping[str, int] | None = None  # what `_there` was made from
        self._there: dict[ClientId, int] = {}  # the last result of `locate`
        self._numbers: dict[str, ClientId] = {}
        self.count = count
        self.recall(names)

    def recall(self, names: Iterable[str], registered: Iterable[str] = ()) -> None:
        """Go on with the numbers of a saved run, and with the names that were registered in it."""
        self._directory.recall(registered)
        self._present = None
        self._numbers = {}
        for name in names:
            if name in self._numbers:
                raise ConfigurationError(f"names: {name!r} is given twice; clients need different names")
            self._numbers[name] = len(self._numbers)
        if len(self._numbers) > self.count:
            raise ConfigurationError(f"names: got {len(self._numbers)} names for {self.count} clients")

    @property
    def names(self) -> tuple[str, ...]:
        """The names so far, by number."""
        return tuple(self._numbers)

    @property
    def registered(self) -> list[str]:
        """The names seen so far that are more than a node's word."""
        return self._directory.registered

    def list_names(self, clients: Iterable[ClientId]) -> str:
        """Return the names of these clients, for messages."""
        names = self.names
        return ", ".join(names[client] for client in clients) or "nobody"

    def locate(self) -> dict[ClientId, int]:
        """Client number -> node id of those that are there; names not seen before get the next free number."""
        present = self._directory.present()
        if present is not self._present:
            self._number(present)
            there = {self._numbers[name]: node_id for name, node_id in present.items() if name in self._numbers}
            self._present, self._there = present, dict(sorted(there.items()))
        return dict(self._there)

    def _number(self, present: Iterable[str]) -> None:
        for name in present:
            if name in self._numbers or name in self._refused:
                continue
            if len(self._numbers) < self.count:
                self._numbers[name] = len(self._numbers)
            else:
                self._refused.add(name)
                LOG.warning("%s takes no part: there are %d clients, and all have been seen", name, self.count)

    def missing(self, there: Iterable[ClientId]) -> str:
        """Which of the N clients are not there, in words."""
        away = sorted(set(range(len(self._numbers))) - set(there))
        unseen = self.count - len(self._numbers)
        return self.list_names(away) + (f" (up to {unseen} that have not been seen yet may join)" if unseen else "")

    def wait(
        self,
        *,
        wanted: int,
        needed: int,
        wait_s: float,
        choose: Callable[[dict[ClientId, int]], dict[ClientId, int]] = dict,
    ) -> dict[ClientId, int]:
        """Return the clients' nodes as soon as `wanted` are connected, or after `wait_s` at least `needed`.

        Args:
            wanted: Clients to wait for.
            needed: Clients without which it cannot go on.
            wait_s: Seconds.
            choose: Returns those of the connected clients that count.

        Raises:
            AvailabilityError: Fewer than `needed` are there when the time is up; the message says who is missing.
        """
        until = time.monotonic() + wait_s
        told = False
        while True:  # while nobody has a number, nobody gets one, so that order of arrival decides none
            there = choose(self.locate()) if self._numbers else None
            number = len(self._directory.present() if there is None else there)
            left = until - time.monotonic()
            if number >= wanted or left <= 0:
                break
            if not told:
                LOG.info("%d of %d clients are there; waiting up to %g s", number, wanted, wait_s)
                told = True
            time.sleep(min(_LOOK_EVERY_S, left))
        if there is None:
            there = choose(self.locate())
        connected = self.locate()
        away = self.missing(connected)
        unfit = sorted(connected.keys() - there.keys())
        away += f"; connected, but not available: {self.list_names(unfit)}" if unfit else ""
        if len(there) < needed:
            nameless = self._directory.nameless
            advice = f"; nodes without a name: {nameless} ({NAME_REMEDY})" if nameless else ""
            raise AvailabilityError(
                f"{len(there)} clients are there after {wait_s:g} s and {needed} are needed; missing: {away}{advice}. "
                f"Start them, then start the same run again: what is recorded is kept"
            )
        if len(there) < wanted:
            LOG.warning("going on with %d of %d clients; missing: %s", len(there), wanted, away)
        return there
