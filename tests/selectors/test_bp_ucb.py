"""BP-UCB elects by eq. `ucb1` from each client's own opinions, elections and belief."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.ucb import bp_ucb_indices

from fedelect import Feedback
from fedelect.errors import MissingSignalError
from fedelect.selectors import BpUcb

NAN = float("nan")


@settings(max_examples=200)
@given(data=st.data())
def test_it_elects_the_k_highest_indices_of_the_literal_formula(data: st.DataObject) -> None:
    clients = data.draw(st.integers(1, 8))
    budget = data.draw(st.integers(1, clients))
    exploration = data.draw(st.floats(0.0, 2.0))
    selector = BpUcb(clients=clients, budget=budget, exploration=exploration, seed=data.draw(st.integers(0, 99)))
    value = st.one_of(st.none(), st.floats(0.0, 1.0), st.sampled_from([0.0, 0.5, 1.0]))
    opinions: list[list[float | None]] = []
    cohorts: list[tuple[int, ...]] = []
    beliefs: list[float | None] = [None] * clients
    for _ in range(data.draw(st.integers(1, 14))):
        selection = selector.ask()
        pulls = [sum(client in cohort for cohort in cohorts) for client in range(clients)]
        if min(pulls) == 0:
            assert not selection.indices and any(pulls[client] == 0 for client in selection.cohort)
        else:
            literal = bp_ucb_indices(opinions, cohorts, beliefs, selection.slot, exploration)
            assert selection.indices == pytest.approx([literal[client] for client in selection.cohort], abs=1e-12)
            others = [literal[client] for client in range(clients) if client not in selection.cohort]
            assert min(selection.indices) >= max(others, default=-1.0) - 1e-12
        told = data.draw(st.lists(value, min_size=clients, max_size=clients))
        cohorts.append(selection.cohort)
        if data.draw(st.integers(0, 5)) == 0:
            selector.abandon(selection)
            opinions.append([None] * clients)
            continue
        opinions.append(told)
        beliefs = data.draw(st.lists(value, min_size=clients, max_size=clients))
        as_floats = [[NAN if v is None else v for v in values] for values in (told, beliefs)]
        selector.tell(selection, Feedback(opinions=as_floats[0], beliefs=as_floats[1]))
        if data.draw(st.booleans()):
            selector = BpUcb.restore(json.loads(json.dumps(selector.state())))


def test_the_index_is_as_worked_out_by_hand() -> None:
    """N = 2, K = 1, mu = 0: after both were tried with opinions 0.6 and 0.5, beliefs 1 and 3 (shares 1/4, 3/4).

    Indices: 0.6 + 0.25 / 2 = 0.725 and 0.5 + 0.75 / 2 = 0.875, so the client with the lower mean is elected.
    """
    selector = BpUcb(clients=2, budget=1, exploration=0.0, seed=0)
    first = selector.ask().cohort[0]
    opinions, beliefs = np.full(2, 0.5), np.full(2, 3.0)
    opinions[first], beliefs[first] = 0.6, 1.0
    for _ in range(2):
        selector.tell(selector.ask(), Feedback(opinions=opinions, beliefs=beliefs))
    selection = selector.ask()
    assert selection.cohort == (1 - first,)
    assert selection.indices == pytest.approx((0.875,), abs=1e-15)


def test_the_cold_start_elects_every_client() -> None:
    selector = BpUcb(clients=7, budget=3, exploration=0.01, seed=4)
    elected: list[int] = []
    for _ in range(3):
        selection = selector.ask()
        elected += selection.cohort
        selector.tell(selection, Feedback(opinions=np.full(7, 0.5), beliefs=np.ones(7)))
    assert set(elected) == set(range(7))
    assert selector.ask().indices


def test_without_beliefs_it_says_so() -> None:
    selector = BpUcb(clients=3, budget=1, exploration=0.01, seed=4)
    with pytest.raises(MissingSignalError, match="'beliefs'"):
        selector.tell(selector.ask(), Feedback(opinions=[0.1, 0.2, 0.3]))


def test_ties_fall_evenly_over_the_clients() -> None:
    counts = np.zeros(5)
    for seed in range(2500):
        selector = BpUcb(clients=5, budget=2, exploration=0.0, seed=seed)
        for _ in range(3):
            selector.tell(selector.ask(), Feedback(opinions=np.full(5, 0.5), beliefs=np.ones(5)))
        counts[list(selector.ask().cohort)] += 1
    # The client drawn twice in the cold start has the same mean; no index differs, so only the hash decides.
    assert ((counts - 1000) ** 2 / 1000).sum() < 18.5  # 4 degrees of freedom, p = 0.001
