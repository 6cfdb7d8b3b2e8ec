"""Figures computed from results: average accuracy, elections, slots to a target; one value for each trial.

"Average accuracy" is that of `paper.averages`, with its first term; the formulas are in
`fedelect.equations.metrics`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
import numpy as np

from fedelect.equations import metrics
from fedelect.vocabulary import Floats, Ints
from paper import averages
from paper.blocks import Curves
from paper.catalogue import TRIALS, Preset
from paper.measurements.registry import read_measurement
from paper.registered.drawings import Drawings
from paper.runner import AbstractResultStore
from paper.series import RunRequest, Series

_Kind = TypeVar("_Kind", bound=msgspec.Struct)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Results on file, at the size of a preset, each read once; nothing is run.

    Attributes:
        store: The results.
        preset: How much of each request is asked for.
        drawings: The pre-registered run, which has other drawings of the data; empty where it is not at hand.
    """

    store: AbstractResultStore
    preset: Preset
    drawings: Drawings = field(default_factory=dict)
    _read: dict[RunRequest, Curves | None] = field(default_factory=dict, init=False, repr=False, compare=False)

    def curves(self, series: Series, *, slots: int, trials: int = TRIALS) -> Curves | None:
        """The trials of a series that are on file, or None if none is; sizes are cut to the preset."""
        request = RunRequest(series=series, trials=trials, slots=slots)
        request = request.at_most(trials=self.preset.trials, slots=self.preset.slots)
        if request not in self._read:
            self._read[request] = self.store.curves(request)
        return self._read[request]

    def measurement(self, name: str, kind: type[_Kind]) -> _Kind | None:
        """A measurement that is on file, or None."""
        return read_measurement(self.store, self.preset, name, kind)


def average_accuracy(curves: Curves) -> Floats:
    """Running mean of the mean opinions, with `averages.FIRST_TERM`. Shape (R, T)."""
    return averages.average_accuracy(curves.opinions, untrained=curves.untrained, first_term=averages.FIRST_TERM)


def final_accuracy(curves: Curves) -> Floats:
    """Average accuracy at the last slot. Shape (R,)."""
    return np.asarray(average_accuracy(curves)[:, -1])


def last_opinion(curves: Curves) -> Floats:
    """Mean opinion in the last slot that has one. Shape (R,)."""
    return metrics.last_present(curves.opinions)


def elections(curves: Curves) -> Ints:
    """How often each client was elected. Shape (R, N)."""
    clients = curves.series.world.clients
    # A slot that was skipped is kept as K zeros without an opinion.
    skipped = np.isnan(curves.opinions) & (curves.cohorts == 0).all(axis=-1)
    counts = np.zeros((len(curves.opinions), clients), dtype=np.int64)
    trials = np.arange(len(counts))[:, np.newaxis, np.newaxis]
    np.add.at(counts, (np.broadcast_to(trials, curves.cohorts.shape), curves.cohorts), ~skipped[:, :, np.newaxis])
    return counts


def slots_to_target(curves: Curves, target: float) -> metrics.TimeToTarget:
    """When the average accuracy first reaches a target: T where it never does. Shapes (R,)."""
    return metrics.time_to_target(average_accuracy(curves), target)


def subtract_paired(one: Curves, other: Curves, reading: Callable[[Curves], Floats]) -> Floats:
    """Difference of a reading, `one` less `other`, in each trial of both, which shares all draws. Shape (P,)."""
    _, first, second = np.intersect1d(one.trials, other.trials, return_indices=True)
    return np.asarray(reading(one)[first] - reading(other)[second])
