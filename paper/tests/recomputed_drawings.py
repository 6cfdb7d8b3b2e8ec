"""Checks that are judged over drawings, once more: from the files of the pre-registered run, by `plain_reading`."""

import dataclasses
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy import stats

from paper.tests.plain_reading import Estimate, Folder, Trials, Values, mean_of
from paper.tests.recomputed_claims import Check

SEEDS = (101, 102, 103, 104, 105, 106)
AIMS = {"fa": (0.8963, 0.777), "da": (0.8963, 0.7202)}
PRINTED = {"fa": "quick-init-ucb-exploration-1.0", "da": "bp-ucb"}
AT_200 = 200 / 201
"""Average accuracy at T = 200 where every slot has the opinion 1, after a first term of 0."""

ByDrawing = dict[int, float]
"""The mean over trials in each drawing, by its seed."""


class Run:
    """The pre-registered run.

    Args:
        root: Its folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def trials(self, seed: int, world: str, series: str, slots: int) -> Trials | None:
        return Folder(self._root / str(seed) / world).trials(f"N20-K5-theta1/{series}", slots=slots)

    def baselines(self, seed: int, world: str) -> tuple[float, dict[int, float]] | None:
        """Mean opinion of clients 0 to 4, and of random selection in each trial."""
        fixed, random = (
            self.trials(seed, world, series, slots)
            for series, slots in (("fixed-cohort-0-1-2-3-4", 5), ("random", 100))
        )
        if fixed is None or random is None:
            return None
        return float(fixed.opinions.mean()), random.by_trial(random.opinions.mean(axis=1))

    def printed(self, world: str, slots: int, read: Callable[[Trials], Values]) -> ByDrawing:
        """A reading of the algorithm as printed, opinions on the paper's scale."""
        means = {}
        for seed in SEEDS:
            trials, baselines = self.trials(seed, world, PRINTED[world], slots), self.baselines(seed, world)
            if trials is None or baselines is None:
                continue
            fixed, random = baselines[0], float(np.mean(list(baselines[1].values())))
            best, least = AIMS[world]
            mapped = least + (best - least) * (trials.opinions - random) / (fixed - random)
            means[seed] = float(np.mean(list(read(dataclasses.replace(trials, opinions=mapped)).values())))
        return means

    def raw(self, read: Callable[[float, float], float]) -> ByDrawing:
        """A reading of the two baselines of world "fa", as they were trained."""
        found = {seed: self.baselines(seed, "fa") for seed in SEEDS}
        return {s: read(one[0], float(np.mean(list(one[1].values())))) for s, one in found.items() if one is not None}


def widened(estimate: Estimate | None, means: ByDrawing) -> Estimate | None:
    """A mean of one drawing: its interval over trials and the spread between drawings, by their squares."""
    if estimate is None or estimate.low is None or estimate.high is None or len(means) < 2:
        return None if estimate is None else Estimate(estimate.mean, None, None)
    reach = float(stats.t.ppf(0.975, len(means) - 1)) * float(np.std(list(means.values()), ddof=1))
    half = math.sqrt(((estimate.high - estimate.low) / 2) ** 2 + reach**2)
    return Estimate(estimate.mean, estimate.mean - half, estimate.mean + half)


def elections(members: range) -> Callable[[Trials], Values]:
    return lambda trials: trials.by_trial(np.mean([trials.elections(client) for client in members], axis=0))


def slots_to(target: float) -> Callable[[Trials], Values]:
    return lambda trials: trials.first(target)[0]


def measured(run: Run) -> Iterator[tuple[tuple[str, int], ByDrawing]]:
    """Figures that the drawings have themselves, by claim and place of the check."""
    quick, belief = (run.printed(world, 200, Trials.accuracy) for world in ("fa", "da"))
    gain = {seed: one - AT_200 * 0.777 for seed, one in quick.items()}
    ahead = {seed: quick[seed] - belief[seed] for seed in quick if seed in belief}
    yield ("cen_selected_time.counts", 0), run.printed("fa", 500, elections(range(5)))
    yield ("cen_selected_time.counts", 1), run.printed("fa", 500, elections(range(5, 20)))
    yield ("cen_performance.quick_init", 0), quick
    yield ("cen_performance.gain", 1), gain
    yield ("cen_performance.gap", 0), {s: AT_200 * 0.8963 - one for s, one in quick.items()}
    yield ("cen_performance.conventional", 1), gain
    yield ("decen_performance.bp_ucb", 0), belief
    yield ("decen_performance.gain", 1), {s: one - AT_200 * 0.7202 for s, one in belief.items()}
    yield ("decen_performance.gap", 0), {s: AT_200 * 0.8963 - one for s, one in belief.items()}
    yield ("decen_performance.below_quick_init", 0), ahead
    yield ("decen_performance.comparable", 0), {s: -one for s, one in ahead.items()}
    for name, world in (("quick-init", "fa"), ("bp-ucb", "da")):
        for target in (0.75, 0.78, 0.82, 0.85):
            yield (f"comparison_table.{name}.{target:g}", 0), run.printed(world, 500, slots_to(target))


def spreads(run: Run) -> Iterator[tuple[tuple[str, int], ByDrawing]]:
    """Figures whose spread is added to that of one drawing, by claim and place of the check."""
    random, apart = run.raw(lambda fixed, random: random), run.raw(lambda fixed, random: fixed - random)
    yield ("cen_performance.random", 0), random
    yield ("decen_performance.random", 0), random
    yield ("cen_performance.optimal", 0), run.raw(lambda fixed, random: fixed)
    yield ("cen_performance.baselines_last", 4), apart
    yield from (((key, 0), apart) for key in ("1_2.b.enough", "1_2.c.close_to_all", "1_2.c.optimal"))


def judged(checks: dict[str, list[Check]], root: Path) -> dict[str, list[Check]]:
    """The same checks with the estimates by which they are judged; those that are not measured stay None."""
    run, found = Run(root), {key: list(own) for key, own in checks.items()}
    for (key, place), means in measured(run):
        estimate, low, high, decides = found[key][place]
        if estimate is not None:
            over = mean_of(means) if means else Estimate(estimate.mean, None, None)
            found[key][place] = over, low, high, decides
    for (key, place), means in spreads(run):
        estimate, low, high, decides = found[key][place]
        found[key][place] = widened(estimate, means), low, high, decides
    return found
