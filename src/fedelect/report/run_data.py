"""Accumulate a run's records in one pass into what the page and the figures show."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedelect.equations.beliefs import SETTLED_RESIDUAL
from fedelect.records import RunHeader, RunTable, SelectorTable, SlotRecord, TableBuilder, to_array
from fedelect.report.thinning import Thinning, choose_thinning
from fedelect.vocabulary import Cohort, Floats, Ints

STATUSES = ("", "done", "abandoned", "skipped")
"""Meaning of the numbers in `Frames.status`; 0 is a slot that is not on record."""

ALL_CLIENTS = "all clients"
ELECTED = "the elected"

TOLD_TOLERANCE = 1e-9
"""By how much a reward may differ from the mean of the opinions on record and still be that mean."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Frames:
    """One selector's slots for the map; R trials, S slots, n clients and K as in `Thinning` and the header.

    Attributes:
        status: (R, S) index into `STATUSES`.
        rounds: (R, S) rounds of training.
        members: (R, S, K) the cohort, -1 where there is none; wider if one was larger than K.
        arrivals: (R, S, K) in how many rounds each member's upload arrived.
        opinions: (R, S, n) nan where there is none.
        beliefs: (R, S, n) the same; None under federated analytics.
        elections: (R, S, n) in how many slots of the trial, up to this one, the client was elected.
    """

    status: Ints
    rounds: Ints
    members: Ints
    arrivals: Ints
    opinions: Floats
    beliefs: Floats | None
    elections: Ints


@dataclass(frozen=True, eq=False, kw_only=True)
class RunData:
    """Accumulated data of one run.

    Attributes:
        name: Name of the run on the page.
        table: Its records as arrays.
        thinning: The part of it that is drawn.
        frames: Label -> slots for the map.
        beliefs: Label -> whose beliefs -> (trials, T) their mean, nan where there is none; empty without beliefs.
        cohorts: Cohort -> (how often it was played, mean opinion), over all selectors and trials.
        unsettled: Label -> (exchanges of beliefs that had not settled, exchanges in all).
        noise: (least, greatest) standard deviation of the noise added to a reward, slots without any left out; None
            if none was added.
        noise_shown: Whether rewards with noise stand in for opinions that are not on record.
        told_otherwise: Label -> slots in which the selector was told another average than the mean of the opinions on
            record by more than `TOLD_TOLERANCE`, noise aside; labels without such a slot are left out.
        told_gains: Whether a selector was told something else than the average opinion on record: in a warm run, what a
            slot gained.
    """

    name: str
    table: RunTable
    thinning: Thinning
    frames: dict[str, Frames]
    beliefs: dict[str, dict[str, Floats]]
    cohorts: dict[Cohort, tuple[int, float]]
    unsettled: dict[str, tuple[int, int]]
    noise: tuple[float, float] | None
    noise_shown: bool
    told_otherwise: dict[str, int]
    told_gains: bool

    @property
    def noisy(self) -> bool:
        """Whether noise was added to a reward."""
        return self.noise is not None

    @property
    def header(self) -> RunHeader:
        """The header of the run."""
        return self.table.header


class RunAccumulator:
    """Accumulates records one by one; `result` may be called at any time."""

    def __init__(self, header: RunHeader, *, name: str, runs: int = 1) -> None:
        self.header = header
        self._name = name
        self._thinning = choose_thinning(header, runs=runs)
        self._table = TableBuilder(header)
        self._frames = {label: _FramesAccumulator(header, self._thinning) for label in header.labels}
        self._beliefs: dict[str, _BeliefsAccumulator] = {}
        self._totals: dict[Cohort, float] = {}
        self._plays: dict[Cohort, int] = {}
        self._unsettled: dict[str, list[int]] = {}
        self._noise: tuple[float, float] | None = None
        self._noise_shown = False
        self._told_otherwise: dict[str, int] = {}
        self._told_gains = False

    def add(self, record: SlotRecord) -> None:
        """Add a record."""
        mean = self._table.add(record)
        self._frames[record.selector].add(record)
        self._add_reward(record, mean)
        if mean is not None:
            self._totals[record.cohort] = self._totals.get(record.cohort, 0.0) + mean
            self._plays[record.cohort] = self._plays.get(record.cohort, 0) + 1
        if record.beliefs is not None:
            if record.selector not in self._beliefs:
                self._beliefs[record.selector] = _BeliefsAccumulator(self.header)
            self._beliefs[record.selector].add(record, record.beliefs)
        if record.exchange is not None:
            residual = record.exchange.residual
            counts = self._unsettled.setdefault(record.selector, [0, 0])
            counts[0] += residual is None or residual > SETTLED_RESIDUAL
            counts[1] += 1

    def _add_reward(self, record: SlotRecord, mean: float | None) -> None:
        """Note the noise of the reward, or that it is another average than the mean that is shown."""
        if record.reward_noise > 0.0:
            least, greatest = self._noise or (record.reward_noise, record.reward_noise)
            self._noise = min(least, record.reward_noise), max(greatest, record.reward_noise)
            self._noise_shown = self._noise_shown or (mean is not None and record.opinions is None)
        elif mean is not None and record.reward is not None and abs(record.reward - mean) > TOLD_TOLERANCE:
            if record.mean_opinion is None:
                self._told_otherwise[record.selector] = self._told_otherwise.get(record.selector, 0) + 1
            self._told_gains = self._told_gains or record.mean_opinion is not None

    def result(self) -> RunData:
        """Return the data so far; later records do not change it."""
        table = self._table.table()
        seen = max((last_recorded_slot(one) for one in table.selectors.values()), default=0)
        columns = int(np.searchsorted(self._thinning.map_slots, seen, side="right"))
        plays = self._plays
        return RunData(
            name=self._name,
            table=table,
            thinning=self._thinning,
            frames={label: frames.result(columns) for label, frames in self._frames.items()},
            beliefs={label: one.result() for label, one in self._beliefs.items()},
            cohorts={cohort: (plays[cohort], total / plays[cohort]) for cohort, total in self._totals.items()},
            unsettled={label: (missed, of) for label, (missed, of) in self._unsettled.items()},
            noise=self._noise,
            noise_shown=self._noise_shown,
            told_otherwise=dict(self._told_otherwise),
            told_gains=self._told_gains,
        )


def last_recorded_slot(table: SelectorTable) -> int:
    """Highest slot number on record in any trial; 0 if there is none."""
    return int(np.flatnonzero(np.asarray(table.recorded.any(axis=0))).max(initial=-1)) + 1


class _FramesAccumulator:
    """Accumulates one selector's `Frames`."""

    def __init__(self, header: RunHeader, thinning: Thinning) -> None:
        self._thinning = thinning
        self._all_clients = thinning.map_clients.size == header.clients
        self._column: dict[int, int] = {slot: column for column, slot in enumerate(thinning.map_slots.tolist())}
        self._row_of: dict[int, int] = {client: row for row, client in enumerate(thinning.map_clients.tolist())}
        shape = (thinning.map_trials, thinning.map_slots.size)
        self._status = np.zeros(shape, dtype=np.int64)
        self._rounds = np.zeros(shape, dtype=np.int64)
        self._members = np.full((*shape, header.budget), -1, dtype=np.int64)
        self._arrivals = np.zeros((*shape, header.budget), dtype=np.int64)
        self._opinions = np.full((*shape, thinning.map_clients.size), np.nan)
        self._beliefs: Floats | None = None
        self._elected = np.zeros((*shape, thinning.map_clients.size), dtype=np.int64)

    def add(self, record: SlotRecord) -> None:
        trial = record.trial
        if trial >= self._thinning.map_trials:
            return
        # An election counts from the next slot on that the map visits.
        bucket = int(np.searchsorted(self._thinning.map_slots, record.slot))
        for client in record.cohort:
            row = self._row_of.get(client)
            if row is not None:
                self._elected[trial, bucket, row] += 1
        column = self._column.get(record.slot)
        if column is None:
            return
        self._status[trial, column] = STATUSES.index(record.status)
        self._rounds[trial, column] = record.rounds
        elected = len(record.cohort)
        if elected > self._members.shape[-1]:  # a driver may elect more than the budget
            more = ((0, 0), (0, 0), (0, elected - self._members.shape[-1]))
            self._members = np.pad(self._members, more, constant_values=-1)
            self._arrivals = np.pad(self._arrivals, more)
        self._members[trial, column, :elected] = record.cohort
        self._arrivals[trial, column, :elected] = record.arrivals
        if record.opinions is not None:
            self._opinions[trial, column] = self._thin(to_array(record.opinions))
        if record.beliefs is not None:
            if self._beliefs is None:
                self._beliefs = np.full(self._opinions.shape, np.nan)
            self._beliefs[trial, column] = self._thin(to_array(record.beliefs))

    def _thin(self, values: Floats) -> Floats:
        return values if self._all_clients else values[self._thinning.map_clients]

    def result(self, columns: int) -> Frames:
        return Frames(
            status=self._status[:, :columns].copy(),
            rounds=self._rounds[:, :columns].copy(),
            members=self._members[:, :columns].copy(),
            arrivals=self._arrivals[:, :columns].copy(),
            opinions=self._opinions[:, :columns].copy(),
            beliefs=None if self._beliefs is None else self._beliefs[:, :columns].copy(),
            elections=np.cumsum(self._elected[:, :columns], axis=1),
        )


class _BeliefsAccumulator:
    """Accumulates the mean belief of all clients, of the elected and of each group, (trials, T) each."""

    def __init__(self, header: RunHeader) -> None:
        self._groups = {name: members for name, members in header.groups.items() if members}
        self._means = {
            whose: np.full((header.trials, header.slots), np.nan) for whose in (ALL_CLIENTS, ELECTED, *self._groups)
        }

    def add(self, record: SlotRecord, beliefs: Sequence[float | None]) -> None:
        trial, column = record.trial, record.slot - 1
        self._means[ALL_CLIENTS][trial, column] = _mean(beliefs)
        self._means[ELECTED][trial, column] = _mean([beliefs[client] for client in record.cohort])
        for name, members in self._groups.items():
            self._means[name][trial, column] = _mean([beliefs[client] for client in members])

    def result(self) -> dict[str, Floats]:
        return {whose: values.copy() for whose, values in self._means.items()}


def _mean(values: Sequence[float | None]) -> float:
    present = [value for value in values if value is not None]
    return math.fsum(present) / len(present) if present else math.nan
