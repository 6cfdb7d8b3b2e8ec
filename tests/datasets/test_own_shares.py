"""Data that already belongs to clients: in one file, in a folder, in Python; with names, and with clear errors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedelect
from fedelect.datasets import as_dataset, load_dataset
from fedelect.errors import BudgetError, ConfigurationError, DataError
from fedelect.scenario import Dataset, Scenario, ScenarioConfig, build_scenario, change_scenario
from fedelect.seeds import stream

SIZES = {"ann": (12, 4), "bob": (7, 2), "eve": (20, 5)}
QUIET: Any = {"progress": False, "workers": 1, "selectors": ["random"], "slots": 2}


def share(name: str, samples: int) -> tuple[Any, Any]:
    """Images of 2 x 3 in two classes; the first pixel says whose they are."""
    rng = stream(0, "own shares", name, samples)
    inputs = rng.normal(size=(samples, 2, 3))
    inputs[:, 0, 0] = list(SIZES).index(name)
    return inputs, np.arange(samples) % 2


def clients(*, test: bool = True) -> dict[str, tuple[Any, ...]]:
    return {name: (*share(name, train), *(share(name, held) if test else ())) for name, (train, held) in SIZES.items()}


def in_one(ids: list[Any]) -> dict[str, Any]:
    """All clients' samples mixed, with an id for each."""
    order, test_order = stream(1, "mixed").permutation(39), stream(2, "mixed").permutation(11)
    parts = list(clients().values())
    joined = [np.concatenate([part[at] for part in parts]) for at in range(4)]
    client = np.repeat(ids, [train for train, _ in SIZES.values()])
    client_test = np.repeat(ids, [held for _, held in SIZES.values()])
    return {
        "X": joined[0][order],
        "y": joined[1][order],
        "X_test": joined[2][test_order],
        "y_test": joined[3][test_order],
        "client": client[order],
        "client_test": client_test[test_order],
    }


def build(data: Dataset, **keys: Any) -> Scenario:
    assert data.clients is not None
    changes = {"clients": data.clients, "budget": 1, "data": {"iid_clients": 0}, **keys}
    return build_scenario(change_scenario(ScenarioConfig(), changes), data)


def check_world(data: Dataset, names: tuple[str, ...] | None) -> None:
    scenario = build(data)
    assert scenario.client_names == names and scenario.groups == {} and scenario.clients == 3
    assert scenario.sizes.tolist() == [12, 7, 20]
    for client, (name, (train, held)) in enumerate(SIZES.items()):
        assert (scenario.train_inputs[client][:, 0] == client).all() and len(scenario.test_labels[client]) == held
        assert (scenario.test_inputs[client][:, 0] == client).all()
        expected = share(name, train)[0].reshape(train, -1).astype(np.float32)
        assert sorted(scenario.train_inputs[client].tolist()) == sorted(expected.tolist())
    assert len(scenario.global_test_labels) == 11
    assert np.array_equal(np.concatenate(scenario.clean_test_inputs), scenario.global_test_inputs)
    assert all(np.shares_memory(own, scenario.global_test_inputs) for own in scenario.test_inputs)


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (["ann", "bob", "eve"], ("ann", "bob", "eve")),
        ([0, 1, 2], None),
        ([7, 19, 105], ("7", "19", "105")),
        ([1, 2, 3], ("1", "2", "3")),
    ],
)
def test_one_file_says_whose_each_sample_is(tmp_path: Path, ids: list[Any], names: tuple[str, ...] | None) -> None:
    np.savez(tmp_path / "all.npz", **in_one(ids))
    check_world(load_dataset(str(tmp_path / "all.npz")), names)
    check_world(as_dataset(in_one(ids)), names)


def test_a_folder_holds_one_file_for_each_client(tmp_path: Path) -> None:
    for name, arrays in clients().items():
        np.savez(tmp_path / f"{name}.npz", **dict(zip(("X", "y", "X_test", "y_test"), arrays, strict=True)))
    (tmp_path / "notes.txt").write_text("not a client")
    check_world(load_dataset(str(tmp_path)), ("ann", "bob", "eve"))


def test_clients_are_given_in_python_as_a_list_or_by_name() -> None:
    check_world(as_dataset(list(clients().values())), None)
    check_world(as_dataset(clients()), ("ann", "bob", "eve"))


def test_a_client_without_test_data_holds_out_a_fifth_of_its_samples_the_same_ones_every_time() -> None:
    data = as_dataset(clients(test=False))
    again = as_dataset({name: arrays for name, arrays in clients(test=False).items() if name != "ann"})
    assert data.owners is not None and data.test_owners is not None
    assert np.bincount(data.owners).tolist() == [10, 6, 16] and np.bincount(data.test_owners).tolist() == [2, 1, 4]
    for client, name in enumerate(SIZES):
        held = [*data.inputs[data.owners == client].tolist(), *data.test_inputs[data.test_owners == client].tolist()]
        assert sorted(held) == sorted(share(name, SIZES[name][0])[0].reshape(-1, 6).tolist())
    assert again.test_owners is not None
    assert np.array_equal(again.test_inputs[again.test_owners == 1], data.test_inputs[data.test_owners == 2])


def test_four_arrays_are_not_taken_for_four_clients() -> None:
    lists = ([[1, 2], [3, 4]], [0, 1], [[1, 2]], [0])
    assert as_dataset(lists).clients is None
    assert as_dataset(([[[1], [2]], [[3], [4]]], (0, 1), [[[1], [2]]], (0,))).clients is None
    assert as_dataset([(np.eye(4), np.arange(4) % 2)] * 4).clients == 4


def without(arrays: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in arrays.items() if key not in keys}


def only(arrays: dict[str, Any], part: str, client: str) -> dict[str, Any]:
    """The same without one client's samples in one part."""
    kept = arrays[f"client{part}"] != client
    return arrays | {key: arrays[key][kept] for key in (f"X{part}", f"y{part}", f"client{part}")}


IN_ONE = in_one(["ann", "bob", "eve"])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (without(IN_ONE, "client_test"), "data lacks client_test; it holds X, y, X_test, y_test, client"),
        (without(IN_ONE, "client"), "data lacks client;"),
        (only(IN_ONE, "_test", "bob"), "client bob has no test data; every id must be in both"),
        (only(IN_ONE, "", "eve"), "client eve has no training data; every id must be in both"),
        (only(only(IN_ONE, "_test", "bob"), "_test", "ann"), r"client ann \(and 1 more\) has no test data"),
        (
            IN_ONE | {"client": np.arange(39.0)},
            r"client must name the client of each sample.*got float64 of shape \(39,\)",
        ),
        (IN_ONE | {"client": np.zeros((39, 1), dtype=int)}, r"got int64 of shape \(39, 1\)"),
        (IN_ONE | {"client": np.zeros(39, dtype=int)}, "client holds whole numbers and client_test text"),
        (IN_ONE | {"client": IN_ONE["client"][:-1]}, "39 labels but 38 owners"),
        ({"ann": (np.eye(3), [0, 1])}, "client ann: 3 inputs in X but 2 labels in y"),
        ({"ann": (np.eye(2), [0, 1], np.eye(2), [0])}, "client ann: 2 inputs in X_test but 1 labels in y_test"),
        ({"ann": (np.eye(1), [0])}, "client ann has 1 samples and no test data; it needs two or more"),
        (
            {"ann": (np.eye(2), [0, 1], np.empty((0, 2)), np.empty(0, dtype=int))},
            "client ann has 2 training and 0 test samples; it needs some of each",
        ),
        (
            [(np.eye(2), [0, 1]), (np.eye(3), [0, 1, 0])],
            "of client 1 has 3 features, one of client 0 2; all need the same",
        ),
        ([(np.eye(2), [0, 1]), np.eye(3)], r"or a list of clients, each \(X, y\) or"),
    ],
)
def test_data_that_does_not_fit_its_clients_is_refused(data: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        as_dataset(data)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"owners": [0, 1]}, "test_owners are missing"),
        ({"test_owners": [0]}, "owners are missing"),
        ({"owners": [0, 1], "test_owners": [0]}, "client 1 has no test data"),
        ({"owners": [0, 0], "test_owners": [1]}, "client 1 has no training data"),
        ({"owners": [0, 2], "test_owners": [0]}, "client 1 has no training data"),
        ({"owners": [0, 0], "test_owners": [0], "client_names": ("a", "b")}, "1 clients need as many different names"),
        ({"client_names": ("a",)}, "clients have names, but no samples"),
        ({"owners": [0, 0], "test_owners": [0, 0]}, "1 test_labels but 2 test_owners"),
    ],
)
def test_owners_that_do_not_fit_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Dataset(np.eye(2), np.array([0, 1]), np.eye(2)[:1], np.array([0]), **keys)


def test_a_folder_that_is_no_set_of_clients_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no \.npz file; expected one for each client"):
        load_dataset(str(tmp_path))
    np.savez(tmp_path / "ann.npz", X=np.eye(3), y=[0, 1, 0], X_test=np.eye(3))
    with pytest.raises(DataError, match=r"ann\.npz holds X, y, X_test; give both X_test and y_test, or neither"):
        load_dataset(str(tmp_path))
    np.savez(tmp_path / "ann.npz", X=np.eye(3))
    with pytest.raises(DataError, match=r"ann\.npz lacks y; it holds X"):
        load_dataset(str(tmp_path))


def test_whose_a_sample_is_belongs_to_the_identity_of_the_data() -> None:
    one, other = in_one([0, 1, 2]), in_one([0, 1, 2])
    other["client"] = np.roll(other["client"], 1)
    assert as_dataset(one).digest != as_dataset(other).digest
    assert as_dataset(without(one, "client", "client_test")).digest != as_dataset(one).digest


def test_a_scenario_follows_the_number_of_clients_and_keeps_their_names(tmp_path: Path) -> None:
    run = fedelect.simulate(fedelect.load_scenario("digits", budget=2), data=clients(), out=tmp_path / "run", **QUIET)
    header = run.header
    assert (header.clients, header.client_names, header.sizes) == (3, ("ann", "bob", "eve"), (12, 7, 20))
    assert header.scenario["clients"] == 3 and header.scenario["data"]["source"] == "arrays" and header.groups == {}
    with pytest.raises(BudgetError, match="budget: got 5"):
        fedelect.simulate("digits", data=clients(), **QUIET)


def test_a_scenario_file_names_a_folder_and_the_number_of_clients_matches_or_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "sites").mkdir()
    for name, arrays in clients(test=False).items():
        np.savez(tmp_path / "sites" / f"{name}.npz", X=arrays[0], y=arrays[1])
    world = tmp_path / "world.toml"
    text = 'budget = 2\nrounds_per_slot = 1\n{}[data]\nsource = "sites"\n[model]\nstep = 1e-3\nepochs = 1\nbatch = 4\n'
    for key in ("", "clients = 3\n"):
        world.write_text(text.format(key) if not key else text.format(key).replace("[data]", "[data]\niid_clients = 0"))
        assert fedelect.simulate(world, **QUIET).header.client_names == ("ann", "bob", "eve")
    assert Path(fedelect.load_scenario(world).data.source) == tmp_path / "sites"
    world.write_text(text.format("clients = 9\n"))
    with pytest.raises(ConfigurationError, match="clients: got 9, but the data in sites belongs to 3 clients"):
        fedelect.simulate(world, **QUIET)


def test_a_world_over_other_numbers_of_clients_or_with_hard_ones_is_refused() -> None:
    data = as_dataset(clients())
    with pytest.raises(DataError, match=r"clients: got 4, but the data in data belongs to 3 clients; set clients = 3"):
        build(data, clients=4)
    with pytest.raises(DataError, match=r"hard: got a table, but the data in data belongs to its clients already"):
        build(data, hard={"clients": [1]})


def test_flaws_and_drift_apply_to_own_shares_too() -> None:
    scenario = build(as_dataset(clients()), flaws={"swapped_labels": {"clients": [1]}}, drift={"slot": 5, "share": 1.0})
    plain = build(as_dataset(clients()))
    assert np.array_equal(scenario.train_labels[1], 1 - plain.train_labels[1])
    assert np.array_equal(scenario.at(5).train_labels[1], plain.train_labels[1])
    assert np.array_equal(scenario.at(5).global_test_labels, 1 - plain.global_test_labels)
