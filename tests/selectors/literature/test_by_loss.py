"""FedCor, active federated learning and Power-of-Choice, against public code and by hand."""

import math
from typing import Any

import numpy as np
import pytest
from tests.selectors.literature.vectors import ScriptedDraws, load_vectors, script_draws

from fedelect.errors import ConfigurationError
from fedelect.selectors import ActiveFl, FedCor, PowerOfChoice
from fedelect.selectors.literature.fedcor import _slope, fit_embeddings
from fedelect.vocabulary import Feedback, Floats

FEDCOR, ACTIVE, CHOICE = load_vectors("fedcor"), load_vectors("active_fl"), load_vectors("power_of_choice")


def likelihood(embeddings: Floats, changes: Floats, weights: Floats) -> float:
    """Weighted negative log-likelihood, term by term, with the covariance written out."""
    total = 0.0
    for row, weight in zip(changes, weights, strict=True):
        seen = ~np.isnan(row)
        covariance = embeddings[:, seen].T @ embeddings[:, seen] + 0.01**2 * np.eye(int(seen.sum()))
        _, logarithm = np.linalg.slogdet(covariance)
        total += 0.5 * weight * (row[seen] @ np.linalg.solve(covariance, row[seen]) + logarithm)
    return total


@pytest.mark.parametrize("missing", [False, True])
def test_the_slope_is_that_of_the_likelihood(missing: bool) -> None:
    rng = np.random.default_rng(1)
    embeddings, changes = rng.standard_normal((15, 5)) / 4.0, rng.standard_normal((3, 5)) * 0.1
    if missing:
        changes[0, 2] = changes[1, :2] = np.nan
    weights = np.array([0.5, 0.8, 1.0])
    slope = _slope(embeddings, changes, weights)
    for place in ((0, 0), (3, 2), (14, 4)):
        step = np.zeros_like(embeddings)
        step[place] = 1e-6
        rise = likelihood(embeddings + step, changes, weights) - likelihood(embeddings - step, changes, weights)
        assert slope[place] == pytest.approx(rise / 2e-6, rel=1e-4, abs=1e-3)


def trained() -> FedCor:
    clients = len(FEDCOR["sizes"])
    selector = FedCor(clients=clients, budget=4, forgetting=FEDCOR["forgetting"], seed=1)
    changes = {slot + 1: np.array(row) for slot, row in enumerate(FEDCOR["changes"])}
    evidence = selector._evidence(changes)
    selector._embeddings = fit_embeddings(np.array(FEDCOR["start"]), *evidence, steps=FEDCOR["steps"])
    selector._fitted = True
    selector.arrays["sizes"] = np.array(FEDCOR["sizes"])
    return selector


def test_fedcor_fits_the_embeddings_of_the_original_code() -> None:
    found = trained()._embeddings
    assert found == pytest.approx(np.array(FEDCOR["fitted"]), abs=1e-6)
    assert np.abs(found - np.array(FEDCOR["start"])).max() > 0.1


@pytest.mark.parametrize("case", FEDCOR["picks"])
def test_fedcor_elects_what_the_original_code_elects(case: dict[str, Any]) -> None:
    selector = trained()
    selector._embeddings = np.array(FEDCOR["fitted"])
    selector.arrays["discount"] = np.array(case["discount"])
    assert selector._greedy(1, np.arange(selector.clients)) == tuple(sorted(case["order"]))


def test_fedcor_is_the_sequential_choice_of_its_paper_among_those_available() -> None:
    rng = np.random.default_rng(5)
    selector = FedCor(clients=8, budget=3, seed=1)
    selector.arrays["sizes"] = rng.uniform(1.0, 5.0, 8)
    selector.arrays["discount"] = rng.uniform(0.5, 1.0, 8)
    shares = selector.arrays["sizes"] / selector.arrays["sizes"].sum()
    covariance = selector._embeddings.T @ selector._embeddings + 0.01**2 * np.eye(8)
    pool, left, chosen = np.array([0, 2, 3, 5, 7]), set(range(8)), list[int]()
    for _ in range(3):
        values = {
            k: selector.arrays["discount"][k]
            * sum(shares[i] * covariance[i, k] for i in left)
            / math.sqrt(covariance[k, k])
            for k in pool.tolist()
            if k in left
        }
        best = max(values, key=lambda k: values[k])
        covariance = covariance - np.outer(covariance[:, best], covariance[best]) / covariance[best, best]
        chosen.append(best)
        left.remove(best)
    assert selector._greedy(1, pool) == tuple(sorted(chosen))


def test_fedcor_warms_up_fits_discounts_and_fits_again() -> None:
    rng = np.random.default_rng(2)
    selector = FedCor(clients=6, budget=2, warm_up=4, interval=3, history=50, discount=0.5, seed=3)
    first, loss = selector._embeddings.copy(), np.full(6, 3.0)
    for slot in range(1, 7):
        selection = selector.ask()
        loss = loss - rng.uniform(0.0, 0.2, 6)
        selector.tell(selection, Feedback(loss=loss, sizes=np.ones(6)))
        fitted = slot >= 4
        assert (selector._embeddings == first).all() != fitted
        if slot == 5:
            halved = np.where(np.isin(np.arange(6), selection.cohort), 0.5, 1.0)
            assert selector.arrays["discount"] == pytest.approx(halved)
    assert (selector.arrays["discount"] == 1.0).all()  # slot 6 fitted again
    assert sorted(selector._changes) == [2, 3, 4, 6]  # slot 1 has no loss before it; slot 5 was not random


def test_fedcor_leaves_out_clients_that_tell_no_loss() -> None:
    selector = FedCor(clients=5, budget=2, warm_up=3, seed=3)
    for slot in range(3):
        selector.tell(selector.ask(), Feedback(loss=[3.0 - slot, np.nan, 2.0 - slot / 2, 1.0, 1.0 + slot]))
    assert np.isfinite(selector._embeddings).all() and selector.ask().slot == 4


@pytest.mark.parametrize("reported", [False, True])
@pytest.mark.parametrize("case", CHOICE["cases"])
def test_power_of_choice_draws_and_elects_as_public_code_does(
    case: dict[str, Any], reported: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    selector = PowerOfChoice(**{name: case[name] for name in ("clients", "budget", "candidates")}, seed=1)
    losses = np.ones(case["clients"]) if reported else case["loss"]
    selector.tell(selector.ask(), Feedback(loss=losses, sizes=case["sizes"]))
    module = "fedelect.selectors.literature.power_of_choice"
    script_draws(monkeypatch, [module], lambda name, slot: ScriptedDraws(*case["drawn"]))
    named = selector.candidates()
    assert named == tuple(sorted(case["drawn"][1]))
    told = np.where(np.isin(np.arange(case["clients"]), named), case["loss"], np.nan)
    selection = selector.ask(reports=Feedback(loss=told) if reported else None)
    assert list(selection.cohort) == case["cohort"]


@pytest.mark.parametrize("case", ACTIVE["cases"])
def test_active_fl_draws_with_the_chances_of_the_original_code(
    case: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {name: case[name] for name in ("clients", "budget", "left_out", "sharpness", "random")}
    selector = ActiveFl(**settings, seed=1)
    selector.tell(selector.ask(), Feedback(loss=case["loss"], sizes=case["sizes"]))
    modules = ["fedelect.selectors.base", "fedelect.selectors.literature.active_fl"]
    script_draws(monkeypatch, modules, lambda name, slot: ScriptedDraws(*case[name]))
    assert list(selector.ask().cohort) == case["cohort"]


def test_active_fl_updates_the_values_of_members_only() -> None:
    selector = ActiveFl(clients=6, budget=2, seed=1)
    selector.tell(selector.ask(), Feedback(loss=np.full(6, 2.0), sizes=np.full(6, 9.0)))
    assert selector.arrays["value"] == pytest.approx(np.full(6, 6.0))  # sqrt(9) * 2
    selection = selector.ask()
    selector.tell(selection, Feedback(loss=np.full(6, 1.0), sizes=np.full(6, 4.0)))
    expected = np.where(np.isin(np.arange(6), selection.cohort), 2.0, 6.0)
    assert selector.arrays["value"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: FedCor(clients=6, budget=2, warm_up=1, seed=1), "warm_up must be"),
        (lambda: FedCor(clients=6, budget=2, forgetting=1.5, seed=1), "forgetting must be"),
        (lambda: ActiveFl(clients=6, budget=2, left_out=2.0, seed=1), "left_out must be"),
    ],
)
def test_impossible_parameters_are_refused(make: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        make()
