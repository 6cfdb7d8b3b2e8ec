"""What slots achieved and cost, which no selector sees: as curves, and in a few figures for each selector.

Clean accuracy is that of the slot's model on the clean test set of all clients; low accuracy is the 10th percentile
over the clients of the accuracy on their own clean test shares. Figures of a run's end are means over the last
`fedelect.equations.metrics.FINAL_SLOTS` slots. Differences are to random in the same trials.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

import numpy as np

from fedelect.equations import metrics
from fedelect.equations.closure import Closure, PairedFinals, closure, is_clear, oracle_gap, resample_trials
from fedelect.equations.intervals import Interval, mean_interval, paired_difference
from fedelect.records.schema import Measures, RunHeader
from fedelect.seeds import stream
from fedelect.vocabulary import Floats, Ints

RANDOM = "random"
"""Label of the baseline that draws a random cohort of all clients."""
ORACLE = "oracle"
"""Label of the baseline that draws a random cohort of the unflawed clients."""

REPORTED_SLOTS = (25, 50, 100)
"""Slots at which accuracies are reported, as far as the run goes."""


@dataclass(frozen=True, eq=False, kw_only=True)
class MeasureCurves:
    """One selector's measures, each (trials, T) with nan where there is none; see `fedelect.records.Measures`."""

    accuracy: Floats
    low_accuracy: Floats
    flawed_share: Floats
    evaluations: Floats
    bytes_down: Floats
    bytes_up: Floats

    @classmethod
    def empty(cls, trials: int, slots: int) -> "MeasureCurves":
        """Curves without a value."""
        return cls(**{one.name: np.full((trials, slots), np.nan) for one in fields(cls)})

    def put(self, trial: int, slot: int, measures: Measures) -> None:
        """Enter what was measured in a slot."""
        for one in fields(self):
            value = getattr(measures, one.name)
            if value is not None:
                getattr(self, one.name)[trial, slot - 1] = value

    def copy(self) -> "MeasureCurves":
        """Return an independent copy."""
        return MeasureCurves(**{one.name: getattr(self, one.name).copy() for one in fields(self)})

    @property
    def bytes_sent(self) -> Floats:
        """(trials, T) bytes down and up; nan where neither is known."""
        both = np.stack([self.bytes_down, self.bytes_up])
        return np.where(np.isnan(both).all(axis=0), np.nan, np.nansum(both, axis=0))


@dataclass(frozen=True, kw_only=True)
class ReachedRandom:
    """How fast a selector's clean accuracy got to where random's was at the end, on average over its trials.

    Attributes:
        target: That accuracy.
        slots: Slots it took; T in trials that never got there.
        reached: In how many trials it was reached.
        trials: Out of how many that have a record.
    """

    target: float
    slots: Interval
    reached: int
    trials: int


@dataclass(frozen=True, kw_only=True)
class MeasureSummary:
    """One selector's measures in a few figures; intervals are over trials.

    Attributes:
        accuracy_at: Slot -> clean accuracy there, for each of `REPORTED_SLOTS` that is on record.
        final_accuracy: Clean accuracy over the last ten slots.
        low_accuracy_at: Slot -> low accuracy there.
        final_low_accuracy: Low accuracy when it was last measured.
        flawed_share: Share of the elected that are flawed, over all slots.
        evaluations: Clients asked to evaluate a model, in a trial.
        bytes_down: Bytes of models sent to clients, in a trial.
        bytes_up: Bytes of updates that clients sent, in a trial.
        accuracy_at_equal_bytes: Clean accuracy over the ten slots up to the one by which as many bytes were sent as the
            thriftiest selector of the trial sent in all.
        difference: Final accuracy minus that of random; None without random, and for random itself.
        low_difference: The same of the final low accuracy.
        equal_bytes_difference: The same of the accuracy at equal bytes.
        slots_to_random: How fast random's final accuracy was reached; None without random.
        oracle_gap: By how much the oracle's final accuracy is ahead of random's; None without the two.
        closure: Share of that gap that the selector closes (`fedelect.equations.closure`); None for the two baselines,
            and where the gap is not clearly above one point.
    """

    accuracy_at: dict[int, Interval]
    final_accuracy: Interval
    low_accuracy_at: dict[int, Interval]
    final_low_accuracy: Interval
    flawed_share: Interval
    evaluations: Interval
    bytes_down: Interval
    bytes_up: Interval
    accuracy_at_equal_bytes: Interval
    difference: Interval | None
    low_difference: Interval | None
    equal_bytes_difference: Interval | None
    slots_to_random: ReachedRandom | None
    oracle_gap: Interval | None
    closure: Closure | None


@dataclass(frozen=True, eq=False)
class Measured:
    """The measures of all selectors of a run that have some, by label.

    Attributes:
        header: What the run is.
        curves: Label -> curves.
        ends: (trials,) the last slot that all of them have on record; T in a finished run.
    """

    header: RunHeader
    curves: Mapping[str, MeasureCurves]
    ends: Ints

    def final_accuracy(self, label: str) -> Floats:
        """(trials,) clean accuracy over the last ten slots."""
        return metrics.final_mean(self.curves[label].accuracy, self.ends)

    def final_low_accuracy(self, label: str) -> Floats:
        """(trials,) low accuracy when it was last measured."""
        return metrics.last_present(self.curves[label].low_accuracy)

    def accuracy_at_equal_bytes(self, label: str) -> Floats:
        """(trials,) clean accuracy when as many bytes were sent as the thriftiest selector sent in all."""
        curves = self.curves[label]
        least = np.min([_total(one.bytes_sent) for one in self.curves.values()], axis=0)  # nan if one is not known
        paid = metrics.slots_within(curves.bytes_sent, least)
        return metrics.final_mean(curves.accuracy, np.minimum(paid, self.ends))

    def summary(self, label: str, *, confidence: float = 0.95) -> MeasureSummary | None:
        """The measures of a selector in a few figures; None if it has none."""
        if label not in self.curves:
            return None
        curves = self.curves[label]
        finals, lows, at_bytes = self.final_accuracy, self.final_low_accuracy, self.accuracy_at_equal_bytes

        def over_trials(values: Floats) -> Interval:
            return mean_interval(values, confidence=confidence)

        def minus_random(figure: Callable[[str], Floats]) -> Interval | None:
            if label == RANDOM or RANDOM not in self.curves:
                return None
            return paired_difference(figure(label), figure(RANDOM), confidence=confidence)

        return MeasureSummary(
            accuracy_at=self._at_slots(metrics.carry_forward(curves.accuracy), confidence),
            final_accuracy=over_trials(finals(label)),
            low_accuracy_at=self._at_slots(curves.low_accuracy, confidence),
            final_low_accuracy=over_trials(lows(label)),
            flawed_share=over_trials(metrics.mean_present_slots(curves.flawed_share)),
            evaluations=over_trials(_total(curves.evaluations)),
            bytes_down=over_trials(_total(curves.bytes_down)),
            bytes_up=over_trials(_total(curves.bytes_up)),
            accuracy_at_equal_bytes=over_trials(at_bytes(label)),
            difference=minus_random(finals),
            low_difference=minus_random(lows),
            equal_bytes_difference=minus_random(at_bytes),
            slots_to_random=self._slots_to_random(label, confidence),
            oracle_gap=self.oracle_gap(),
            closure=self.closure(label),
        )

    def oracle_gap(self) -> Interval | None:
        """By how much the oracle is ahead of random; None if one of them is missing."""
        if RANDOM not in self.curves or ORACLE not in self.curves:
            return None
        return oracle_gap(self.final_accuracy(RANDOM), self.final_accuracy(ORACLE))

    def closure(self, label: str) -> Closure | None:
        """The closure of a selector; None for the baselines, and where the oracle's gap is not clear."""
        finals = self.paired_finals(label)
        return None if finals is None else closure(finals)

    def paired_finals(self, label: str) -> PairedFinals | None:
        """What the closure of a selector is computed from, trials that lack a number left out; None as `closure` is.

        The resamples are the same for all selectors of a run with the same trials.
        """
        gap = self.oracle_gap()
        if label in (RANDOM, ORACLE) or gap is None or not is_clear(gap):
            return None
        finals = np.stack([self.final_accuracy(one) for one in (label, RANDOM, ORACLE)])
        selector, random, oracle = finals[:, ~np.isnan(finals).any(axis=0)]
        if not selector.size:
            return None
        rng = stream(self.header.seed, "closure", str(self.header.scenario.get("name")), selector.size)
        return PairedFinals(selector, random, oracle, resample_trials(selector.size, rng))

    def _at_slots(self, curve: Floats, confidence: float) -> dict[int, Interval]:
        """Slot -> the curve there, over the trials that have got so far; slots that none has reached are left out."""
        reached = [slot for slot in REPORTED_SLOTS if slot <= self.ends.max(initial=0)]
        return {
            slot: mean_interval(np.where(self.ends >= slot, curve[:, slot - 1], np.nan), confidence=confidence)
            for slot in reached
        }

    def _slots_to_random(self, label: str, confidence: float) -> ReachedRandom | None:
        target = mean_interval(self.final_accuracy(RANDOM)).mean if RANDOM in self.curves else math.nan
        if math.isnan(target):
            return None
        times, begun = metrics.time_to_target(self.curves[label].accuracy, target), self.ends > 0
        slots = mean_interval(np.where(begun, times.slot, np.nan), confidence=confidence)
        return ReachedRandom(target=target, slots=slots, reached=int(times.reached.sum()), trials=int(begun.sum()))


def _total(curve: Floats) -> Floats:
    """Sum over the slots that have a value; nan if none has. (trials, T) -> (trials,)."""
    return np.where(np.isnan(curve).all(axis=-1), np.nan, np.nansum(curve, axis=-1))
