"""Every strategy of `flwr.serverapp.strategy`, warm and cold, with apps shaped as Flower's own: as plain Flower has it.

Found by introspection: a strategy that Flower adds is untested, and a test here says so.
"""

from pathlib import Path
from typing import Any

import flwr.serverapp.strategy as flower
import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, Error, Message
from flwr.clientapp.mod import adaptiveclipping_mod, fixedclipping_mod
from flwr.serverapp.strategy import Result, Strategy
from tests.flower.app_kit import NEEDED, app_grid, first_model, import_part, make_app
from tests.flower.fake_grid import initial_arrays
from tests.flower.strategy_cases import CASES, NODES, Case, list_strategies, make_table
from tests.flower.test_like_flower import everybody, plain_federation, shown

from fedelect.errors import ConfigurationError, RunError
from fedelect.flower import GoalDirected
from fedelect.records import read_run
from fedelect.selectors import FixedCohort, RandomCohort

PAGE = Path(__file__).parents[2] / "docs/FLOWER.md"
NUMBERS = [(name, library) for name, case in CASES.items() for library in case.libraries if library != "XGBoost"]
COLD: dict[str, Any] = {"start": "cold", "rounds_per_slot": 5}
MATRIX = [
    pytest.param(
        *(name, library, options),
        id=f"{name}-{library}-{options.get('start', 'warm')}",
        marks=[pytest.mark.integration] if library == "PyTorch" else [],  # seconds each
    )
    for name, library in NUMBERS
    for options in ({}, COLD)
]


def test_no_strategy_of_the_installed_flower_is_untested_and_none_is_made_up() -> None:
    assert sorted(CASES) == sorted(list_strategies())


def test_the_table_on_the_page_is_the_one_that_the_cases_make() -> None:
    assert make_table() in PAGE.read_text()


def start(strategy: Any, case: Case, library: str, rounds: int) -> Result:
    pytest.importorskip(NEEDED[library])
    grid = app_grid(make_app(library, train_mods=case.mods), NODES)
    np.random.seed(1)  # Flower's noise comes from the global generator
    result: Result = strategy.start(
        grid=grid, initial_arrays=first_model(library), num_rounds=rounds, train_config=ConfigRecord({"lr": 0.1})
    )
    return result


def all_elected(strategy: Strategy, run: Path, **options: Any) -> GoalDirected:
    selector = FixedCohort(clients=NODES, cohort=range(NODES))
    return GoalDirected(strategy, selector=selector, run=run, wait_s=0.0, **options)


@pytest.fixture(autouse=True)
def no_garbage_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flower collects garbage after each array that it hands out for good: seconds in a process with many modules."""
    monkeypatch.setattr("gc.collect", lambda *generation: 0)


@pytest.mark.parametrize(("name", "library", "options"), MATRIX)
def test_with_all_elected_a_slot_is_plain_flowers(
    tmp_path: Path, name: str, library: str, options: dict[str, Any]
) -> None:
    case, rounds = CASES[name], 5 if options else 2
    ours = all_elected(case.make(library), tmp_path / "run", **options)
    said = (case.flower_refuses or {}).get(library)
    if said is not None:
        for strategy in (case.make(library), ours):
            with pytest.raises(Exception, match=said):
                start(strategy, case, library, rounds)
        return
    plain, wrapped = start(case.make(library), case, library, rounds), start(ours, case, library, rounds)
    models = [{name: array.numpy().tolist() for name, array in one.arrays.items()} for one in (plain, wrapped)]
    assert models[0] == models[1]
    # As text: some losses are nan, on plain Flower too.
    assert repr(plain.train_metrics_clientapp) == repr(wrapped.train_metrics_clientapp)
    assert repr(plain.evaluate_metrics_clientapp[rounds]) == repr(wrapped.evaluate_metrics_clientapp[rounds])
    assert models[1] != {name: array.numpy().tolist() for name, array in first_model(library).items()}


WITHOUT_NOISE = [name for name, library in NUMBERS if library == "scikit-learn" and "Privacy" not in name]


@pytest.mark.parametrize("name", WITHOUT_NOISE)
def test_the_second_slot_of_a_cold_start_begins_as_the_first(tmp_path: Path, name: str) -> None:
    case, library = CASES[name], "scikit-learn"
    start(all_elected(case.make(library), tmp_path / "run", **COLD), case, library, 10)
    first, second = read_run(tmp_path / "run").records
    assert first.opinions is not None and first.opinions == second.opinions


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.misfit is not None])
def test_a_strategy_that_cannot_do_its_work_with_such_cohorts_is_refused_in_the_constructor(
    tmp_path: Path, name: str
) -> None:
    case = CASES[name]
    assert case.misfit is not None
    make, members = case.misfit
    for options in ({"budget": members}, {"selector": RandomCohort(clients=9, budget=members, seed=1)}):
        with pytest.raises(ConfigurationError, match=f"{name} does not fit: .*{case.misfit_says}"):
            GoalDirected(make(), run=tmp_path / "run", **options)


def grow(case: Case, run: Path, **options: Any) -> tuple[Any, list[Any]]:
    """Let cohorts grow trees; return the booster and the records."""
    pytest.importorskip("xgboost", reason="xgboost is not installed")
    method = "cyclic" if case.members == 1 else "bagging"
    grid = app_grid(make_app("XGBoost"), NODES, **{"train-method": method})
    selector = RandomCohort(clients=NODES, budget=case.members, seed=1)
    strategy = GoalDirected(case.make("XGBoost"), selector=selector, run=run, wait_s=0.0, **options)
    result = strategy.start(grid, first_model("XGBoost"), num_rounds=10 if options else 4)
    return import_part("XGBoost", "task").unpack(result.arrays), list(read_run(run).records)


@pytest.mark.parametrize("options", [{}, COLD], ids=["warm", "cold"])
@pytest.mark.parametrize("name", ["FedXgbBagging", "FedXgbCyclic"])
def test_every_tree_that_the_elected_grew_is_in_the_model(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    case = CASES[name]
    booster, rows = grow(case, tmp_path / "run", **options)
    assert booster.num_boosted_rounds() == (5 if options else 4) * case.members
    assert [row.status for row in rows] == ["done"] * len(rows)
    data = import_part("XGBoost", "task").load_data(0, NODES)[1]
    assert import_part("XGBoost", "task").measure_auc(booster, data) > 0.8


@pytest.mark.parametrize(
    ("name", "mod"),
    [
        ("DifferentialPrivacyClientSideFixedClipping", fixedclipping_mod),
        ("DifferentialPrivacyClientSideAdaptiveClipping", adaptiveclipping_mod),
    ],
)
def test_a_clipping_mod_on_the_whole_app_is_named_after_the_first_round_in_flowers_words(
    tmp_path: Path, name: str, mod: Any
) -> None:
    pytest.importorskip("sklearn")
    case = CASES[name]
    plain = case.make("scikit-learn").start(
        app_grid(make_app("scikit-learn", app_mods=[mod]), NODES), first_model("scikit-learn"), num_rounds=1
    )
    assert plain.evaluate_metrics_clientapp == {}  # plain Flower has no evaluation either, and says it in its log
    grid = app_grid(make_app("scikit-learn", app_mods=[mod]), NODES)
    said = rf"a mod of the client app refuses it: {mod.__name__} requires the key .*@app.train\(mods="
    with pytest.raises(ConfigurationError, match=said):
        all_elected(case.make("scikit-learn"), tmp_path / "run").start(grid, first_model("scikit-learn"), num_rounds=2)
    unasked = GoalDirected(
        flower.DifferentialPrivacyClientSideFixedClipping(flower.FedAvg(fraction_evaluate=0.0), 0.01, 1.0, 3),
        selector=RandomCohort(clients=NODES, budget=3, seed=1),
        run=tmp_path / "unasked",
        wait_s=0.0,
    )
    if mod is fixedclipping_mod:  # without an evaluation it trains
        result = unasked.start(grid, first_model("scikit-learn"), num_rounds=2)
        assert any(array.numpy().any() for array in result.arrays.values())


def test_a_slot_of_which_the_strategy_makes_nothing_is_abandoned_and_not_judged(tmp_path: Path) -> None:
    grid, _ = plain_federation()
    strategy = flower.DifferentialPrivacyServerSideFixedClipping(flower.FedAvg(), 0.0, 1.0, 5)
    broken = next(node for node in grid.nodes if node.name == "site-2")
    broken.answer = lambda message: Error(2, "out of memory")
    with pytest.raises(RunError, match=r"made nothing of the 4 updates of 5 members \(no update of site-2: error 2"):
        everybody(strategy, tmp_path / "run").start(grid, initial_arrays(), num_rounds=6)
    rows = read_run(tmp_path / "run").records
    assert all(row.status == "abandoned" and row.opinions is None for row in rows)


def test_a_strategy_that_gathers_metrics_and_makes_no_model_goes_on(tmp_path: Path) -> None:
    class Counting(flower.FedAvg):
        def aggregate_train(self, server_round: int, replies: Any) -> Any:
            return None, super().aggregate_train(server_round, list(replies))[1]

    grid, _ = plain_federation()
    result = everybody(Counting(), tmp_path / "run").start(grid, initial_arrays(), num_rounds=2)
    assert [row.status for row in read_run(tmp_path / "run").records] == ["done", "done"]
    assert shown(result)[1][0][2] == {"loss": 0.5}


def test_an_accountant_whose_count_would_be_lost_is_refused(tmp_path: Path) -> None:
    strategy = flower.DifferentialPrivacyServerSideFixedClipping(flower.FedAvg(), 0.5, 1.0, 3)
    if not hasattr(strategy, "accountant"):
        pytest.skip("this Flower has none")
    strategy.accountant = object()  # type: ignore[assignment]
    with pytest.raises(ConfigurationError, match="accountant= counts would be forgotten"):
        GoalDirected(strategy, budget=3)


def test_the_records_of_slot_and_round_are_no_configs(tmp_path: Path) -> None:
    grid, _ = plain_federation()
    seen: list[Message] = []
    grid.before = seen.append
    everybody(flower.FedAvg(), tmp_path / "run").start(grid, initial_arrays(), num_rounds=1)
    assert {tuple(message.content.config_records) for message in seen} == {("config",)}
    assert all(isinstance(message.content["arrays"], ArrayRecord) for message in seen)
