"""Worlds drawn at random, so that no world is chosen by hand: sizes, data, model, shares, flaws, absence, surveys.

    python -m benchmarks.warm_selector.drawn play RUNS design|more|report [SELECTOR ...]
    python -m benchmarks.warm_selector.drawn show RUNS design|more|report [SELECTOR ...]

Half of the worlds have flawed clients. The worlds of `design` and `more` serve to try variants. The report worlds have
another seed and are played when a version is settled. Each selector has a run folder of its own in each world; within a
trial all share world and luck. What was stopped goes on.
"""

import functools
import itertools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.warm_selector.report import BASELINES, VARIANTS
from benchmarks.warm_selector.worlds import load_scaled

from fedelect._processes import run_tasks
from fedelect.bench.user_worlds import UserWorld
from fedelect.equations.intervals import Interval, mean_interval
from fedelect.equations.metrics import time_to_target
from fedelect.records import read_table
from fedelect.scenario import Dataset
from fedelect.seeds import stream
from fedelect.simulator import Plan, simulate, specify_selectors
from fedelect.vocabulary import Floats

SEEDS = {"design": 2_000, "more": 5_000, "report": 4_000}
"""Worlds of seed 3,000 were reported once, and the selector changed after it."""

WORLDS, TRIALS = 60, 3
BASELINE = "baselines"
OURS = ("sound-cycle", *VARIANTS)

CLEAR_GAP = 0.01
"""Worlds in which the oracle is ahead of random by less count as worlds in which flaws cost nothing."""


class Kind(NamedTuple):
    """A data set with a model for it; step sizes are such that `random` learns within the slots."""

    load: Callable[[], Dataset]
    source: str
    model: dict[str, Any]
    steps: tuple[float, float]
    samples: tuple[tuple[int, int], ...]


def deal_clusters() -> Dataset:
    """Twelve classes of two Gaussian clusters each, in 20 dimensions, of unequal frequency."""
    rng = stream(SEEDS["design"], "clusters")
    classes, parts, features = 12, 2, 20
    centres = 1.1 * rng.standard_normal((classes, parts, features))
    frequency = rng.dirichlet(np.full(classes, 3.0))

    def draw(count: int) -> tuple[Floats, Any]:
        labels = np.concatenate([np.arange(classes), rng.choice(classes, count - classes, p=frequency)])
        inputs = centres[labels, rng.integers(parts, size=count)] + rng.standard_normal((count, features))
        return inputs, labels

    return Dataset(*draw(6_000), *draw(2_000), "clusters")


_DIGITS = functools.partial(load_scaled, "digits")
_FASHION = functools.partial(load_scaled, "fashion-mnist")
_MNIST = functools.partial(load_scaled, "mnist")
_MLP = {"kind": "mlp", "batch": 20}
_SOFTMAX = {"kind": "softmax", "batch": 10}
KINDS = (
    Kind(_DIGITS, "digits", _SOFTMAX, (1e-3, 4e-3), ((20, 60), (30, 30))),
    Kind(_MNIST, "mnist", _SOFTMAX, (1e-2, 4e-2), ((20, 60), (50, 150), (20, 300))),
    Kind(_MNIST, "mnist", _MLP, (3e-2, 1e-1), ((50, 150), (30, 200))),
    Kind(_FASHION, "fashion-mnist", _SOFTMAX, (1e-2, 3e-2), ((50, 150), (20, 300))),
    Kind(_FASHION, "fashion-mnist", _MLP, (3e-2, 1e-1), ((50, 150), (100, 100))),
    Kind(deal_clusters, "arrays", _SOFTMAX, (2e-2, 1e-1), ((20, 60), (50, 150))),
)

SKEWS: tuple[dict[str, Any], ...] = (
    {"skew": "dirichlet", "alpha": 0.1},
    {"skew": "dirichlet", "alpha": 0.3},
    {"skew": "dirichlet", "alpha": 1.0},
    {"skew": "labels", "classes_per_client": 2},
    {"skew": "labels", "classes_per_client": 3},
    {"skew": "iid"},
)
FLAWS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("random_labels", {"rate": 1.0}),
    ("random_labels", {"rate": 0.6}),
    ("random_labels", {"rate": 1.0, "clean_test": False}),
    ("swapped_labels", {"rate": 1.0}),
    ("swapped_labels", {"rate": 1.0, "clean_test": False}),
    ("noisy_features", {"noise": 2.0}),
    ("noisy_features", {"noise": 4.0, "clean_test": False}),
    ("free_riders", {}),
    ("free_riders", {"noise": 0.5}),
    ("flipped_updates", {"scale": 1.0}),
    ("scaled_updates", {"scale": 8.0}),
)


def draw_world(number: int, *, seed: int) -> UserWorld:
    """Draw a world; odd numbers have flawed clients."""
    rng = stream(seed, "drawn world", number)

    def choose(options: Sequence[Any]) -> Any:
        return options[int(rng.integers(len(options)))]

    kind: Kind = choose(KINDS)
    clients = choose((20, 30, 50, 100))
    budget = max(2, round(clients * choose((0.05, 0.1, 0.2, 0.25))))
    low, high = kind.steps
    changes: dict[str, Any] = {
        "clients": clients,
        "budget": budget,
        "slots": choose((60, 100, 150)),
        "rounds_per_slot": choose((1, 1, 1, 2)),
        "data": {
            "source": kind.source,
            "samples": list(choose(kind.samples)),
            "test_share": choose(("own", "own", "global")),
            **choose(SKEWS),
        },
        "model": {**kind.model, "step": float(low * (high / low) ** rng.random()), "epochs": choose((1, 2, 4))},
    }
    parts = [kind.source, kind.model["kind"], f"N = {clients}", f"K = {budget}", f"T = {changes['slots']}"]
    if rng.random() < 0.25:
        changes["survey"] = {"asked": 0.3}
        parts.append("30 % asked")
    if rng.random() < 0.25:
        changes["availability"] = {"kind": "random", "probability": 0.7}
        parts.append("70 % there")
    event = rng.random()
    if event < 0.15:
        changes["drift"] = {"slot": changes["slots"] // 2, "share": 0.5}
        parts.append("drift")
    elif event < 0.35:
        changes["hard"] = {"share": 0.2}
        parts.append("20 % hard")
    if number % 2:
        several = choose((1, 1, 1, 2))
        flaws: dict[str, Any] = {}
        while len(flaws) < several:
            name, settings = choose(FLAWS)
            flaws[name] = {**settings, "share": choose((0.1, 0.2, 0.3, 0.4)) / several}
        changes["flaws"] = flaws
        parts += [f"{100 * one['share']:.0f} % {name}" for name, one in flaws.items()]
    return UserWorld(name=f"world-{number}", what=", ".join(parts), changes=changes, load=kind.load)


def play(root: Path, part: str, number: int, selector: str) -> None:
    """Play one selector in one world, or what is left of it; BASELINE stands for all baselines."""
    world = draw_world(number, seed=SEEDS[part])
    config = world.config(SEEDS[part] + number)
    baselines = (*(BASELINES if world.flawed else BASELINES[:1]), "cycle")
    plan = Plan(
        config=config,
        framework="fa",
        selectors=specify_selectors(baselines if selector == BASELINE else (selector,)),
        slots=config.slots,
        trials=TRIALS,
        seed=SEEDS[part] + number,
    )
    folder = folder_of(root, part, number, selector)
    simulate(plan, world.load(), folder, command="python -m benchmarks.warm_selector.drawn", workers=1)


def folder_of(root: Path, part: str, number: int, selector: str) -> Path:
    """Where a selector is played in a world."""
    return root / f"{part}-{number}-{selector.rpartition(':')[2]}"


class Result(NamedTuple):
    """What came of a world, means over its trials; differences to random in accuracy, slots to random's accuracy."""

    world: UserWorld
    random: float
    gap: float
    differences: dict[str, float]
    low_differences: dict[str, float]
    slots: dict[str, float]


def read(root: Path, part: str, selectors: Sequence[str]) -> list[Result]:
    """The worlds in which all of these are finished."""
    results = []
    for number in range(WORLDS):
        finals: dict[str, Floats] = {}
        lows: dict[str, Floats] = {}
        curves: dict[str, Floats] = {}
        for selector in (BASELINE, *selectors):
            folder = folder_of(root, part, number, selector)
            if not (folder / "run.json").exists():
                break
            measured = read_table(folder).measured
            if (measured.ends < measured.header.slots).any():
                break
            for label in measured.curves:
                finals[label] = measured.final_accuracy(label)
                lows[label] = measured.final_low_accuracy(label)
                curves[label] = measured.curves[label].accuracy
        else:
            random, target = finals["random"], float(finals["random"].mean())
            results.append(
                Result(
                    draw_world(number, seed=SEEDS[part]),
                    target,
                    float((finals.get("oracle", random) - random).mean()),
                    {label: float((final - random).mean()) for label, final in finals.items()},
                    {label: float(np.nanmean(low - lows["random"])) for label, low in lows.items()},
                    {label: float(time_to_target(curve, target).slot.mean()) for label, curve in curves.items()},
                )
            )
    return results


def show(root: Path, part: str, selectors: Sequence[str]) -> None:
    """Print each world, then closure, speed and harm over all."""
    results = read(root, part, selectors)
    labels = ["cycle", *selectors]
    names = [label.rpartition(":")[2] for label in labels]
    print(f"| world | random | oracle | {' | '.join(names)} |\n" + "|---" * (3 + len(names)) + "|")
    for one in results:
        cells = [f"{100 * one.differences[label]:+.1f}" for label in labels]
        print(f"| {one.world.what} | {100 * one.random:.1f} | {100 * one.gap:+.1f} | {' | '.join(cells)} |")
    flawed = [one for one in results if one.gap > CLEAR_GAP]
    sound = [one for one in results if not one.world.flawed]
    little = [one for one in results if one.world.flawed and one.gap <= CLEAR_GAP]
    print(
        f"\n{len(flawed)} worlds with a gap, {len(sound)} where nobody is flawed, {len(little)} where flaws cost little"
    )
    columns = ["selector", "closure: mean", "pooled", "slots / random's", "slots / oracle's", "harm: mean"]
    columns += ["against cycle", "worst worlds", "10th percentile"]
    print(f"| {' | '.join(columns)} |\n" + "|---" * len(columns) + "|")
    for label, name in zip(labels, names, strict=True):
        closures = [one.differences[label] / one.gap for one in flawed]
        pooled = sum(one.differences[label] for one in flawed) / sum(one.gap for one in flawed)
        speed = [one.slots[label] / one.slots["random"] for one in flawed]
        behind = [one.slots[label] / one.slots["oracle"] for one in flawed]
        harms = [100 * one.differences[label] for one in [*sound, *little]]
        against = [100 * (one.differences[label] - one.differences["cycle"]) for one in [*sound, *little]]
        lows = [100 * one.low_differences[label] for one in sound]
        worst = ", ".join(f"{harm:+.1f}" for harm in sorted(harms)[:4])
        mean = mean_interval([100 * min(max(one, -2), 2) for one in closures])
        print(
            f"| {name} | {_say(mean)} % | {100 * pooled:.0f} % "
            f"| {np.mean(speed):.2f} | {np.mean(behind):.2f} | {_say(mean_interval(harms))} "
            f"| {_say(mean_interval(against))} | {worst} | {_say(mean_interval(lows))} |"
        )
    kinds = sorted({kind for one in flawed for kind in one.world.changes["flaws"]})
    print("\n| closure, pooled | " + " | ".join(names) + " |\n" + "|---" * (1 + len(names)) + "|")
    for kind in kinds:
        some = [one for one in flawed if kind in one.world.changes["flaws"]]
        total = sum(one.gap for one in some)
        cells = [f"{100 * sum(one.differences[label] for one in some) / total:.0f} %" for label in labels]
        print(f"| {kind} ({len(some)}) | {' | '.join(cells)} |")


def _say(interval: Interval) -> str:
    return f"{interval.mean:+.1f} ± {interval.half_width or 0.0:.1f}"


def main() -> None:
    """Play or show."""
    action, root, part = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    selectors = tuple(sys.argv[4:]) or OURS
    if action == "play":
        from benchmarks.warm_selector.drawn import play  # by a name that worker processes find

        tasks = [(root, part, number, one) for number in range(WORLDS) for one in (BASELINE, *selectors)]
        for finished, _ in zip(itertools.count(1), run_tasks(play, tasks, workers=2), strict=False):
            print(f"{finished} of {len(tasks)}", flush=True)
    show(root, part, selectors)


if __name__ == "__main__":
    main()
