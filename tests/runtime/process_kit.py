"""A federation of real processes for tests, and what journals tell. Waits have deadlines; nothing is left behind."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.federation_kit import Place, listening_federation, opinions_of

from fedelect.protocol.statements import SignedValue, Vote
from fedelect.runtime.host_messages import Notice, Phase
from fedelect.runtime.journal import Journal
from fedelect.runtime.launch import PeerProcesses, ProcessEnded
from fedelect.runtime.roster import Roster
from fedelect.runtime.server import DirectElections, ElectionServer
from fedelect.runtime.signing import Ed25519Verifier

START_S = 120.0
MOST_SLOTS = 60
QUICK: dict[str, Any] = {"max_faulty": 1, "resend_s": 0.3, "silent_intervals": 8, "slot_s": 40.0}


class Real:
    """A federation of real processes.

    `wraps` is as in `PeerProcesses`. `on_notice` is called with whatever a peer says while an election is held.
    """

    def __init__(
        self,
        where: Place,
        roster: Roster,
        folders: dict[int, Path],
        wraps: Mapping[int, tuple[str, ...]] | None = None,
    ) -> None:
        self.where = where
        self.roster, self.folders = roster, folders
        self.peers = PeerProcesses(self.folders, wraps)
        self.heard: list[tuple[int, Notice | ProcessEnded]] = []
        self.on_notice: Callable[[int, Notice | ProcessEnded], None] = lambda client, notice: None
        self.server = DirectElections(self.peers, ElectionServer(self.roster.config(), Ed25519Verifier()), self._hear)

    def _hear(self, client: int, notice: Notice | ProcessEnded) -> None:
        self.heard.append((client, notice))
        self.on_notice(client, notice)

    def wait(self, kind: type, client: int, **values: object) -> None:
        def seen(who: int, notice: object) -> bool:
            fits = isinstance(notice, kind) and all(getattr(notice, name) == one for name, one in values.items())
            return fits and who == client

        assert self.peers.listen(seen, START_S), f"peer {client} never said {kind.__name__} {values}"

    def elect(self, slot: int, clients: list[int]) -> frozenset[int]:
        """Hold an election among some; returns who decided."""
        self.begin(slot, clients)
        return self.finish(slot, clients)

    def begin(self, slot: int, clients: Iterable[int]) -> None:
        given = opinions_of(slot - 1, self.where.clients) if slot > 1 else dict.fromkeys(range(self.where.clients))
        self.server.begin_with(slot, judged=slot - 1, opinions={client: given[client] for client in clients})

    def finish(self, slot: int, clients: list[int]) -> frozenset[int]:
        held = self.server.hold(slot, within_s=60.0, all_of=frozenset(clients))
        assert held.certificate is not None, f"slot {slot}: {held.reason}"
        return held.decided_by

    def elect_until_voted(self, slot: int, clients: list[int]) -> int:
        """Hold elections from `slot` on until each of `clients` has voted in one of them; returns the last slot.

        A peer that has just come back need not vote in the next slot: it may see the certificate first.
        """
        waiting = set(clients)
        seen = len(self.heard)
        for last in range(slot, slot + MOST_SLOTS):
            self.elect(last, list(range(self.where.clients)))
            waiting -= {
                client
                for client, notice in self.heard[seen:]
                if isinstance(notice, Phase) and notice.slot >= slot and notice.phase == "certifying"
            }
            if not waiting:
                return last
        raise AssertionError(f"no vote of {sorted(waiting)} in {MOST_SLOTS} slots")


@contextlib.contextmanager
def real(
    out: Path,
    where: Place,
    *,
    without: tuple[int, ...] = (),
    prepare: Callable[[Real], None] = lambda made: None,
    all_up: bool = True,
    wraps: Mapping[int, tuple[str, ...]] | None = None,
    **settings: Any,
) -> Iterator[Real]:
    """Run the processes; `prepare` is called before they start, and unless `all_up` they are not waited for."""
    numbers: list[int] = []
    with listening_federation(out, where, **settings) as (roster, folders):
        made = Real(where, roster, folders, wraps)
        prepare(made)
        with made.peers:
            if all_up and not without:
                made.peers.start_all(START_S)
            else:
                for client in set(made.folders) - set(without):
                    made.peers.start(client)
            yield made
            numbers = [process.number for process in made.peers.processes.values()]
            made.peers.stop_all(START_S)  # tests read what they noted
    for number in numbers:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


def votes_of(folder: Path) -> list[int]:
    journal = Journal(folder)
    journal.close()
    values = [record.slot for record in journal.records if isinstance(record, SignedValue)]
    votes = [record.statement.slot for record in journal.records if isinstance(record, Vote)]
    assert len(set(values)) == len(values)
    assert len(set(votes)) == len(votes)
    return votes
