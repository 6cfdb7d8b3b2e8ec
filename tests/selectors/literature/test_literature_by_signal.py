"""Rivals that look at losses, times, sizes and channels: their formulas on numbers worked out by hand."""

from typing import Any

import numpy as np
import pytest

from fedelect.errors import ConfigurationError, MissingSignalError
from fedelect.selectors import AbstractSelector, DataSize, FedCs, Oort, PowerOfChoice, ProportionalFair, TiFl
from fedelect.vocabulary import Feedback, Selection

NAN = float("nan")


def tell(selector: AbstractSelector, **signals: Any) -> Selection:
    selection = selector.ask()
    selector.tell(selection, Feedback(**signals))
    return selection


def test_power_of_choice_with_all_as_candidates_takes_the_highest_losses() -> None:
    selector = PowerOfChoice(clients=6, budget=2, candidates=6, seed=1)
    tell(selector, loss=[0.1, 0.9, 0.3, 0.8, 0.2, 0.5], sizes=[10, 10, 10, 10, 10, 10])
    assert selector.ask().cohort == (1, 3)


def test_power_of_choice_takes_losses_of_its_own_candidates_only() -> None:
    # Applying the places of a sorted candidate list to all clients, as one public code does, would elect others.
    loss = np.array([0.1, 0.9, 0.3, 0.8, 0.2, 0.5, 0.7, 0.6])
    for seed in range(20):
        selector = PowerOfChoice(clients=8, budget=2, candidates=3, seed=seed)
        tell(selector, loss=loss, sizes=[NAN] * 8)
        cohort = selector.ask().cohort
        assert loss[list(cohort)].min() > 0.1  # two of any three candidates leave the worst of them out


def test_power_of_choice_draws_candidates_by_data_size() -> None:
    first: list[int] = []
    for seed in range(400):
        selector = PowerOfChoice(clients=3, budget=1, candidates=1, seed=seed)
        tell(selector, loss=[1.0, 1.0, 1.0], sizes=[60, 30, 10])
        first += selector.ask().cohort
    shares = np.bincount(first, minlength=3) / 400
    assert shares == pytest.approx([0.6, 0.3, 0.1], abs=0.08)


def test_power_of_choice_elects_by_what_its_candidates_report_and_then_needs_no_other_losses() -> None:
    selector = PowerOfChoice(clients=6, budget=2, candidates=4, seed=1)
    tell(selector, loss=[9.0, 8.0, 7.0, 6.0, 5.0, 4.0], sizes=[10] * 6)
    named = selector.candidates()
    assert named is not None and len(named) == 4
    reported = np.full(6, NAN)
    reported[list(named)] = [1.0, 3.0, NAN, 2.0]  # the third does not answer
    selection = selector.ask(reports=Feedback(loss=reported))
    assert selection.cohort == (named[1], named[3])
    selector.tell(selection, Feedback(sizes=[10] * 6))


def test_oort_learns_of_the_cohort_only_and_explores_the_others() -> None:
    selector = Oort(clients=8, budget=2, seed=3)
    selection = tell(selector, loss_rms=np.ones(8), sizes=np.full(8, 10.0), seconds=np.ones(8))
    known = ~np.isnan(selector.utilities(2))
    assert set(np.flatnonzero(known).tolist()) == set(selection.cohort)
    assert set(selector.ask().cohort) - set(selection.cohort)  # nine tenths of the places go to clients never tried


@pytest.mark.parametrize(
    ("losses", "percent"),
    [
        ((2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0), 35.0),  # flat: longer rounds
        ((2.0, 2.0, 2.0, 2.0, 4.0, 4.0, 4.0), 30.0),  # twice as much: neither flat nor sharp
        ((2.0, 2.0, 2.0, 2.0, 30.0, 30.0, 30.0), 25.0),  # sharp: shorter rounds
    ],
)
def test_oorts_pacer_reacts_to_flat_and_to_sharply_changed_utility(losses: tuple[float, ...], percent: float) -> None:
    selector = Oort(clients=4, budget=4, window=4, seed=1)
    selector._won = [4.0]  # the first slot exploits nobody
    for loss in losses:
        tell(selector, loss_rms=np.full(4, loss), sizes=np.ones(4), seconds=[1.0, 2.0, 3.0, 4.0])
    assert selector.state()["memory"]["percent"] == percent


def test_oort_passes_over_those_that_trained_too_often_but_for_no_more_than_30_percent() -> None:
    for seed in range(30):
        selector = Oort(clients=10, budget=7, most_elections=2, seed=seed)
        tell(selector, loss_rms=np.ones(10), sizes=np.ones(10), seconds=np.ones(10))
        selector.arrays["count"] = np.arange(10.0, 0.0, -1.0)  # the first eight trained more than twice
        assert selector.ask().cohort == (3, 4, 5, 6, 7, 8, 9)


def profiled(selector: TiFl, seconds: list[float], opinions: list[float]) -> None:
    while not selector._is_profiled():
        tell(selector, seconds=seconds, opinions=opinions)


def test_tifl_sorts_clients_into_tiers_by_their_seconds() -> None:
    selector = TiFl(clients=6, budget=2, tiers=5, seed=1)
    seconds = [3.0, 1.0, 6.0, 2.0, 5.0, 4.0]
    profiled(selector, seconds, [0.5] * 6)
    assert [sorted(tier.tolist()) for tier in selector.tiers()] == [[1, 3], [0, 5], [2, 4]]  # N / K tiers at most
    for _ in range(20):
        selection = tell(selector, seconds=seconds, opinions=[0.5] * 6)
        assert list(selection.cohort) in ([1, 3], [0, 5], [2, 4])


def test_tifl_prefers_the_tier_that_is_served_worst_and_heeds_credits() -> None:
    selector = TiFl(clients=6, budget=2, tiers=3, credits=4, interval=2, seed=1)
    opinions = [0.9, 0.2, 0.6, 0.2, 0.6, 0.9]  # tiers (1, 3), (0, 5), (2, 4): 0.2, 0.9, 0.6
    seconds = [3.0, 1.0, 6.0, 2.0, 5.0, 4.0]
    profiled(selector, seconds, opinions)
    for _ in range(4):
        tell(selector, seconds=seconds, opinions=opinions)
    assert selector.state()["memory"]["chances"] == pytest.approx([3 / 6, 1 / 6, 2 / 6])
    counts = {(0, 5): 0, (1, 3): 0, (2, 4): 0}
    fresh = TiFl(clients=6, budget=2, tiers=3, credits=4, interval=2, seed=1)
    profiled(fresh, seconds, opinions)
    for _ in range(12):
        counts[tell(fresh, seconds=seconds, opinions=opinions).cohort] += 1  # type: ignore[index]
    assert list(counts.values()) == [4, 4, 4]  # 12 slots use up 3 tiers of 4 credits


def test_fedcs_counts_the_distribution_and_an_upload_in_the_shade_of_others_as_upload_only() -> None:
    selector = FedCs(clients=4, budget=2, candidates=4, seed=1)
    tell(selector, training_s=[5.0, 1.0, 4.5, 3.0], upload_s=[1.0, 4.0, 1.5, 3.0])
    # Alone they add 1 + 1 + 5, 4 + 4 + 1, 1.5 + 1.5 + 4.5, 3 + 3 + 3: client 0, though client 1 would train and upload
    # first. With 1 s of distribution and 6 s passed they add -, 3 + 4, 0.5 + 1.5, 2 + 3: client 2.
    assert selector.ask().cohort == (0, 2)


def test_fedcs_is_the_greedy_search_of_its_paper() -> None:
    rng = np.random.default_rng(7)
    for deadline in (8.0, 20.0, 60.0):
        training, upload = rng.uniform(1.0, 10.0, 8), rng.uniform(0.5, 3.0, 8)
        selector = FedCs(clients=8, budget=4, candidates=8, deadline_s=deadline, seed=1)
        tell(selector, training_s=training, upload_s=upload)
        left, chosen, passed = set(range(8)), list[int](), 0.0
        while left:  # Algorithm 3, line by line, for as many clients as the deadline admits
            sent = max((upload[k] for k in chosen), default=0.0)
            cost = {k: max(sent, upload[k]) - sent + upload[k] + max(0.0, training[k] - passed) for k in left}
            best = min(cost, key=lambda k: cost[k])
            left.remove(best)
            later = passed + upload[best] + max(0.0, training[best] - passed)
            if max(sent, upload[best]) + later < deadline:
                chosen, passed = [*chosen, best], later
        assert set(chosen[:4]) <= set(selector.ask().cohort)


def test_fedcs_fills_up_beyond_the_deadline_if_it_must() -> None:
    selector = FedCs(clients=4, budget=2, candidates=4, deadline_s=0.5, seed=1)
    tell(selector, training_s=[5.0, 1.0, 4.5, 3.0], upload_s=[1.0, 4.0, 1.5, 3.0])
    assert selector.ask().cohort == (0, 2)


def test_proportional_fair_takes_the_channel_that_is_best_beside_its_own_mean() -> None:
    selector = ProportionalFair(clients=3, budget=1, seed=1)
    tell(selector, channel_db=[20.0, 10.0, 0.0])  # 100, 10, 1
    tell(selector, channel_db=[20.0, 10.0, 10.0])  # 100 / 100, 10 / 10, 10 / 5.5
    assert selector.ask().cohort == (2,)
    tell(selector, channel_db=[NAN, 13.0, -20.0])  # unknown: 1; 19.95 / 13.3; 0.01 / 3.67
    assert selector.ask().cohort == (1,)


def test_data_size_takes_the_largest_clients_that_meet_the_deadline() -> None:
    signals = {"sizes": [50, 90, 70, 60], "training_s": [1.0, 9.0, 2.0, 1.0], "upload_s": [1.0, 1.0, 1.0, 1.0]}
    selector = DataSize(clients=4, budget=2, seed=1)
    tell(selector, **signals)
    assert selector.ask().cohort == (1, 2)
    selector = DataSize(clients=4, budget=2, deadline_s=2.5, seed=1)
    tell(selector, **signals)
    assert selector.ask().cohort == (0, 3)
    selector = DataSize(clients=4, budget=3, deadline_s=2.5, seed=1)
    tell(selector, **signals)
    assert selector.ask().cohort == (0, 2, 3)  # the third is the quickest of the others


def test_a_signal_that_is_absent_is_named() -> None:
    selector = Oort(clients=4, budget=2, seed=1)
    with pytest.raises(MissingSignalError, match="Oort needs 'loss_rms' and 'seconds'"):
        selector.tell(selector.ask(), Feedback(opinions=[0.5] * 4, sizes=[1.0] * 4))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: PowerOfChoice(clients=6, budget=2, candidates=1, seed=1), "candidates must be from 2 to 6"),
        (lambda: FedCs(clients=6, budget=2, candidates=7, seed=1), "candidates must be from 2 to 6"),
        (lambda: FedCs(clients=6, budget=2, deadline_s=-1.0, seed=1), "deadline_s must be"),
        (lambda: Oort(clients=6, budget=2, window=0, seed=1), "window must be"),
        (lambda: Oort(clients=6, budget=2, penalty="x", seed=1), "penalty must be"),  # type: ignore[arg-type]
        (lambda: TiFl(clients=6, budget=2, tiers=0, seed=1), "tiers must be"),
    ],
)
def test_impossible_parameters_are_refused(make: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        make()
