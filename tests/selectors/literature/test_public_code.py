"""Published methods against code of others than their authors: cohorts, chances, indices and posteriors."""

from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.selectors.literature.vectors import ScriptedDraws, load_vectors, script_draws

from fedelect.selectors import (
    AbstractSelector,
    AdditiveThompson,
    BestChannel,
    ClientThompson,
    ClientUcb,
    ContextUcb,
    E3cs,
    FairUcb,
    Favor,
    FedCs,
    ProportionalFair,
    RbcsF,
    SFedAvg,
    TiFl,
)
from fedelect.selectors.literature.e3cs import allocate_chances
from fedelect.selectors.literature.favor import _Slot, principal_loadings
from fedelect.selectors.literature.features import ClientRidges
from fedelect.selectors.literature.q_network import QNetwork
from fedelect.vocabulary import Feedback, Floats, Selection

LITERATURE = "fedelect.selectors.literature"
NAN = float("nan")


def open_slot(selector: AbstractSelector, slot: int, cohort: list[int], indices: tuple[float, ...] = ()) -> Selection:
    selector._slot, selector._open = slot, Selection(slot, tuple(cohort), indices)
    return selector._open


def of_members(clients: int, cohort: list[int], values: list[float]) -> Floats:
    told = np.full(clients, NAN)
    told[cohort] = values
    return told


def test_s_fedavg_has_the_chances_of_greedyfeds_code(monkeypatch: pytest.MonkeyPatch) -> None:
    run = load_vectors("s_fedavg")
    selector = SFedAvg(clients=run["clients"], budget=run["budget"], keep=run["keep"], gain=run["gain"], seed=1)
    for slot in run["slots"]:
        chances = {str(client): chance for client, chance in enumerate(slot["chances"])}
        draws = ScriptedDraws(chances, slot["cohort"])
        script_draws(monkeypatch, [f"{LITERATURE}.shapley"], lambda name, number, draws=draws: draws)  # type: ignore[misc]
        told = of_members(run["clients"], slot["cohort"], slot["contributions"])
        selector.tell(selector.ask(), Feedback(contributions=told))


@pytest.mark.parametrize("run", load_vectors("e3cs")["runs"], ids=["half", "fifth", "most"])
def test_e3cs_has_the_chances_and_weights_of_public_code(run: dict[str, Any]) -> None:
    clients, budget = run["clients"], run["budget"]
    selector = E3cs(clients=clients, budget=budget, fairness=run["fairness"], rate=run["rate"], seed=1)
    for number, slot in enumerate(run["slots"], 1):
        chances, capped = allocate_chances(selector.arrays["weight"], budget, run["fairness"])
        assert chances == pytest.approx(slot["chances"], rel=1e-9) and not capped.any()
        members = slot["cohort"]
        selection = open_slot(selector, number, members, tuple(chances[members].tolist()))
        selector.tell(selection, Feedback(seconds=of_members(clients, slot["finished"], [1.0] * len(slot["finished"]))))
        weights = np.array(slot["weights_after"])
        assert selector.arrays["weight"] == pytest.approx(weights / weights.max(), rel=1e-9)


@pytest.mark.parametrize("case", load_vectors("e3cs")["capped"])
def test_e3cs_caps_whom_exp3_with_several_plays_caps(case: dict[str, Any]) -> None:
    weights, budget = np.array(case["weights"]), case["budget"]
    chances, capped = allocate_chances(weights, budget, case["fairness"])
    assert np.flatnonzero(capped).tolist() == case["capped"] and chances[capped] == pytest.approx(1.0)
    cut = np.minimum(weights, case["threshold"])
    sigma = case["fairness"] * budget / weights.size
    assert chances == pytest.approx(sigma + (budget - weights.size * sigma) * cut / cut.sum(), rel=1e-4)


@pytest.mark.parametrize("case", load_vectors("tifl")["cases"])
def test_tifl_has_the_tiers_and_chances_of_public_code(case: dict[str, Any]) -> None:
    clients, count = len(case["seconds"]), len(case["tiers"])
    selector = TiFl(clients=clients, budget=clients // count, tiers=count, seed=1)
    selector.arrays["seconds"] = np.array(case["seconds"])
    assert [sorted(tier.tolist()) for tier in selector.tiers()] == [sorted(tier) for tier in case["tiers"]]
    for tier, opinion in zip(case["tiers"], case["opinions"], strict=True):
        selector.arrays["opinions"][tier] = opinion
    selector._before = [1.0] * count  # served better before: the chances change
    selector._update_chances()
    assert selector._chances == pytest.approx(case["chances"])


@pytest.mark.parametrize("case", load_vectors("rbcs_f")["cohorts"])
def test_rbcs_f_elects_the_cohort_of_public_code(case: dict[str, Any]) -> None:
    selector = RbcsF(clients=len(case["times"]), budget=case["budget"], patience=case["patience"], seed=1)
    selector.arrays["queue"] = np.array(case["queue"])
    assert list(selector._cheapest(np.array(case["times"]), np.array(case["available"]))) == case["cohort"]


def test_rbcs_f_has_one_regression_for_each_client_as_mabwiser_has_for_each_arm() -> None:
    run = load_vectors("rbcs_f")["regression"]
    ridges, compared = ClientRidges(run["clients"], 3), 0
    for slot in run["slots"]:
        contexts, members = np.array(slot["contexts"]), np.array(slot["cohort"])
        if "bounds" in slot:
            means, widths = ridges.estimate(contexts)
            assert means - run["exploration"] * widths == pytest.approx(slot["bounds"], rel=1e-9, abs=1e-9)
            compared += 1
        ridges.add(members, contexts[members], np.array(slot["seconds"]))
    assert compared == 4


@pytest.mark.parametrize("case", load_vectors("fedcs")["cases"])
def test_fedcs_elects_whom_public_code_elects(case: dict[str, Any]) -> None:
    clients, budget, chosen = len(case["training_s"]), case["budget"], case["chosen"]
    selector = FedCs(clients=clients, budget=budget, candidates=clients, deadline_s=case["deadline"], seed=1)
    selector.tell(selector.ask(), Feedback(training_s=case["training_s"], upload_s=case["upload_s"]))
    cohort = set(selector.ask().cohort)
    if len(chosen) >= budget:
        assert cohort == set(chosen[:budget])
    else:
        assert set(chosen) < cohort  # filled up beyond the deadline


def test_context_ucb_has_the_indices_of_mabwiser() -> None:
    run = load_vectors("context_ucb")
    training, upload, sizes = np.array(run["features"]).T
    budget = len(run["slots"][0]["cohort"])
    selector = ContextUcb(clients=len(training), budget=budget, exploration=run["exploration"], seed=1)
    for number, slot in enumerate(run["slots"], 1):
        told = Feedback(reward=slot["reward"], training_s=training, upload_s=upload, sizes=sizes)
        selector.tell(open_slot(selector, number, slot["cohort"]), told)
        indices = np.array(slot["indices_after"])
        selection = selector.ask()
        assert selection.cohort == tuple(sorted(np.argsort(-indices)[:budget].tolist()))
        assert selection.indices == pytest.approx(indices[list(selection.cohort)], rel=1e-9)


def test_additive_thompson_has_the_posterior_of_mabwiser() -> None:
    run = load_vectors("additive_thompson")
    clients = run["clients"]
    selector = AdditiveThompson(clients=clients, budget=run["budget"], spread=run["spread"], noise=run["noise"], seed=1)
    for number, (cohort, reward) in enumerate(zip(run["cohorts"], run["rewards"], strict=True), 1):
        selector.tell(open_slot(selector, number, cohort), Feedback(reward=reward))
    # What is drawn is an affine function of standard normals, so its mean and covariance follow from unit draws.
    cohorts = len(selector._statistics)

    def draw(normals: Floats) -> Floats:
        left = [normals[clients], normals[clients + 1 :]]
        rng: Any = SimpleNamespace(standard_normal=lambda size=None: left.pop(0))
        return selector._condition(run["spread"] * normals[:clients], rng)

    mean = draw(np.zeros(clients + 1 + cohorts))
    factors = np.array([draw(unit) - mean for unit in np.eye(clients + 1 + cohorts)])
    assert mean == pytest.approx(run["mean"], abs=1e-9)
    assert factors.T @ factors == pytest.approx(np.array(run["covariance"]), abs=1e-9)


def test_client_ucb_has_the_indices_of_public_code() -> None:
    run = load_vectors("client_ucb")
    selector, compared = ClientUcb(clients=run["clients"], budget=run["budget"], exploration=1.0, seed=1), 0
    for number, slot in enumerate(run["slots"], 1):
        selector.tell(open_slot(selector, number, slot["cohort"]), Feedback(reward=slot["reward"]))
        if slot["indices_after"] is not None:
            assert selector.indices(number + 1) == pytest.approx(slot["indices_after"], rel=1e-9)
        if slot["best_after"] is not None:
            assert list(selector.ask().cohort) == slot["best_after"]
            compared += 1
    assert compared > 5


def test_client_thompson_draws_from_the_posteriors_of_smpybandits(monkeypatch: pytest.MonkeyPatch) -> None:
    run = load_vectors("client_thompson")
    selector = ClientThompson(clients=run["clients"], budget=run["budget"], seed=1)
    for slot in run["slots"]:

        def beta(successes: Floats, failures: Floats, slot: dict[str, Any] = slot) -> Floats:
            assert np.stack([successes, failures], axis=1).tolist() == slot["parameters"]
            return np.array(slot["draws"])

        monkeypatch.setattr(f"{LITERATURE}.client_thompson.stream", lambda *name, beta=beta: SimpleNamespace(beta=beta))
        selection = selector.ask()
        assert list(selection.cohort) == slot["cohort"]
        selector.tell(selection, Feedback(reward=float(slot["reward"])))


@pytest.mark.parametrize("case", load_vectors("fair_ucb")["cases"])
def test_fair_ucb_ranks_as_a_synchronous_relative_does(case: dict[str, Any]) -> None:
    run = load_vectors("fair_ucb")
    clients, beta = run["clients"], run["beta"]
    selector = FairUcb(
        clients=clients,
        budget=run["budget"],
        fairness=run["share"],
        patience=(1.0 - beta) / beta,
        exploration=1.0,
        seed=1,
    )
    selector.arrays["queue"] = np.array(case["queue_before"])
    selector._count(Selection(1, tuple(case["elected_before"]), ()))
    assert selector.arrays["queue"] == pytest.approx(case["queue"], abs=1e-9)
    elections = np.array(case["elections"], dtype=np.float64)
    selector.arrays |= {"elections": elections, "reports": elections, "total_s": elections * case["mean_s"]}
    selector.arrays["longest_s"] = np.full(clients, run["longest_s"])
    assert beta * selector.indices(case["slot"]) == pytest.approx(case["indices"], rel=1e-6)
    selector._slot = case["slot"] - 1
    assert list(selector.ask().cohort) == case["cohort"]


@pytest.mark.parametrize("case", load_vectors("channel")["cases"])
def test_channels_are_ranked_by_fading_as_in_public_code(case: dict[str, Any]) -> None:
    fading, clients = np.array(case["fading"]), len(case["fading"])
    gain = np.random.default_rng(1).uniform(0.1, 100.0, clients)  # path gains, which a mean takes out
    fair = ProportionalFair(clients=clients, budget=case["budget"], seed=1)
    for level in (2.0 - fading, fading):  # their mean is 1
        fair.tell(fair.ask(), Feedback(channel_db=10.0 * np.log10(gain * level)))
    assert list(fair.ask().cohort) == case["cohort"]
    best = BestChannel(clients=clients, budget=case["budget"], seed=1)
    best.tell(best.ask(), Feedback(channel_db=10.0 * np.log10(fading)))  # at equal gains
    assert list(best.ask().cohort) == case["cohort"]


@pytest.mark.parametrize("case", load_vectors("favor")["rewards"])
def test_favors_reward_is_that_of_public_code(case: dict[str, Any]) -> None:
    selector = Favor(clients=2, budget=1, target=case["target"], sharpness=case["sharpness"], seed=1)
    updates = np.random.default_rng(1).standard_normal((2, 64))
    while selector._loadings is None:
        selector.tell(selector.ask(), Feedback(reward=0.5, updates=updates))
    selector.tell(selector.ask(), Feedback(reward=case["accuracy"], updates=updates))
    assert selector._slots[-1].reward == pytest.approx(case["reward"], rel=1e-9, abs=1e-12)


class Told(QNetwork):
    """A network that keeps the targets it is told, in `asked`."""

    asked: ClassVar[list[Floats]] = []

    def slope(self, states: Any, actions: Any, targets: Any) -> QNetwork:
        self.asked.append(targets)
        return self


@pytest.mark.parametrize("case", load_vectors("favor")["targets"])
def test_favors_targets_are_those_of_public_code(case: dict[str, Any]) -> None:
    clients = len(case["values"])
    selector = Favor(clients=clients, budget=1, components=1, seed=1)
    inner, bias, outer = (np.zeros_like(part) for part in selector._network[:3])  # values that no state changes
    selector._copy = QNetwork(inner, bias, outer, np.array(case["target_values"], dtype=np.float32))
    slot = _Slot((case["action"],), np.zeros((1, 1)), np.zeros(1), case["reward"])
    Told.asked.clear()
    selector._train(
        Told(inner, bias, outer, np.array(case["values"], dtype=np.float32)), np.zeros((clients + 1, 1)), [slot], 1
    )
    assert float(Told.asked[0][0]) == pytest.approx(case["target"], rel=1e-5)


def test_favors_components_are_the_scores_of_public_code_but_for_sign_and_one_scale() -> None:
    run = load_vectors("favor")
    rows, scores = np.array(run["updates"]), np.array(run["scores"])
    found = (rows - rows.mean(axis=0)) @ principal_loadings(rows, scores.shape[1])
    ratios = np.sqrt((found**2).sum(axis=0) / (scores**2).sum(axis=0))
    assert ratios == pytest.approx(np.full(scores.shape[1], ratios[0]), rel=1e-6)
    signs = np.sign((found * scores).sum(axis=0))
    assert found == pytest.approx(ratios[0] * signs * scores, abs=1e-6)
