"""Readings of Algorithms 1 and 2: each one line, played on the atlas of the paper's world in seconds.

To try one of your own, add a line to `READINGS` (a selector is named as for `fedelect run --selector`; yours may be
"module:Class") and give `python -m paper readings`. The readings were tried after the paper's numbers had been seen, on
one drawing of the data: what fits here is a candidate, which `paper/PREREGISTRATION.md` puts to a test.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedelect._processes import run_tasks
from fedelect.atlas import Atlas, load_atlas
from fedelect.bench import Elections, Player
from fedelect.equations import metrics
from fedelect.equations.intervals import Interval, mean_interval
from fedelect.vocabulary import Floats
from paper.averages import FIRST_TERM, FirstTerm, average_accuracy
from paper.calibration import BEST_KNOWN
from paper.catalogue import TARGETS
from paper.published import Baselines
from paper.scale import map_opinions

FA = Baselines(0.8963, 0.777)
"""A slot of the optimal cohort and of random selection, as Table I implies with a first term of 0."""

DA = Baselines(0.8963, 0.7202)
"""The same with the random selection of figure `decen_performance`."""

SLOTS = 500


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One way to read Algorithm 1 or 2.

    Attributes:
        name: In a few words.
        selector: What plays it.
        scale: The baselines in the paper that opinions are mapped to; None leaves them as they are.
        first_term: The term before the first slot of the averages.
    """

    name: str
    selector: str
    scale: Baselines | None
    first_term: FirstTerm = FIRST_TERM


_QUICK = "quick-init-ucb:exploration"
_BY_NUMBER = "paper.measurements.ties:QuickInitByNumber:exploration"
_FROM_A_START = "paper.readings.optimistic_bp_ucb:OptimisticBpUcb:initial"

READINGS = (
    Reading(name="Quick-Init UCB as printed", selector=f"{_QUICK}=1.0", scale=FA),
    Reading(name="Quick-Init UCB, percent", selector=f"{_QUICK}=0.01", scale=FA),
    Reading(name="percent, untrained model as first term", selector=f"{_QUICK}=0.01", scale=FA, first_term="untrained"),
    Reading(name="percent, no first term", selector=f"{_QUICK}=0.01", scale=FA, first_term="none"),
    Reading(name="percent, not mapped", selector=f"{_QUICK}=0.01", scale=None),
    Reading(name="tenths: mu = 1 acts as 0.1", selector=f"{_QUICK}=0.1", scale=FA),
    Reading(name="percent, ties by client number", selector=f"{_BY_NUMBER}=0.01", scale=FA),
    Reading(name="BP-UCB with cold-start groups", selector="bp-ucb", scale=DA),
    Reading(name="BP-UCB, start r_1 = 1", selector=f"{_FROM_A_START}=1.0", scale=DA),
    Reading(name="BP-UCB, start r_1 = 1, scale of FL&FA", selector=f"{_FROM_A_START}=1.0", scale=FA),
    Reading(name="BP-UCB, start r_1 = 0", selector=f"{_FROM_A_START}=0.0", scale=DA),
)


@dataclass(frozen=True, kw_only=True)
class ReadingRow:
    """Results of a reading, means over trials.

    Attributes:
        reading: The reading.
        slots: Slots to each of `TARGETS`; T where never.
        accuracy: Average accuracy there; at T where never.
        at_200: Average accuracy at T = 200, with its interval over trials; of T if that is less.
        iid: Elections of a client with i.i.d. data.
        others: Elections of one of the others.
    """

    reading: Reading
    slots: tuple[float, ...]
    accuracy: tuple[float, ...]
    at_200: Interval
    iid: float
    others: float


def play_readings(
    readings: Sequence[Reading], path: Path, *, trials: int, slots: int = SLOTS, seed: int = 1, workers: int = 1
) -> Iterator[ReadingRow]:
    """Play readings on an atlas; a selector that several share is played once. Rows come in order, as they are ready.

    Args:
        readings: The readings.
        path: The atlas.
        trials: Trials of each.
        slots: T.
        seed: Seed of the runs.
        workers: Processes.
    """
    atlas = load_atlas(path)
    texts = list(dict.fromkeys(reading.selector for reading in readings))
    play = functools.partial(_play, path=path, trials=trials, slots=slots, seed=seed)
    played: dict[str, Elections] = {}
    waiting = list(readings)
    for place, elections in run_tasks(play, [(text,) for text in texts], workers=workers):
        played[texts[place]] = elections
        while waiting and waiting[0].selector in played:
            reading = waiting.pop(0)
            yield read_row(reading, played[reading.selector], atlas)


def read_row(reading: Reading, played: Elections, atlas: Atlas) -> ReadingRow:
    """The row of a reading from what was played on the atlas."""
    opinions = played.rewards
    if reading.scale is not None:
        opinions = map_opinions(opinions, ours=table_baselines(atlas), aim=reading.scale)
    average = average_accuracy(opinions, untrained=float(np.mean(atlas.untrained)), first_term=reading.first_term)
    when = [metrics.time_to_target(average, target) for target in TARGETS]
    counts = _elections(played, atlas.config.clients)
    others = np.setdiff1d(np.arange(atlas.config.clients), BEST_KNOWN)
    return ReadingRow(
        reading=reading,
        slots=tuple(float(one.slot.mean()) for one in when),
        accuracy=tuple(float(one.value.mean()) for one in when),
        at_200=mean_interval(average[:, min(200, average.shape[1]) - 1]),
        iid=float(counts[:, list(BEST_KNOWN)].mean()),
        others=float(counts[:, others].mean()),
    )


def table_baselines(atlas: Atlas) -> Baselines:
    """Exact values in the table of the cohort that the paper calls optimal and of a random cohort."""
    means = atlas.seed_means()
    (best,) = atlas.rank([BEST_KNOWN]).tolist()
    return Baselines(float(means[:, best].mean()), float(means.mean()))


def _elections(played: Elections, clients: int) -> Floats:
    counts = [np.bincount(trial.ravel(), minlength=clients) for trial in played.cohorts]
    return np.array(counts, dtype=np.float64)


def _play(text: str, *, path: Path, trials: int, slots: int, seed: int) -> Elections:
    return Player(load_atlas(path), slots=slots, trials=trials, seed=seed).elections(text)
