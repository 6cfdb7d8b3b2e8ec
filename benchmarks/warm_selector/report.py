"""Play the reporting worlds, one run folder for each, and print the table of docs/SELECTORS.md.

    python -m benchmarks.warm_selector.report play RUNS [TRIALS [WORLD ...]]
    python -m benchmarks.warm_selector.report show RUNS

What was stopped goes on. `show` reads whatever is finished, and says with how many trials.
"""

import itertools
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
    if action == "show":
        show(root)
        return
    trials = int(sys.argv[3]) if len(sys.argv) > 3 else REPORT_TRIALS
    for part, world in itertools.product(PARTS, REPORT):
        if len(sys.argv) <= 4 or world.name in sys.argv[4:]:
            play(world, part, root / f"{world.name}@{trials}-{part}", trials)
            print(world.name, part, flush=True)


if __name__ == "__main__":
    main()
