"""The votes of one slot on one history, and the certificate they may add up to."""

from collections.abc import Iterable

from fedelect.protocol.proofs import TwoVotes
from fedelect.protocol.statements import Certificate, Vote

_MOST = 2  # votes of one client that are kept: two prove that it lied, more prove no more


class Ballots:
    """Votes by client, and what each neighbour has shown to know of them.

    Args:
        neighbours: Who is next to this peer.
        quorum: How many votes for one statement make a certificate.
    """

    def __init__(self, neighbours: Iterable[int], quorum: int) -> None:
        self._quorum = quorum
        self._votes: dict[int, list[Vote]] = {}
        self._shown: dict[int, set[tuple[int, bytes]]] = {neighbour: set() for neighbour in neighbours}

    def news(self, votes: Iterable[Vote]) -> list[Vote]:
        """Those of `votes` that are not known and would be kept: they have to be verified before `learn`."""
        return [vote for vote in votes if self._is_new(vote)]

    def learn(self, votes: Iterable[Vote], *, source: int | None = None) -> tuple[list[Vote], list[TwoVotes]]:
        """Take in votes; returns those that were new, and what they prove."""
        fresh: list[Vote] = []
        proofs: list[TwoVotes] = []
        for vote in votes:
            cast = self._votes.setdefault(vote.client, [])
            if self._is_new(vote):
                proofs += [TwoVotes(earlier, vote) for earlier in cast[:1]]
                cast.append(vote)
                fresh.append(vote)
            # Of what is not kept nothing is noted either: it was not verified, and there may be any amount of it.
            if source is not None and any(vote.statement == kept.statement for kept in cast):
                self._shown[source].add(_name(vote))
        return fresh, proofs

    def unshown(self, neighbour: int) -> tuple[Vote, ...]:
        """The votes that `neighbour` has not shown to know, in client order."""
        shown = self._shown[neighbour]
        return tuple(vote for client in sorted(self._votes) for vote in self._votes[client] if _name(vote) not in shown)

    def lacking(self, neighbour: int, votes: Iterable[Vote]) -> tuple[Vote, ...]:
        """Those of `votes` that `neighbour` has not shown to know."""
        return tuple(vote for vote in votes if _name(vote) not in self._shown[neighbour])

    def certificate(self) -> Certificate | None:
        """The statement that a quorum voted for, with their signatures; None if there is none."""
        votes = max(self._by_statement(), key=len, default=[])
        if len(votes) < self._quorum:
            return None
        return Certificate(votes[0].statement, tuple((vote.client, vote.signature) for vote in votes))

    def most(self) -> int:
        """How many votes the statement with most votes has."""
        return max(map(len, self._by_statement()), default=0)

    def voters(self) -> tuple[int, ...]:
        """Who has voted, in order."""
        return tuple(sorted(self._votes))

    def _by_statement(self) -> list[list[Vote]]:
        by_statement: dict[bytes, list[Vote]] = {}
        for client in sorted(self._votes):
            for vote in self._votes[client]:
                by_statement.setdefault(vote.statement.identity, []).append(vote)
        return list(by_statement.values())

    def _is_new(self, vote: Vote) -> bool:
        cast = self._votes.get(vote.client, [])
        return len(cast) < _MOST and all(vote.statement != earlier.statement for earlier in cast)


def _name(vote: Vote) -> tuple[int, bytes]:
    return vote.client, vote.statement.identity
