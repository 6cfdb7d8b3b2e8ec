"""SoundCycle in small made-up worlds: who is left out, who is not, and who returns."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fedelect.seeds import stream
from fedelect.selectors import SoundCycle
from fedelect.vocabulary import UPDATE_SIZE, Feedback, Floats

N, K = 20, 4
MINORITY = np.arange(N) < 5
Told = dict[str, Floats]
Change = Callable[[int, list[int], Told], None]
"""Changes what is told in a slot: (slot, cohort, signals)."""


def signals(slot: int, cohort: list[int], *, updates: bool = False) -> Told:
    """What sound clients say: opinions rise, losses fall, and a member gains a little more than the others."""
    rng = stream(7, "told", slot)
    opinions = 0.9 - 0.5 * np.exp(-slot / 15) + 0.01 * rng.standard_normal(N)
    opinions[cohort] += 0.03
    loss = np.full(N, np.nan)
    loss[cohort] = (2.0 * np.exp(-slot / 15) + 0.2) * np.exp(0.1 * rng.standard_normal(K))
    told = {"opinions": opinions, "loss": loss}
    if updates:
        rows = np.full((N, UPDATE_SIZE), np.nan)
        rows[cohort] = 1.0 + 0.5 * rng.standard_normal((K, UPDATE_SIZE))
        told["updates"] = rows
    return told


def play(
    slots: int, change: Change = lambda *_: None, *, seed: int = 1, updates: bool = False
) -> tuple[SoundCycle, list[tuple[int, ...]], list[tuple[int, ...]]]:
    """The selector, its cohorts, and who was left out after each slot."""
    selector, cohorts, out = SoundCycle(clients=N, budget=K, seed=seed), [], []
    for slot in range(1, slots + 1):
        selection = selector.ask()
        told: dict[str, Any] = signals(slot, list(selection.cohort), updates=updates)
        change(slot, list(selection.cohort), told)
        selector.tell(selection, Feedback(**told))
        cohorts.append(selection.cohort)
        out.append(selector.left_out)
    return selector, cohorts, out


def counts(cohorts: list[tuple[int, ...]]) -> Floats:
    return np.bincount(np.concatenate(cohorts), minlength=N).astype(np.float64)


def not_learnt(slot: int, cohort: list[int], told: Told) -> None:
    """Wrong labels: the minority's losses stay high, and its own training does not help it."""
    for client in cohort:
        if MINORITY[client]:
            told["loss"][client] = 2.5
            told["opinions"][client] -= 0.04


def hard(slot: int, cohort: list[int], told: Told) -> None:
    """Honest but hard data: three times the loss, which falls as that of all others."""
    told["loss"][MINORITY] *= 3.0


def rare(slot: int, cohort: list[int], told: Told) -> None:
    """Rare classes: high losses that do not fall in the first slots, but much gained by own training."""
    for client in np.flatnonzero(MINORITY).tolist():
        told["loss"][client] = max(2.5 * np.exp(-max(slot - 20, 0) / 15), 0.5) if client in cohort else np.nan
        told["opinions"][client] -= 0.0 if client in cohort else 0.4


def test_clients_that_are_alike_have_equal_turns() -> None:
    _, cohorts, out = play(100)
    assert not any(out)
    assert set(counts(cohorts).tolist()) == {100 * K / N}


def test_clients_whose_data_is_not_learnt_are_left_out() -> None:
    _, cohorts, out = play(80, not_learnt)
    assert out[-1] == tuple(np.flatnonzero(MINORITY).tolist())
    late = counts(cohorts[40:])
    assert late[MINORITY].sum() < 0.25 * MINORITY.mean() * late.sum()
    assert late[~MINORITY].max() - late[~MINORITY].min() <= 2


def test_those_left_out_train_again_now_and_then() -> None:
    _, cohorts, out = play(160, not_learnt)
    left_out = set(out[30])
    assert left_out and left_out <= {client for cohort in cohorts[31:] for client in cohort}


@pytest.mark.parametrize("world", [hard, rare])
def test_honest_clients_with_high_losses_are_not_left_out(world: Change) -> None:
    for seed in range(3):
        _, cohorts, out = play(80, world, seed=seed)
        assert not any(out)
        assert set(counts(cohorts).tolist()) == {80 * K / N}


def test_nobody_is_left_out_before_all_could_have_trained_twice() -> None:
    _, _, out = play(12, not_learnt)
    assert not any(out[: 2 * N // K - 2])


def test_clients_whose_flaw_is_mended_return_one_by_one() -> None:
    def mended(slot: int, cohort: list[int], told: Told) -> None:
        if slot <= 40:
            not_learnt(slot, cohort, told)

    _, _, out = play(300, mended)
    assert len(out[39]) == 5
    assert len(out[-1]) <= 1  # pauses grow, and new readings must outweigh the old ones


def test_those_whose_opinion_falls_when_they_are_left_out_are_acquitted() -> None:
    def missed(slot: int, cohort: list[int], told: Told) -> None:
        told["opinions"] += 0.5 * np.exp(-slot / 15) - 0.1  # a model that has settled
        not_learnt(slot, cohort, told)
        if slot > 30:
            told["opinions"][MINORITY] -= 0.5

    _, _, out = play(60, missed)
    assert any(out[:30])
    assert any(not now for now in out[30:45])


def test_free_riders_and_flippers_are_found_by_their_updates() -> None:
    def silent(slot: int, cohort: list[int], told: Told) -> None:
        for client in cohort:
            if MINORITY[client]:
                told["updates"][client] = 0.0
                told["opinions"][client] -= 0.04

    def flipped(slot: int, cohort: list[int], told: Told) -> None:
        for client in cohort:
            if MINORITY[client]:
                told["updates"][client] *= -1.0
                told["opinions"][client] -= 0.05

    for world in (silent, flipped):
        _, _, out = play(60, world, updates=True)
        assert set(out[-1]) == set(np.flatnonzero(MINORITY).tolist())


@pytest.mark.parametrize("liars", [1, 4])
def test_lies_do_not_gain_more_than_equal_turns(liars: int) -> None:
    def praise(slot: int, cohort: list[int], told: Told) -> None:
        for client in range(liars):
            told["opinions"][client] = 1.0 if client in cohort else 0.0

    def no_loss(slot: int, cohort: list[int], told: Told) -> None:
        told["loss"][:liars] *= 0.0

    for lie in (praise, no_loss):
        _, cohorts, _ = play(100, lie)
        assert counts(cohorts)[:liars].mean() <= 1.1 * 100 * K / N


def test_when_too_few_others_are_there_those_left_out_fill_the_cohort() -> None:
    selector, _, out = play(60, not_learnt)
    there = [*out[-1][:3], *np.flatnonzero(~MINORITY)[: K - 1].tolist()]
    cohort = selector.ask(there).cohort
    assert set(there[3:]) < set(cohort) and len(set(cohort) & set(out[-1])) == 1


def test_a_selector_restored_while_clients_are_left_out_goes_on_exactly() -> None:
    selector, _, out = play(50, not_learnt)
    assert out[-1]
    twin = SoundCycle.restore(json.loads(json.dumps(selector.state())))
    for slot in range(51, 90):
        selection = selector.ask()
        assert twin.ask() == selection
        told: dict[str, Any] = signals(slot, list(selection.cohort))
        not_learnt(slot, list(selection.cohort), told)
        for one in (selector, twin):
            one.tell(selection, Feedback(**told))
        assert twin.state() == selector.state()
