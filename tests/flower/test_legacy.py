"""GoalDirected around strategies of Flower's older API, with its real Server and ClientManager."""

import json
from pathlib import Path
from typing import Any

import flwr.server.strategy as old
import numpy as np
import pytest
from flwr.common import Code, FitIns, FitRes, GetPropertiesIns, Parameters, Status, parameters_to_ndarrays
from flwr.serverapp.strategy import FedAvg as NewFedAvg
from tests.flower.legacy_kit import OK, Worker, initial, make_clients, play, register, trees

from fedelect.errors import AvailabilityError, ConfigurationError, RunError
from fedelect.flower import GoalDirected as MessageGoalDirected
from fedelect.flower.legacy import GoalDirected
from fedelect.records import SlotRecord, read_run
from fedelect.selectors import FixedCohort, QuickInitUcb, RandomCohort, selector_classes

N, K = 8, 3


def random(budget: int = K) -> RandomCohort:
    return RandomCohort(clients=N, budget=budget, seed=1)


def fedavg(**options: Any) -> old.FedAvg:
    return old.FedAvg(initial_parameters=initial(), **options)


def slots(run: Path) -> list[SlotRecord]:
    return sorted(read_run(run).records, key=lambda record: record.slot)


def raw(ins: FitIns | None = None) -> Parameters:
    """A model as Android's clients write it: bytes of float32."""
    before = bytes(12) if ins is None else ins.parameters.tensors[0]
    after = np.frombuffer(before, np.float32) + np.float32(ins is not None)
    return Parameters([after.tobytes()], "numpy.nda")


def made(name: str) -> old.Strategy:
    """A strategy of Flower's older API by its name."""
    kind = getattr(old, name)
    wraps: dict[str, Any] = {"strategy": fedavg(), "num_sampled_clients": K}
    dp = {"noise_multiplier": 0.0, **wraps}
    options: dict[str, dict[str, Any]] = {
        "Bulyan": {"initial_parameters": initial(), "to_keep": 1},
        "DPFedAvgAdaptive": {"clip_count_stddev": 2.0, **wraps},
        "FedProx": {"initial_parameters": initial(), "proximal_mu": 0.1},
        "QFedAvg": {"initial_parameters": initial(), "evaluate_fn": lambda server_round, weights, config: (1.0, {})},
        "DPFedAvgFixed": {"clip_norm": 1.0, **wraps},
        "DifferentialPrivacyClientSideAdaptiveClipping": dp,
        "DifferentialPrivacyClientSideFixedClipping": {"clipping_norm": 100.0, **dp},
        "DifferentialPrivacyServerSideAdaptiveClipping": {"initial_clipping_norm": 100.0, **dp},
        "DifferentialPrivacyServerSideFixedClipping": {"clipping_norm": 100.0, **dp},
        "FedAvgAndroid": {"initial_parameters": raw()},
        "FedXgbBagging": {"initial_parameters": Parameters([], "")},
        "FedXgbCyclic": {"initial_parameters": Parameters([], "")},
    }
    strategy: old.Strategy = kind(**options.get(name, {"initial_parameters": initial()}))
    return strategy


ALL = sorted(name for name in old.__all__ if name != "Strategy")


@pytest.mark.parametrize("name", [name for name in ALL if name not in ("FedXgbCyclic", "FedXgbNnAvg")])
def test_every_strategy_of_the_older_api_trains_with_the_elected_and_no_others(tmp_path: Path, name: str) -> None:
    manager, workers, trace = make_clients(N)
    if name.startswith("FedXgb"):
        for worker in workers:
            worker.train = trees
    if name == "FedAvgAndroid":
        for worker in workers:
            worker.train = lambda ins: FitRes(OK, raw(ins), 10, {})
    server, _ = play(GoalDirected(made(name), selector=random(), run=tmp_path / "run"), manager, rounds=3)
    records = slots(tmp_path / "run")
    assert [(record.status, record.arrivals) for record in records] == [("done", (1, 1, 1))] * 3
    elected = sorted(f"client-{client}" for record in records for client in record.cohort)
    assert trace.of("fit") == elected
    if name.startswith("FedXgb"):
        model = json.loads(server.parameters.tensors[0])["learner"]["gradient_booster"]["model"]
        assert len(model["trees"]) == 3 * K
    elif name == "FedAvgAndroid":
        np.testing.assert_array_equal(np.frombuffer(server.parameters.tensors[0], np.float32), [3.0, 3.0, 3.0])
    else:
        assert parameters_to_ndarrays(server.parameters)[0].sum() > 0.0


@pytest.mark.parametrize("budget", [1, K])
def test_a_cycle_is_the_selectors_and_only_with_a_budget_of_one(tmp_path: Path, budget: int) -> None:
    manager, workers, trace = make_clients(N)
    for worker in workers:
        worker.train = trees
    if budget > 1:
        with pytest.raises(ConfigurationError, match=r"FedXgbCyclic does not fit: .* 3 clients train .*budget=1"):
            GoalDirected(made("FedXgbCyclic"), selector=random(budget))
        return
    play(GoalDirected(made("FedXgbCyclic"), selector=random(1), run=tmp_path / "run"), manager, rounds=3)
    assert trace.of("fit") == sorted(f"client-{record.cohort[0]}" for record in slots(tmp_path / "run"))


@pytest.mark.parametrize("name", [name for name in ALL if name.startswith(("DP", "Differential"))])
def test_noise_for_another_number_of_clients_than_train_is_refused(name: str) -> None:
    for choice in ({"selector": random(K + 1)}, {"budget": K + 1}):
        with pytest.raises(ConfigurationError, match=r"noise is for num_sampled_clients=3, and 4 clients train"):
            GoalDirected(made(name), **choice)


def test_models_that_are_no_parameters_are_refused(tmp_path: Path) -> None:
    manager, _, _ = make_clients(N)
    with pytest.raises(ConfigurationError, match="FedXgbNnAvg does not fit: its models are pairs"):
        GoalDirected(made("FedXgbNnAvg"), selector=random())
    strategy = GoalDirected(fedavg(), selector=random(), run=tmp_path / "run")
    with pytest.raises(ConfigurationError, match="a model is a list and cannot be read"):
        strategy.configure_fit(1, [initial()], manager)  # type: ignore[arg-type]


def test_model_configs_and_metrics_are_those_of_plain_flower_if_all_are_elected(tmp_path: Path) -> None:
    def mean(results: list[tuple[int, dict[str, Any]]]) -> dict[str, Any]:
        return {"examples": sum(size for size, _ in results), "text": sorted(own["where"] for _, own in results)[0]}

    def strategy() -> old.FedAvg:
        return fedavg(
            on_fit_config_fn=lambda server_round: {"round": server_round, "text": "as it is"},
            fit_metrics_aggregation_fn=mean,
            evaluate_metrics_aggregation_fn=mean,
            evaluate_fn=lambda server_round, weights, config: (round(float(weights[0][0]), 9), {"server": "yes"}),
        )

    both = []
    for wrap in (False, True):
        manager, _, trace = make_clients(N)
        inner: old.Strategy = strategy()
        if wrap:
            inner = GoalDirected(inner, selector=random(N), run=tmp_path / "run")
        server, history = play(inner, manager, rounds=3)
        model = [array.round(9).tolist() for array in parameters_to_ndarrays(server.parameters)]
        both.append((model, vars(history), sorted(trace.asked, key=repr)))
    assert both[0] == both[1]


def test_opinions_reach_the_selector_as_gains_and_records_hold_both(tmp_path: Path) -> None:
    manager, _, _ = make_clients(N)
    selector = QuickInitUcb(clients=N, budget=K, exploration=0.1, seed=1)
    play(GoalDirected(fedavg(), selector=selector, run=tmp_path / "run"), manager, rounds=3)
    records = slots(tmp_path / "run")
    assert [record.mean_opinion for record in records] == pytest.approx([0.1, 0.2, 0.3])
    assert records[0].reward == 0.5 and selector.state()["slot"] == 3
    assert records[0].joined == tuple((client, f"client-{client}") for client in range(N))
    header = read_run(tmp_path / "run").header
    assert (header.slots, header.scenario["api"], header.scenario["strategy"]) == (3, "flwr.server.strategy", "FedAvg")


def test_the_recommended_selector_is_made_for_the_clients_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fedelect.flower.client_numbers._SETTLED_S", 0.0)
    manager, _, trace = make_clients(N)
    strategy = GoalDirected(fedavg(fraction_evaluate=0.5), budget=2)
    with pytest.raises(ConfigurationError, match="made when the run starts"):
        _ = strategy.selector
    play(strategy, manager, rounds=4)
    assert (strategy.selector.clients, strategy.selector.budget) == (2 * N, 2)
    assert len(set(trace.of("fit"))) == N  # equal turns
    assert strategy.run == tmp_path / "fedelect-runs" / "001"
    assert len(trace.of("evaluate")) < 4 * N  # a sample, and the elected beside it


def test_a_client_that_fails_is_left_out_and_comes_back(tmp_path: Path) -> None:
    manager, workers, _ = make_clients(4)
    failing = workers[1].train

    def fail(ins: FitIns) -> FitRes:
        raise ConnectionError("cable out")

    def refuse(ins: FitIns) -> FitRes:
        return FitRes(Status(Code.FIT_NOT_IMPLEMENTED, "no data"), Parameters([], ""), 0, {})

    def spoil(ins: FitIns) -> FitRes:
        result = failing(ins)
        result.parameters = Parameters([b"no array" for _ in result.parameters.tensors], "numpy.ndarray")
        return result

    for number, way in enumerate((fail, refuse, spoil)):
        workers[1].train = way
        run = tmp_path / str(number)
        selector = RandomCohort(clients=4, budget=3, seed=2)
        server, _ = play(GoalDirected(fedavg(), selector=selector, run=run), manager, rounds=6)
        records = slots(run)
        first = next(record for record in records if record.failed)
        assert first.failed == (1,) and first.status == "done"
        assert records[first.slot].left_out == (1,) and 1 not in records[first.slot].cohort
        np.testing.assert_allclose(parameters_to_ndarrays(server.parameters)[0], 6.0)


def test_a_round_in_which_all_fail_leaves_model_and_strategy_as_they_were(tmp_path: Path) -> None:
    manager, workers, _ = make_clients(N)
    inner = old.FedAdam(initial_parameters=initial())

    def spoil(ins: FitIns) -> FitRes:
        result = workers[0]._train(ins)
        result.num_examples = -1
        return result

    for worker in workers:
        worker.train = spoil
    strategy = GoalDirected(inner, selector=random(), run=tmp_path / "run", abandoned_allowed=2)
    with pytest.raises(RunError, match=r"3 slots in a row came to nothing.*updates of 0 members arrived.*no resume"):
        play(strategy, manager, rounds=4)
    assert inner.m_t is None
    assert {record.status for record in slots(tmp_path / "run")} == {"abandoned"}


def test_clients_keep_their_number_when_they_reconnect_under_another_cid(tmp_path: Path) -> None:
    manager, workers, trace = make_clients(4)

    def ask(proxy: Any) -> str:
        return str(proxy.get_properties(GetPropertiesIns({}), None, None).properties["client"])

    strategy = GoalDirected(
        fedavg(), selector=FixedCohort(clients=4, cohort=[0, 2]), run=tmp_path / "run", identity=ask, wait_s=0.0
    )
    server, _ = play(strategy, manager, rounds=1)
    manager.unregister(workers[2])
    register(manager, [Worker(2, trace, cid="another")])
    for server_round in (2, 3):
        server.fit_round(server_round, None)
        server.evaluate_round(server_round, None)
    assert trace.of("fit") == ["another"] * 2 + ["client-0"] * 3 + ["client-2"]
    assert [record.cohort for record in slots(tmp_path / "run")] == [(0, 2)] * 3
    manager.unregister(workers[0])
    with pytest.raises(AvailabilityError, match=r"1 clients are there .*missing: .*site-0.*no resume"):
        for cid in list(manager.all())[1:]:
            manager.unregister(manager.all()[cid])
        server.fit_round(4, None)


def test_a_client_that_cannot_say_its_name_takes_no_part(tmp_path: Path) -> None:
    manager, workers, trace = make_clients(4)

    def ask(proxy: Any) -> str | None:
        if proxy is workers[0]:
            raise TimeoutError
        return None if proxy is workers[1] else str(proxy.cid)

    play(GoalDirected(fedavg(), budget=2, clients=4, run=tmp_path / "run", identity=ask, wait_s=0.0), manager, rounds=3)
    assert set(trace.of("fit")) == {"client-2", "client-3"} == set(trace.of("evaluate"))


def test_a_second_start_is_refused_for_there_is_no_resume(tmp_path: Path) -> None:
    manager, _, _ = make_clients(N)
    strategy = GoalDirected(fedavg(), selector=random(), run=tmp_path / "run")
    play(strategy, manager, rounds=2)
    with pytest.raises(RunError, match=r"round 1 comes after round 2.*no resume"):
        play(strategy, manager, rounds=2)
    with pytest.raises(ConfigurationError, match="there already, and Flower's older API has no resume"):
        GoalDirected(fedavg(), selector=random(), run=tmp_path / "run")


def test_a_training_that_flower_broke_off_is_recorded_as_abandoned(tmp_path: Path) -> None:
    manager, _, _ = make_clients(N)  # secure aggregation below its threshold never gets to aggregate_fit
    strategy = GoalDirected(fedavg(), selector=FixedCohort(clients=N, cohort=[1, 4]), run=tmp_path / "run")
    assert len(strategy.configure_fit(1, initial(), manager)) == 2
    assert strategy.configure_evaluate(1, initial(), manager) == []
    (record,) = slots(tmp_path / "run")
    assert (record.status, record.failed) == ("abandoned", (1, 4))


def test_opinions_are_asked_for_only_when_they_are_due(tmp_path: Path) -> None:
    manager, _, trace = make_clients(N)
    strategy = GoalDirected(fedavg(fraction_evaluate=0.0), selector=random(), run=tmp_path / "none")
    _, history = play(strategy, manager, rounds=2)
    assert trace.of("evaluate") == [] and history.losses_distributed == []
    assert [(record.status, record.opinions) for record in slots(tmp_path / "none")] == [("done", None)] * 2
    strategy = GoalDirected(fedavg(), selector=random(), run=tmp_path / "some", survey_every=2, survey=N)
    play(strategy, manager, rounds=4)
    assert len(trace.of("evaluate")) == 2 * N


def test_slots_are_reported_as_they_are_recorded(tmp_path: Path) -> None:
    manager, _, _ = make_clients(N)
    told: list[SlotRecord] = []
    play(GoalDirected(fedavg(), selector=random(), run=tmp_path / "run", on_slot=told.append), manager, rounds=3)
    assert told == slots(tmp_path / "run") and len(told) == 3


def test_the_loss_of_evaluation_results_reaches_selectors_that_need_it(tmp_path: Path) -> None:
    manager, _, _ = make_clients(N)
    selector = selector_classes()["active-fl"](clients=N, budget=K, seed=1)
    play(GoalDirected(fedavg(), selector=selector, run=tmp_path / "run"), manager, rounds=2)
    signals = slots(tmp_path / "run")[0].signals
    assert signals is not None and signals.loss is not None and set(signals.loss) == {0.5}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"strategy": NewFedAvg()}, r"those of flwr.serverapp.strategy there is fedelect.flower.GoalDirected"),
        ({"selector": None}, "give a selector, or `budget`"),
        ({"selector": None, "budget": 0}, "budget: got 0"),
        ({"budget": 2}, "are the selector's own"),
        ({"identity": "name"}, "identity: got 'name'"),
        ({"on_slot": "print"}, "on_slot: got 'print'"),
        ({"selector": "oort"}, "needs 'seconds', which Flower's older API does not tell"),
        ({"selector": "power-of-choice"}, "needs 'loss', which Flower's older API does not tell"),
        ({"selector": "s-fedavg"}, "needs 'contributions'"),
        ({"selector": "quick-init-ucb", "strategy": "unasked"}, "fraction_evaluate is 0"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_sent(options: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"strategy": fedavg(), "selector": random(), **options}
    if given["strategy"] == "unasked":
        given["strategy"] = fedavg(fraction_evaluate=0.0)
    if isinstance(given["selector"], str):
        given["selector"] = selector_classes()[given["selector"]](clients=N, budget=K, seed=1)
    with pytest.raises(ConfigurationError, match=says):
        GoalDirected(given.pop("strategy"), **given)


def test_a_used_selector_is_refused() -> None:
    used = random()
    used.ask()
    with pytest.raises(ConfigurationError, match="used before"):
        GoalDirected(fedavg(), selector=used)


def test_the_strategy_of_the_message_api_names_this_one() -> None:
    with pytest.raises(ConfigurationError, match=r"there is fedelect\.flower\.legacy\.GoalDirected"):
        MessageGoalDirected(fedavg(), budget=2)  # type: ignore[arg-type]
