"""The mixture of two kinds of clients: equal to a literal reference, and what it must not be fooled by."""

import numpy as np
import pytest
from tests.reference import two_kinds as reference

from fedelect.seeds import stream
from fedelect.selectors.two_kinds import Channels, flawed_probability, score


@pytest.mark.parametrize("channels", [1, 2, 5])
@pytest.mark.parametrize("seed", range(5))
def test_probabilities_equal_those_of_the_literal_sums(channels: int, seed: int) -> None:
    rng = stream(seed, "mixture", channels)
    scores = np.clip(rng.standard_normal((channels, 24)) + 2.5 * (np.arange(24) < 6), -6, 6)
    known = rng.random((channels, 24)) < 0.8
    scores = np.where(known, scores, 0.0)
    expected = reference.flawed_probability(scores.tolist(), known.tolist())
    np.testing.assert_allclose(flawed_probability(scores, known), expected, atol=1e-9)


def test_a_minority_that_stands_apart_is_found_and_the_others_are_not() -> None:
    rng = stream(1, "apart")
    values = rng.standard_normal((2, 40)) + 6.0 * (np.arange(40) < 12)
    known = np.ones((2, 40), dtype=np.bool_)
    scores = np.array([score(row, known[0]) for row in values])
    np.testing.assert_array_equal(flawed_probability(scores, known) > 0.5, np.arange(40) < 12)


def test_an_oddly_good_value_never_speaks_for_a_flaw() -> None:
    rng = stream(2, "good")
    scores = np.concatenate([rng.standard_normal((1, 39)), [[-6.0]]], axis=1)
    assert flawed_probability(scores, np.ones((1, 40), dtype=np.bool_))[39] < 0.05


def test_clients_of_whom_nothing_is_known_are_not_suspected() -> None:
    rng = stream(3, "unknown")
    known = np.ones((2, 30), dtype=np.bool_)
    known[:, 7] = False
    assert flawed_probability(np.where(known, rng.standard_normal((2, 30)), 0.0), known)[7] == 0.0


def test_scores_are_in_deviations_of_the_half_below_the_median() -> None:
    values = np.array([-2.0, -1.0, 0.0, 1.0, 100.0, np.nan])
    got = score(values, ~np.isnan(values))
    np.testing.assert_allclose(got, [-2 / 1.4826, -1 / 1.4826, 0.0, 1 / 1.4826, 6.0, 0.0])


def test_suspects_are_at_most_half_of_the_clients_the_most_likely_ones() -> None:
    rng = stream(4, "many")
    values = np.concatenate([rng.standard_normal(8), 4.0 + np.arange(12) / 4.0])
    channels = Channels(("loss",), np.clip(values, -6, 6)[None], np.ones((1, 20), dtype=np.bool_))
    suspects = channels.suspects()
    assert np.count_nonzero(suspects) <= 10
    assert values[suspects].min() > values[~suspects].max()


def test_suspects_without_a_kind_of_values_are_those_that_the_other_kinds_name() -> None:
    rng = stream(5, "kinds")
    scores = rng.standard_normal((2, 40))
    scores[0, :5], scores[1, 5:10] = 5.5, 5.5
    channels = Channels(("loss", "gain"), scores, np.ones((2, 40), dtype=np.bool_))
    assert np.flatnonzero(channels.suspects(without="gain")).tolist() == [0, 1, 2, 3, 4]
    assert np.flatnonzero(channels.suspects(without="loss")).tolist() == [5, 6, 7, 8, 9]
    assert not channels._replace(kinds=("loss", "loss")).suspects(without="loss").any()
