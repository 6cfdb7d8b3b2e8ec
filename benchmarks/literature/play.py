"""Tune all methods of docs/results/literature.md with one budget, play them, and write figures and table.

    python -m benchmarks.literature.play                       # go on where it stopped, then write the page
    python -m benchmarks.literature.play --only sound-cycle    # make the rows of a method anew; may be repeated
    python -m benchmarks.literature.play --trials 8            # add trials
    python -m benchmarks.literature.play --page                # only the page, from the figures that are there

Figures go to results/literature.json after each world. A method's figures follow from its settings and the seeds, not
from what else is played. A method that needs contributions plays in the same worlds with a validation share at the
server (`fedelect.bench.users.reserve_validation`), and is compared with random there.
"""

import argparse
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.literature.page import write_page
from benchmarks.literature.plan import (
    COLD_SLOTS,
    GRIDS,
    ORACLE,
    PLAYED,
    RANDOM,
    SETTINGS,
    TRIALS,
    TUNING,
    TUNING_SLOTS,
    TUNING_TRIALS,
    TableWorld,
)
from benchmarks.selectors import ask_and_tell
from threadpoolctl import threadpool_limits

from fedelect.bench.users import reserve_validation
from fedelect.equations.metrics import final_mean, jain_index, time_to_target
from fedelect.federation import make_engine
from fedelect.loop import Replica, play_slot
from fedelect.records import SlotRecord
from fedelect.records.files import replace_file
from fedelect.selectors import selector_classes
from fedelect.simulator import Plan, specify_selectors
from fedelect.simulator.plan import build_world
from fedelect.vocabulary import Floats

RESULTS = Path(__file__).parents[1] / "results" / "literature.json"
WITH_VALIDATION = "+validation"

Figures = dict[str, Any]
"""What results/literature.json holds: see `empty`."""


def empty() -> Figures:
    """Figures of nothing.

    tuning: kind of world -> method -> setting -> tuning world -> score of each trial.
    played: kind of world -> world -> method -> {setting, final, low, slots, jain}, each a list over trials.
    ask_ms: method -> median milliseconds of an ask at N = 100, K = 10.
    """
    budget = {"settings": SETTINGS, "trials": TUNING_TRIALS, "slots": TUNING_SLOTS}
    return {"budget": budget, "tuning": {}, "played": {}, "ask_ms": {}}


def load() -> Figures:
    """What is kept."""
    kept: Figures = json.loads(RESULTS.read_text()) if RESULTS.exists() else empty()
    return kept


def save(figures: Figures) -> None:
    """Keep the figures."""
    replace_file(RESULTS, (json.dumps(figures, indent=1) + "\n").encode())


def text_of(method: str, setting: str) -> str:
    """Specification of a selector."""
    return f"{method}:{setting}" if setting else method


def needs_validation(method: str) -> bool:
    """Whether the method needs contributions."""
    kind = selector_classes().get(method)
    return kind is not None and "contributions" in kind.needs


def play(
    world: TableWorld, texts: Iterable[str], trials: range, slots: int, *, validation: bool
) -> dict[str, dict[int, Figures]]:
    """Specification -> trial -> accuracy of each slot, low accuracy at the end, counts of elections."""
    config = reserve_validation(world.config) if validation else world.config
    plan = Plan(
        config=config,
        framework="fa",
        selectors=specify_selectors(list(texts)),
        slots=slots,
        trials=trials.stop,
        seed=world.seed,
    )
    data, engine = world.load(), make_engine("auto", config)
    drawn = {plan.draw(trial): None for trial in trials}
    worlds = {draw: build_world(config, data, draw=draw) for draw in drawn}
    replicas = [
        Replica(spec.text, trial, worlds[plan.draw(trial)], plan.build_selector(spec, worlds[plan.draw(trial)], trial))
        for trial in trials
        for spec in plan.selectors
    ]
    curves = np.full((len(replicas), slots), np.nan)
    counts = np.zeros((len(replicas), config.clients))
    lows = np.full(len(replicas), np.nan)
    for slot in range(1, slots + 1):
        last = slot == slots
        records = play_slot(replicas, slot=slot, framework="fa", seed=world.seed, engine=engine, last=last)
        for place, record in enumerate(records):
            curves[place, slot - 1] = _accuracy(record)
            counts[place, list(record.cohort)] += 1.0
            if last and record.measures is not None and record.measures.low_accuracy is not None:
                lows[place] = record.measures.low_accuracy
    found: dict[str, dict[int, Figures]] = {}
    for place, replica in enumerate(replicas):
        own = {"curve": curves[place], "low": float(lows[place]), "counts": counts[place]}
        found.setdefault(replica.label, {})[replica.trial] = own
    return found


def _accuracy(record: SlotRecord) -> float:
    """Clean accuracy where it is measured, else the mean opinion, which is the accuracy on the global test data."""
    value = record.mean_opinion if record.measures is None else record.measures.accuracy
    return math.nan if value is None else value


def tune(figures: Figures, methods: list[str]) -> None:
    """Score all settings that have none yet, world by world."""
    for kind, worlds in TUNING.items():
        kept = figures["tuning"].setdefault(kind, {})
        for world in worlds:
            for validation in (False, True):
                missing = [
                    (method, setting)
                    for method in methods
                    if len(GRIDS[method]) > 1 and needs_validation(method) == validation
                    for setting in GRIDS[method]
                    if world.name not in kept.get(method, {}).get(setting, {})
                ]
                if not missing:
                    continue
                texts = [text_of(*one) for one in missing]
                found = play(world, texts, range(TUNING_TRIALS), TUNING_SLOTS, validation=validation)
                for method, setting in missing:
                    runs = found[text_of(method, setting)].values()
                    scores = [round(_tuning_score(kind, run["curve"]), 5) for run in runs]
                    kept.setdefault(method, {}).setdefault(setting, {})[world.name] = scores
                save(figures)
                print("tuned", kind, world.name, len(missing), flush=True)


def _tuning_score(kind: str, curve: Floats) -> float:
    """In warm worlds the accuracy at the end, in cold ones the mean over all slots, the paper's objective."""
    return float(final_mean(curve)) if kind == "users" else float(np.nanmean(curve))


def choose(figures: Figures, kind: str, method: str) -> str:
    """The setting with the highest mean score; the default of a method without parameters."""
    if len(GRIDS[method]) == 1:
        return GRIDS[method][0]
    kept = figures["tuning"][kind][method]
    return max(GRIDS[method], key=lambda setting: float(np.mean(list(kept[setting].values()))))


def play_all(figures: Figures, methods: list[str], trials: int) -> None:
    """Play what is missing: all methods in one trial of one world at a time, trial by trial."""
    for trial in range(trials):
        for kind, worlds in PLAYED.items():
            for world in worlds:
                for validation in (False, True):
                    _play_trial(figures, kind, world, trial, methods, validation=validation)


def _play_trial(
    figures: Figures, kind: str, world: TableWorld, trial: int, methods: list[str], *, validation: bool
) -> None:
    own = [method for method in methods if needs_validation(method) == validation]
    name = world.name + (WITH_VALIDATION if validation else "")
    kept = figures["played"].setdefault(kind, {}).setdefault(name, {})
    names = dict.fromkeys(([RANDOM] if own and validation else []) + own)
    missing = [method for method in names if len(kept.get(method, {}).get("final", ())) <= trial]
    if not missing:
        return
    settings = {method: choose(figures, kind, method) for method in missing}
    texts = {method: text_of(method, setting) for method, setting in settings.items()}
    slots = world.config.slots if kind == "users" else COLD_SLOTS
    found = play(world, texts.values(), range(trial, trial + 1), slots, validation=validation)
    if RANDOM in missing:
        _keep(kept, RANDOM, settings[RANDOM], found[RANDOM][trial], target=None)
    for method in missing:
        if method != RANDOM:
            _keep(kept, method, settings[method], found[texts[method]][trial], target=kept[RANDOM]["final"][trial])
    save(figures)
    print("played", kind, name, trial, len(missing), flush=True)


def _keep(kept: Figures, method: str, setting: str, run: Figures, *, target: float | None) -> None:
    """Append a trial; the target of `slots` is random's accuracy at the end of the same trial."""
    final = round(float(final_mean(run["curve"])), 5)
    row = kept.setdefault(method, {"setting": setting, "final": [], "low": [], "slots": [], "jain": []})
    assert row["setting"] == setting
    row["final"].append(final)
    row["low"].append(None if math.isnan(run["low"]) else round(run["low"], 5))
    row["slots"].append(int(time_to_target(run["curve"], final if target is None else target).slot))
    row["jain"].append(round(float(jain_index(run["counts"])), 4))


def time_asks(figures: Figures, methods: list[str]) -> None:
    """Median milliseconds of an ask at N = 100, K = 10, with default settings."""
    for method in methods:
        if method not in figures["ask_ms"]:
            name = RANDOM if method == ORACLE else method
            figures["ask_ms"][method] = round(ask_and_tell(name, 100, 10, 40)["ask"], 2)
            save(figures)


def forget(figures: Figures, methods: list[str]) -> None:
    """Drop all figures of some methods."""
    for tables in (figures["tuning"].values(), *(worlds.values() for worlds in figures["played"].values())):
        for table in tables:
            for method in methods:
                table.pop(method, None)
    for method in methods:
        figures["ask_ms"].pop(method, None)


def main() -> None:
    """Tune, play, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=[name for name in GRIDS if name != RANDOM])
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    figures, methods = load(), list(GRIDS)
    if not options.page:
        if options.only:
            forget(figures, options.only)
            methods = [method for method in GRIDS if method in options.only]
        with threadpool_limits(limits=1, user_api="blas"):
            tune(figures, methods)
            time_asks(figures, methods)
            play_all(figures, methods, options.trials)
    write_page(figures)


if __name__ == "__main__":
    main()
