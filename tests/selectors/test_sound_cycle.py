"""SoundCycle in small made-up worlds: who is left out, who is not, and who returns."""

import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fedelect.rules import unpack
from fedelect.seeds import stream
from fedelect.selectors import SoundCycle
from fedelect.selectors.crossover import CrossoverTrial
from fedelect.selectors.readings import RecentUpdates, find_behind, read_opinions, read_reports
from fedelect.selectors.sound_cycle import MOST_GAINLESS
from fedelect.selectors.two_kinds import Channels
from fedelect.selectors.witnesses import ask_drops, gainless_odds
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
    loss[cohort] = (2.0 * np.exp(-slot / 15) + 0.2) * np.exp(0.1 * rng.standard_normal(len(cohort)))
    told = {"opinions": opinions, "loss": loss}
    if updates:
        rows = np.full((N, UPDATE_SIZE), np.nan)
        rows[cohort] = 1.0 + 0.5 * rng.standard_normal((len(cohort), UPDATE_SIZE))
        told["updates"] = rows
    return told


def play(
    slots: int,
    change: Change = lambda *_: None,
    *,
    seed: int = 1,
    updates: bool = False,
    size: Callable[[int], int] = lambda slot: K,
) -> tuple[SoundCycle, list[tuple[int, ...]], list[tuple[int, ...]]]:
    """The selector, its cohorts, and who was left out after each slot."""
    selector, cohorts, out = SoundCycle(clients=N, budget=K, seed=seed), [], []
    for slot in range(1, slots + 1):
        selection = selector.ask(size=size(slot))
        told: dict[str, Any] = signals(slot, list(selection.cohort), updates=updates)
        change(slot, list(selection.cohort), told)
        selector.tell(selection, Feedback(**told))
        cohorts.append(selection.cohort)
        out.append(selector.left_out)
    return selector, cohorts, out


def spoiling(change: Change, cost: float = 0.3) -> Change:
    """The same, and the model is worse for everybody, the more of the minority trained lately."""
    recent = [0.0]

    def both(slot: int, cohort: list[int], told: Told) -> None:
        recent.append(0.7 * recent[-1] + 0.3 * float(MINORITY[cohort].mean()))
        told["opinions"] -= cost * recent[-1]
        change(slot, cohort, told)

    return both


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
    assert np.abs(counts(cohorts) - 100 * K / N).max() <= 2  # those on trial make up for turns that they missed


def test_cohorts_of_changing_size_give_equal_turns_and_find_those_whose_data_is_not_learnt() -> None:
    def grow(slot: int) -> int:
        return 3 + 3 * (slot > 30) + slot % 2

    _, cohorts, out = play(60, size=grow)
    assert [len(cohort) for cohort in cohorts] == [grow(slot) for slot in range(1, 61)]
    assert not any(out) and np.ptp(counts(cohorts)) <= 2
    _, cohorts, out = play(60, not_learnt, size=grow)
    assert out[-1] == tuple(np.flatnonzero(MINORITY).tolist())
    last = counts(cohorts[40:])
    assert last[MINORITY].mean() < 0.25 * last[~MINORITY].mean()


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
        assert np.abs(counts(cohorts) - 80 * K / N).max() <= 2


def test_a_drift_that_hits_all_leaves_nobody_out() -> None:
    def drift(slot: int, cohort: list[int], told: Told) -> None:
        if slot > 30:  # all that was learnt is lost, and is learnt again
            told["loss"][:] = signals(slot - 30, cohort)["loss"]
            told["opinions"][:] = signals(slot - 30, cohort)["opinions"]

    for seed in range(5):
        assert not any(play(80, drift, seed=seed)[2])


def test_readings_of_those_left_out_do_not_speak_for_them_as_the_others_settle() -> None:
    def settling(slot: int, cohort: list[int], told: Told) -> None:
        """Broken features: losses stay high, and own training helps as it helps the others, less and less."""
        told["opinions"][cohort] += 0.3 * np.exp(-slot / 8) - 0.03
        told["loss"] = np.where(np.isnan(told["loss"]), 2.4 * np.exp(-slot / 15) + 0.25, told["loss"])
        told["loss"][MINORITY] = 2.5

    for seed in range(3):
        _, _, out = play(90, spoiling(settling), seed=seed)
        assert all(MINORITY[list(now)].sum() >= 4 for now in out[45:])


def test_what_clients_gained_before_they_were_left_out_does_not_bring_them_back() -> None:
    def overtaken(slot: int, cohort: list[int], told: Told) -> None:
        """Losses fall by three tenths of the others' fall; from slot 25 on, own training harms the others."""
        base = 2.0 * np.exp(-slot / 15) + 0.2
        told["loss"] = np.where(np.isnan(told["loss"]), base, told["loss"])
        told["loss"][MINORITY] = 2.1 * (base / 2.1) ** 0.3
        for client in cohort:
            if MINORITY[client]:
                told["opinions"][client] -= 0.04
            elif slot > 25:
                told["opinions"][client] -= 0.12

    for seed in range(3):
        _, _, out = play(45, overtaken, seed=seed)
        assert all(set(np.flatnonzero(MINORITY).tolist()) <= set(now) for now in out[30:])


def test_nobody_is_left_out_before_all_could_have_trained_twice() -> None:
    _, _, out = play(12, not_learnt)
    assert not any(out[: 2 * N // K - 2])


def test_clients_whose_flaw_is_mended_return_one_by_one() -> None:
    def mended(slot: int, cohort: list[int], told: Told) -> None:
        if slot <= 40:
            not_learnt(slot, cohort, told)

    _, _, out = play(650, mended)
    assert set(np.flatnonzero(MINORITY).tolist()) <= set(out[39])
    assert len(out[-1]) <= 2  # pauses grow, and new readings must outweigh the old ones


def test_those_whose_opinion_falls_when_they_are_left_out_are_acquitted() -> None:
    def missed(slot: int, cohort: list[int], told: Told) -> None:
        told["opinions"] += 0.5 * np.exp(-slot / 15) - 0.1  # a model that has settled
        not_learnt(slot, cohort, told)
        if slot > 30:
            told["opinions"][MINORITY] -= 0.5

    _, _, out = play(60, missed)
    assert any(out[:30])
    assert any(not now for now in out[30:45])


def test_those_left_out_stay_out_if_their_opinions_fall_by_less_than_all_others_rose_since_anybody_was() -> None:
    def swapped(slot: int, cohort: list[int], told: Told) -> None:
        """Client 4 is flawed from slot 25 on; after slot 50 the model unlearns the minority's own, wrong, tests."""
        not_learnt(slot, cohort, told)
        if slot < 25 and 4 in cohort:
            told["loss"][4], told["opinions"][4] = (
                signals(slot, cohort)["loss"][4],
                signals(slot, cohort)["opinions"][4],
            )
        if slot > 50:
            told["opinions"][MINORITY] -= 0.4

    _, _, out = play(75, swapped)
    assert len(out[24]) == 4 and 4 in out[49]
    assert all(len(now) >= 4 for now in out[24:])


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

    minority, beside = set(np.flatnonzero(MINORITY).tolist()), 0
    for seed in range(8):
        assert set(play(60, silent, updates=True, seed=seed)[2][-1]) == minority
        out = set(play(80, spoiling(flipped), updates=True, seed=seed)[2][-1])
        assert minority <= out
        beside += len(out - minority)  # who trained twice beside two flippers, looks like one
    assert beside <= 20  # of 8 x 15


def all_report(slot: int, cohort: list[int], told: Told) -> None:
    """All clients report their losses, and that of the minority rises while the others' falls."""
    base = 2.0 * np.exp(-slot / 5) + 0.2
    told["loss"] = base * np.where(np.isnan(told["loss"]), 1.1, 1.0)
    told["loss"][MINORITY] = 2.0 + 0.02 * slot


def test_clients_whose_reported_loss_does_not_fall_train_late_and_never_together_at_first() -> None:
    for seed in range(3):
        _, cohorts, out = play(40, all_report, seed=seed)
        first = next(slot for slot, now in enumerate(out) if now)
        together = [int(MINORITY[list(cohort)].sum()) for cohort in cohorts[:first]]
        sound_trained = next(slot for slot in range(1, first) if counts(cohorts[:slot])[~MINORITY].all())
        assert first >= 8 and sound_trained <= 5 and sum(together[sound_trained:]) >= 3
        assert not any(together[3:sound_trained]) and max(together[sound_trained:]) == 1
        assert set(out[-1]) == set(np.flatnonzero(MINORITY).tolist())


def test_one_client_that_stays_behind_gets_no_more_turns_than_others() -> None:
    for clients, budget, slots in ((50, 10, 20), (60, 6, 40)):
        selector = SoundCycle(clients=clients, budget=budget, seed=1)
        turns = np.zeros(clients)
        for slot in range(1, slots + 1):
            selection = selector.ask()
            turns[list(selection.cohort)] += 1
            loss = np.full(clients, 2.0 * np.exp(-slot / 5) + 0.2)
            loss[0] = 2.2
            opinions = 0.9 - 0.5 * np.exp(-slot / 15) + 0.01 * stream(3, "behind", slot).standard_normal(clients)
            selector.tell(selection, Feedback(opinions=opinions, loss=loss))
        assert turns[0] <= np.median(turns) and np.ptp(turns[1:]) <= 2


def test_honest_clients_that_trained_late_at_first_make_up_for_their_turns() -> None:
    def late(slot: int, cohort: list[int], told: Told) -> None:
        """Rare data: the reported loss does not fall until the client has trained, and the training helps it."""
        all_report(slot, cohort, told)
        trained.update(client for client in cohort if MINORITY[client])
        for client in trained:
            told["loss"][client] = 1.5 * (2.0 * np.exp(-slot / 5) + 0.2)

    for seed in range(3):
        trained: set[int] = set()
        _, cohorts, out = play(80, late, seed=seed)
        early = {client for cohort in cohorts[:3] for client in cohort}
        turn = {client: next(slot for slot in range(80) if client in cohorts[slot]) for client in range(N)}
        others = max(turn[client] for client in range(N) if not MINORITY[client])
        assert all(turn[client] >= others for client in set(np.flatnonzero(MINORITY).tolist()) - early)
        assert not any(out) and np.ptp(counts(cohorts)) <= 2  # a trial whose turns are not all made up for yet


def test_a_slot_at_the_start_that_was_abandoned_changes_the_next_cohort() -> None:
    selector, _, _ = play(1, all_report)
    abandoned = selector.ask()
    selector.abandon(abandoned)
    assert not set(selector.ask().cohort) & set(abandoned.cohort)


def fresh_arrays(clients: int) -> dict[str, Floats]:
    return {name: np.full(clients, value) for name, value in SoundCycle.initial_arrays.items()}


def test_who_falls_behind_is_read_from_reports_of_the_same_slots() -> None:
    arrays, nobody = fresh_arrays(5), np.array([], dtype=np.int64)
    read_reports(arrays, nobody, np.array([1.0, 1.0, 1.0, np.nan, 1.0]))
    read_reports(arrays, nobody, np.array([0.5, 1.0, np.nan, 1.0, 0.5]))
    assert find_behind(arrays).tolist() == [False, True, False, False, False]  # 2 is not read again, 3 only once
    read_reports(arrays, nobody, np.array([0.4, 0.45, 1.0, 1.0, 0.4]))
    assert find_behind(arrays).tolist() == [False, False, True, True, False]  # 1 has fallen
    read_reports(arrays, nobody, np.array([4.0, 5.0, 5.0, 5.0, 4.0]))
    assert not find_behind(arrays).any()  # all have lost what they had learnt
    read_reports(arrays, nobody, np.full(5, np.nan))
    assert not find_behind(arrays).any()


def test_what_own_training_lowers_a_loss_by_is_read_against_the_report_before_it() -> None:
    arrays = fresh_arrays(5)
    read_reports(arrays, np.array([4]), np.array([1.0, 1.0, 1.0, 2.0, 1.0]))  # 4 has reported nothing before
    read_reports(arrays, np.array([2, 3]), np.array([0.5, 0.5, 0.25, 2.0, np.nan]))
    read_reports(arrays, np.array([2]), np.array([0.25, 0.25, 0.25, 1.0, 0.25]))
    level = np.log([0.5, 0.25])  # 35 % quantiles of the last two slots
    first, second = 0.0 - (np.log(0.25) - level[0]), 0.0 - (np.log(0.25) - level[1])
    np.testing.assert_allclose(arrays["drop"], [0, 0, 0.9 * first + second, np.log(2.0) - (np.log(2.0) - level[0]), 0])
    np.testing.assert_allclose(arrays["drops"], [0, 0, 1.9, 1, 0])


def test_gains_are_opinions_less_what_all_have_in_common_less_the_own_level() -> None:
    arrays, nobody = fresh_arrays(4), np.array([], dtype=np.int64)
    change, usual = read_opinions(arrays, nobody, np.array([0.4, 0.5, 0.6, 0.7]), before=nobody, usual=math.nan)
    assert math.isnan(change) and math.isnan(usual)
    told = np.array([0.5, 0.6, 0.9, 0.9])
    change, usual = read_opinions(arrays, np.array([2, 3]), told, before=nobody, usual=usual)
    np.testing.assert_allclose(change, 0.1)
    own = np.array([0.4, 0.5, 0.6, 0.7]) - 0.55
    common = np.mean(told[:2] - own[:2])
    gains = told[2:] - common - own[2:]
    np.testing.assert_allclose(usual, np.median(np.abs(gains)))
    np.testing.assert_allclose(arrays["gain"], [0, 0, *gains / usual])
    np.testing.assert_allclose(arrays["own"], [*own[:2] + 0.3 * (told[:2] - common - own[:2]), *own[2:]])
    np.testing.assert_allclose(arrays["opinion"], told)


def test_who_makes_its_own_loss_higher_is_accused_and_nobody_else() -> None:
    suspects, others = MINORITY, ~MINORITY
    arrays = fresh_arrays(N)
    arrays["drops"][:] = 2.0
    arrays["drop"] = np.where(MINORITY, -0.4, 0.2) * 2.0
    assert ask_drops(arrays, suspects, others) == 1
    arrays["drop"][MINORITY] = 0.01  # lower than that of others, and yet lowered
    assert ask_drops(arrays, suspects, others) == 0
    arrays["drop"] = np.where(MINORITY, -0.4, -0.2) * 2.0  # the model gets worse for all
    assert ask_drops(arrays, suspects, others) == 0
    assert ask_drops(fresh_arrays(N), suspects, others) == 0


def test_flipped_updates_are_found_from_losses_alone() -> None:
    def flipped(slot: int, cohort: list[int], told: Told) -> None:
        """All report; own training raises the minority's losses and lowers its opinions."""
        told["loss"] = np.where(np.isnan(told["loss"]), 2.0 * np.exp(-slot / 15) + 0.2, told["loss"])
        told["loss"][cohort] *= np.where(MINORITY[cohort], 1.3, 0.8)
        told["opinions"][cohort] -= 0.05 * MINORITY[cohort]

    for seed in range(3):
        _, cohorts, out = play(100, spoiling(flipped), seed=seed)
        assert set(np.flatnonzero(MINORITY).tolist()) <= set(out[-1]) and len(out[-1]) <= 6
        late = counts(cohorts[60:])
        assert late[MINORITY].sum() < 0.25 * MINORITY.mean() * late.sum()


def test_a_trial_of_the_accused_goes_on_after_a_restore_and_tells_the_same() -> None:
    def accused(slot: int, cohort: list[int], told: Told) -> None:
        told["loss"][cohort] = np.where(MINORITY[cohort], 2.5, told["loss"][cohort])

    for begun in range(10, 30):
        world = spoiling(accused)
        selector, _, _ = play(begun, world, seed=2)
        state = json.loads(json.dumps(selector.state()))
        if state["memory"]["trial"] is not None:
            break
    assert state["memory"]["trial"]["accused"]
    twin = SoundCycle.restore(state)
    for slot in range(begun + 1, begun + 45):
        selections = [one.ask() for one in (selector, twin)]
        assert selections[0] == selections[1]
        told: dict[str, Any] = signals(slot, list(selections[0].cohort))
        world(slot, list(selections[0].cohort), told)
        for one in (selector, twin):
            one.tell(selections[0], Feedback(**told))
    assert selector.state() == twin.state() and selector.left_out


def reports(slot: int, cohort: list[int], told: Told, *, above: float, cured: float) -> None:
    """All report. The minority's log losses are `above` those of others; own training takes the share `cured` of it."""
    told["loss"] = np.where(np.isnan(told["loss"]), 1.1 * (2.0 * np.exp(-slot / 15) + 0.2), told["loss"])
    height = np.where(MINORITY, above, 0.0)
    height[cohort] *= 1.0 - cured
    told["loss"] *= np.exp(height)


def test_wrong_data_that_the_model_learns_is_found_by_a_trial() -> None:
    """Swapped labels: own training helps, as with all others and more, and yet others are better off without."""

    def swapped(slot: int, cohort: list[int], told: Told) -> None:
        reports(slot, cohort, told, above=1.2, cured=0.3)
        told["opinions"][cohort] += 0.02 * MINORITY[cohort]

    for seed in range(4):
        _, _, out = play(90, spoiling(swapped), seed=seed)
        assert MINORITY[list(out[-1])].sum() >= 4 and len(out[-1]) <= 6
        assert not any(out[:20])  # not without a trial


def test_honest_clients_whose_reports_stand_out_stay_if_leaving_them_out_helps_nobody() -> None:
    def hard_reports(slot: int, cohort: list[int], told: Told) -> None:
        reports(slot, cohort, told, above=1.2, cured=0.1)

    for seed in range(6):
        begun = [play(slots, hard_reports, seed=seed)[0].state()["memory"]["trial"] for slots in range(14, 44, 4)]
        assert any(begun)
        _, cohorts, out = play(120, hard_reports, seed=seed)
        assert not any(out) and np.ptp(counts(cohorts)) <= 4  # turns of the last trial are still owed


@pytest.mark.parametrize(("above", "cured", "gain"), [(1.2, 0.8, 0.0), (1.2, 0.5, 0.3), (0.2, 0.1, 0.0)])
def test_data_that_own_training_cures_or_that_hardly_stands_out_is_never_on_trial(
    above: float, cured: float, gain: float
) -> None:
    def rare_reports(slot: int, cohort: list[int], told: Told) -> None:
        reports(slot, cohort, told, above=above, cured=cured)
        told["opinions"][MINORITY] -= gain
        told["opinions"][cohort] += gain * MINORITY[cohort]

    for slots in range(12, 60, 6):
        selector, _, out = play(slots, rare_reports)
        assert selector.state()["memory"]["trial"] is None and not out[-1]


@pytest.mark.parametrize(("above", "tried"), [(0.2, False), (0.5, True)])
def test_suspects_by_reports_are_tried_if_they_stand_out(above: float, tried: bool) -> None:
    selector, _, _ = play(12)
    for name in ("told_height", "height"):
        selector.arrays[name] = np.where(MINORITY, above, 0.0)
    selector.arrays["told_heights"], selector.arrays["gain"] = np.ones(N), np.zeros(N)
    scores = np.where(MINORITY, 5.0, np.linspace(-1.0, 1.0, N))[None]
    group = selector._suspected(Channels(("report",), scores, np.ones((1, N), dtype=np.bool_)))
    assert (group is not None) == tried and (group is None or (group == MINORITY).all())


@pytest.mark.parametrize(("count", "easier"), [(3, False), (4, True)])
def test_a_trial_needs_less_proof_if_half_of_its_group_is_accused(count: int, easier: bool) -> None:
    selector, cohorts, _ = play(12)
    trial = CrossoverTrial(np.arange(N) < 8, np.full(N, 0.5), start=13, cycle=5)
    selector._trial = trial
    selector._charge(40, np.arange(N) < count, [list(cohort) for cohort in cohorts])  # too late to join
    assert trial.accused == easier and trial.group.sum() == 8


def test_flipped_updates_are_found_in_cohorts_of_two() -> None:
    """What two members sent tells nothing; what others sent lately is compared, too."""

    def flipped(slot: int, cohort: list[int], told: Told) -> None:
        told["updates"][cohort] *= np.where(MINORITY[cohort], -1.0, 1.0)[:, None]
        told["opinions"][cohort] -= 0.05 * MINORITY[cohort]

    for seed in range(4):
        selector, _, out = play(160, spoiling(flipped), updates=True, seed=seed, size=lambda _: 2)
        assert MINORITY[list(out[-1])].sum() >= 3 and len(out[-1]) <= 7
        cosines = selector.arrays["cosine"] / selector.arrays["updates"]
        assert cosines[MINORITY].max() < cosines[~MINORITY].min()


def test_who_becomes_suspect_while_a_trial_begins_joins_it() -> None:
    """Clients 0 to 2 stand out from the start, 3 and 4 once these are on trial."""
    begun: list[int] = []

    def later(slot: int, cohort: list[int], told: Told) -> None:
        reports(slot, cohort, told, above=1.2, cured=0.3)
        if not begun or slot < begun[0] + 1:
            told["loss"][3:5] /= np.exp(1.2)

    world = spoiling(later)
    selector, sizes = SoundCycle(clients=N, budget=K, seed=3), []
    for slot in range(1, 90):
        selection = selector.ask()
        told: dict[str, Any] = signals(slot, list(selection.cohort))
        world(slot, list(selection.cohort), told)
        selector.tell(selection, Feedback(**told))
        trial = selector.state()["memory"]["trial"]
        if trial is not None:
            begun.append(slot)
            sizes.append(int(unpack(trial["group"], "<f8", size=N, what="group").sum()))
    assert sizes[0] <= 3 < max(sizes) <= N / 2
    assert MINORITY[list(selector.left_out)].sum() >= 4


def test_updates_of_small_cohorts_are_compared_with_those_of_others_lately() -> None:
    recent, rng = RecentUpdates.empty(), stream(1, "updates")
    arrays, sent = fresh_arrays(8), []
    for members in ([0, 1], [2, 3], [4, 5], [0, 6]):
        updates = np.full((8, UPDATE_SIZE), np.nan)
        updates[members] = rng.standard_normal((2, UPDATE_SIZE)) + 1.0
        sent += [(client, updates[client]) for client in members]
        recent = RecentUpdates.restore(json.loads(json.dumps(recent.state())), clients=8)
        recent.read(arrays, np.array(members), updates)
    others = sum(row / np.linalg.norm(row) for client, row in sent if client != 6)
    unit = sent[-1][1] / np.linalg.norm(sent[-1][1])
    assert arrays["cosine"][6] == pytest.approx(unit @ others / np.linalg.norm(others))
    assert arrays["updates"].tolist() == [1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]  # the first two had too few
    nothing = np.full((8, UPDATE_SIZE), np.nan)
    nothing[[1, 2]] = 0.0
    recent.read(arrays, np.array([1, 2]), nothing)
    assert arrays["silent"].tolist() == [0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]  # also if all of a cohort send that
    with pytest.raises(ValueError, match="outside 0 to 3"):
        RecentUpdates.restore(recent.state(), clients=4)


def test_an_accused_group_whose_absence_costs_opinion_is_acquitted() -> None:
    def missed(slot: int, cohort: list[int], told: Told) -> None:
        """Losses as of wrong labels; and yet the model is better for everybody, the more of them trained lately."""
        told["loss"][cohort] = np.where(MINORITY[cohort], 2.5, told["loss"][cohort])
        recent.append(0.7 * recent[-1] + 0.3 * float(MINORITY[cohort].mean()))
        told["opinions"] += 0.3 * recent[-1] - 0.2

    for seed in range(3):
        recent = [0.0]
        selector, cohorts, out = play(70, missed, seed=seed)
        assert not out[-1] and counts(cohorts)[MINORITY].mean() > 0.6 * 70 * K / N
        assert (selector.arrays["pardon"][MINORITY] > 0.0).all()


@pytest.mark.parametrize("liars", [1, 4])
def test_lies_do_not_gain_more_than_equal_turns(liars: int) -> None:
    def praise(slot: int, cohort: list[int], told: Told) -> None:
        for client in range(liars):
            told["opinions"][client] = 1.0 if client in cohort else 0.0

    def no_loss(slot: int, cohort: list[int], told: Told) -> None:
        told["loss"][:liars] *= 0.0

    for lie in (praise, no_loss):
        runs = [play(100, lie, seed=seed)[1] for seed in range(4)]
        assert np.mean([counts(cohorts)[:liars].mean() for cohorts in runs]) <= 1.1 * 100 * K / N


def test_when_too_few_others_are_there_those_left_out_fill_the_cohort() -> None:
    selector, _, out = play(60, not_learnt)
    waiting = [client for client in out[-1] if selector.arrays["wait"][client] > 0][:2]
    there = [*waiting, *np.flatnonzero(~MINORITY)[: K - 1].tolist()]
    cohort = selector.ask(there).cohort
    assert len(waiting) == 2 and set(there[2:]) < set(cohort) and len(set(cohort) & set(waiting)) == 1


def harmful() -> Change:
    """Nobody tells losses. The model is worse for everybody, the more of the minority trained lately."""
    recent = [0.0]

    def change(slot: int, cohort: list[int], told: Told) -> None:
        recent.append(0.7 * recent[-1] + 0.3 * float(MINORITY[cohort].mean()))
        told["loss"][:] = np.nan
        told["opinions"][cohort] -= 0.02 * MINORITY[cohort]
        told["opinions"] -= 0.4 * recent[-1]

    return change


def test_a_trial_finds_harmful_clients_from_opinions_alone() -> None:
    outs = [play(90, harmful(), seed=seed)[2][-1] for seed in range(6)]
    assert all(len(out) <= N / 2 for out in outs)
    assert np.mean([MINORITY[list(out)].sum() for out in outs]) >= 0.5 * MINORITY.sum()


def test_clients_that_send_back_what_they_got_are_left_out_even_if_they_are_the_majority() -> None:
    most = np.arange(N) < 12

    def worthless(slot: int, cohort: list[int], told: Told) -> None:
        told["updates"][[client for client in cohort if most[client]]] *= 1e-9

    _, cohorts, out = play(60, worthless, updates=True)
    assert set(np.flatnonzero(most).tolist()) <= set(out[-1])
    assert counts(cohorts[30:])[most].sum() < 0.25 * counts(cohorts[30:]).sum()


def test_clients_that_send_enormous_updates_do_not_make_others_look_worthless() -> None:
    def enormous(slot: int, cohort: list[int], told: Told) -> None:
        told["updates"][[client for client in cohort if MINORITY[client]]] *= 1e4

    for seed in range(3):
        _, cohorts, out = play(80, enormous, updates=True, seed=seed)
        assert all((~MINORITY)[list(now)].sum() <= 4 for now in out)  # some that train beside them look odd, too
        assert counts(cohorts)[MINORITY].mean() <= 1.1 * 80 * K / N


def no_losses(slot: int, cohort: list[int], told: Told) -> None:
    told["loss"][:] = np.nan


def gainless(slot: int, cohort: list[int], told: Told) -> None:
    """Nobody tells losses, and the minority's own training makes its opinion lower."""
    told["loss"][:] = np.nan
    told["opinions"][cohort] -= 0.06 * MINORITY[cohort]


def test_clients_whose_training_gains_nothing_are_left_out_by_opinions_alone() -> None:
    for seed in range(3):
        _, cohorts, out = play(60, gainless, seed=seed)
        assert all(set(now) <= set(np.flatnonzero(MINORITY).tolist()) for now in out)
        assert max(map(len, out[:33])) >= 2  # no trial could have ended by then
        late = counts(cohorts[30:])
        assert late[MINORITY].mean() < 0.4 * late[~MINORITY].mean() and np.ptp(late[~MINORITY]) <= 4
        assert late[MINORITY].sum() >= 3  # some train again now and then


def test_clients_that_gain_again_are_back_after_a_pause() -> None:
    def mended(slot: int, cohort: list[int], told: Told) -> None:
        (gainless if slot <= 30 else no_losses)(slot, cohort, told)

    _, _, out = play(160, mended)
    assert len(out[29]) >= 2 and not out[-1]


def test_a_good_reading_makes_the_pause_short_again() -> None:
    def mended(slot: int, cohort: list[int], told: Told) -> None:
        (gainless if slot <= 60 else no_losses)(slot, cohort, told)

    shortened = False
    for before, after in itertools.pairwise(play(slots, mended, seed=0)[0] for slots in range(76, 90)):
        waiting = sorted(set(before.left_out) & set(after.left_out))
        shortened |= bool((after.arrays["pause"] < before.arrays["pause"])[waiting].any())
    assert shortened


@pytest.mark.parametrize("world", [hard, rare])
def test_honest_clients_are_not_left_out_by_their_gains(world: Change) -> None:
    def change(slot: int, cohort: list[int], told: Told) -> None:
        world(slot, cohort, told)
        told["loss"][:] = np.nan

    for seed in range(3):
        _, cohorts, out = play(80, change, seed=seed)
        assert not any(set(now) & set(np.flatnonzero(MINORITY).tolist()) for now in out)
        assert counts(cohorts)[MINORITY].min() >= 80 * K / N - 2


def test_where_no_training_gains_anything_most_clients_stay_in() -> None:
    def nothing(slot: int, cohort: list[int], told: Told) -> None:
        told["loss"][:] = np.nan
        told["opinions"][cohort] -= 0.1

    _, _, out = play(60, nothing)
    assert max(map(len, out)) == int(MOST_GAINLESS * N)


def test_no_verdict_by_gains_where_no_opinion_is_known() -> None:
    def silent(slot: int, cohort: list[int], told: Told) -> None:
        told["loss"][:] = np.nan
        told["opinions"][np.setdiff1d(np.arange(N), cohort)] = np.nan

    _, cohorts, out = play(60, silent)
    assert not any(out) and np.ptp(counts(cohorts)) <= 1


def test_odds_of_a_gainless_client_are_those_of_a_literal_count() -> None:
    gain, effects = np.array([2.0, -1.0, 0.5, 0.0, -3.0]), np.array([0.03, -0.02, 0.0, 0.01, -0.01])
    known = np.array([True, True, True, True, False])
    minus = sorted(-effect for effect, one in zip(effects, known, strict=True) if one)
    centre = (minus[1] + minus[2]) / 2
    below = sorted(centre - value for value in minus if value <= centre)
    deviation = 1.4826 * (below[0] + below[1]) / 2
    expected = [
        math.log(0.1 / 0.9) - 0.7 * gain[n] + (0.5 * (-effects[n] - centre) / deviation if known[n] else 0.0)
        for n in range(5)
    ]
    assert gainless_odds(gain, effects, known) == pytest.approx(expected)


def test_those_not_convicted_have_equal_turns_beside_those_left_out() -> None:
    """A member that is left out in the slot in which it trained ends no cycle, and waits as long as it should."""
    _, cohorts, out = play(120, gainless)
    left_out = {client for now in out for client in now}
    assert left_out and left_out <= set(np.flatnonzero(MINORITY).tolist())
    assert np.ptp(counts(cohorts)[~MINORITY]) <= 2


def test_one_client_that_tells_a_loss_does_not_silence_the_verdict_by_gains() -> None:
    def one_loss(slot: int, cohort: list[int], told: Told) -> None:
        gainless(slot, cohort, told)
        told["loss"][0] = 1.0 if 0 in cohort else np.nan

    assert any(play(60, one_loss)[2])


def test_a_trial_ends_without_a_verdict_when_the_opinions_of_all_collapse() -> None:
    def collapse(slot: int, cohort: list[int], told: Told) -> None:
        no_losses(slot, cohort, told)
        if slot >= 26:
            told["opinions"] -= 0.4

    selector, _, _ = play(25, collapse)
    trial = selector.state()["memory"]["trial"]
    assert trial is not None
    selector, _, out = play(26, collapse)
    later = selector.state()["memory"]["trial"]
    assert not any(out) and (later is None or later["start"] > 26)


def test_turns_missed_in_a_trial_are_made_up_for() -> None:
    trials = set()
    for seed in range(3):
        selector, cohorts, out = play(160, no_losses, seed=seed)
        assert not any(out)
        assert np.abs(counts(cohorts) - 160 * K / N).max() <= 2
        trials.add(selector.state()["memory"]["acquittals"])
    assert min(trials) >= 1


def test_where_losses_come_nobody_is_on_trial() -> None:
    assert all(play(slots)[0].state()["memory"]["trial"] is None for slots in (20, 30, 45))


def test_a_selector_restored_in_its_first_slots_goes_on_exactly() -> None:
    selector, _, _ = play(6, all_report)
    _go_on(selector, range(7, 40), all_report)


def test_a_selector_restored_amid_a_trial_goes_on_exactly() -> None:
    selector, _, _ = play(25, no_losses)
    assert selector.state()["memory"]["trial"] is not None
    _go_on(selector, range(26, 80), no_losses)


@pytest.mark.parametrize("world", [not_learnt, gainless])
def test_a_selector_restored_while_clients_are_left_out_goes_on_exactly(world: Change) -> None:
    selector, _, out = play(50, world)
    assert out[-1]
    _go_on(selector, range(51, 90), world)


def _go_on(selector: SoundCycle, slots: range, change: Change) -> None:
    twin = SoundCycle.restore(json.loads(json.dumps(selector.state())))
    for slot in slots:
        selection = selector.ask()
        assert twin.ask() == selection
        told: dict[str, Any] = signals(slot, list(selection.cohort))
        change(slot, list(selection.cohort), told)
        for one in (selector, twin):
            one.tell(selection, Feedback(**told))
        assert twin.state() == selector.state()
