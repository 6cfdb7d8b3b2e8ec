"""What gossip spreads in one slot: knowledge of the clients, and votes.

Knowledge of a client only grows: nothing < its value < proof that it misbehaved. `join` is the least upper bound of two
entries (all proofs are equal): idempotent, commutative, associative. So messages may arrive twice, late or in any
order. How entries spread is in `fedelect.protocol.flood`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from fedelect.protocol.proofs import Proof, TwoValues, TwoVotes
from fedelect.protocol.statements import Certificate, SignedValue, Vote

Entry = SignedValue | Proof
"""Knowledge of one client."""


@dataclass(frozen=True, slots=True)
class Relayed:
    """An entry as it is passed on.

    Attributes:
        entry: A value, or a proof.
        signatures: (client, signature of `relay_content`) pairs in order of client: of those that passed it on, without
            the client that it is about.
    """

    entry: Entry
    signatures: tuple[tuple[int, bytes], ...] = ()


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
