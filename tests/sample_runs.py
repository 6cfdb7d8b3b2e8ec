"""Small made-up runs for the tests of records and report."""

from typing import Any

import msgspec
import numpy as np

from fedelect.records import (
    Exchange,
    Measures,
    Provenance,
    RunHeader,
    RunRecords,
    SelectorEntry,
    SlotRecord,
    from_array,
)
from fedelect.seeds import stream

PROVENANCE = Provenance(
    created="2025-01-31T12:00:00Z",
    command="fedelect run small --seed 3 --out runs/small",
    versions={"fedelect": "0.1.0", "numpy": "2.0"},
    platform="Linux x86_64",
)


def sample_header(**changes: Any) -> RunHeader:
    """A header of two selectors, two trials of six slots, seven clients of which three train."""
    fields: dict[str, Any] = {
        "source": "simulator",
        "framework": "fa",
        "seed": 3,
        "clients": 7,
        "budget": 3,
        "slots": 6,
        "trials": 2,
        "selectors": (
            SelectorEntry(label="best", kind="FixedCohort", parameters={"cohort": [0, 1, 2]}),
            SelectorEntry(label="random", kind="RandomCohort", parameters={}),
        ),
        "scenario": {"name": "small", "model": {"kind": "svm", "step": 1e-7}, "data": {"samples": [200, 900]}},
        "groups": {"iid": (0, 1, 2), "skewed": (3, 4, 5, 6)},
        "provenance": PROVENANCE,
    }
    header = RunHeader(**{**fields, **changes})
    if "untrained" in changes:
        return header
    return RunHeader(**{**fields, "untrained": (0.125,) * header.trials, **changes})


def sample_record(header: RunHeader, selector: str, trial: int, slot: int, **changes: Any) -> SlotRecord:
    """A record that depends on its place and the run's seed only."""
    rng = stream(header.seed, selector, trial, slot)
    cohort = tuple(sorted(rng.choice(header.clients, header.budget, replace=False).tolist()))
    if selector == "best":
        cohort = tuple(range(header.budget))
    opinions = rng.random(header.clients)
    opinions[rng.random(header.clients) < 0.1] = np.nan
    opinions[0] = 0.5
    fields: dict[str, Any] = {
        "selector": selector,
        "trial": trial,
        "slot": slot,
        "status": "done",
        "cohort": cohort,
        "arrivals": tuple(rng.integers(0, 16, size=len(cohort)).tolist()),
        "rounds": 15,
        "empty_rounds": 0,
        "indices": tuple(rng.random(len(cohort)).tolist()),
        "opinions": from_array(opinions),
        "reward": float(np.nanmean(opinions)),
        "exchange": Exchange(rounds=10, residual=1e-9, outcome="settled", messages=280)
        if header.framework == "da"
        else None,
        "seconds": 0.25,
    }
    return SlotRecord(**{**fields, **changes})


def sample_records(header: RunHeader, *, until: int | None = None) -> tuple[SlotRecord, ...]:
    """The records of all selectors and trials, slot by slot, to the end or the slot `until`."""
    last = header.slots if until is None else until
    return tuple(
        sample_record(header, label, trial, slot)
        for slot in range(1, last + 1)
        for label in header.labels
        for trial in range(header.trials)
    )


def sample_run(*, until: int | None = None, **changes: Any) -> RunRecords:
    """A run in memory, finished or recorded up to the slot `until`."""
    header = sample_header(**changes)
    return RunRecords(header, sample_records(header, until=until))


def measured_run(*, until: int | None = None, **changes: Any) -> RunRecords:
    """A warm run with measures: `mine` is between `random` and `oracle`; client 6 of 7 is flawed."""
    kinds = {"mine": "SetGp", "random": "RandomCohort", "oracle": "RandomAmong"}
    selectors = tuple(SelectorEntry(label=label, kind=kind) for label, kind in kinds.items())
    scenario = {"name": "measured", "start": "warm"}
    fields = {"selectors": selectors, "trials": 4, "slots": 30, "scenario": scenario, "flaws": {"copies": (6,)}}
    header = sample_header(**{**fields, **changes})
    records = sample_records(header, until=until)
    return RunRecords(header, tuple(msgspec.structs.replace(one, measures=_measures(header, one)) for one in records))


def _measures(header: RunHeader, record: SlotRecord) -> Measures:
    rng = stream(header.seed, "measures", record.selector, record.trial, record.slot)
    level = {"mine": 0.8, "random": 0.7, "oracle": 0.85}.get(record.selector, 0.6)
    rise = 1.0 - 1.0 / (1.0 + record.slot)
    accuracy = level * rise + 0.01 * record.trial + float(rng.uniform(-0.01, 0.01))
    return Measures(
        accuracy=accuracy,
        low_accuracy=0.8 * accuracy if record.slot in (25, header.slots) else None,
        flawed_share=sum(member == 6 for member in record.cohort) / len(record.cohort),
        evaluations=7,
        bytes_down=(3000 if record.selector == "mine" else 1000) + 10 * record.trial,
        bytes_up=500,
    )
