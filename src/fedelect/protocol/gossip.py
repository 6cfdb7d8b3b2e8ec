"""Values and votes of one slot, spread by gossip: FloodSet in synchronous rounds, then votes.

Knowledge of a client only grows: nothing < its value < proof that it misbehaved. `join` is the least upper bound of two
entries (all proofs are equal): idempotent, commutative, associative. So messages may arrive twice, late or in any
order.

A message of round r holds every entry that its receiver has not acknowledged, so the last one to arrive makes up for
lost ones. A neighbour acknowledges an entry by sending it, or by ending a round for which it needed the message with
that entry. A peer ends round r when every neighbour that has not gone has sent round r, and freezes its map after the
last round. A frozen map never changes.
"""

from collections.abc import Callable, Iterable, Mapping

from fedelect.protocol.proofs import Proof, TwoValues, TwoVotes
from fedelect.protocol.statements import Certificate, SignedValue, Vote

Entry = SignedValue | Proof
"""Knowledge of one client."""


def join(one: Entry, other: Entry) -> Entry:
    """Least upper bound of two entries of one client."""
    if not isinstance(one, SignedValue):
        return one
    if not isinstance(other, SignedValue):
        return other
    return one if one == other else TwoValues(one, other)


def alike(one: Entry | None, other: Entry | None) -> bool:
    """Whether both entries are the same value, or both are proofs."""
    if isinstance(one, SignedValue) or isinstance(other, SignedValue):
        return one == other
    return (one is None) == (other is None)


class Flood:
    """One peer's map in one slot and on one history.

    Args:
        neighbours: The peer's neighbours.
        rounds: R.
    """

    def __init__(self, neighbours: Iterable[int], rounds: int) -> None:
        self.entries: dict[int, Entry] = {}
        self.round = 0
        self.begun = False  # whether round 1 may begin: this peer's own value is in
        self.frozen = False
        self._rounds = rounds
        self._heard = dict.fromkeys(neighbours, 0)
        self._shown: dict[int, dict[int, Entry]] = {neighbour: {} for neighbour in self._heard}
        # For each neighbour, the clients whose entry it may lack, and in which round that was first sent (0: not yet).
        self._due: dict[int, dict[int, int]] = {neighbour: {} for neighbour in self._heard}

    def filter_new(self, entries: Iterable[Entry]) -> list[Entry]:
        """The entries that add knowledge; verify them before `learn`."""
        known = self.entries
        return [
            entry
            for entry in entries
            if entry.client not in known or not alike(join(known[entry.client], entry), known[entry.client])
        ]

    def learn(self, entries: Iterable[Entry], *, source: int | None = None, round_number: int = 0) -> list[Proof]:
        """Add the entries that neighbour `source` (None: this peer) sent in its round; returns new proofs.

        A frozen map does not change, but an entry that contradicts it still gives a proof.
        """
        proofs: list[Proof] = []
        for entry in entries:
            before = self.entries.get(entry.client)
            after = entry if before is None else join(before, entry)
            if source is not None:
                shown = self._shown[source]
                shown[entry.client] = join(shown.get(entry.client, entry), entry)
            if not alike(before, after):
                if not isinstance(after, SignedValue):
                    proofs.append(after)
                if not self.frozen:
                    self.entries[entry.client] = after
                    for due in self._due.values():
                        due[entry.client] = 0
            if source is not None and alike(self.entries.get(entry.client), shown[entry.client]):
                self._due[source].pop(entry.client, None)
        if source is not None:
            self._heard[source] = max(self._heard[source], round_number)
        return proofs

    def outgoing(self, neighbour: int, *, everything: bool = False) -> tuple[Entry, ...]:
        """Entries of a message of the present round: all that `neighbour` has not acknowledged.

        With `everything`, also those that it lacks only if it has given this peer up.
        """
        if everything:
            shown = self._shown[neighbour]
            return tuple(entry for client, entry in self.entries.items() if not alike(shown.get(client), entry))
        due, heard = self._due[neighbour], self._heard[neighbour]
        for client, since in list(due.items()):
            if since == 0:
                due[client] = self.round
            elif since < heard:  # it ended that round, for which it needed our message
                del due[client]
        return tuple(self.entries[client] for client in due)

    def latest_round(self, neighbour: int) -> int:
        """The latest round that `neighbour` has sent; 0 if none."""
        return self._heard[neighbour]

    def missing(self) -> tuple[int, ...]:
        """The neighbours whose message of the present round has not arrived."""
        if self.frozen or not self.round:
            return ()
        return tuple(neighbour for neighbour, heard in self._heard.items() if heard < self.round)

    def advance(self, gone: Callable[[int], bool]) -> bool:
        """Begin the next round if the present one is over, or freeze after the last; returns whether it did."""
        if self.frozen or not self.begun or not all(gone(neighbour) for neighbour in self.missing()):
            return False
        self.round += 1
        self.frozen = self.round > self._rounds
        return True

    def frozen_values(self) -> Mapping[int, SignedValue | None]:
        """By client, its value, or None if it is proven to have misbehaved."""
        return {client: entry if isinstance(entry, SignedValue) else None for client, entry in self.entries.items()}


_MAX_VOTES = 2  # votes of one client that are kept: two prove misbehaviour


class Ballots:
    """The votes of one slot on one history, and the votes that each neighbour has acknowledged.

    Args:
        neighbours: The peer's neighbours.
        quorum: Votes for one statement that make a certificate.
    """

    def __init__(self, neighbours: Iterable[int], quorum: int) -> None:
        self._quorum = quorum
        self._votes: dict[int, list[Vote]] = {}
        self._shown: dict[int, set[tuple[int, bytes]]] = {neighbour: set() for neighbour in neighbours}

    def filter_new(self, votes: Iterable[Vote]) -> list[Vote]:
        """The votes that are new and would be kept; verify them before `learn`."""
        return [vote for vote in votes if self._is_new(vote)]

    def learn(self, votes: Iterable[Vote], *, source: int | None = None) -> tuple[list[Vote], list[TwoVotes]]:
        """Add votes; returns the new ones, and proofs that follow."""
        fresh: list[Vote] = []
        proofs: list[TwoVotes] = []
        for vote in votes:
            cast = self._votes.setdefault(vote.client, [])
            if self._is_new(vote):
                proofs += [TwoVotes(earlier, vote) for earlier in cast[:1]]
                cast.append(vote)
                fresh.append(vote)
            # Votes that are not kept were not verified and are unlimited: do not note them either.
            if source is not None and any(vote.statement == kept.statement for kept in cast):
                self._shown[source].add(_name(vote))
        return fresh, proofs

    def unacknowledged(self, neighbour: int) -> tuple[Vote, ...]:
        """The votes that `neighbour` has not acknowledged, in client order."""
        shown = self._shown[neighbour]
        return tuple(vote for client in sorted(self._votes) for vote in self._votes[client] if _name(vote) not in shown)

    def missing_at(self, neighbour: int, votes: Iterable[Vote]) -> tuple[Vote, ...]:
        """Those of `votes` that `neighbour` has not acknowledged."""
        return tuple(vote for vote in votes if _name(vote) not in self._shown[neighbour])

    def certificate(self) -> Certificate | None:
        """The certificate that the votes make; None without a quorum."""
        votes = max(self._by_statement(), key=len, default=[])
        if len(votes) < self._quorum:
            return None
        return Certificate(votes[0].statement, tuple((vote.client, vote.signature) for vote in votes))

    def most(self) -> int:
        """Largest number of votes for one statement."""
        return max(map(len, self._by_statement()), default=0)

    def voters(self) -> tuple[int, ...]:
        """The clients that have voted, in order."""
        return tuple(sorted(self._votes))

    def _by_statement(self) -> list[list[Vote]]:
        by_statement: dict[bytes, list[Vote]] = {}
        for client in sorted(self._votes):
            for vote in self._votes[client]:
                by_statement.setdefault(vote.statement.identity, []).append(vote)
        return list(by_statement.values())

    def _is_new(self, vote: Vote) -> bool:
        cast = self._votes.get(vote.client, [])
        return len(cast) < _MAX_VOTES and all(vote.statement != earlier.statement for earlier in cast)


def _name(vote: Vote) -> tuple[int, bytes]:
    return vote.client, vote.statement.identity
