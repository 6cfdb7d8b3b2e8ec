"""Values and proofs of one slot, flooded in synchronous rounds: what arrives in time, and what a message holds.

Rounds are grouped into windows. In window w an entry counts only with w signatures: that of the client it is about,
and those of w - 1 others that passed it on (authenticated broadcast; Dolev and Strong 1983). A peer that took an entry
in and is in a later window adds its own signature before it passes the entry on. So a client that holds its value back
for some peers, with up to f - 1 accomplices, cannot get it counted by one honest peer and not by another: by the last
window, f + 1, an honest peer has signed it, and has passed it on to all. Where peers only crash there is one window
and no such signature.

Knowledge of a client only grows: nothing < its value < proof that it misbehaved. What comes too late stays out of the
map, but still gives a proof.

A message of round r holds every entry that its receiver has not acknowledged, so the last one to arrive makes up for
lost ones. A neighbour acknowledges an entry by sending it, or by ending a round for which it needed the message with
that entry. A peer ends round r when every neighbour that has not gone has sent round r, and freezes its map after the
last round. A frozen map never changes.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from fedelect.protocol.gossip import Entry, Relayed, alike, join
from fedelect.protocol.proofs import Proof
from fedelect.protocol.statements import SignedValue

_Item = tuple[int, bytes]
"""(client, content of its value), or (client, b"") for a proof: all proofs against a client are equal."""

PassOn = Callable[[Entry], tuple[int, bytes]]
"""This peer's number, and its signature to an entry that it passes on."""


@dataclass(slots=True)
class _Held:
    """An entry that was taken in: in which window, and whether this peer has signed it or must not."""

    relayed: Relayed
    window: int
    signed: bool


class Flood:
    """One peer's map in one slot and on one history.

    Args:
        neighbours: The peer's neighbours.
        windows: Number of windows: f + 1, or 1 where peers only crash.
        window_rounds: Rounds in each.
        pass_on: Signs what is passed on in a later window than it was taken in.
    """

    def __init__(self, neighbours: Iterable[int], *, windows: int, window_rounds: int, pass_on: PassOn) -> None:
        self.entries: dict[int, Entry] = {}
        self.round = 0
        self.begun = False  # whether round 1 may begin: this peer's own value is in
        self.frozen = False
        self._windows, self._window_rounds = windows, window_rounds
        self._pass_on = pass_on
        self._ended = 0  # windows that are over by the clock
        self._opened = 1  # the last window whose first message was prepared
        self._held: dict[_Item, _Held] = {}
        self._seen: dict[int, Entry] = {}  # all that was verified, also what came too late for the map
        self._heard = dict.fromkeys(neighbours, 0)
        self._shown: dict[int, set[_Item]] = {neighbour: set() for neighbour in self._heard}
        # For each neighbour, the items that it may lack, and in which round each was first sent (0: not yet).
        self._due: dict[int, dict[_Item, int]] = {neighbour: {} for neighbour in self._heard}

    @property
    def window(self) -> int:
        """The window that this peer is in, from 1; one more than there are once its map is frozen."""
        return max((max(self.round, 1) - 1) // max(self._window_rounds, 1), self._ended) + 1

    def filter_new(self, relayed: Iterable[Relayed]) -> list[Relayed]:
        """The entries that add knowledge; verify them before `learn`."""
        return [one for one in relayed if self._adds(one)]

    def learn(
        self, relayed: Iterable[Relayed], *, source: int | None = None, round_number: int = 0, own: bool = False
    ) -> list[Proof]:
        """Take in the entries that neighbour `source` (None: this peer) sent in its round; returns new proofs.

        Entries with too few signatures for this window, or of any number once the map is frozen, stay out of the map,
        but give a proof if they contradict it or each other. `own`: this client's own value, which needs no second
        signature by it.
        """
        proofs: list[Proof] = []
        for one in relayed:
            item = _item(one.entry)
            if self._adds(one):
                proofs += _add(self._seen, one.entry)
                if self._in_time(one):
                    _add(self.entries, one.entry)
                    self._held[item] = _Held(one, self.window, signed=own)
                    for due in self._due.values():
                        due[item] = 0
            if source is not None and item in self._held:
                self._shown[source].add(item)
                self._due[source].pop(item, None)
        if source is not None:
            self._heard[source] = max(self._heard[source], round_number)
        return proofs

    def open_round(self, neighbour: int) -> tuple[Relayed, ...]:
        """Entries of the first message of the present round: all that `neighbour` has not acknowledged."""
        due, heard = self._due[neighbour], self._heard[neighbour]
        for item, since in list(due.items()):
            if since == 0:
                due[item] = self.round
            elif since < heard:  # it ended that round, for which it needed our message
                del due[item]
        return self._sign(due)

    def repeat(self, neighbour: int) -> tuple[Relayed, ...]:
        """Entries of a repeated message: also those that `neighbour` lacks only if it has given this peer up."""
        return self._sign(item for item in self._held if item not in self._shown[neighbour])

    def latest_round(self, neighbour: int) -> int:
        """The latest round that `neighbour` has sent; 0 if none."""
        return self._heard[neighbour]

    def missing(self) -> tuple[int, ...]:
        """The neighbours whose message of the present round has not arrived."""
        if self.frozen or not self.round:
            return ()
        return tuple(neighbour for neighbour, heard in self._heard.items() if heard < self.round)

    def end_windows(self, count: int) -> None:
        """The first `count` windows are over by the clock, for whatever neighbours are still waited for in them."""
        self._ended = max(self._ended, min(count, self._windows))

    def advance(self, gone: Callable[[int], bool]) -> bool:
        """Begin the next round if the present one is over, or freeze after the last; returns whether it did."""
        if self.frozen or not self.begun:
            return False
        over = self._ended * self._window_rounds
        if self.round > over and not all(gone(neighbour) for neighbour in self.missing()):
            return False
        self.round = max(self.round, over) + 1
        self.frozen = self.round > self._windows * self._window_rounds
        if self.window > self._opened and not self.frozen:
            self._open_window()
        return True

    def frozen_values(self) -> Mapping[int, SignedValue | None]:
        """By client, its value, or None if it is proven to have misbehaved."""
        return {client: entry if isinstance(entry, SignedValue) else None for client, entry in self.entries.items()}

    def _in_time(self, one: Relayed) -> bool:
        return not self.frozen and 1 + len(one.signatures) >= self.window

    def _adds(self, one: Relayed) -> bool:
        entry, known = one.entry, self.entries.get(one.entry.client)
        if not (known is None or isinstance(known, SignedValue)) or _item(entry) in self._held:
            return False
        if self._in_time(one):
            return True
        seen = self._seen.get(entry.client)
        return seen is None or not alike(join(seen, entry), seen)

    def _open_window(self) -> None:
        """What a neighbour has not shown to have is sent once more, signed: it may have come too late for it."""
        self._opened = self.window
        for item, held in self._held.items():
            for neighbour, due in self._due.items():
                if not held.signed and item not in self._shown[neighbour]:
                    due[item] = 0

    def _sign(self, items: Iterable[_Item]) -> tuple[Relayed, ...]:
        """The entries, with this peer's signature to those that it took in in an earlier window."""
        sent = []
        for item in items:
            held = self._held[item]
            if not held.signed and held.window < self.window <= self._windows:
                signatures = (*held.relayed.signatures, self._pass_on(held.relayed.entry))
                held.relayed, held.signed = replace(held.relayed, signatures=tuple(sorted(signatures))), True
            sent.append(held.relayed)
        return tuple(sent)


def _add(known: dict[int, Entry], entry: Entry) -> list[Proof]:
    """Add knowledge of a client; returns the proof against it if there was none."""
    before = known.get(entry.client)
    known[entry.client] = after = entry if before is None else join(before, entry)
    return [] if isinstance(after, SignedValue) or alike(before, after) else [after]


def _item(entry: Entry) -> _Item:
    return entry.client, entry.content if isinstance(entry, SignedValue) else b""
