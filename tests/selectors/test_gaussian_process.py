"""Set GP, Loss GP and BP-GP."""

import itertools
import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from tests.steps import count_lines

from fedelect.errors import ConfigurationError, MissingSignalError
from fedelect.rules import CohortStatistics, SetPrior, elect_set
from fedelect.rules.cohort_statistics import FADED
from fedelect.seeds import stream
from fedelect.selectors import AbstractSelector, BpGp, LossGp, QuickInitUcb, SetGp
from fedelect.vocabulary import Cohort, Feedback, Floats

LIKE = np.array([0, 0, 0, 1, 1, 2, 2, 3, 3, 3])  # clients of one kind are redundant


def worth(cohort: Cohort) -> float:
    """A world in which members add up but two of a kind are worth less: no client is best as such."""
    kinds = len(set(LIKE[list(cohort)].tolist()))
    return 0.2 + 0.12 * kinds + 0.01 * sum(cohort) / 10


def losses(cohort: Cohort) -> Floats:
    """Clients of a kind that trained lose less."""
    return np.where(np.isin(LIKE, LIKE[list(cohort)]), 0.3, 1.5)


def play(
    selector: AbstractSelector, slots: int, value: Callable[[Cohort, int], float], noise: float = 0.0
) -> list[Cohort]:
    cohorts = []
    for slot in range(1, slots + 1):
        selection = selector.ask()
        cohorts.append(selection.cohort)
        reward = value(selection.cohort, slot) + noise * float(stream(1, "noise", slot).standard_normal())
        opinions = np.full(selector.clients, np.clip(reward, 0.0, 1.0))
        loss = losses(selection.cohort) if selector.clients == LIKE.size else np.ones(selector.clients)
        selector.tell(selection, Feedback(opinions=opinions, beliefs=opinions**2, loss=loss))
    return cohorts


@pytest.mark.parametrize("kind", [SetGp, LossGp, BpGp])
def test_it_finds_the_best_set_where_members_are_redundant(kind: type[AbstractSelector]) -> None:
    best = max(worth(cohort) for cohort in itertools.combinations(range(10), 4))
    for seed in range(3):
        selector = kind(clients=10, budget=4, seed=seed)
        cohorts = play(selector, 60, lambda cohort, slot: worth(cohort), noise=0.01)
        gaps = [1.0 - worth(cohort) / best for cohort in cohorts]
        assert np.median(gaps[-20:]) < 0.01  # a slot now and then still explores
        printed = QuickInitUcb(clients=10, budget=4, exploration=1.0, seed=seed)
        rival = play(printed, 60, lambda cohort, slot: worth(cohort), noise=0.01)
        assert np.mean(gaps) < np.mean([1.0 - worth(cohort) / best for cohort in rival])


def test_beliefs_that_are_squared_opinions_elect_what_rewards_elect() -> None:
    one, other = SetGp(clients=8, budget=3, seed=4), BpGp(clients=8, budget=3, seed=4)
    value = [0.25, 0.5, 0.75]  # whose squares have exact roots
    assert play(one, 25, lambda cohort, slot: value[sum(cohort) % 3]) == play(
        other, 25, lambda cohort, slot: value[sum(cohort) % 3]
    )


def test_losses_find_it_in_fewer_slots() -> None:
    best = max(worth(cohort) for cohort in itertools.combinations(range(10), 4))

    def lost(kind: type[AbstractSelector]) -> float:
        played = [
            play(kind(clients=10, budget=4, seed=seed), 20, lambda cohort, slot: worth(cohort), noise=0.03)
            for seed in range(4)
        ]
        return float(np.mean([best - worth(cohort) for cohorts in played for cohort in cohorts]))

    assert lost(LossGp) < lost(SetGp)


def test_losses_that_never_come_leave_set_gp() -> None:
    one, other = SetGp(clients=10, budget=4, seed=2), LossGp(clients=10, budget=4, seed=2)
    for _ in range(15):
        selection = one.ask()
        assert other.ask() == selection
        one.tell(selection, Feedback(reward=worth(selection.cohort)))
        other.tell(selection, Feedback(reward=worth(selection.cohort), loss=np.full(10, np.nan)))


@pytest.mark.parametrize("kind", [SetGp, LossGp])
@pytest.mark.parametrize("forgetting", [1.0, 0.9])
def test_it_goes_on_exactly_after_a_long_run_also_when_it_forgets(
    kind: type[AbstractSelector], forgetting: float
) -> None:
    selector = kind(clients=10, budget=4, forgetting=forgetting, memory=12, seed=2)  # type: ignore[call-arg]
    play(selector, 30, lambda cohort, slot: worth(cohort), noise=0.05)
    twin = kind.restore(json.loads(json.dumps(selector.state())))
    for slot in range(8):
        selection = selector.ask()
        assert twin.ask() == selection
        feedback = Feedback(reward=worth(selection.cohort) + 0.01 * slot, loss=losses(selection.cohort))
        selector.tell(selection, feedback)
        twin.tell(selection, feedback)
    assert twin.state() == selector.state()


def test_what_forgets_follows_a_world_that_changes() -> None:
    def turned(cohort: Cohort, slot: int) -> float:
        good = {0, 1, 2} if slot <= 40 else {5, 6, 7}
        return 0.2 + 0.2 * len(good & set(cohort))

    def found(forgetting: float) -> float:
        cohorts = play(SetGp(clients=8, budget=3, forgetting=forgetting, seed=1), 70, turned, noise=0.02)
        return float(np.mean([turned(cohort, 99) for cohort in cohorts[40:]]))

    assert found(0.9) > max(found(1.0), 0.55)


@pytest.mark.parametrize("kind", [SetGp, LossGp])
def test_ten_thousand_clients_are_no_obstacle(kind: type[AbstractSelector]) -> None:
    def play_among(clients: int) -> tuple[AbstractSelector, list[Cohort]]:
        selector = kind(clients=clients, budget=10, seed=1)
        good = clients // 2
        return selector, play(selector, 30, lambda cohort, slot: 0.5 + 0.01 * sum(one < good for one in cohort))

    assert count_lines(lambda: play_among(10_000)) < 2 * count_lines(lambda: play_among(1000))  # no loop over clients
    selector, cohorts = play_among(10_000)
    assert len({member for cohort in cohorts for member in cohort}) > 160  # the opening alone tries 160
    assert len(json.dumps(selector.state())) < 200_000


def test_the_statistics_keeps_mean_weight_and_scatter_of_each_cohort() -> None:
    ledger = CohortStatistics(2, forgetting=1.0, memory=2)
    for reward in (0.5, 0.7, 0.9):
        ledger.add_reward((0, 1), reward, 0.04)
    ledger.add_reward((1, 2), 0.3, 0.0)
    cohorts, means, weights, scatter, added = ledger.evidence()
    assert cohorts.tolist() == [[0, 1], [1, 2]]
    assert means == pytest.approx([0.7, 0.3]) and weights.tolist() == [3.0, 1.0]
    assert scatter == pytest.approx([0.08, 0.0]) and added == pytest.approx([0.12 / 9, 0.0])
    ledger.add_reward((2, 3), 0.1, 0.0)
    assert ledger.evidence()[0].tolist() == [[1, 2], [2, 3]]  # the one played longest ago is gone


def test_old_rewards_weigh_less_when_they_fade() -> None:
    ledger = CohortStatistics(1, forgetting=0.5, memory=9)
    for reward in (0.2, 0.8):
        ledger.add_reward((0,), reward, 0.0)
    ledger.add_reward((1,), 0.4, 0.0)
    _, means, weights, _, _ = ledger.evidence()
    assert weights.tolist() == [0.75, 1.0]  # (0.5 + 1) / 2, and 1
    assert means == pytest.approx([0.6, 0.4])  # (0.5 * 0.2 + 0.8) / 1.5


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_what_has_faded_away_is_forgotten_and_bounds_stay_numbers(noise: float) -> None:
    ledger = CohortStatistics(2, forgetting=0.5, memory=96)
    ledger.add_reward((2, 3), 0.9, noise)
    for slot in range(2, 2001):
        ledger.add_reward((0, 1) if slot % 7 else (slot % 2, 4), 0.3, noise)
        cohorts, means, weights, scatter, added = ledger.evidence()
        assert weights.min() >= FADED and np.isfinite(added).all()
        assert ((2, 3) in ledger.cohorts()) == (0.5 ** (slot - 1) >= FADED)
    election = elect_set(
        *(cohorts, means, weights, scatter),
        clients=6,
        slot=2001,
        exploration=2.0,
        seed=1,
        prior=SetPrior(),
        added_noise=added,
    )
    assert math.isfinite(election.indices[0])


def test_feedback_without_any_belief_is_refused_and_changes_nothing() -> None:
    selector = BpGp(clients=6, budget=2, seed=1)
    selection, before = selector.ask(), selector.state()
    with pytest.raises(MissingSignalError, match="at least one client's belief"):
        selector.tell(selection, Feedback(beliefs=np.full(6, np.nan)))
    assert selector.state() == before


@pytest.mark.parametrize("wrong", [{"forgetting": 0.0}, {"forgetting": 1.5}, {"memory": 1}, {"triples": -1.0}])
def test_impossible_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError):
        SetGp(clients=6, budget=2, seed=1, **wrong)  # type: ignore[arg-type]
