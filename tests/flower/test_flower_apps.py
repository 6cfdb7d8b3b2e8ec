"""Apps shaped as Flower's own, by `flwr run` on the simulation engine: nothing but the strategy is wrapped."""

import importlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from flwr.app import ArrayRecord
from tests.flower.engine_kit import APPS, by_slot, loopback

from fedelect.records import read_run

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("no_process_left_behind")]
NODES, BUDGET, ROUNDS = 8, 3, 5


@dataclass(frozen=True)
class Played:
    """What is left of a run: how it ended, its log, the folder it ran in, and who trained in which round."""

    status: str
    log: str
    folder: Path
    trainings: dict[int, list[int]]


def play(app: Path, folder: Path, **config: object) -> Played:
    """Submit an app as `flwr run` does, and wait for its end."""
    noted = folder / "trainings.jsonl"
    settings = {"budget": BUDGET, "num-server-rounds": ROUNDS, "training-log": str(noted)} | config
    with loopback.Loopback(folder / "flower", simulation=True) as link:
        run = link.run(app, settings, nodes=NODES)
        status, log = link.wait(run, deadline_s=600, every_s=3.0), link.log(run)
    trainings: dict[int, list[int]] = {}
    for line in noted.read_text().splitlines():
        server_round, client = json.loads(line)
        trainings.setdefault(server_round, []).append(client)
    return Played(status, log, folder / "flower", {key: sorted(value) for key, value in sorted(trainings.items())})


def check_records(played: Played, *, metric: str, asked: int) -> None:
    """The run was completed, is on record, and nobody but the elected trained."""
    assert played.status == "finished:completed", played.log[-3000:]
    run, rows = read_run(played.folder / "fedelect-runs" / "001"), by_slot(played.folder / "fedelect-runs" / "001")
    assert run.complete and (run.header.budget, run.header.slots) == (BUDGET, ROUNDS)
    assert [row.status for row in rows] == ["done"] * ROUNDS
    assert played.trainings == {row.slot: sorted(row.cohort) for row in rows}  # in simulation, number = partition id
    assert all(row.arrivals == (1,) * BUDGET for row in rows)
    assert {client for row in rows for client in row.cohort} == set(range(NODES))  # equal turns reach everybody
    for row in rows:
        assert row.opinions is not None
        given = {client for client, opinion in enumerate(row.opinions) if opinion is not None}
        assert given <= set(range(NODES)) and asked <= len(given) <= asked + BUDGET
    assert f"metric '{metric}'" in played.log
    assert f"slot {ROUNDS} of {ROUNDS}: elected" in played.log


def test_an_app_in_pytorch_trains_those_elected_and_saves_a_trained_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
    played = play(APPS / "pytorch_app", tmp_path, **{"fraction-evaluate": 0.5})
    check_records(played, metric="eval_acc", asked=NODES // 2)
    monkeypatch.syspath_prepend(APPS / "pytorch_app")
    task, server_app = (importlib.import_module(f"pytorch_app.{name}") for name in ("task", "server_app"))
    torch.manual_seed(0)
    untrained, trained = task.Net().state_dict(), torch.load(played.folder / "final_model.pt")
    before, after = (server_app.global_evaluate(0, ArrayRecord(model)) for model in (untrained, trained))
    assert after["accuracy"] > 0.6 > 0.3 > before["accuracy"]
    assert trained["features.1.num_batches_tracked"] > 0  # the counter of the normalisation layer, too


def test_an_app_in_scikit_learn_trains_those_elected_and_saves_a_trained_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    joblib = pytest.importorskip("joblib", reason="the extra `lab` is not installed")
    played = play(APPS / "sklearn_app", tmp_path)
    check_records(played, metric="accuracy", asked=NODES)
    monkeypatch.syspath_prepend(APPS / "sklearn_app")
    task = importlib.import_module("sklearn_app.task")
    _, _, inputs, labels = task.split_dataset()
    trained, untrained = joblib.load(played.folder / "logreg_model.pkl"), task.create_model(1)
    assert trained.score(inputs, labels) > 0.6 > 0.3 > untrained.score(inputs, labels)


def test_an_app_in_xgboost_keeps_every_tree_of_those_elected(tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    played = play(APPS / "xgboost_app", tmp_path)
    check_records(played, metric="auc", asked=NODES)
    booster = xgboost.Booster(model_file=played.folder / "final_model.json")
    assert booster.num_boosted_rounds() == ROUNDS * BUDGET  # each member grows one tree in a round


def test_an_app_without_a_metric_that_can_be_an_opinion_fails_after_one_round_and_says_what_it_has(
    tmp_path: Path,
) -> None:
    app = tmp_path / "app"
    shutil.copytree(APPS / "sklearn_app", app)
    client_app = app / "sklearn_app" / "client_app.py"
    line = '        "accuracy": model.score(inputs, labels),\n'
    assert client_app.read_text().count(line) == 1
    client_app.write_text(client_app.read_text().replace(line, ""))
    played = play(app, tmp_path)
    assert played.status == "finished:failed"
    assert "they hold num-examples, test_logloss" in played.log and "opinion=" in played.log
    assert list(played.trainings) == [1] and len(played.trainings[1]) == BUDGET
    assert not (played.folder / "logreg_model.pkl").exists()
