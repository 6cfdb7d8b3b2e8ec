from typing import Any, Literal

import numpy as np
import pytest
from tests.reference.federation import hinge_gradient

from fedelect.federation.linear.model import LOSSES
from fedelect.federation.local_training import batch_orders, train_locally
from fedelect.seeds import stream

KEY: dict[str, Any] = {"seed": 1, "trial": 2, "slot": 3, "round_": 4, "client": 5}


def test_every_epoch_visits_every_sample_once_in_an_order_of_its_own() -> None:
    orders = batch_orders(30, 4, **KEY)
    assert np.sort(orders, axis=1).tolist() == [list(range(30))] * 4
    assert len({tuple(order) for order in orders.tolist()}) == 4


def test_the_order_depends_on_each_of_seed_trial_slot_round_and_client() -> None:
    seen = {batch_orders(30, 1, **{**KEY, **{name: value + 1}}).tobytes() for name, value in KEY.items()}
    assert len(seen | {batch_orders(30, 1, **KEY).tobytes()}) == 6


def test_reshuffling_every_epoch_draws_one_permutation_after_the_other_from_the_rounds_stream() -> None:
    rng = stream(1, "training", 2, 3, 4, 5)
    assert batch_orders(30, 3, **KEY).tolist() == [rng.permutation(30).tolist() for _ in range(3)]


@pytest.mark.parametrize("shuffle", ["round", "slot"])
def test_one_order_may_serve_all_epochs_of_a_round_or_all_rounds_of_a_slot(shuffle: Literal["round", "slot"]) -> None:
    orders = batch_orders(30, 3, **KEY, shuffle=shuffle)
    assert orders.shape == (3, 30)
    assert len({tuple(order) for order in orders.tolist()}) == 1
    assert sorted(orders[0].tolist()) == list(range(30))
    changes = {name: batch_orders(30, 3, **{**KEY, name: value + 1}, shuffle=shuffle) for name, value in KEY.items()}
    same = {name for name, other in changes.items() if np.array_equal(other, orders)}
    assert same == ({"round_"} if shuffle == "slot" else set())


def test_sgd_goes_batch_by_batch_and_the_short_last_batch_averages_over_itself() -> None:
    rng = stream(5, "sgd")
    inputs, labels = rng.normal(size=(7, 2)), rng.integers(0, 3, 7)
    start = rng.normal(size=(3, 3))
    order = rng.permutation(7)
    expected = start
    for batch in (order[:3], order[3:6], order[6:]):
        expected = expected - 0.5 * hinge_gradient(expected, inputs[batch], labels[batch].tolist())
    before = start.copy()
    trained = train_locally(LOSSES["svm"], start, inputs, labels, order[None], step=0.5, batch=3)
    assert trained == pytest.approx(expected)
    assert np.array_equal(start, before)
