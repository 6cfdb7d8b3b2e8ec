"""Democratized analytics, dense form."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.reference.belief_propagation import field as reference_field
from tests.reference.belief_propagation import literal_beliefs

from fedelect.analytics import democratized_feedback, link_couplings
from fedelect.errors import FeedbackError
from fedelect.scenario.config import BeliefsConfig, DataConfig, ScenarioConfig
from fedelect.vocabulary import Floats, Ints


@dataclass(frozen=True)
class Path:
    """Four clients in a row; what of a scenario the exchange needs."""

    config: ScenarioConfig
    clients: int = 4
    edges: Ints = field(default_factory=lambda: np.array([[0, 1], [1, 2], [2, 3]]))
    edge_lengths_km: Floats = field(default_factory=lambda: np.array([0.5, 1.0, 2.0]))


def path(reading: str = "ising", **beliefs: float) -> Path:
    settings = BeliefsConfig(reading=reading, **beliefs)  # type: ignore[arg-type]
    return Path(ScenarioConfig(clients=4, budget=2, beliefs=settings, data=DataConfig(iid_clients=0)))


OPINIONS = [0.9, 0.2, math.nan, 0.6]


def test_the_ising_reading_settles_over_the_graph_for_the_configured_rounds() -> None:
    world = path(coupling_scale=0.3, coupling_exponent=2.0, rounds=3, damping=0.2)
    feedback, exchange = democratized_feedback(world, OPINIONS)
    couplings = [-0.3 * length**2 for length in (0.5, 1.0, 2.0)]
    expected = literal_beliefs(
        [reference_field(opinion) for opinion in OPINIONS],
        [(0, 1), (1, 2), (2, 3)],
        couplings,
        rounds=3,
        damping=0.2,
    )
    assert feedback.beliefs == pytest.approx(expected)
    np.testing.assert_array_equal(feedback.opinions, OPINIONS)
    assert (exchange.rounds, exchange.messages) == (3, 18)
    assert exchange.residual is not None and exchange.residual > 0
    assert "raise `rounds`" in exchange.outcome


def test_a_client_without_opinion_has_a_belief_under_ising_but_none_under_evidence() -> None:
    ising = democratized_feedback(path(), OPINIONS)[0].beliefs
    evidence, exchange = democratized_feedback(path("evidence"), OPINIONS)
    assert ising is not None and np.isfinite(ising).all()
    assert evidence.beliefs == pytest.approx([0.81, 0.04, math.nan, 0.36], nan_ok=True)
    assert (exchange.rounds, exchange.messages, exchange.outcome) == (0, 0, "settled")


def test_with_the_papers_constants_the_coupling_is_almost_nil() -> None:
    opinions = [0.9, 0.2, 0.5, 0.6]
    beliefs = democratized_feedback(path(), opinions)[0].beliefs
    assert beliefs == pytest.approx(np.square(opinions), abs=0.01)


def test_under_a_negative_scale_linked_clients_agree() -> None:
    agreeing, _ = democratized_feedback(path(rounds=20, coupling_scale=-0.5, coupling_exponent=0.0), OPINIONS)
    alone, _ = democratized_feedback(path(rounds=20, coupling_scale=0.0), OPINIONS)
    assert agreeing.beliefs is not None and alone.beliefs is not None
    assert alone.beliefs[2] == pytest.approx(0.5)
    assert agreeing.beliefs[2] < 0.5  # between client 1, which thinks little of the model, and an undecided one


def test_the_papers_coupling_falls_with_a_power_of_the_distance() -> None:
    np.testing.assert_allclose(link_couplings(path()), -1e-3 * np.array([0.5, 1.0, 2.0]) ** 3.7)


def test_opinions_that_do_not_fit_the_clients_are_refused() -> None:
    with pytest.raises(FeedbackError, match="3 values but there are 4"):
        democratized_feedback(path(), [0.1, 0.2, 0.3])
    with pytest.raises(FeedbackError, match="in \\[0, 1\\]"):
        democratized_feedback(path(), [0.1, 0.2, 0.3, 1.3])
