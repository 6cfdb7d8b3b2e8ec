"""Play the reporting worlds, one run folder for each, and print the table of docs/results/sound-cycle.md.

    python -m benchmarks.warm_selector.report play RUNS [TRIALS [WORLD ...]]
    python -m benchmarks.warm_selector.report show RUNS     # all figures, one row for each world and selector
    python -m benchmarks.warm_selector.report tables RUNS   # the two tables of docs/results/sound-cycle.md

What was stopped goes on. `show` and `tables` read whatever is finished; `show` says with how many trials.
"""

import itertools
import math
import sys
from pathlib import Path

from benchmarks.warm_selector.worlds import REPORT, REPORT_TRIALS, UNSEEN_SEED

from fedelect.bench.user_worlds import UserWorld
from fedelect.equations.intervals import Interval
from fedelect.records import read_table
from fedelect.simulator import Plan, simulate, specify_selectors

BASELINES = ("random", "oracle")
VARIANTS = tuple(f"benchmarks.warm_selector.variants:{name}" for name in ("LossesAlone", "OpinionsAlone"))
PARTS = {
    "ours": (*BASELINES, "cycle", "sound-cycle", *VARIANTS),
    "literature": (*BASELINES, "client-ucb", "power-of-choice", "oort"),
}
"""The selectors, in runs of their own; within a trial all share world and luck, also across runs."""


def play(world: UserWorld, part: str, folder: Path, trials: int) -> None:
    """Play one world, or what is left of it."""
    config = world.config(UNSEEN_SEED)
    plan = Plan(
        config=config,
        framework="fa",
        selectors=specify_selectors(PARTS[part]),
        slots=config.slots,
        trials=trials,
        seed=UNSEEN_SEED,
    )
    simulate(plan, world.load(), folder, command="python -m benchmarks.warm_selector.report", workers=2)


COLUMNS = {
    "oracle": "oracle",
    "cycle": "cycle",
    "opinions": VARIANTS[1],
    "losses": VARIANTS[0],
    "losses and updates": "sound-cycle",
    "client-ucb": "client-ucb",
    "power-of-choice": "power-of-choice",
    "oort": "oort",
}
KINDS = {
    "wrong labels and noisy features": ("random-labels", "swapped-labels", "noisy-features"),
    "free riders and flipped updates": ("free-riders", "flipped-updates"),
    "all with a clear gap": tuple(world.name for world in REPORT),
}


def show_tables(root: Path) -> None:
    """Print the table of worlds and mean closures by kind of flaw, whose intervals follow from those of the worlds."""
    closures: dict[str, dict[str, tuple[float, float]]] = {label: {} for label in COLUMNS}
    print(f"| world | random | {' | '.join(COLUMNS)} |\n" + "|---" * (2 + len(COLUMNS)) + "|")
    for world in REPORT:
        folders = sorted(root.glob(f"{world.name}@*"), reverse=True)  # ours first
        tables = [read_table(folder).measured for folder in folders]
        cells = []
        for column, label in COLUMNS.items():
            summary = next((found for table in tables if (found := table.summary(label)) is not None), None)
            if summary is None or summary.difference is None:
                cells.append("")
                continue
            difference, closed = summary.difference, summary.closure
            cells.append(f"{100 * difference.mean:+.1f} ± {100 * (difference.half_width or 0.0):.1f}")
            if closed is not None:
                cells[-1] += f" ({100 * closed.value:.0f} %)"
                closures[column][world.name] = (closed.value, (closed.high - closed.low) / 2)
        random = tables[0].summary("random") if tables else None
        if random is not None:
            print(f"| `{world.name}` | {100 * random.final_accuracy.mean:.1f} | {' | '.join(cells)} |")
    del closures["oracle"]
    print(f"\n| mean closure | {' | '.join(closures)} |\n" + "|---" * (1 + len(closures)) + "|")
    for kind, names in KINDS.items():
        cells = []
        for closed_in in closures.values():
            some = [closed_in[name] for name in names if name in closed_in]
            mean = sum(value for value, _ in some) / max(len(some), 1)
            width = math.sqrt(sum(half**2 for _, half in some)) / max(len(some), 1)
            cells.append(_percent(mean, mean - width, mean + width) if some else "")
        print(f"| {kind} | {' | '.join(cells)} |")


def show(root: Path) -> None:
    """Print the difference to random in points, closure where the gap is clear, and slots to random's accuracy."""
    print("| world | trials | selector | accuracy | against random | closure | 10th percentile against random |")
    print("|---" * 7 + "|")
    for world, part in itertools.product(REPORT, PARTS):
        for folder in sorted(root.glob(f"{world.name}@*-{part}")):
            measured = read_table(folder).measured
            for label in PARTS[part][0 if part == "ours" else len(BASELINES) :]:
                summary = measured.summary(label)
                if summary is None:
                    continue
                trials, name = folder.name.partition("@")[2].partition("-")[0], label.rpartition(":")[2]
                closed = summary.closure
                closure = "" if closed is None else _percent(closed.value, closed.low, closed.high)
                print(
                    f"| {world.name} | {trials} | {name} | {100 * summary.final_accuracy.mean:.1f} "
                    f"| {_points(summary.difference)} | {closure} | {_points(summary.low_difference)} |"
                )


def _points(difference: Interval | None) -> str:
    """In points, with the 95 % interval."""
    if difference is None:
        return ""
    return f"{100 * difference.mean:+.1f} [{_signed(difference.low)}, {_signed(difference.high)}]"


def _percent(value: float, low: float, high: float) -> str:
    return f"{100 * value:.0f} [{100 * low:.0f}, {100 * high:.0f}] %"


def _signed(value: float | None) -> str:
    return "" if value is None else f"{100 * value:+.1f}"


def main() -> None:
    """Play or show."""
    action, root = sys.argv[1], Path(sys.argv[2])
    if action in ("show", "tables"):
        (show if action == "show" else show_tables)(root)
        return
    trials = int(sys.argv[3]) if len(sys.argv) > 3 else REPORT_TRIALS
    for part, world in itertools.product(PARTS, REPORT):
        if len(sys.argv) <= 4 or world.name in sys.argv[4:]:
            play(world, part, root / f"{world.name}@{trials}-{part}", trials)
            print(world.name, part, flush=True)


if __name__ == "__main__":
    main()
