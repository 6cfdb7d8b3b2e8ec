"""Selectors that compare updates: DivFL and clustered sampling, against original code and by hand."""

import itertools
from typing import Any

import numpy as np
import pytest
from tests.selectors.literature.vectors import load_vectors

from fedelect.selectors import AbstractSelector, ClusteredBySimilarity, ClusteredBySize, DivFl
from fedelect.selectors.literature.clustered import merge_by_ward
from fedelect.vocabulary import UPDATE_SIZE, Feedback, Floats

DIVFL, CLUSTERED = load_vectors("divfl"), load_vectors("clustered")


def as_updates(gradients: Any) -> Floats:
    """(N, 64) gradients of fewer numbers, filled up with zeros."""
    short = np.array(gradients, dtype=np.float64)
    rows = np.zeros((len(short), UPDATE_SIZE))
    rows[:, : short.shape[1]] = short
    return rows


def only(rows: Floats, cohort: tuple[int, ...]) -> Floats:
    told = np.full_like(rows, np.nan)
    told[list(cohort)] = rows[list(cohort)]
    return told


def play(selector: AbstractSelector, rows: Floats, slots: int, **signals: Any) -> None:
    for _ in range(slots):
        selection = selector.ask()
        selector.tell(selection, Feedback(updates=only(rows, selection.cohort), **signals))


@pytest.mark.parametrize("case", DIVFL["cases"])
def test_divfl_elects_what_the_original_code_elects(case: dict[str, Any]) -> None:
    rows = as_updates(case["gradients"])
    selector = DivFl(clients=len(rows), budget=case["budget"], seed=1)
    play(selector, rows, -(-len(rows) // case["budget"]))  # the cold start
    assert list(selector.ask().cohort) == case["cohort"]


def test_divfl_covers_kinds_and_renews_only_the_updates_of_members() -> None:
    rows = np.zeros((9, UPDATE_SIZE))
    rows[3:6, 0], rows[6:, 1] = 5.0, 7.0  # three kinds of three clients
    selector = DivFl(clients=9, budget=3, seed=2)
    play(selector, rows, 3)
    selection = selector.ask()
    assert {member // 3 for member in selection.cohort} == {0, 1, 2}
    selector.tell(selection, Feedback(updates=only(rows + 100.0, selection.cohort)))
    renewed = {client for client in range(9) if selector._updates.rows[client].max() >= 100.0}
    assert renewed == set(selection.cohort)


def test_divfl_gives_one_place_to_a_client_that_never_uploaded() -> None:
    rows = np.random.default_rng(1).standard_normal((6, UPDATE_SIZE))
    rows[4] = np.nan  # its uploads are lost
    selector = DivFl(clients=6, budget=2, seed=2)
    play(selector, rows, 6)
    assert 4 in selector.ask().cohort
    assert len(selector.ask([0, 1, 2, 3, 5]).cohort) == 2


def test_divfl_draws_whom_to_consider_among_many_clients() -> None:
    rows = np.random.default_rng(1).standard_normal((1200, UPDATE_SIZE))
    selector = DivFl(clients=1200, budget=400, seed=2)
    play(selector, rows, 4)
    assert len(selector.ask().cohort) == 400


def test_wards_merges_are_those_of_the_least_sum_of_squares() -> None:
    rows = np.random.default_rng(3).standard_normal((8, 3))
    clusters: dict[int, list[int]] = {place: [place] for place in range(8)}

    def spread(members: list[int]) -> float:
        return float(((rows[members] - rows[members].mean(axis=0)) ** 2).sum())

    for step, merge in enumerate(merge_by_ward(rows)):
        added = {
            pair: spread(clusters[pair[0]] + clusters[pair[1]]) - spread(clusters[pair[0]]) - spread(clusters[pair[1]])
            for pair in itertools.combinations(sorted(clusters), 2)
        }
        assert merge == min(added, key=lambda pair: added[pair])
        clusters[8 + step] = clusters.pop(merge[0]) + clusters.pop(merge[1])


class Unshuffled:
    """In place of a stream: nothing is shuffled."""

    def permutation(self, count: int) -> Any:
        return np.arange(count)


@pytest.mark.parametrize("case", CLUSTERED["by_size"])
def test_clustered_sampling_by_size_has_the_distributions_of_the_original_code(case: dict[str, Any]) -> None:
    clients = len(case["sizes"])
    selector = ClusteredBySize(clients=clients, budget=case["budget"], seed=1)
    selector.tell(selector.ask(), Feedback(sizes=case["sizes"]))
    found = selector.distributions(2, np.arange(clients))
    sizes = np.array(case["sizes"])
    assert found == pytest.approx(np.array(case["distributions"]), abs=1e-4)
    assert found.sum(axis=0) == pytest.approx(case["budget"] * sizes / sizes.sum())
    assert found.sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("case", CLUSTERED["by_similarity"])
def test_clustered_sampling_by_similarity_has_the_distributions_of_the_original_code(
    case: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, clients = as_updates(case["gradients"]), len(case["sizes"])
    selector = ClusteredBySimilarity(clients=clients, budget=case["budget"], seed=1)
    selector.tell(selector.ask(), Feedback(sizes=case["sizes"], updates=rows))
    assert [list(pair) for pair in merge_by_ward(selector._angles(np.arange(clients)))] == case["merges"]
    monkeypatch.setattr("fedelect.selectors.literature.clustered.stream", lambda *name: Unshuffled())
    found = selector.distributions(2, np.arange(clients))
    assert found == pytest.approx(np.array(case["distributions"]), abs=1e-4)


def test_a_client_with_most_of_the_data_counts_as_one_place_and_is_always_there() -> None:
    for seed in range(20):
        selector = ClusteredBySize(clients=5, budget=2, seed=seed)
        selector.tell(selector.ask(), Feedback(sizes=[900, 1, 1, 1, 1]))
        assert 0 in selector.ask().cohort


def test_clustered_sampling_by_similarity_takes_one_of_each_kind_of_equal_size() -> None:
    rows = np.zeros((6, UPDATE_SIZE))
    rows[:2, 0], rows[2:4, 1], rows[4:, 2] = 1.0, 1.0, 1.0
    for seed in range(20):
        selector = ClusteredBySimilarity(clients=6, budget=3, seed=seed)
        selector.tell(selector.ask(), Feedback(sizes=[10] * 6, updates=rows))
        assert sorted(member // 2 for member in selector.ask().cohort) == [0, 1, 2]


def test_clustered_sampling_draws_whom_to_cluster_among_many_clients() -> None:
    selector = ClusteredBySimilarity(clients=450, budget=3, seed=1)
    selector.tell(selector.ask(), Feedback(sizes=np.ones(450), updates=np.full((450, UPDATE_SIZE), np.nan)))
    assert len(selector.ask().cohort) == 3
