"""Sensitivity of the paper's two algorithms to exploration and to the rule for ties: runs on the atlas."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from fedelect.atlas import load_atlas, table_truth
from fedelect.bench import Player
from fedelect.equations.intervals import mean_interval
from paper.catalogue import TRIALS
from paper.measurements.context import Context
from paper.measurements.parts import MeasurementParts

EXPLORATIONS = (0.01, 0.1, 1.0)
SLOTS = 500
LAST = 50
"""Slots at the end over which "final" is averaged."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mean over trials and half of its 95 % interval; None where a single trial leaves that unknown."""

    mean: float
    half_width: float | None


class Variant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One selector with one exploration and one rule for ties.

    Attributes:
        selector: "Quick-Init UCB" or "BP-UCB".
        exploration: mu.
        ties: "at random" or "by client number".
        final_gap: How far the cohorts of the last `LAST` slots are below the optimum, as a share of it.
        running_gap: The same over all slots.
        share_of_first_five: Share of the elections that went to clients 0 to 4.
    """

    selector: str
    exploration: float
    ties: str
    final_gap: Estimate
    running_gap: Estimate
    share_of_first_five: Estimate


class Sensitivity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All variants.

    Attributes:
        trials: Monte Carlo trials.
        slots: T.
        optimum: Mean opinion of the best cohort in the atlas.
        variants: In the order in which they were played.
    """

    trials: int
    slots: int
    optimum: float
    variants: list[Variant]


_KINDS = {
    ("Quick-Init UCB", "at random"): "quick-init-ucb",
    ("Quick-Init UCB", "by client number"): "paper.measurements.ties:QuickInitByNumber",
    ("BP-UCB", "at random"): "bp-ucb",
}
"""How the selectors are specified, but for the exploration."""


SETTINGS = {
    "trials": TRIALS,
    "slots": SLOTS,
    "last slots": LAST,
    "explorations": EXPLORATIONS,
    "selectors": ["quick-init-ucb", "fedelect.reproduce.measurements.ties:QuickInitByNumber", "bp-ucb"],
}
"""What the measurement depends on besides the scenario; selectors by the names that they had when it was made."""


def measure_sensitivity(context: Context, parts: MeasurementParts) -> Sensitivity:
    """Play every variant on the atlas of the main world."""
    path = context.atlas_path()
    trials = min(TRIALS, context.preset.trials or TRIALS)
    slots = min(SLOTS, context.preset.slots or SLOTS)
    atlas = load_atlas(path)
    requests = {
        ", ".join(map(str, variant)): (path, *variant, trials, slots, context.store.seed) for variant in _variants()
    }
    variants = list(parts.compute(Variant, _variant, requests).values())
    return Sensitivity(trials=trials, slots=slots, optimum=table_truth(atlas).optimum.mean, variants=variants)


def _variants() -> Iterator[tuple[str, str, float]]:
    for selector, ties in _KINDS:
        for exploration in EXPLORATIONS:
            yield selector, ties, exploration


def _variant(path: Path, selector: str, ties: str, exploration: float, trials: int, slots: int, seed: int) -> Variant:
    atlas = load_atlas(path)
    player = Player(atlas, slots=slots, trials=trials, seed=seed)
    played = player.elections(f"{_KINDS[selector, ties]}:exploration={exploration}")
    truth = table_truth(atlas)
    gaps = 1.0 - truth.of(played.cohorts) / truth.optimum.mean
    first_five = (played.cohorts < 5).mean(axis=(1, 2))
    return Variant(
        selector=selector,
        exploration=exploration,
        ties=ties,
        final_gap=_estimate(gaps[:, -LAST:].mean(axis=1)),
        running_gap=_estimate(gaps.mean(axis=1)),
        share_of_first_five=_estimate(first_five),
    )


def _estimate(values: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> Estimate:
    interval = mean_interval(values)
    return Estimate(mean=interval.mean, half_width=interval.half_width)
