"""Complete the server's records of a run with the slot logs that every peer keeps in its own folder.

Possible where all folders can be read: on one machine, or if every client hands its log over.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from fedelect.equations.beliefs import outcome_of
from fedelect.federation import Engine, versions_of
from fedelect.measurement import opinions_on
from fedelect.records import Exchange, RunHeader, SelectorEntry, SlotRecord, create_provenance, from_array
from fedelect.runtime.host_messages import SLOTS_NAME, SlotLog, decode_logs
from fedelect.runtime.roster import Roster
from fedelect.scenario import Scenario
from fedelect.vocabulary import mean_present

LABEL = "peers"
"""Label of the election in the records."""


def build_header(
    scenario: Scenario, *, slots: int, seed: int, engine: Engine, digest: str, roster: Roster, command: str
) -> RunHeader:
    """Build the header of a run whose world is known; `command` repeats it."""
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
        provenance=create_provenance(command, versions_of(engine.name)),
    )


def add_slot_logs(records: Sequence[SlotRecord], fed: Path, roster: Roster) -> list[SlotRecord]:
    """Add opinions, beliefs, indices and messages of each slot from the peers' logs.

    Args:
        records: The server's record of each slot.
        fed: Folder that holds all peers' folders; read it when the run is over.
        roster: The members.
    """
    logs = [_read_logs(fed / member.name) for member in roster.members]
    indices = {log.slot: log.indices for of_peer in logs for log in of_peer if log.indices}  # the same for all
    judged = [_by_judged_slot(of_peer) for of_peer in logs]
    return [_complete(one, [of_peer.get(one.slot) for of_peer in judged], indices, roster) for one in records]


def _read_logs(folder: Path) -> list[SlotLog]:
    """Return the logs of a peer, the last one for each slot, in order of slots."""
    path = folder / SLOTS_NAME
    last = {log.slot: log for log in decode_logs(path.read_bytes())} if path.exists() else {}
    return [log for _, log in sorted(last.items())]


def _by_judged_slot(logs: Sequence[SlotLog]) -> dict[int, SlotLog]:
    """By trained slot, the log of the first election in which its model was judged."""
    first: dict[int, SlotLog] = {}
    for log in logs:
        if log.judged > 0:
            first.setdefault(log.judged, log)
    return first


def _complete(
    record: SlotRecord, logs: Sequence[SlotLog | None], indices: Mapping[int, tuple[float, ...]], roster: Roster
) -> SlotRecord:
    if record.status != "done":
        return record
    known = [log for log in logs if log is not None]
    residual = max((log.residual for log in known if log.residual is not None), default=0.0)
    rounds = roster.settings.rounds if roster.settings.reading == "ising" else 0
    return msgspec.structs.replace(
        record,
        indices=indices.get(record.slot, ()),
        opinions=from_array([_or_nan(None if log is None else log.opinion) for log in logs]),
        beliefs=from_array([_or_nan(None if log is None else log.belief) for log in logs]),
        exchange=Exchange(
            rounds=rounds,
            residual=residual,
            outcome=str(outcome_of(rounds, residual)),
            messages=sum(log.sent for log in known),
        ),
    )


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
