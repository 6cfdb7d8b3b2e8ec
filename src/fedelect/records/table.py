"""From records to arrays: one row for each trial, one column for each slot or client.

Every function takes a run or its table; call `tabulate` once when you need several. The formulas are in
`fedelect.equations.metrics`.
"""

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from fedelect._machine import as_float, format_bytes, memory_bytes
from fedelect.equations import metrics
from fedelect.errors import ConfigurationError, RunError
from fedelect.records.codec import RecordCheck
from fedelect.records.measures import MeasureCurves, Measured
from fedelect.records.reader import RunRecords, follow_run
from fedelect.records.schema import RunHeader, SelectorEntry, SlotRecord, to_array
from fedelect.vocabulary import Floats, Ints

CurveName = Literal["opinion", "running mean", "running mean with untrained", "accuracy"]
"""Which curve a target is to be reached by; "accuracy" is the clean one, which only measured runs have."""

FIXED_KIND = "FixedCohort"
"""Kind of the selectors among which the best fixed cohort is looked for."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SelectorTable:
    """One selector's records as arrays.

    Attributes:
        entry: The selector.
        opinion: (trials, T) mean opinion of each slot, nan where there is none.
        recorded: (trials, T) whether the slot is on record, done or not.
        selections: (trials, N) in how many slots each client was elected, abandoned ones included.
        attempts: (trials, N) in how many rounds each client was to upload.
        arrivals: (trials, N) how many of these uploads arrived.
        done: Slots that were trained and told, over all trials.
        abandoned: Slots from which nothing was learnt.
        skipped: Slots in which nobody was elected.
        measures: What its slots achieved and cost; None if no slot was measured.
    """

    entry: SelectorEntry
    opinion: Floats
    recorded: NDArray[np.bool_]
    selections: Ints
    attempts: Ints
    arrivals: Ints
    done: int
    abandoned: int
    skipped: int
    measures: MeasureCurves | None = None


@dataclass(frozen=True, eq=False)
class RunTable:
    """A whole run as arrays.

    Attributes:
        header: What the run is; with the names of clients that joined, where the run did not know them beforehand.
        selectors: Label -> table, in the order of the header.
        joined: How many clients have ever been there, numbers 0 to this - 1; None where all N are known beforehand.
    """

    header: RunHeader
    selectors: dict[str, SelectorTable]
    joined: int | None = None

    @property
    def recorded(self) -> int:
        """How many slots are on record, over all selectors and trials."""
        return sum(one.done + one.abandoned + one.skipped for one in self.selectors.values())

    @property
    def untrained(self) -> Floats | None:
        """(trials,) mean opinion of the untrained model, nan where unknown; None if not on record."""
        return None if self.header.untrained is None else to_array(self.header.untrained)

    @property
    def measured(self) -> Measured:
        """The measures of the selectors that have some."""
        tables = {label: one for label, one in self.selectors.items() if one.measures is not None}
        numbers = np.arange(1, self.header.slots + 1)
        ends = [np.where(one.recorded, numbers, 0).max(axis=-1) for one in tables.values()]
        return Measured(
            self.header,
            {label: one.measures for label, one in tables.items() if one.measures is not None},
            np.min(ends, axis=0) if ends else np.zeros(self.header.trials, dtype=np.int64),
        )


class _Tally:
    """Collects one selector's records; plain lists, for they take single values faster than arrays."""

    def __init__(self, header: RunHeader) -> None:
        self.opinion = np.full((header.trials, header.slots), np.nan)
        self.recorded = np.zeros((header.trials, header.slots), dtype=np.bool_)
        self.selections = [[0] * header.clients for _ in range(header.trials)]
        self.attempts = [[0] * header.clients for _ in range(header.trials)]
        self.arrivals = [[0] * header.clients for _ in range(header.trials)]
        self.status = {"done": 0, "abandoned": 0, "skipped": 0}
        self.measures: MeasureCurves | None = None

    def add(self, record: SlotRecord) -> float | None:
        trial, column = record.trial, record.slot - 1
        self.recorded[trial, column] = True
        self.status[record.status] += 1
        mean = mean_opinion(record)
        if mean is not None:
            self.opinion[trial, column] = mean
        selections, attempts, arrivals = self.selections[trial], self.attempts[trial], self.arrivals[trial]
        for client, arrived in zip(record.cohort, record.arrivals, strict=True):
            selections[client] += 1
            attempts[client] += record.rounds
            arrivals[client] += arrived
        if record.measures is not None:
            if self.measures is None:
                self.measures = MeasureCurves.empty(*self.opinion.shape)
            self.measures.put(trial, record.slot, record.measures)
        return mean

    def finish(self, entry: SelectorEntry) -> SelectorTable:
        return SelectorTable(
            entry=entry,
            opinion=self.opinion.copy(),
            recorded=self.recorded.copy(),
            selections=np.array(self.selections, dtype=np.int64),
            attempts=np.array(self.attempts, dtype=np.int64),
            arrivals=np.array(self.arrivals, dtype=np.int64),
            done=self.status["done"],
            abandoned=self.status["abandoned"],
            skipped=self.status["skipped"],
            measures=None if self.measures is None else self.measures.copy(),
        )


def mean_opinion(record: SlotRecord) -> float | None:
    """Return the average opinion of a record: the one on record, else the mean of its opinions.

    Where neither is on record (opinions stayed with the clients, or were only summed) it is the reward, with
    whatever noise that carries. None for a slot that is not done, or if there is none of these.
    """
    if record.status != "done":
        return None
    if record.mean_opinion is not None:
        return record.mean_opinion
    if record.opinions is None:
        return record.reward
    present = [opinion for opinion in record.opinions if opinion is not None]
    return math.fsum(present) / len(present) if present else None


def tabulate(run: RunRecords | RunTable) -> RunTable:
    """The run's records as arrays (a table is handed back as it is).

    Raises:
        RunError: A record does not fit the header; a run that was read from disk has been checked before.
    """
    if isinstance(run, RunTable):
        return run
    check = RecordCheck(run.header)
    for record in run.records:
        check(record)
    return _collect(run.header, run.records)


def read_table(path: str | os.PathLike[str]) -> RunTable:
    """The run in folder `path` as arrays, without holding its records: for runs too large for `read_run`."""
    run = follow_run(path)
    return _collect(run.header, run.fresh())


class TableBuilder:
    """Fills the table of a run record by record; for a run that is still growing. Records are not checked again."""

    def __init__(self, header: RunHeader) -> None:
        _refuse_too_large(header)
        self._header = header
        self._tallies = {label: _Tally(header) for label in header.labels}
        self._names: dict[int, str] = {}

    def add(self, record: SlotRecord) -> float | None:
        """Count one more record of the run; its mean opinion (see `mean_opinion`)."""
        self._names.update(record.joined)
        return self._tallies[record.selector].add(record)

    def table(self) -> RunTable:
        """The table of all records so far; later ones do not change it."""
        header = self._header
        tables = {entry.label: self._tallies[entry.label].finish(entry) for entry in header.selectors}
        if header.client_names is not None or not self._names:
            return RunTable(header, tables)
        names = tuple(self._names.get(client, f"free place {client}") for client in range(header.clients))
        return RunTable(msgspec.structs.replace(header, client_names=names), tables, len(self._names))


def _refuse_too_large(header: RunHeader) -> None:
    """Raise RunError if the table of a run does not fit into memory."""
    needed = len(header.selectors) * header.trials * (9.0 * as_float(header.slots) + 24.0 * as_float(header.clients))
    if needed > memory_bytes():
        raise RunError(
            f"a table of {header.trials:,} trials, {header.slots:,} slots and {header.clients:,} clients takes "
            f"{format_bytes(needed)}, more than this machine's memory of {format_bytes(memory_bytes())}; iterate over "
            f"the records instead (`Run.records`)"
        )


def _collect(header: RunHeader, records: Iterable[SlotRecord]) -> RunTable:
    builder = TableBuilder(header)
    for record in records:
        builder.add(record)
    return builder.table()


def opinion_curves(run: RunRecords | RunTable) -> dict[str, Floats]:
    """Label -> (trials, T) mean opinion of each slot, nan where there is none."""
    return {label: table.opinion for label, table in tabulate(run).selectors.items()}


def running_mean_curves(run: RunRecords | RunTable, *, with_untrained: bool = False) -> dict[str, Floats]:
    """Label -> (trials, T) mean opinion up to each slot; nan in slots that are not on record.

    Args:
        run: The run.
        with_untrained: Count the untrained model's opinion as the first term, as the paper's table
            `comparison_table` seems to; ConfigurationError if the run does not hold it.
    """
    table = tabulate(run)
    if with_untrained and table.untrained is None:
        raise ConfigurationError(
            "the run does not hold the untrained model's opinion (`untrained` in its header); "
            "ask for the running mean without it"
        )
    first = table.untrained if with_untrained else None
    return {
        label: np.where(one.recorded, metrics.running_mean(one.opinion, first), np.nan)
        for label, one in table.selectors.items()
    }


def accuracy_curves(run: RunRecords | RunTable) -> dict[str, Floats]:
    """Label -> (trials, T) clean accuracy of each slot's model, nan where it was not measured."""
    return {
        label: np.full_like(one.opinion, np.nan) if one.measures is None else one.measures.accuracy
        for label, one in tabulate(run).selectors.items()
    }


def curves(run: RunRecords | RunTable, name: CurveName) -> dict[str, Floats]:
    """Label -> (trials, T), the curve called `name`."""
    if name == "opinion":
        return opinion_curves(run)
    if name == "accuracy":
        return accuracy_curves(run)
    return running_mean_curves(run, with_untrained=name == "running mean with untrained")


def selection_counts(run: RunRecords | RunTable) -> dict[str, Ints]:
    """Label -> (trials, N): in how many slots each client was elected."""
    return {label: table.selections for label, table in tabulate(run).selectors.items()}


def group_shares(run: RunRecords | RunTable) -> dict[str, dict[str, Floats]]:
    """Label -> group -> (trials,): share of all elections that went to the group; nan before the first."""
    table = tabulate(run)
    return {
        label: {group: metrics.group_share(one.selections, members) for group, members in table.header.groups.items()}
        for label, one in table.selectors.items()
    }


def time_to_target(
    run: RunRecords | RunTable, target: float, *, by: CurveName = "running mean"
) -> dict[str, metrics.TimeToTarget]:
    """Label -> first slot (T when never), value there and whether reached, each (trials,)."""
    return {label: metrics.time_to_target(curve, target) for label, curve in curves(run, by).items()}


def regret_curves(run: RunRecords | RunTable, oracle: float | Floats) -> dict[str, Floats]:
    """Label -> (trials, T) cumulative regret against `oracle`, a number or an array that broadcasts to (trials, T).

    nan in slots that are not on record; slots on record without an opinion add nothing.
    """
    return {
        label: np.where(one.recorded, metrics.regret(one.opinion, oracle), np.nan)
        for label, one in tabulate(run).selectors.items()
    }


def best_fixed(run: RunRecords | RunTable) -> str | None:
    """Label of the fixed cohort with the highest mean opinion over all slots and trials; None if there is none."""
    means = {
        label: float(metrics.mean_present_slots(one.opinion.reshape(-1)))
        for label, one in tabulate(run).selectors.items()
        if one.entry.kind == FIXED_KIND
    }
    played = {label: mean for label, mean in means.items() if not math.isnan(mean)}
    return max(played, key=played.__getitem__) if played else None


def gaps_to_best(run: RunRecords | RunTable) -> dict[str, Floats] | None:
    """Label -> (trials,): by how much opinion a slot the best cohort known is ahead; negative where the selector is.

    The best known is the world's optimum, if the header has it: its value minus the selector's mean. Else it is the
    best fixed cohort of the run, paired by trial and slot over the slots both have. None without either.
    """
    table = tabulate(run)
    if table.header.optimum is not None:
        value = table.header.optimum.value
        return {label: value - metrics.mean_present_slots(one.opinion) for label, one in table.selectors.items()}
    label = best_fixed(table)
    if label is None:
        return None
    best = table.selectors[label].opinion
    return {other: metrics.gap_to(best, one.opinion) for other, one in table.selectors.items()}
