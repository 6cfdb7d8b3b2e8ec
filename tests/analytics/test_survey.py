import math
from typing import Any

import numpy as np
import pytest

from fedelect.analytics import accuracy, federated_feedback, survey
from fedelect.errors import FeedbackError
from fedelect.scenario import DataConfig, Dataset, Scenario, ScenarioConfig, build_scenario
from fedelect.vocabulary import Ints


def world() -> Scenario:
    labels, test_labels = np.arange(40) % 2, np.arange(30) % 2
    data = Dataset(labels[:, None] * 1.0, labels, test_labels[:, None] * 1.0, test_labels)
    return build_scenario(ScenarioConfig(clients=4, budget=2, data=DataConfig(iid_clients=4, samples=(3, 9))), data)


def test_accuracy_is_the_share_of_right_predictions() -> None:
    scores = np.array([[2.0, 1.0], [0.0, 3.0], [1.0, 1.0], [0.0, 1.0]])
    assert accuracy(scores, np.array([0, 1, 0, 0])) == 0.75
    assert math.isnan(accuracy(np.zeros((0, 2)), np.zeros(0, dtype=np.int64)))


def test_every_client_scores_the_model_on_its_own_test_share() -> None:
    scenario = world()
    perfect = np.array([[-1.0, 1.0], [0.5, -0.5]], dtype=np.float32)
    assert survey(scenario, perfect).tolist() == [1.0] * 4
    # The untrained model says class 0 to everything.
    zeros = [float((labels == 0).mean()) for labels in scenario.test_labels]
    assert survey(scenario, np.zeros((2, 2), dtype=np.float32)).tolist() == zeros


def test_a_users_opinion_sees_scores_and_labels_and_may_have_none() -> None:
    scenario = world()
    seen: list[tuple[tuple[int, ...], int]] = []

    def opinion(scores: Any, labels: Ints) -> float:
        seen.append((scores.shape, len(labels)))
        return float("nan") if len(seen) == 2 else np.float32(0.5)  # type: ignore[return-value]

    opinions = survey(scenario, np.zeros((2, 2)), opinion)
    assert np.isnan(opinions).tolist() == [False, True, False, False]
    assert opinions[0] == 0.5
    assert [count for _, count in seen] == [len(labels) for labels in scenario.test_labels]
    assert all(shape == (count, 2) for shape, count in seen)


@pytest.mark.parametrize("bad", [1.5, -0.01, math.inf, None, "good", np.array([0.5])])
def test_an_opinion_that_is_no_number_in_the_unit_interval_is_refused_with_the_client(bad: Any) -> None:
    given = iter([0.5, 0.5, bad])
    with pytest.raises(FeedbackError, match=r"in \[0, 1\].*client 2"):
        survey(world(), np.zeros((2, 2)), lambda scores, labels: next(given))


def test_an_opinion_function_that_fails_is_told_with_the_client() -> None:
    with pytest.raises(FeedbackError, match=r"failed for client 0: ZeroDivisionError"):
        survey(world(), np.zeros((2, 2)), lambda scores, labels: 1 / 0)


def test_the_federated_feedback_carries_opinions_and_their_mean_over_those_present() -> None:
    feedback = federated_feedback([0.25, float("nan"), 0.75])
    assert feedback.reward == 0.5
    assert feedback.beliefs is None
    assert feedback.opinions is not None
    assert feedback.opinions[2] == 0.75
