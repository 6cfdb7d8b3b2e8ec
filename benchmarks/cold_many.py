"""Selectors by reward in cold worlds of 60 to 200 clients, where a list of all cohorts would not fit anywhere.

    python -m benchmarks.cold_many RUNS [TRIALS]

The worlds are of MNIST, each cohort is trained live, and no selector was tuned in them; one of them,
`r-mnist-labels2-N100-K5`, is in the published comparison. Figures are average opinions in percent, over the last 20 of
200 slots and over all, and the difference to `quick-init-ucb:exploration=0.01` trial by trial, with 95 % intervals.
Runs are kept below RUNS; the same command goes on.
"""

import sys
from pathlib import Path

from benchmarks.selector_report.worlds import REPORTING, SLOTS, mnist_world

import fedelect
from fedelect.equations.intervals import mean_interval
from fedelect.scenario import DataConfig, ScenarioConfig

SEED, TRIALS, LAST = 301, 3, 20
REFERENCE = "quick-init-ucb:exploration=0.01"
SELECTORS = (
    "auto",
    REFERENCE,
    "quick-init-ucb:exploration=0.03",
    "set-gp",
    "additive-thompson",
    "client-ucb:exploration=0.01",
    "random",
)


def _world(clients: int, budget: int, seed: int, data: DataConfig) -> ScenarioConfig:
    return mnist_world(f"c-mnist-{data.skew}-N{clients}-K{budget}", seed, clients, budget, data).config


WORLDS = (
    _world(60, 5, 311, DataConfig(skew="dirichlet", alpha=0.2, samples=(100, 300))),
    _world(60, 5, 314, DataConfig(skew="labels", samples=(100, 300))),
    next(world.config for world in REPORTING if world.name == "r-mnist-labels2-N100-K5"),
    _world(100, 10, 312, DataConfig(skew="dirichlet", alpha=0.1, samples=(100, 300))),
    _world(200, 10, 313, DataConfig(skew="labels", samples=(100, 200))),
)


def main() -> None:
    """Play what is missing and print a table for each world."""
    root, trials = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else TRIALS
    for config in WORLDS:
        out = root / f"{config.name}@{trials}"
        run = fedelect.simulate(
            config, selectors=SELECTORS, framework="fa", slots=SLOTS, trials=trials, seed=SEED, out=out
        )
        print(f"\n{config.name}, {trials} trials\n")
        print(f"| selector | last {LAST} slots | all slots | last: minus {REFERENCE} |\n" + "|---" * 4 + "|")
        curves = {label: 100 * run.rewards(label) for label in run.selectors}  # (trials, slots)
        last = {label: curve[:, -LAST:].mean(axis=1) for label, curve in curves.items()}
        for label in run.selectors:
            found = mean_interval(last[label] - last[REFERENCE])
            print(
                f"| `{label}` | {last[label].mean():.1f} | {curves[label].mean():.1f} | {found.mean:+.1f} "
                f"[{found.low:+.1f}, {found.high:+.1f}] |",
                flush=True,
            )


if __name__ == "__main__":
    main()
