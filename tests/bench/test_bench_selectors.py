"""The ranking of selectors on atlases."""

from pathlib import Path

import numpy as np
import pytest
from tests.atlas.made_up import alike, made_up
from tests.worlds import plan as run_plan

from fedelect.atlas import Atlas, load_atlas, scenario_truth, shipped_atlases, table_truth
from fedelect.bench import Ranking, benchmark_specs, name_missing_signals, rank_selectors
from fedelect.bench.play import Player
from fedelect.errors import ConfigurationError, SelectorError
from fedelect.records import read_run
from fedelect.seeds import derive
from fedelect.selectors import AbstractSelector, selector_classes
from fedelect.selectors.base import Available, Choice
from fedelect.simulator import simulate

VALUES = np.linspace(0.2, 0.9, 15)
WITH_FRESH = np.full((4, 2), [0.8, 0.6])


def ladder() -> Atlas:
    """Cohort number n is worth VALUES[n] in the table; of the two contenders, 13 and 14, fresh seeds prefer 13."""
    return made_up(alike(VALUES[np.newaxis]), alike(WITH_FRESH), [13, 14], opinion="m:f")


def row(ranking: Ranking, label: str) -> dict[str, float]:
    (found,) = [row for row in ranking.rows if row.label == label]
    names = ("final_gap", "running_gap", "slots_to_close", "regret", "jain_index")
    return {name: getattr(found, name).mean for name in names}


def test_fixed_cohorts_are_ranked_as_worked_out_by_hand() -> None:
    ranking = rank_selectors(ladder(), slots=20, trials=2, workers=1, only=["fixed:cohort=4,5"], truth=scenario_truth)
    assert ranking.best == (3, 5) and ranking.optimum.mean == pytest.approx(0.8)
    optimum = row(ranking, "fixed:cohort=3,5")
    expected = {"final_gap": 0, "running_gap": 0, "slots_to_close": 1, "regret": 0, "jain_index": 2 / 6}
    assert optimum == pytest.approx(expected, abs=1e-6)
    flattered = row(ranking, "fixed:cohort=4,5")  # the best of the table, worth 0.6 by fresh seeds
    expected = {"final_gap": 25, "running_gap": 25, "slots_to_close": 20, "regret": 4, "jain_index": 2 / 6}
    assert flattered == pytest.approx(expected, abs=1e-5)
    first = row(ranking, "fixed:cohort=0,1")
    assert first == pytest.approx(expected | {"final_gap": 75, "running_gap": 75, "regret": 12}, abs=1e-5)
    roles = {row.label: row.role for row in ranking.rows}
    assert (roles["fixed:cohort=0,1"], roles["fixed:cohort=3,5"]) == ("first clients", "optimum")
    assert roles["fixed:cohort=4,5"] == roles["random"] == "selector"


def test_without_fresh_seeds_the_table_is_the_world_and_its_best_cohort_the_optimum() -> None:
    ranking = rank_selectors(ladder(), slots=20, trials=2, workers=1)
    assert ranking.best == (4, 5) and ranking.optimum.mean == pytest.approx(0.9)
    assert row(ranking, "fixed:cohort=4,5")["running_gap"] == 0.0
    assert row(ranking, "fixed:cohort=0,1")["final_gap"] == pytest.approx(100 * 0.7 / 0.9, abs=1e-5)


def test_all_selectors_are_ranked_by_their_running_gap_each_where_it_finds_what_it_needs() -> None:
    ranking = rank_selectors(ladder(), slots=30, trials=3, workers=1)
    assert {row.label for row in ranking.rows} == set(benchmark_specs(ladder(), table_truth(ladder())))
    gaps = [row.running_gap.mean for row in ranking.rows]
    assert gaps == sorted(gaps)
    among_clients = {row.label for row in ranking.rows if row.framework == "da"}
    assert among_clients == {"bp-ucb:exploration=0.01", "bp-ucb:exploration=0.3", "bp-gp"}
    (reference,) = [row for row in ranking.rows if row.label == ranking.reference]
    assert reference.running_difference.mean == 0.0
    for one in ranking.rows:
        apart = one.running_gap.mean - reference.running_gap.mean
        assert one.running_difference.mean == pytest.approx(apart)
    ranked = {row.label.partition(":")[0] for row in ranking.rows}
    assert ranked | name_missing_signals().keys() == selector_classes().keys()  # nobody is forgotten in silence
    by_loss = dict.fromkeys(("loss-gp", "power-of-choice", "active-fl", "fedcor"), "loss")
    unknown = dict.fromkeys(("divfl", "clustered-by-similarity", "favor"), "updates")
    unknown |= dict.fromkeys(("s-fedavg", "greedyfed"), "contributions")
    by_rms = dict.fromkeys(("oort", "pyramid-fl"), "loss_rms")
    assert name_missing_signals(losses=True) == unknown and name_missing_signals() == unknown | by_loss | by_rms
    assert all(row.ask_ms.mean > 0 and row.final_gap.count == 3 for row in ranking.rows)


def test_workers_change_nothing_but_the_cost() -> None:
    def figures(workers: int) -> list[dict[str, float]]:
        ranking = rank_selectors(ladder(), slots=12, trials=2, workers=workers)
        return [row(ranking, label) for label in sorted(one.label for one in ranking.rows)]

    assert figures(2) == figures(1)


@pytest.mark.parametrize(("framework", "text"), [("fa", "quick-init-ucb:exploration=0.01"), ("da", "bp-ucb")])
def test_the_bench_elects_as_a_recorded_run_does(tmp_path: Path, framework: str, text: str) -> None:
    atlas = ladder()
    played = Player(atlas, slots=15, trials=2, seed=4).elections(text)
    assert played.framework == framework
    of = run_plan(text, framework=played.framework, slots=15, trials=2, seed=4, config=atlas.config)
    simulate(of, atlas, tmp_path / "run", workers=1)
    for record in read_run(tmp_path / "run").records:
        assert tuple(played.cohorts[record.trial, record.slot - 1].tolist()) == record.cohort


def test_trials_may_be_played_in_any_portion() -> None:
    atlas = made_up(alike(np.stack([VALUES, VALUES[::-1], np.roll(VALUES, 5)])), alike(WITH_FRESH), [13, 14], "m:f")
    for text in ("random", "quick-init-ucb:exploration=0.3"):
        whole = Player(atlas, slots=15, trials=5, seed=4).elections(text)
        portion = Player(atlas, slots=15, trials=2, seed=4, first_trial=3).elections(text)
        assert np.array_equal(portion.cohorts, whole.cohorts[3:])
        assert np.array_equal(portion.rewards, whole.rewards[3:])
        assert not np.array_equal(whole.cohorts[3:], whole.cohorts[:2])


class Broken(AbstractSelector):
    """A user's selector that fails in slot 2 of trial 1 of a run with seed 1."""

    def __init__(self, *, clients: int, budget: int, seed: int) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self.fails = seed == derive(1, "selection", 1)

    def _choose(self, slot: int, available: Available) -> Choice:
        return (0, 1), (1.0, 1.0 / (0 if self.fails and slot == 2 else 1))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_users_selector_that_fails_is_named_with_its_trial(workers: int) -> None:
    text = f"{__name__}:Broken"
    with pytest.raises(SelectorError, match=rf"selector '{text}' failed in trial 1: ZeroDivisionError: float"):
        rank_selectors(ladder(), slots=4, trials=2, workers=workers, only=[text])


def test_a_seed_below_0_is_refused_before_anything_is_played() -> None:
    told: list[int] = []
    with pytest.raises(ConfigurationError, match="seed: got -1; allowed: a whole number >= 0"):
        rank_selectors(ladder(), seed=-1, workers=1, progress=lambda finished, total: told.append(finished))
    assert not told


def test_it_is_told_in_how_many_trials_a_selector_got_close() -> None:
    ranking = rank_selectors(ladder(), slots=20, trials=3, workers=1)
    close = {row.label: row.trials_close for row in ranking.rows}
    assert (close["fixed:cohort=4,5"], close["fixed:cohort=0,1"]) == (3, 0)
    for one in ranking.rows:
        assert 0 <= one.trials_close <= 3
        assert (one.slots_to_close.mean == 20) == (one.trials_close == 0)


def test_what_gaps_are_to_stands_beside_the_scenarios_optimum() -> None:
    ranking = rank_selectors(ladder(), slots=4, trials=1, workers=1)
    assert (ranking.best, ranking.optimum_exact) == ((4, 5), True)
    assert ranking.scenario_best == (3, 5) and ranking.scenario_optimum.mean == pytest.approx(0.8)
    judged = rank_selectors(ladder(), slots=4, trials=1, workers=1, truth=scenario_truth)
    assert (judged.best, judged.optimum_exact) == ((3, 5), False)
    assert judged.optimum == judged.scenario_optimum == ranking.scenario_optimum


def test_only_the_selectors_named_are_ranked_beside_the_reference_random_and_fixed_cohorts() -> None:
    ranking = rank_selectors(ladder(), slots=4, trials=1, workers=1, only=["cycle"])
    fixed_cohorts = {"fixed:cohort=0,1", "fixed:cohort=4,5"}
    assert {row.label for row in ranking.rows} == {"cycle", ranking.reference, "random"} | fixed_cohorts


def test_a_selector_that_cannot_be_ranked_is_told() -> None:
    with pytest.raises(ConfigurationError, match="unknown selector 'nobody'"):
        rank_selectors(ladder(), slots=2, trials=1, workers=1, only=["nobody"])
    with pytest.raises(ConfigurationError, match="trials must be at least 1"):
        rank_selectors(ladder(), slots=2, trials=0, workers=1)


def test_peers_are_ranked_too_unless_they_skip_a_slot() -> None:
    ranking = rank_selectors(ladder(), slots=8, trials=1, workers=1, only=["peers", "bp-ucb:exploration=0.01"])
    peers = row(ranking, "peers")
    assert peers == row(ranking, "bp-ucb:exploration=0.01")
    with pytest.raises(ConfigurationError, match="holds no election in some slots"):
        rank_selectors(ladder(), slots=8, trials=1, workers=1, only=["peers:loss=0.9,slot_s=0.6"])


@pytest.mark.parametrize("path", shipped_atlases().values(), ids=lambda path: path.stem)
def test_shipped_atlases_are_sound_and_small(path: Path) -> None:
    atlas = load_atlas(path)
    truth = scenario_truth(atlas)
    assert path.stat().st_size < 2_000_000
    assert truth.optimum.half_width is not None and truth.optimum.half_width < 0.01
    assert 0.5 < truth.values.mean() < truth.optimum.mean


def test_the_digits_atlas_is_shipped_and_learning_beats_chance_on_it() -> None:
    atlas = load_atlas(shipped_atlases()["digits"])
    player, truth = Player(atlas, slots=60, trials=8, seed=1), table_truth(atlas)
    texts = ("random", "quick-init-ucb:exploration=0.01", "bp-ucb:exploration=0.01")
    chance, *learnt = [float(truth.of(player.elections(text).cohorts).mean()) for text in texts]
    assert min(learnt) > chance + 0.1 * truth.optimum.mean
