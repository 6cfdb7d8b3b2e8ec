"""Quick-Init UCB is exact, fair and small."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.ucb import EnumeratingQuickInit

from fedelect import Feedback, Selection
from fedelect.selectors import QuickInitUcb

REWARDS = st.one_of(
    st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]),  # equal rewards and equal sums are common
    st.floats(0.0, 1.0),
)


@settings(max_examples=400)
@given(data=st.data())
def test_every_choice_maximises_the_index_over_all_subsets(data: st.DataObject) -> None:
    clients = data.draw(st.integers(1, 9), label="clients")
    budget = data.draw(st.integers(1, clients), label="budget")
    exploration = data.draw(st.one_of(st.just(0.0), st.floats(0.0, 3.0)), label="exploration")
    seed = data.draw(st.integers(0, 2**32), label="seed")
    selector = QuickInitUcb(clients=clients, budget=budget, exploration=exploration, seed=seed)
    literal = EnumeratingQuickInit(clients, budget, exploration)
    for _ in range(data.draw(st.integers(1, 24), label="slots")):
        available = None
        if data.draw(st.integers(0, 4)) == 0:
            available = data.draw(st.sets(st.integers(0, clients - 1), min_size=budget), label="available")
        selection = selector.ask(available)
        untried = [c for c in range(clients) if not literal.cold[c] and (available is None or c in available)]
        if untried:
            assert not selection.indices and set(selection.cohort) & set(untried)
        else:
            highest, best = literal.best(selection.slot, available)
            assert selection.cohort in best
            assert selection.indices == pytest.approx((highest,), abs=1e-12)
        fate = data.draw(st.integers(0, 9))
        if fate == 0:
            selector.abandon(selection)
            continue
        if fate == 1:
            selector = QuickInitUcb.restore(json.loads(json.dumps(selector.state())))
        reward = data.draw(REWARDS, label="reward")
        opinions = np.full(clients, reward)
        opinions[: data.draw(st.integers(0, clients - 1), label="silent")] = np.nan
        selector.tell(selection, Feedback(opinions=opinions))
        learnt = math.fsum([reward] * int((~np.isnan(opinions)).sum())) / int((~np.isnan(opinions)).sum())
        if selection.indices:
            literal.play(selection.cohort, learnt)
        else:
            literal.cold_reward(selection.cohort, learnt)


def play(selector: QuickInitUcb, rewards: dict[tuple[int, ...], float], slots: int) -> list[Selection]:
    asks = []
    for _ in range(slots):
        selection = selector.ask()
        selector.tell(selection, Feedback(opinions=np.full(selector.clients, rewards[selection.cohort])))
        asks.append(selection)
    return asks


def test_without_exploration_a_table_is_played_as_worked_out_by_hand() -> None:
    """N = 4, K = 2, mu = 0. Let the cold-start groups be A = {a, b} with reward 0.8 and B = {c, d} with 0.4.

    Scores: 0.8, 0.8, 0.4, 0.4. Initial means: A 0.8, the four mixed pairs 0.6, B 0.4.
    Slot 3 plays A (0.8 is the highest) and gets 0.2: its mean is (0.8 + 0.2) / 2 = 0.5.
    Slot 4 plays a mixed pair (0.6), gets 1.0: mean 0.8. It stays best for ever: slots 5.. play it again,
    its mean going to 2.6 / 3, 3.6 / 4, ...
    """
    selector = QuickInitUcb(clients=4, budget=2, exploration=0.0, seed=3)
    first, second = selector._cold.group(0), selector._cold.group(1)
    assert sorted(first + second) == [0, 1, 2, 3]
    asks, rewards = [], [0.8, 0.4, 0.2, 1.0, 1.0, 1.0, 0.9]
    for reward in rewards:
        selection = selector.ask()
        selector.tell(selection, Feedback(reward=reward))
        asks.append(selection)
    assert [selection.cohort for selection in asks[:3]] == [first, second, first]
    mixed = asks[3].cohort
    assert len(set(mixed) & set(first)) == 1
    assert [selection.cohort for selection in asks[4:]] == [mixed] * 3
    expected = [0.8, 0.6, (0.6 + 1.0) / 2, (0.6 + 2.0) / 3, (0.6 + 3.0) / 4]
    assert [selection.indices[0] for selection in asks[2:]] == pytest.approx(expected, abs=1e-15)
    assert selector.ask().indices[0] == pytest.approx((0.6 + 3.0 + 0.9) / 5, abs=1e-15)


def test_with_exploration_the_index_is_as_worked_out_by_hand() -> None:
    """After the cold start above, in slot 3 the best arm has index 0.8 + sqrt(ln 3 / 1); played, it has two pulls."""
    selector = QuickInitUcb(clients=4, budget=2, exploration=1.0, seed=3)
    for reward in (0.8, 0.4):
        selector.tell(selector.ask(), Feedback(reward=reward))
    third = selector.ask()
    assert third.indices[0] == pytest.approx(0.8 + math.sqrt(math.log(3)), abs=1e-15)
    selector.tell(third, Feedback(reward=1.0))
    # {a, b}: 0.9 + sqrt(ln 4 / 2) = 1.7326 lies below a mixed pair: 0.6 + sqrt(ln 4) = 1.7774.
    fourth = selector.ask()
    assert fourth.cohort != third.cohort
    assert fourth.indices[0] == pytest.approx(0.6 + math.sqrt(math.log(4)), abs=1e-15)


def test_known_best_arms_are_found_and_kept() -> None:
    """Additive rewards, no exploration: the initial means rank arms, and the two best clients end up together."""
    worth = [0.1, 0.9, 0.2, 0.8, 0.3, 0.1]
    rewards: dict[tuple[int, ...], float] = {
        arm: (worth[arm[0]] + worth[arm[1]]) / 2 for arm in itertools.combinations(range(6), 2)
    }
    kept = [play(QuickInitUcb(clients=6, budget=2, exploration=0.5, seed=s), rewards, 400)[-1] for s in range(5)]
    assert [selection.cohort for selection in kept].count((1, 3)) >= 4


def test_a_client_in_two_groups_scores_the_mean_of_both() -> None:
    selector = QuickInitUcb(clients=3, budget=2, exploration=0.0, seed=1)
    first = selector.ask().cohort
    selector.tell(selector.ask(), Feedback(reward=0.9))
    second = selector.ask().cohort
    selector.tell(selector.ask(), Feedback(reward=0.3))
    (twice,) = set(first) & set(second)
    scores = selector.scores
    assert scores[twice] == pytest.approx(0.6)
    assert scores[list(set(first) - {twice})] == pytest.approx([0.9])
    assert scores[list(set(second) - {twice})] == pytest.approx([0.3])


def test_ties_are_drawn_evenly_from_all_best_subsets() -> None:
    """All rewards equal: in every slot after the cold start all unplayed pairs tie.

    A client's share of the 48,000 elections (6,000 seeds, 8 slots) has a standard error of 0.35 % of itself when ties
    are fair; a bias of 2 % would be more than five of them.
    """
    seeds, slots = 6000, 8
    by_client = np.zeros(6)
    by_arm: dict[tuple[int, ...], int] = dict.fromkeys(itertools.combinations(range(6), 2), 0)
    for seed in range(seeds):
        selector = QuickInitUcb(clients=6, budget=2, exploration=1.0, seed=seed)
        for slot in range(slots):
            selection = selector.ask()
            selector.tell(selection, Feedback(reward=0.5))
            by_client[list(selection.cohort)] += 1
            if slot == 3:
                by_arm[selection.cohort] += 1
    shares = by_client / by_client.mean()
    assert np.abs(shares - 1).max() < 0.012
    assert chi_square(list(by_arm.values())) < 36.1  # 14 degrees of freedom, p = 0.001


def chi_square(counts: list[int]) -> float:
    expected = sum(counts) / len(counts)
    return sum((count - expected) ** 2 / expected for count in counts)


def test_subsets_of_different_compositions_with_equal_sums_are_drawn_evenly() -> None:
    """N = 6, K = 2, groups A, B, C with rewards 0.25, 0.5, 0.75. Sums: C C 1.5; B C 1.25; A C and B B 1.0 tie.

    Once C and the four B C pairs have been played (mu is large, so unplayed arms always win), the next arm is one of
    the four A C pairs or of the single B B, each with probability 1/5.
    """
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(3000):
        selector = QuickInitUcb(clients=6, budget=2, exploration=50.0, seed=seed)
        groups = [selector._cold.group(number) for number in range(3)]
        for reward in (0.25, 0.5, 0.75):
            selector.tell(selector.ask(), Feedback(reward=reward))
        for _ in range(5):
            selector.tell(selector.ask(), Feedback(reward=0.5))
        named = [10 * g + group.index(c) for c in selector.ask().cohort for g, group in enumerate(groups) if c in group]
        counts[tuple(sorted(named))] = counts.get(tuple(sorted(named)), 0) + 1
    assert set(counts) == {(0, 20), (0, 21), (1, 20), (1, 21), (10, 11)}
    assert chi_square(list(counts.values())) < 18.5  # 4 degrees of freedom, p = 0.001


def test_what_is_left_of_a_composition_is_drawn_evenly_to_the_last() -> None:
    """One level, 15 pairs: after 11 of them the last four are listed; each must be as likely as the others."""
    ranks = [0, 0, 0, 0]
    for seed in range(3000):
        selector = QuickInitUcb(clients=6, budget=2, exploration=50.0, seed=seed)
        played: set[tuple[int, ...]] = set()
        for slot in range(3 + 11):
            selection = selector.ask()
            selector.tell(selection, Feedback(reward=0.5))
            played |= {selection.cohort} if slot >= 3 else set()
        pairs: set[tuple[int, ...]] = set(itertools.combinations(range(6), 2))
        left = sorted(pairs - played)
        ranks[left.index(selector.ask().cohort)] += 1
    assert chi_square(ranks) < 16.3  # 3 degrees of freedom, p = 0.001


def test_ties_between_played_and_unplayed_arms_are_drawn_evenly() -> None:
    """mu = 0 and every reward 0.5: all 15 pairs always share the index 0.5, whether played or not."""
    counts: dict[tuple[int, ...], int] = dict.fromkeys(itertools.combinations(range(6), 2), 0)
    for seed in range(1500):
        selector = QuickInitUcb(clients=6, budget=2, exploration=0.0, seed=seed)
        for slot in range(1, 9):
            selection = selector.ask()
            selector.tell(selection, Feedback(reward=0.5))
            if slot == 8:
                counts[selection.cohort] += 1
    assert chi_square(list(counts.values())) < 36.1  # 14 degrees of freedom, p = 0.001


def test_the_reward_does_not_depend_on_the_order_of_the_clients() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        opinions = rng.random(50)
        one, two = Feedback(opinions=opinions), Feedback(opinions=rng.permutation(opinions))
        assert one.reward == two.reward


def test_noise_on_the_rewards_widens_the_index() -> None:
    selector = QuickInitUcb(clients=4, budget=2, exploration=1.0, seed=3)
    for reward in (0.8, 0.4):
        selector.tell(selector.ask(), Feedback(reward=reward, reward_noise=0.5))
    # variance 0.25 on top of 1/4: the exploration term grows by sqrt(2)
    assert selector.ask().indices[0] == pytest.approx(0.8 + math.sqrt(2 * math.log(3)), abs=1e-12)


def test_a_million_clients_fit_and_the_state_stays_small() -> None:
    clients, budget = 200_000, 100
    selector = QuickInitUcb(clients=clients, budget=budget, exploration=1.0, seed=1)
    for slot in range(clients // budget + 30):
        selector.tell(selector.ask(), Feedback(reward=(slot * 0.618) % 1.0))
    text = json.dumps(selector.state())
    assert len(text) < 100_000  # 2,000 group rewards and 30 cohorts of 100, packed
    twin = QuickInitUcb.restore(json.loads(text))
    assert twin.ask() == selector.ask()


def test_a_client_that_comes_late_is_tried_before_any_index_is_used() -> None:
    selector = QuickInitUcb(clients=6, budget=2, exploration=0.0, seed=1)
    present = [0, 1, 2, 3, 4]
    while not (selection := selector.ask(present)).indices:
        selector.tell(selection, Feedback(reward=0.5))
    selector.tell(selection, Feedback(reward=0.5))
    late = selector.ask()
    assert 5 in late.cohort and not late.indices
    selector.tell(late, Feedback(reward=0.9))
    assert 5 in selector.ask().cohort  # the only client of whom better is known
