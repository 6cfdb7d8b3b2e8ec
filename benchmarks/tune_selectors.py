"""Choose each selector's parameters in the tuning worlds, with the same budget for all.

    python benchmarks/tune_selectors.py --tables FOLDER                    # every selector
    python benchmarks/tune_selectors.py --tables FOLDER --only set-gp      # one of them
    python benchmarks/tune_selectors.py --tables FOLDER --compare          # defaults only

All cohorts of every cold tuning world (`benchmarks.selector_report.worlds`) are trained once, a few draws of batch
order and upload luck each, and kept in FOLDER; selectors are then played on these tables. A gap is (best - chosen) /
best of the mean over draws, in percent; *running* is the mean over all slots, *final* over the last 20. The warm world
has no table and is left out.
Results go to results/selector_tuning.json, one list of settings for each selector.
"""

import os
import sys

if sys.path[0].endswith("benchmarks"):
    sys.path[0] = os.path.dirname(sys.path[0])  # here `selectors.py` would hide the standard library's

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.selector_report.worlds import SETTINGS, SLOTS, TRIALS, TUNING, BenchWorld
from threadpoolctl import threadpool_limits

from fedelect.analytics import judge
from fedelect.datasets import load_dataset
from fedelect.federation import Job, Model, linear_losses, make_engine
from fedelect.scenario import Scenario, build_scenario, simulated_signals
from fedelect.seeds import derive, stream
from fedelect.selectors import AbstractSelector, SelectorSpec
from fedelect.vocabulary import Cohort, Feedback, Floats, Selection

RESULTS = Path(__file__).parent / "results" / "selector_tuning.json"
LAST = 20
TABLE_SEED = 777
MODEL_BITS = 32 * 65 * 10


def _grid(**values: list[Any]) -> list[str]:
    return [",".join(f"{key}={value}" for key, value in zip(values, row, strict=True))
            for row in itertools.product(*values.values())]  # fmt: skip


GRIDS: dict[str, list[str]] = {
    "quick-init-ucb": _grid(exploration=[0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0]),
    "bp-ucb": _grid(exploration=[0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0]),
    "subset-ucb": _grid(exploration=[0.01, 0.1, 1.0]),
    "set-gp": [
        "", "exploration=1.5", "exploration=2.5", "pairs=1.0", "pairs=0.25", "own=0.1", "own=0.01", "triples=0.0",
        "triples=0.2", "additive=1.4", "exploration=1.75", "exploration=1.5,own=0.1",
    ],
    "loss-gp": _grid(surrogate=[0.25, 0.5, 1.0], exploration=[2.0, 1.5]),
    "power-of-choice": _grid(candidates=[5, 6, 8, 10, 12]),
    "oort": _grid(penalty=[0.0, 1.0, 2.0, 4.0], window=[10, 20, 40]),
    "tifl": _grid(tiers=[2, 5], credits=[20, 50, 200], interval=[5, 20]),
    "fedcs": _grid(candidates=[5, 6, 8, 10, 12]),
    "proportional-fair": [""],
    "data-size": [""],
    "rbcs-f": _grid(patience=[1.0, 5.0, 20.0, 100.0], exploration=[0.0, 0.1, 1.0]),
    "context-ucb": _grid(exploration=[0.0, 0.01, 0.03, 0.1, 0.3, 1.0]),
    "client-ucb": _grid(exploration=[0.0, 0.01, 0.03, 0.1, 0.3, 1.0]),
    "client-thompson": _grid(sharpness=[1.0, 3.0, 10.0, 30.0, 100.0, 300.0]),
    "additive-thompson": _grid(spread=[0.03, 0.1, 0.3], noise=[0.02, 0.05, 0.1, 0.2]),
    "random": [""],
}  # fmt: skip
"""Settings tried, at most `SETTINGS` for each selector."""


class Table:
    """Every cohort of a world, trained.

    Attributes:
        world: The world.
        scenario: Built.
        cohorts: All of them, and their row.
        opinions: (cohorts, draws, N).
        loss: (cohorts, N) mean loss in the first draw.
        loss_rms: (cohorts, N).
    """

    def __init__(self, world: BenchWorld, folder: Path) -> None:
        self.world = world
        self.scenario = build_scenario(world.config, load_dataset("digits"))
        sets = list(itertools.combinations(range(world.config.clients), world.config.budget))
        self.cohorts: dict[Cohort, int] = {cohort: row for row, cohort in enumerate(sets)}
        path = folder / f"{world.name}.npz"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            np.savez(path, **_train(self.scenario, sets))
        with np.load(path) as kept:
            self.opinions, self.loss, self.loss_rms = kept["op"], kept["lm"], kept["lr"]
        self.truth: Floats = self.opinions.mean(axis=2, dtype=np.float64).mean(axis=1)

    def play(self, selector: AbstractSelector, trial: int) -> Floats:
        """(SLOTS,) gaps in percent."""
        chosen = []
        for _ in range(SLOTS):
            selection = selector.ask()
            chosen.append(self.truth[self.cohorts[selection.cohort]])
            selector.tell(selection, self._feedback(selector, selection, trial))
        best = self.truth.max()
        gaps: Floats = (best - np.array(chosen)) / best * 100.0
        return gaps

    def _feedback(self, selector: AbstractSelector, selection: Selection, trial: int) -> Feedback:
        row = self.cohorts[selection.cohort]
        draw = stream(5, "draw", trial, selection.slot).integers(self.opinions.shape[1])
        opinions = self.opinions[row, draw].astype(np.float64)
        signals: dict[str, Any] = {"opinions": opinions, "beliefs": opinions**2}
        if selector.needs - {"reward", *signals}:
            signals |= {"loss": self.loss[row], "loss_rms": self.loss_rms[row]}
            signals |= simulated_signals(
                self.scenario,
                selection.cohort,
                model_bits=MODEL_BITS,
                seed=TABLE_SEED,
                trial=trial,
                slot=selection.slot,
            )
        return Feedback(**signals)


def _train(scenario: Scenario, cohorts: list[Cohort]) -> dict[str, Any]:
    engine = make_engine("auto", scenario.config)
    draws = 12 if scenario.config.channel.upload_probability != 1.0 else {495: 6, 220: 6, 3003: 3}.get(len(cohorts), 2)
    opinions = np.zeros((len(cohorts), draws, scenario.clients), dtype=np.float32)
    loss, rms = np.zeros((2, len(cohorts), scenario.clients), dtype=np.float32)
    for draw, start in itertools.product(range(draws), range(0, len(cohorts), 500)):
        part = cohorts[start : start + 500]
        jobs = [Job(cohort=cohort, seed=TABLE_SEED, trial=0, slot=draw + 1) for cohort in part]
        models: list[Model] = [training.model for training in engine.train(scenario, jobs)]
        for row, (model, scores) in enumerate(zip(models, engine.scores(scenario, models), strict=True), start):
            opinions[row, draw] = judge(scenario, scores)
            if not draw:
                loss[row], rms[row] = linear_losses(scenario, model)
    return {"cohorts": np.array(cohorts), "op": opinions, "lm": loss, "lr": rms, "sizes": scenario.sizes}


def measure(tables: list[Table], text: str) -> dict[str, Any]:
    """Running and final gap of a specification, over worlds and by world."""
    rows, spent, asked = {}, 0.0, 0
    for table in tables:
        config = table.world.config
        before, gaps = time.process_time(), []
        for trial in range(TRIALS):
            spec = SelectorSpec.parse(text)
            seed = derive(1, "selection", trial)
            gaps.append(table.play(spec.build(clients=config.clients, budget=config.budget, seed=seed), trial))
        spent, asked = spent + time.process_time() - before, asked + TRIALS * SLOTS
        rows[table.world.name] = [float(np.mean(gaps)), float(np.mean(np.array(gaps)[:, -LAST:]))]
    running, final = np.mean(list(rows.values()), axis=0).tolist()
    return {"text": text, "running": running, "final": final, "cpu_ms_a_slot": 1e3 * spent / asked, "worlds": rows}


def main() -> None:
    """Tune, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, required=True, help="folder of trained tables; made if missing")
    parser.add_argument("--only", action="append", choices=GRIDS, help="tune this selector; may be given several times")
    parser.add_argument("--compare", action="store_true", help="play defaults only and keep nothing")
    options = parser.parse_args()
    assert all(len(grid) <= SETTINGS for grid in GRIDS.values())
    with threadpool_limits(limits=1, user_api="blas"):
        tables = [Table(world, options.tables) for world in TUNING if world.config.start == "cold"]
        for name in options.only or GRIDS:
            settings = [""] if options.compare else GRIDS[name]
            found = [measure(tables, f"{name}:{each}" if each else name) for each in settings]
            found.sort(key=lambda row: row["running"])
            for row in found:
                print(f"{row['text']:55s} running {row['running']:6.2f} %  final {row['final']:6.2f} %"
                      f"  {row['cpu_ms_a_slot']:6.2f} ms", flush=True)  # fmt: skip
            if not options.compare:
                kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
                kept[name] = found
                RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
