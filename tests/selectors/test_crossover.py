"""A crossover trial against a literal least squares fit, and in made-up runs with and without an effect."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.api import OLS  # an independent implementation

from fedelect.rules import unpack
from fedelect.seeds import stream
from fedelect.selectors.crossover import (
    LONGEST_BLOCK,
    MOST_BLOCKS,
    MOST_BLOCKS_ACCUSED,
    SHORTEST_BLOCK,
    CrossoverTrial,
    member_effects,
    share_effect,
    smooth_shares,
)
from fedelect.vocabulary import Floats

N, K, BLOCK = 24, 4, 6
GROUP = np.arange(N) < 6


def play(
    effect: float,
    *,
    noise: float,
    seed: int = 1,
    trend: float = 0.0,
    slots: int = MOST_BLOCKS * BLOCK,
    accused: bool = False,
) -> str:
    """The outcome where each slot's model loses `effect` for each unit of the group's recent share."""
    trial = CrossoverTrial(GROUP, np.full(N, 0.6), start=11, cycle=BLOCK, accused=accused)
    share, outcome = float(GROUP.mean()), "undecided"
    for slot in range(11, 11 + slots):
        pool = np.flatnonzero(~GROUP) if trial.sits_out(slot) else np.arange(N)
        rng = stream(seed, "made up", slot)
        members = np.sort(rng.choice(pool, K, replace=False))
        share = 0.7 * share + 0.3 * float(GROUP[members].mean())
        level = 0.7 - effect * share + noise * rng.standard_normal() - trend * np.exp(-slot / 15)
        trial.read(members, level + 0.02 * rng.standard_normal(N))
        trial = CrossoverTrial.restore(json.loads(json.dumps(trial.state())), clients=N)
        outcome = trial.judge(slot)
        if outcome != "undecided":
            break
    return outcome


def test_a_group_that_harms_is_found() -> None:
    found = [play(0.4, noise=0.03, seed=seed) for seed in range(20)]
    assert found.count("harmful") >= 17


def test_a_group_without_effect_or_with_a_good_one_is_acquitted() -> None:
    without = [play(0.0, noise=0.03, seed=seed) for seed in range(40)]
    assert without.count("harmful") <= 6
    assert {play(-0.4, noise=0.03, seed=seed) for seed in range(20)} == {"acquitted"}


def test_less_proves_harm_of_a_group_that_witnesses_accuse() -> None:
    def harmful(effect: float, *, accused: bool) -> int:
        return [play(effect, noise=0.03, seed=seed, accused=accused) for seed in range(20)].count("harmful")

    assert harmful(0.1, accused=True) >= harmful(0.1, accused=False) + 4
    assert harmful(0.4, accused=True) >= 19 and harmful(0.0, accused=True) <= 10 and harmful(-0.4, accused=True) == 0


@pytest.mark.parametrize(
    ("accused", "blocks", "line", "parabola", "outcome"),
    [
        (False, 3, (-0.4, -3.0), (-0.4, -2.0), "harmful"),
        (False, 3, (-0.4, -3.0), (-0.4, -1.0), "undecided"),  # both trends must say so
        (False, 3, (-0.4, -1.0), (-0.4, -3.0), "undecided"),
        (False, 3, (-0.03, -3.0), (-0.4, -3.0), "undecided"),  # less than a point
        (False, 3, (-0.4, -3.0), (0.1, 0.1), "acquitted"),
        (False, MOST_BLOCKS, (-0.4, -1.0), (-0.4, -3.0), "acquitted"),
        (True, 3, (-0.4, -1.5), (-0.4, -1.1), "harmful"),
        (True, 3, (-0.4, -1.5), (-0.4, -0.9), "undecided"),
        (True, 3, (0.4, 1.5), (0.4, 1.1), "acquitted"),
        (True, 3, (0.4, 1.5), (0.4, 0.9), "undecided"),
        (True, MOST_BLOCKS_ACCUSED, (-0.4, -0.5), (0.1, 0.5), "harmful"),
        (True, MOST_BLOCKS_ACCUSED, (-0.01, -0.5), (-0.01, -0.5), "acquitted"),
    ],
)
def test_a_verdict_holds_with_a_line_and_with_a_parabola(
    monkeypatch: pytest.MonkeyPatch,
    accused: bool,
    blocks: int,
    line: tuple[float, float],
    parabola: tuple[float, float],
    outcome: str,
) -> None:
    def effect(*_: object, bends: bool) -> tuple[float, float]:
        return parabola if bends else line

    monkeypatch.setattr("fedelect.selectors.crossover.share_effect", effect)
    trial = CrossoverTrial(GROUP, np.full(N, 0.5), start=1, cycle=BLOCK, accused=accused)
    assert trial.judge(blocks * BLOCK) == outcome


def test_how_many_of_the_group_are_members_does_not_move_the_average() -> None:
    """The group loses 0.2 and the others gain 0.1 after the first slot, whoever trains."""
    trial, share = CrossoverTrial(GROUP, np.full(N, 0.5), start=1, cycle=BLOCK), float(GROUP.mean())
    for slot in range(1, 25):
        pool = np.flatnonzero(GROUP) if slot % 3 else np.arange(N)
        members = stream(5, "members", slot).choice(pool, K, replace=False)
        trial.read(members, np.full(N, 0.5) if slot == 1 else np.where(GROUP, 0.3, 0.6))
    means = unpack(trial.state()["means"], "<f8", size=24, what="means")
    assert means[0] == pytest.approx(0.0)
    assert means[1:] == pytest.approx(-0.2 * share + 0.1 * (1.0 - share))


def test_turns_of_those_who_joined_later_count_from_the_start() -> None:
    """A trial whose group has grown judges as if all had been in it, where opinions are the same for all."""
    trials = [CrossoverTrial(group, np.full(N, 0.5), start=1, cycle=BLOCK) for group in (np.arange(N) < 2, GROUP)]
    for slot in range(1, 3 * BLOCK + 1):
        if slot == BLOCK:
            trials[0].group = GROUP.copy()
        rng = stream(6, "slot", slot)
        members, opinions = rng.choice(N, K, replace=False), np.full(N, 0.5 + 0.1 * rng.standard_normal())
        for trial in trials:
            trial.read(members, opinions)
    states = [trial.state() for trial in trials]
    assert states[0]["cohorts"] == states[1]["cohorts"] and states[0]["group"] == states[1]["group"]
    assert trials[0].judge(3 * BLOCK) == trials[1].judge(3 * BLOCK)


def test_a_trial_that_can_tell_nothing_acquits_also_the_accused() -> None:
    trial = CrossoverTrial(GROUP, np.full(N, 0.6), start=1, cycle=BLOCK, accused=True)
    for _ in range(3 * BLOCK):
        trial.read(np.arange(K), np.full(N, np.nan))
    assert trial.judge(3 * BLOCK) == "acquitted"


def test_who_joins_a_trial_sits_out_a_whole_block_before_its_verdict() -> None:
    trial = CrossoverTrial(GROUP, np.full(N, 0.6), start=11, cycle=BLOCK, accused=True)
    last = max(slot for slot in range(11, 60) if trial.is_open(slot))
    assert all(trial.sits_out(slot) for slot in range(last + 1, last + 1 + BLOCK))
    assert last + BLOCK == 11 + 3 * BLOCK - 1  # the last slot before the first verdict


@pytest.mark.parametrize("trend", [0.1, 0.3, 0.6])
def test_a_learning_curve_that_flattens_is_not_taken_for_harm(trend: float) -> None:
    assert {play(0.0, noise=0.0, trend=trend, seed=seed) for seed in range(5)} == {"acquitted"}


def test_an_effect_too_small_to_matter_is_not_harm() -> None:
    assert play(0.02, noise=0.0001) == "acquitted"
    assert play(0.2, noise=0.0001) == "harmful"


def test_members_and_what_they_say_do_not_count() -> None:
    trials = [CrossoverTrial(GROUP, np.full(N, 0.5), start=1, cycle=BLOCK) for _ in range(2)]
    for slot in range(1, 20):
        members = np.array([(4 * slot + i) % N for i in range(K)])
        opinions = 0.5 + 0.01 * stream(3, "opinions", slot).standard_normal(N)
        trials[0].read(members, opinions)
        opinions[members] = 1.0
        trials[1].read(members, opinions)
    assert trials[0].state() == trials[1].state()


@pytest.mark.parametrize("unknown", [0, 5, N])
def test_who_is_asked_does_not_move_the_average_of_a_model_that_stays(unknown: int) -> None:
    """References are relative; those of clients that were never asked are filled in on the same scale."""
    own = 0.2 * stream(4, "own").standard_normal(N)
    reference = own.copy()
    reference[:unknown] = np.nan
    trial = CrossoverTrial(GROUP, reference, start=1, cycle=BLOCK)
    for slot in range(1, 30):
        opinions = np.full(N, np.nan)
        asked = stream(4, "asked", slot).choice(N, 8, replace=False)
        opinions[asked] = 0.5 + own[asked]
        trial.read(np.arange(K), opinions)
    means = trial.state()["means"]
    assert unpack(means, "<f8", size=29, what="means")[1:] == pytest.approx(0.5 if unknown < N else 0.0)


def test_the_group_sits_out_every_other_block_beginning_with_the_first() -> None:
    trial = CrossoverTrial(GROUP, np.full(N, 0.5), start=5, cycle=7)
    assert [trial.sits_out(slot) for slot in range(5, 26)] == [True] * 7 + [False] * 7 + [True] * 7
    assert CrossoverTrial(GROUP, np.full(N, 0.5), start=5, cycle=2).block == SHORTEST_BLOCK
    assert CrossoverTrial(GROUP, np.full(N, 0.5), start=5, cycle=200).block == LONGEST_BLOCK


@given(st.integers(10, 60), st.booleans(), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_the_effect_of_the_share_is_that_of_ordinary_least_squares(slots: int, bends: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares, means = rng.random(slots), rng.random(slots)
    means[rng.random(slots) < 0.1] = np.nan
    known = ~np.isnan(means)
    slope, ratio = share_effect(means, shares, bends=bends)
    if np.count_nonzero(known) < 8:
        assert (slope, ratio) == (0.0, 0.0)
        return
    time = np.arange(slots, dtype=np.float64)
    columns = [shares, np.ones(slots), time, time**2][: 4 if bends else 3]
    fit = OLS(means[known], np.column_stack(columns)[known]).fit()
    assert slope == pytest.approx(fit.params[0], rel=1e-6, abs=1e-9)
    assert ratio == pytest.approx(fit.tvalues[0], rel=1e-6, abs=1e-9)


def test_shares_are_averaged_with_falling_weights() -> None:
    shares = np.array([1.0, 0.0, 0.5])
    assert smooth_shares(shares, before=0.2) == pytest.approx([0.44, 0.308, 0.3656])


@given(st.integers(2, 12), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_effects_of_members_are_the_ridge_solution(slots: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cohorts = [rng.choice(N, int(rng.integers(1, K + 2)), replace=False).tolist() for _ in range(slots)]
    changes = rng.standard_normal(slots)
    literal: Floats = np.zeros((slots, N))
    for slot, cohort in enumerate(cohorts):
        literal[slot, cohort] = 1.0
    centred = literal - literal.mean(axis=0)
    expected = np.linalg.solve(centred.T @ centred + 3.0 * np.eye(N), centred.T @ (changes - changes.mean()))
    assert member_effects(cohorts, changes, clients=N) == pytest.approx(expected, abs=1e-9)
    with_unknown = member_effects([*cohorts, [0, 1, 2]], np.append(changes, np.nan), clients=N)
    assert with_unknown == pytest.approx(expected, abs=1e-9)


def test_nothing_known_says_nothing() -> None:
    assert share_effect(np.full(20, np.nan), np.zeros(20), bends=False) == (0.0, 0.0)
    assert share_effect(np.arange(20.0), np.full(20, 0.3), bends=True) == (0.0, 0.0)
    assert not member_effects([[0, 1], [2]], np.full(2, np.nan), clients=N).any()
