"""Results read straight from their files with numpy and scipy: nothing of fedelect is used here.

Formulas are written down once more, as plainly as they can be, so that a wrong one in fedelect does not agree.
"""

import functools
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]
Values = dict[int, float]
"""One value for each trial, by its number."""


@dataclass(frozen=True)
class Estimate:
    """A figure with the ends of its 95 % interval; None where a single trial has none."""

    mean: float
    low: float | None
    high: float | None

    def outcome(self, low: float, high: float) -> str:
        """Whether the figure is shown to be in the open range, shown not to be, or neither."""
        if self.low is None or self.high is None:
            return "undecided"
        if low < self.low and self.high < high:
            return "holds"
        return "fails" if self.high <= low or self.low >= high else "undecided"


def mean_of(values: Values) -> Estimate:
    """Student's t over trials, by scipy."""
    array = np.array(list(values.values()), dtype=np.float64)
    array = array[~np.isnan(array)]
    mean = float(array.mean())
    if array.size < 2:
        return Estimate(mean, None, None)
    if np.ptp(array) == 0.0:
        return Estimate(mean, mean, mean)
    interval = stats.ttest_1samp(array, 0.0).confidence_interval(0.95)
    return Estimate(mean, float(interval.low), float(interval.high))


def share_of(hits: int, count: int) -> Estimate:
    """Wilson's interval, by scipy; its longer side to both sides."""
    interval = stats.binomtest(hits, count).proportion_ci(0.95, method="wilson")
    share = hits / count
    side = max(share - float(interval.low), float(interval.high) - share)
    return Estimate(share, share - side, share + side)


def exact(value: float) -> Estimate:
    """A figure without chance in it."""
    return Estimate(float(value), float(value), float(value))


@dataclass(frozen=True, eq=False)
class Trials:
    """The trials of a series that are on file.

    Attributes:
        clients: N.
        numbers: Their numbers, ascending.
        opinions: (R, T).
        cohorts: (R, T, K).
        untrained: The untrained model's mean opinion.
        beliefs: Sum over trials of shares of belief, their squares (T, N) and residuals (T,); or None.
        belief_blocks: For each file the mean shares of belief (T, N) over its trials; or None.
    """

    clients: int
    numbers: list[int]
    opinions: Array
    cohorts: NDArray[np.int64]
    untrained: float
    beliefs: tuple[Array, Array, Array] | None
    belief_blocks: list[Array] | None

    def by_trial(self, values: "list[float] | Array") -> Values:
        return dict(zip(self.numbers, map(float, values), strict=True))

    @functools.cached_property
    def averages(self) -> list[list[float]]:
        """Running mean for each trial: 0, then every slot that has an opinion."""
        curves = []
        for trial in self.opinions.tolist():
            total, terms, curve = 0.0, 1, []
            for opinion in trial:
                if not math.isnan(opinion):
                    total, terms = total + opinion, terms + 1
                curve.append(total / terms)
            curves.append(curve)
        return curves

    def accuracy(self) -> Values:
        """Average accuracy at T."""
        return self.by_trial([curve[-1] for curve in self.averages])

    def first(self, target: float) -> tuple[Values, Values, int]:
        """First slot with an average at or above the target but for rounding, T if none; the average there; how many.

        Opinions are shares of whole samples, so that averages are often exactly at a target.
        """
        slots, values, reached = [], [], 0
        for curve in self.averages:
            at = next((slot for slot, value in enumerate(curve, start=1) if value >= target - 1e-9), None)
            reached += at is not None
            slots.append(float(at or len(curve)))
            values.append(curve[(at or len(curve)) - 1])
        return self.by_trial(slots), self.by_trial(values), reached

    def elections(self, client: int) -> Array:
        """(R,) in how many slots the client was elected; K zeros without an opinion are no election."""
        skipped = np.isnan(self.opinions) & (self.cohorts.sum(axis=2) == 0)
        counts: Array = ((self.cohorts == client).any(axis=2) & ~skipped).sum(axis=1).astype(np.float64)
        return counts


class Folder:
    """A folder of results.

    Args:
        folder: The folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[tuple[str, int, int], Trials | None] = {}

    def trials(self, series: str, *, slots: int, most: int = 100) -> Trials | None:
        """Trials below `most` of a series, such as "N20-K5-theta1/random", cut to `slots`; None if there is none."""
        key = (series, slots, most)
        if key not in self._known:
            self._known[key] = self._trials(series, slots, most)
        return self._known[key]

    def _trials(self, series: str, slots: int, most: int) -> Trials | None:
        blocks = []
        for path in sorted((self.folder / series).glob("trials-*.npz")):
            with np.load(path) as file:
                block: dict[str, Any] = {name: file[name] for name in file.files}
            if block["opinions"].shape[1] >= slots and int(block["first_trial"]) < most:
                blocks.append(block)
        if not blocks:
            return None
        numbers = [int(block["first_trial"]) + row for block in blocks for row in range(len(block["opinions"]))]
        beliefs = by_block = None
        if "belief_sums" in blocks[0]:
            by_block = [b["belief_sums"][:slots].astype(np.float64) / len(b["opinions"]) for b in blocks]
            sums, squares = (
                np.sum([block[name][:slots].astype(np.float64) for block in blocks], axis=0)
                for name in ("belief_sums", "belief_squares")
            )
            beliefs = (sums, squares, np.max([block["residuals"][:slots] for block in blocks], axis=0))
        return Trials(
            clients=json.loads(blocks[0]["about"].tobytes())["scenario"]["clients"],
            numbers=[number for number in numbers if number < most],
            opinions=np.concatenate([block["opinions"][:, :slots] for block in blocks])[: most - numbers[0]],
            cohorts=np.concatenate([block["cohorts"][:, :slots] for block in blocks])[: most - numbers[0]].astype(int),
            untrained=float(blocks[0]["untrained"]),
            beliefs=beliefs,
            belief_blocks=by_block,
        )

    def measured(self, name: str) -> Any:
        """The value of a measurement, or None."""
        path = self.folder / "measurements" / f"{name}.json"
        return json.loads(path.read_text())["value"] if path.exists() else None
