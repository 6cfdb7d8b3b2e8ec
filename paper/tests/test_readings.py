"""Readings on the atlas, against a literal play of Algorithm 2 and literal averages."""

import math

import numpy as np
import pytest

from fedelect.atlas import load_atlas, shipped_atlases
from fedelect.bench import Elections
from fedelect.equations.indices import bp_ucb_index
from fedelect.testing import check_selector
from fedelect.vocabulary import Feedback
from paper.catalogue import TARGETS, frugal_quick_init, quick_init
from paper.readings.optimistic_bp_ucb import OptimisticBpUcb
from paper.readings.readings import FA, READINGS, Reading, play_readings, read_row, table_baselines
from paper.registered import read_registration

ATLAS = shipped_atlases()["paper"]


def test_the_optimistic_start_elects_as_algorithm_2_written_out() -> None:
    clients, budget, rng = 7, 3, np.random.default_rng(1)
    selector = OptimisticBpUcb(clients=clients, budget=budget, exploration=0.05, seed=4)
    mean, pulls, beliefs = [1.0] * clients, [1] * clients, np.full(clients, np.nan)
    for slot in range(1, 40):
        index = bp_ucb_index(np.array(mean), np.array(pulls), beliefs, slot=slot, exploration=0.05)
        selection = selector.ask()
        lowest_in = min(index[list(selection.cohort)])
        assert all(index[client] <= lowest_in for client in range(clients) if client not in selection.cohort)
        opinions, beliefs = rng.uniform(size=clients), rng.uniform(size=clients)
        for client in selection.cohort:
            mean[client] = (mean[client] * pulls[client] + opinions[client]) / (pulls[client] + 1)
            pulls[client] += 1
        selector.tell(selection, Feedback(opinions=opinions, beliefs=beliefs))
        np.testing.assert_allclose(selector.means, mean)


def test_the_optimistic_start_is_a_selector_like_any_other() -> None:
    check_selector(lambda n, k, seed: OptimisticBpUcb(clients=n, budget=k, seed=seed))


def test_a_row_is_what_the_averages_give_written_out() -> None:
    atlas = load_atlas(ATLAS)
    rng = np.random.default_rng(2)
    rewards = rng.uniform(0.74, 0.9, size=(2, 300))
    cohorts = np.stack([rng.permutation(20)[:5] for _ in range(600)]).reshape(2, 300, 5)
    played = Elections("fa", cohorts, rewards, np.zeros(2))
    row = read_row(Reading(name="x", selector="x", scale=FA), played, atlas)
    ours = table_baselines(atlas)
    slots, finals = [], []
    for trial in rewards.tolist():
        averages, total = [], 0.0
        for slot, reward in enumerate(trial, start=1):
            total += FA.random + (reward - ours.random) * (FA.fixed - FA.random) / (ours.fixed - ours.random)
            averages.append(total / (slot + 1))
        slots.append([next((at + 1 for at, a in enumerate(averages) if a >= target), 300) for target in TARGETS])
        finals.append(averages[199])
    np.testing.assert_allclose(row.slots, np.mean(slots, axis=0))
    assert math.isclose(row.at_200.mean, float(np.mean(finals)), rel_tol=1e-9)
    assert math.isclose(row.iid, (cohorts < 5).sum() / 2 / 5) and math.isclose(row.others, (cohorts >= 5).sum() / 30)


def test_the_tables_baselines_are_those_of_its_own_cohorts() -> None:
    atlas = load_atlas(ATLAS)
    ours = table_baselines(atlas)
    (rank,) = atlas.rank([(0, 1, 2, 3, 4)]).tolist()
    assert math.isclose(ours.fixed, np.mean([atlas.opinions(rank, seed).mean() for seed in range(atlas.seeds)]))
    assert 0.76 < ours.random < 0.78 < 0.87 < ours.fixed < 0.88


def test_readings_are_played_once_for_each_selector_and_come_in_order() -> None:
    some = [one for one in READINGS if one.selector == "quick-init-ucb:exploration=0.01"]
    rows = list(play_readings(some, ATLAS, trials=2, slots=30))
    assert [row.reading for row in rows] == some and len(some) >= 3
    assert len({(row.iid, row.others) for row in rows}) == 1
    assert len({row.at_200.mean for row in rows}) == len(some)


def test_the_readings_under_test_are_among_them() -> None:
    scales = {(reading.selector.removesuffix(":initial=1.0"), reading.scale) for reading in READINGS}
    for world in read_registration().worlds:
        assert (world.play("reading").selector, world.aim) in scales
        assert (world.play("as printed").selector, world.aim) in scales


@pytest.mark.parametrize("initial", [-0.1, 1.5])
def test_a_start_outside_the_range_of_opinions_is_refused(initial: float) -> None:
    with pytest.raises(Exception, match="initial must be a number from 0 to 1"):
        OptimisticBpUcb(clients=4, budget=2, initial=initial, seed=0)


def test_the_records_quick_init_plays_the_papers_mu_and_is_kept_under_its_old_name() -> None:
    assert quick_init().selector == "quick-init-ucb:exploration=1.0" and quick_init().name == "quick-init-ucb"
    assert quick_init().folder.endswith("/quick-init-ucb") and "exploration=1.0" in str(quick_init())
    assert frugal_quick_init().folder.endswith("/quick-init-ucb-exploration-0.01")
