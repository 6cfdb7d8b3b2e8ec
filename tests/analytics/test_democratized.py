"""Democratized analytics, dense form."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.reference.belief_propagation import field as reference_field
from tests.reference.belief_propagation import literal_beliefs

from fedelect.analytics import couplings_of, democratized
from fedelect.equations.beliefs import RoundsExhausted, Settled
from fedelect.errors import ConfigurationError, FeedbackError
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
    digest = democratized(world, OPINIONS)
    couplings = [-0.3 * length**2 for length in (0.5, 1.0, 2.0)]
    expected = literal_beliefs(
        [reference_field(opinion) for opinion in OPINIONS],
        [(0, 1), (1, 2), (2, 3)],
        couplings,
        rounds=3,
        damping=0.2,
    )
    assert digest.feedback.beliefs == pytest.approx(expected)
    np.testing.assert_array_equal(digest.feedback.opinions, OPINIONS)
    assert digest.exchange.rounds == 3
    assert digest.exchange.residual > 0
    assert isinstance(digest.exchange.outcome, RoundsExhausted)


def test_a_client_without_opinion_has_a_belief_under_ising_but_none_under_evidence() -> None:
    ising = democratized(path(), OPINIONS).feedback.beliefs
    evidence = democratized(path("evidence"), OPINIONS)
    assert ising is not None and np.isfinite(ising).all()
    assert evidence.feedback.beliefs == pytest.approx([0.81, 0.04, math.nan, 0.36], nan_ok=True)
    assert evidence.exchange.outcome == Settled(0, 0.0)
    assert evidence.exchange.rounds == 0


def test_with_the_papers_constants_the_coupling_is_almost_nil() -> None:
    opinions = [0.9, 0.2, 0.5, 0.6]
    beliefs = democratized(path(), opinions).feedback.beliefs
    assert beliefs == pytest.approx(np.square(opinions), abs=0.01)


def test_a_coupling_of_ones_own_takes_the_papers_place() -> None:
    close_agree = democratized(path(rounds=20), OPINIONS, coupling=lambda km: 0.8 * np.exp(-km)).feedback.beliefs
    alone = democratized(path(rounds=20), OPINIONS, coupling=np.zeros_like).feedback.beliefs
    assert close_agree is not None and alone is not None
    assert alone[2] == pytest.approx(0.5)
    assert close_agree[2] < 0.5  # client 1, half as far as client 3, thinks little of the model
    np.testing.assert_allclose(couplings_of(path()), -1e-3 * np.array([0.5, 1.0, 2.0]) ** 3.7)


def test_couplings_that_do_not_fit_the_links_are_refused() -> None:
    for bad in (lambda km: km[:-1], lambda km: km * math.nan):
        with pytest.raises(ConfigurationError, match="coupling function"):
            democratized(path(), OPINIONS, coupling=bad)


def test_opinions_that_do_not_fit_the_clients_are_refused() -> None:
    with pytest.raises(FeedbackError, match="3 values but there are 4"):
        democratized(path(), [0.1, 0.2, 0.3])
    with pytest.raises(FeedbackError, match="in \\[0, 1\\]"):
        democratized(path(), [0.1, 0.2, 0.3, 1.3])
