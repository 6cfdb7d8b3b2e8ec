"""The published comparison: what trains on demand, the search for the best, and the pages made from the figures."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.report_selectors import RESULTS, Kept, figures, play_missing
from benchmarks.selector_report import arenas, pages
from benchmarks.selector_report.arenas import OnDemandArena
from benchmarks.selector_report.on_demand import OnDemand
from benchmarks.selector_report.search import climb, neighbours
from benchmarks.selector_report.worlds import BenchWorld
from rich.console import Console
from scipy import stats
from tests.worlds import digits, tiny

from fedelect.analytics import survey
from fedelect.bench import Environment, play_together
from fedelect.federation import Job, linear_losses, make_engine
from fedelect.scenario import Scenario, build_scenario
from fedelect.vocabulary import Cohort, Floats

ROOT = Path(__file__).parents[2]


def small_world() -> Scenario:
    return build_scenario(tiny(upload_probability=1.0), digits())


def test_what_is_trained_on_demand_is_what_training_gives_and_is_trained_once(tmp_path: Path) -> None:
    world = small_world()
    engine = make_engine("auto", world.config)
    kept = OnDemand(world, engine, tmp_path / "kept.npz")
    cohorts = list(itertools.combinations(range(world.clients), world.budget))
    (place,) = kept.train(world, [Job(cohort=cohorts[3], seed=99, trial=5, slot=7)])
    (training,) = engine.train(world, [Job(cohort=cohorts[3], seed=1, trial=0, slot=1)])
    (opinions,) = kept.opinions(world, [place.model])
    assert np.array_equal(opinions, survey(world, training.model))
    assert np.allclose(kept.losses(world, place.model).rms, linear_losses(world, training.model).rms, rtol=0.02)
    assert kept.known == [cohorts[3]]
    kept.worth(cohorts[2:5])
    kept.save()
    again = OnDemand(world, engine, tmp_path / "kept.npz")
    assert set(again.known) == set(cohorts[2:5])
    assert np.array_equal(again.worth(cohorts[2:5]), kept.worth(cohorts[2:5]))
    assert np.array_equal(again.losses(world, place.model).mean, kept.losses(world, place.model).mean)
    assert again.model_bits(world) == 8 * training.model.nbytes


def test_selectors_played_side_by_side_do_what_they_do_alone() -> None:
    world = small_world()
    environment = Environment(world, make_engine("auto", world.config))
    texts = ["quick-init-ucb:exploration=0.01", "bp-ucb", "oort", "random"]
    together = play_together(environment, texts, slots=6, trials=2, seed=3)
    for text, one in zip(texts, together, strict=True):
        (alone,) = play_together(environment, [text], slots=6, trials=2, seed=3)
        assert np.array_equal(one.cohorts, alone.cohorts) and np.array_equal(one.rewards, alone.rewards)
        assert one.framework == alone.framework == ("da" if text == "bp-ucb" else "fa")


def test_climbing_ends_where_no_exchange_helps() -> None:
    rng = np.random.default_rng(4)
    table: dict[Cohort, float] = {cohort: float(rng.random()) for cohort in itertools.combinations(range(7), 3)}

    def worth(cohorts: Sequence[Cohort]) -> Floats:
        return np.array([table[cohort] for cohort in cohorts])

    found, value = climb(worth, (0, 1, 2), 7)
    around = neighbours(found, 7)
    assert len(set(around)) == 3 * 4 and all(len(set(one) & set(found)) == 2 for one in around)
    assert value == table[found] >= max(table[one] for one in around)


def test_a_tiny_world_is_played_resumed_and_drawn_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arenas, "SLOTS", 12)
    monkeypatch.setattr(arenas, "LARGE", tmp_path)
    world = BenchWorld(config=tiny(upload_probability=1.0))
    kept = Kept(tmp_path / "kept", world.name, 2)
    elections = play_missing(OnDemandArena(world, full=False, trials=2), kept, Console(quiet=True))
    arena = OnDemandArena(world, full=False, trials=2)
    report: dict[str, Any] = {"reference": "set-gp", "worlds": {world.name: figures(arena, elections)}}
    assert report == {
        "reference": "set-gp",
        "worlds": {world.name: figures(arena, play_missing(arena, kept, Console(quiet=True)))},
    }
    everything = list(itertools.combinations(range(arena.environment.world.clients), arena.environment.world.budget))
    found = report["worlds"][world.name]
    assert found["optimum"] == pytest.approx(arena.engine.worth(everything).max(), abs=1e-6)
    assert set(found["entrants"]) == set(arena.texts)
    assert all(min(row["running_gap"]) >= 0 for row in found["entrants"].values())
    assert pages.entrants_table(report).count("\n") == 1 + len(arena.texts)


def made_up() -> dict[str, Any]:
    """Two worlds of three trials: `worse` loses in both, `mixed` wins in one, and plays in one only."""

    def row(gaps: list[float]) -> dict[str, Any]:
        others = {key: [1.0, 1.0, 1.0] for key in ("slots_to_close", "regret", "jain_index", "ask_ms")}
        return {"framework": "fa", "final_gap": gaps, "running_gap": gaps} | others

    def world(rows: dict[str, Any]) -> dict[str, Any]:
        facts = {"kind": "atlas", "clients": 6, "budget": 2, "slots": 5, "trials": 3, "best": [0, 1], "optimum": 0.5}
        return facts | {"entrants": rows}

    first = {"set-gp": row([1, 2, 3]), "worse": row([2.1, 3.0, 3.9]), "mixed": row([0.1, 1.0, 1.9])}
    return {
        "reference": "set-gp",
        "worlds": {"a": world(first), "b": world({"set-gp": row([1, 1, 1]), "worse": row([4, 5, 6])})},
    }


def test_over_all_worlds_a_difference_is_taken_in_the_same_trials_and_its_interval_over_worlds() -> None:
    rows = {row.text: row for row in pages.overall(made_up())}
    assert [row.text for row in pages.overall(made_up())] == ["mixed", "set-gp", "worse"]
    assert (rows["worse"].worlds, rows["worse"].better, rows["worse"].worse) == (2, 0, 2)
    assert (rows["mixed"].worlds, rows["mixed"].better, rows["mixed"].worse) == (1, 1, 0)
    expected = stats.t.interval(0.95, 1, loc=2.5, scale=stats.sem([1.0, 4.0]))
    assert (rows["worse"].difference.low, rows["worse"].difference.high) == pytest.approx(expected)
    assert rows["worse"].means["running_gap"] == pytest.approx(4.0)
    table = pages.worlds_table(made_up())
    assert "a,6,2,5,3,0.5000,0 1,all cohorts known,mixed,1.00,1.00,2.00,2.00,2 of 3,mixed,-1.00 ± 0.25\n" in table


@pytest.mark.skipif(not RESULTS.exists(), reason="nothing has been measured")
def test_the_data_files_are_those_of_the_figures() -> None:
    report = json.loads(RESULTS.read_text())
    for name, text in pages.make_files(report).items():
        assert text == (ROOT / "docs/data" / name).read_text(encoding="utf-8"), name
