"""The flaws of data and of updates, sample by sample and weight by weight, as docs/SCENARIOS.md states them."""

import math
from typing import Any

import numpy as np

from fedelect.scenario import Scenario
from fedelect.seeds import stream


def randomised(labels: list[int], classes: int, rate: float, rng: np.random.Generator) -> list[int]:
    """Each label replaced with chance `rate` by any class."""
    luck = [float(rng.random()) for _ in labels]
    drawn = rng.integers(0, classes, len(labels)).tolist()
    return [new if chance < rate else old for old, new, chance in zip(labels, drawn, luck, strict=True)]


def swapped(labels: list[int], pairs: list[tuple[int, int]], rate: float, rng: np.random.Generator) -> list[int]:
    """Each label swapped with chance `rate` for its partner."""
    partner = dict(pairs) | {other: one for one, other in pairs}
    return [partner.get(label, label) if float(rng.random()) < rate else label for label in labels]


def upload(
    scenario: Scenario, client: int, start: Any, trained: Any, *, seed: int, trial: int, slot: int, round_: int
) -> Any:
    """What a client sends, flaw after flaw, weight by weight."""
    flaws: Any = scenario.config.flaws
    sent = [float(weight) for weight in trained.ravel()]
    got = [float(weight) for weight in start.ravel()]
    if client in scenario.flaws.get("free_riders", ()):
        size = math.sqrt(math.fsum(weight**2 for weight in got) / len(got)) * flaws.free_riders.noise
        rng = stream(seed, "upload noise", trial, slot, round_, client)
        sent = [weight + size * float(rng.standard_normal()) for weight in got]
    if client in scenario.flaws.get("flipped_updates", ()):
        sent = [old - flaws.flipped_updates.scale * (new - old) for old, new in zip(got, sent, strict=True)]
    if client in scenario.flaws.get("scaled_updates", ()):
        sent = [old + flaws.scaled_updates.scale * (new - old) for old, new in zip(got, sent, strict=True)]
    return np.array(sent).reshape(start.shape)
