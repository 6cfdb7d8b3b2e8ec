from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedelect.errors import DataError
from fedelect.scenario import DataConfig, Dataset
from fedelect.scenario.partition import Partition, draw_partition


def data_set(per_class: int = 100, classes: int = 10, test_per_class: int = 40) -> Dataset:
    labels, test_labels = np.repeat(np.arange(classes), per_class), np.repeat(np.arange(classes), test_per_class)
    return Dataset(np.zeros((labels.size, 1)), labels, np.zeros((test_labels.size, 1)), test_labels, "toy")


def deal(dataset: Dataset, clients: int, *, seed: int = 1, draw: int = 0, **keys: Any) -> Partition:
    return draw_partition(DataConfig(**keys), dataset, clients, seed=seed, draw=draw)


@given(
    seed=st.integers(0, 1000),
    clients=st.integers(1, 25),
    skew=st.sampled_from(["labels", "dirichlet", "iid"]),
    own=st.booleans(),
    low=st.integers(1, 60),
    spread=st.integers(0, 60),
)
def test_every_client_gets_a_size_in_the_range_and_no_sample_twice(
    seed: int, clients: int, skew: str, own: bool, low: int, spread: int
) -> None:
    share = "own" if own else "global"
    iid = min(2, clients)
    dealt = deal(
        data_set(), clients, seed=seed, skew=skew, iid_clients=iid, samples=(low, low + spread), test_share=share
    )
    assert len(dealt.train) == len(dealt.test) == clients
    for held in dealt.train:
        assert low <= held.size <= low + spread
        assert np.unique(held).size == held.size
    for held in dealt.test:
        assert held.size >= 1
        assert np.unique(held).size == held.size


@given(seed=st.integers(0, 200), k=st.integers(1, 10))
def test_under_labels_a_skewed_client_holds_its_classes_in_even_parts(seed: int, k: int) -> None:
    data = data_set()
    dealt = deal(data, 8, seed=seed, iid_clients=3, classes_per_client=k, samples=(10, 50))
    for client in range(3, 8):
        counts = np.unique(data.labels[dealt.train[client]], return_counts=True)[1]
        assert counts.size == k
        assert counts.max() - counts.min() <= 1


def test_under_labels_every_class_is_held_by_about_as_many_clients() -> None:
    data = data_set()
    dealt = deal(data, 15, iid_clients=0, classes_per_client=2, samples=(20, 20))
    holders = np.bincount(np.concatenate([np.unique(data.labels[held]) for held in dealt.train]))
    assert holders.tolist() == [3] * 10


def test_no_two_clients_share_a_sample_while_the_data_lasts() -> None:
    dealt = deal(data_set(), 20, iid_clients=5, samples=(20, 60))
    everything = np.concatenate(dealt.train)
    assert np.unique(everything).size == everything.size


def test_when_a_class_runs_out_its_samples_are_dealt_again_but_never_twice_to_one_client() -> None:
    data = data_set(per_class=10, classes=2)
    dealt = deal(data, 5, iid_clients=0, classes_per_client=1, samples=(8, 8))
    assert all(np.unique(held).size == 8 for held in dealt.train)
    used = np.bincount(np.concatenate(dealt.train), minlength=20)
    # Three clients of one class deal it out twice over, two of the other once and more.
    assert used.max() <= 3
    assert (used > 0).all()


def test_a_client_that_wants_too_much_of_a_class_gets_the_rest_from_its_others() -> None:
    labels = np.array([0] * 3 + [1] * 30)
    data = Dataset(np.zeros((33, 1)), labels, np.zeros((2, 1)), [0, 1])  # type: ignore[arg-type]
    dealt = deal(data, 1, iid_clients=0, classes_per_client=2, samples=(20, 20))
    assert np.bincount(labels[dealt.train[0]]).tolist() == [3, 17]


def test_iid_clients_hold_all_classes_in_about_the_shares_of_the_whole() -> None:
    labels = np.repeat([0, 1], [1500, 500])
    data = Dataset(np.zeros((2000, 1)), labels, np.zeros((2, 1)), [0, 1])  # type: ignore[arg-type]
    dealt = deal(data, 1, skew="iid", samples=(1000, 1000))
    # Hypergeometric: standard deviation of the count below 10.
    assert abs(np.bincount(labels[dealt.train[0]])[0] - 750) < 50


def test_a_small_alpha_makes_one_sided_clients_and_a_large_one_even_ones() -> None:
    data = data_set(per_class=1000)

    def largest_share(alpha: float) -> float:
        dealt = deal(data, 30, iid_clients=0, skew="dirichlet", alpha=alpha, samples=(100, 100))
        return float(np.mean([np.bincount(data.labels[held]).max() / 100 for held in dealt.train]))

    assert largest_share(0.01) > 0.85
    assert largest_share(1e6) < 0.25
    assert largest_share(1e-300) > 0.9


def test_global_test_shares_split_the_test_set_evenly() -> None:
    dealt = deal(data_set(), 7, samples=(10, 20))
    assert np.array_equal(np.sort(np.concatenate(dealt.test)), np.arange(400))
    assert {held.size for held in dealt.test} == {57, 58}


def test_own_test_shares_hold_the_clients_own_classes_only() -> None:
    data = data_set()
    dealt = deal(data, 10, iid_clients=1, samples=(40, 40), test_share="own")
    for train, test in zip(dealt.train, dealt.test, strict=True):
        assert test.size == 40
        assert set(data.test_labels[test]) <= set(data.labels[train])
    assert len(set(data.test_labels[dealt.test[0]])) > 5


def test_the_same_seed_and_draw_deal_the_same_and_others_do_not() -> None:
    def held(**key: int) -> str:
        return str([part.tolist() for part in deal(data_set(), 6, samples=(10, 20), **key).train])

    assert held() == held()
    assert len({held(), held(seed=2), held(draw=1)}) == 3


@pytest.mark.parametrize(
    ("clients", "keys", "message"),
    [
        (3, {"samples": (2000, 2000)}, "is to hold 2000 samples, but toy has 1000; lower"),
        (8, {"classes_per_client": 11}, "classes_per_client: got 11, but toy has 10"),
        (8, {"classes_per_client": 1, "samples": (150, 150)}, "client 5 is to hold 150 samples of classes"),
        (500, {"samples": (1, 1)}, "400 test samples for 500 clients"),
    ],
)
def test_data_that_cannot_supply_what_is_asked_is_an_error(clients: int, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        deal(data_set(), clients, **keys)


def test_an_own_test_share_without_any_fitting_test_sample_is_an_error() -> None:
    data = Dataset(np.zeros((20, 1)), np.repeat([0, 1], 10), np.zeros((1, 1)), np.array([0]))
    with pytest.raises(DataError, match=r"no test sample of client \d's classes \[1\]"):
        deal(data, 2, iid_clients=0, classes_per_client=1, samples=(5, 5), test_share="own")
