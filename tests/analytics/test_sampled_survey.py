"""The average of a sampled survey: unbiased, and steadier than the plain mean."""

import itertools
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedelect.analytics import SurveyAverage
from fedelect.errors import FeedbackError, StateError
from fedelect.vocabulary import Floats

CLIENTS = 7


def sampled(opinions: Floats, sample: tuple[int, ...]) -> np.ndarray:
    asked = np.full(opinions.size, np.nan)
    asked[list(sample)] = opinions[list(sample)]
    return asked


@settings(max_examples=50, deadline=None)
@given(
    history=arrays(float, (4, CLIENTS), elements=st.floats(0.0, 1.0)),
    opinions=arrays(float, CLIENTS, elements=st.floats(0.0, 1.0)),
    size=st.integers(1, CLIENTS),
)
def test_over_all_samples_of_a_size_the_average_is_that_of_all_clients(
    history: Floats,
    opinions: Floats,
    size: int,
) -> None:
    survey = SurveyAverage(CLIENTS)
    for past in history:
        survey.learn(past)
    averages: list[Any] = [
        survey.average(sampled(opinions, sample)) for sample in itertools.combinations(range(CLIENTS), size)
    ]
    assert np.mean(averages) == pytest.approx(opinions.mean(), abs=1e-12)


def test_it_varies_less_than_the_plain_mean_where_clients_differ_and_opinions_drift() -> None:
    rng = np.random.Generator(np.random.PCG64(1))
    clients, slots, asked = 100, 80, 20
    level = rng.normal(0.0, 0.15, clients)
    survey = SurveyAverage(clients)
    plain, corrected = [], []
    for slot in range(slots):
        truth = np.clip(0.3 + 0.4 * slot / slots + level + rng.normal(0.0, 0.03, clients), 0.0, 1.0)
        opinions = sampled(truth, tuple(rng.choice(clients, asked, replace=False)))
        average = survey.average(opinions)
        assert average is not None
        survey.learn(opinions)
        plain.append(np.nanmean(opinions) - truth.mean())
        corrected.append(average - truth.mean())
    late = slice(slots // 2, None)
    assert np.std(corrected[late]) < 0.4 * np.std(plain[late])
    assert abs(np.mean(corrected[late])) < 3 * np.std(corrected[late]) / np.sqrt(slots / 2)


@given(opinions=arrays(float, CLIENTS, elements=st.floats(0.0, 1.0)))
def test_with_everybody_asked_it_is_the_plain_mean(opinions: Floats) -> None:
    survey = SurveyAverage(CLIENTS)
    survey.learn(np.linspace(0.0, 1.0, CLIENTS))
    assert survey.average(opinions) == pytest.approx(opinions.mean(), abs=1e-12)


def test_nobody_asked_is_no_average_and_teaches_nothing() -> None:
    survey = SurveyAverage(3)
    survey.learn(np.array([0.2, 0.4, np.nan]))
    before = survey.state()
    nobody = np.full(3, np.nan)
    assert survey.average(nobody) is None
    survey.learn(nobody)
    assert survey.state() == before


def test_a_restored_survey_goes_on_exactly() -> None:
    survey, twin = SurveyAverage(4), SurveyAverage(4)
    survey.learn(np.array([0.1, 0.9, np.nan, 0.4]))
    twin.restore(json.loads(json.dumps(survey.state())))
    opinions = np.array([np.nan, 0.8, 0.3, np.nan])
    assert twin.average(opinions) == survey.average(opinions)
    assert (twin.levels == survey.levels).all()


@pytest.mark.parametrize("state", [{}, {"sums": [0.0], "weights": [0.0]}, {"sums": ["a"] * 3, "weights": [0.0] * 3}])
def test_a_damaged_state_is_refused(state: dict[str, list[float]]) -> None:
    with pytest.raises(StateError, match="damaged"):
        SurveyAverage(3).restore(state)


def test_opinions_of_another_number_of_clients_are_refused() -> None:
    with pytest.raises(FeedbackError, match="2 values but there are 3 clients"):
        SurveyAverage(3).average(np.zeros(2))
