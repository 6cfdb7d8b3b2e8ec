"""The run folder of a demo, put together after the end from what the server trained and what the peers noted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np

from fedelect.equations.beliefs import outcome_of
from fedelect.federation import Engine, Training
from fedelect.loop import opinions_on
from fedelect.records import Exchange, Provenance, RunHeader, SelectorEntry, SlotRecord, from_array
from fedelect.runtime.demo.elections import ElectionResult
from fedelect.runtime.host_messages import SLOTS_NAME, SlotLog, decode_logs
from fedelect.runtime.roster import Roster
from fedelect.scenario import Scenario
from fedelect.vocabulary import mean_present

LABEL = "peers"
"""What the election is called in the records."""

README = """# A federation of real peers

Made by `fedelect peers demo`.

- `fed/peerNN`: all that a peer has. Its keys, roster and certificate, its own test share, its journal (what it signed,
  and the certificates), and its own notes (`slots.jsonl`: opinion, mean, belief).
- `fed/server`: all that the FL server has of the election, the roster. It holds no key.
- `fed/ca`: the certificate authority. In a real federation lock it away, far from the FL server.
- `models`: what the server trained, slot by slot, broadcast to all peers as files.
- `run`: the records, for `fedelect show` and `fedelect report`.

While the run went on, the server learnt of each election nothing but its certificate. The opinions and beliefs in the
records were collected from the peers' folders after the end, for the report: on one machine that is a matter of reading
files; in a real federation every client would have to hand them over.
"""


@dataclass(frozen=True, slots=True)
class Played:
    """What the server knows of a slot.

    Attributes:
        held: The election.
        training: What was trained, if anything.
        seconds: Wall-clock time of both.
    """

    held: ElectionResult
    training: Training | None
    seconds: float


def header_of(
    scenario: Scenario, *, slots: int, seed: int, engine: Engine, digest: str, roster: Roster, **provenance: Any
) -> RunHeader:
    """The header of the run; `provenance` is as in `fedelect.records.Provenance`."""
    (untrained,) = opinions_on(scenario, [engine.initial_model(scenario)], engine=engine)
    parameters = cast("dict[str, Any]", msgspec.to_builtins(roster.settings))
    del parameters["budget"], parameters["seed"]
    return RunHeader(
        source="peers",
        engine=engine.name,
        framework="da",
        seed=seed,
        clients=scenario.clients,
        budget=scenario.budget,
        slots=slots,
        trials=1,
        selectors=(SelectorEntry(label=LABEL, kind="Peer", parameters=parameters),),
        scenario=cast("dict[str, Any]", msgspec.to_builtins(scenario.config)),
        data_digest=digest,
        groups=dict(scenario.groups),
        client_names=tuple(member.name for member in roster.members),
        positions_km=tuple((float(x), float(y)) for x, y in scenario.positions_km),
        edges=roster.edges,
        sizes=tuple(scenario.sizes.tolist()),
        upload_probability=tuple(scenario.upload_probability.tolist()),
        untrained=(mean_present(untrained),),
        provenance=Provenance(**provenance),
    )


def records_of(fed: Path, roster: Roster, played: Sequence[Played]) -> list[SlotRecord]:
    """A record for each slot that was played, with what the peers noted of it."""
    return noted(fed, roster, [_known_to_the_server(one) for one in played])


def noted(fed: Path, roster: Roster, records: Sequence[SlotRecord]) -> list[SlotRecord]:
    """The server's records with what the peers noted of each slot: opinions, beliefs, indices, messages.

    Args:
        fed: The folder that holds all peers' folders; to be read when the run is over.
        roster: Who they are.
        records: A record for each slot, without any of that.
    """
    notes = [_notes(fed / member.name) for member in roster.members]
    indices = {
        log.slot: log.indices for logs in notes for log in logs.values() if log.indices
    }  # all that have any have the same
    judged = [_by_judged(logs) for logs in notes]
    return [_with_notes(one, [logs.get(one.slot) for logs in judged], indices, roster) for one in records]


def _notes(folder: Path) -> dict[int, SlotLog]:
    path = folder / SLOTS_NAME
    return {log.slot: log for log in decode_logs(path.read_bytes())} if path.exists() else {}


def _by_judged(logs: Mapping[int, SlotLog]) -> dict[int, SlotLog]:
    """By trained slot, the first election in which its model was judged."""
    first: dict[int, SlotLog] = {}
    for _, log in sorted(logs.items()):
        if log.judged > 0:
            first.setdefault(log.judged, log)
    return first


def _known_to_the_server(played: Played) -> SlotRecord:
    held, training = played.held, played.training
    if held.certificate is None or training is None:
        return SlotRecord(
            selector=LABEL,
            trial=0,
            slot=held.slot,
            status="skipped",
            cohort=(),
            arrivals=(),
            rounds=0,
            empty_rounds=0,
            note=held.reason or "no certificate",
            seconds=played.seconds,
        )
    return SlotRecord(
        selector=LABEL,
        trial=0,
        slot=held.slot,
        status="done",
        cohort=held.certificate.cohort,
        arrivals=tuple(np.sum(training.arrivals, axis=0).tolist()),
        rounds=len(training.arrivals),
        empty_rounds=int(np.count_nonzero(~training.arrivals.any(axis=1))),
        seconds=played.seconds,
    )


def _with_notes(
    record: SlotRecord, logs: Sequence[SlotLog | None], indices: Mapping[int, tuple[float, ...]], roster: Roster
) -> SlotRecord:
    if record.status != "done":
        return record
    there = [log for log in logs if log is not None]
    residual = max((log.residual for log in there if log.residual is not None), default=0.0)
    rounds = roster.settings.rounds if roster.settings.reading == "ising" else 0
    return msgspec.structs.replace(
        record,
        indices=indices.get(record.slot, ()),
        opinions=from_array([_number(None if log is None else log.opinion) for log in logs]),
        beliefs=from_array([_number(None if log is None else log.belief) for log in logs]),
        exchange=Exchange(
            rounds=rounds,
            residual=residual,
            outcome=str(outcome_of(rounds, residual)),
            messages=sum(log.sent for log in there),
        ),
    )


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
