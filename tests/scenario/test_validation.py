"""Samples that the server holds: of each class, in no client's hands, drawn from the scenario's seed."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedelect.errors import ConfigurationError, DataError
from fedelect.scenario import (
    Dataset,
    ScenarioConfig,
    ValidationConfig,
    build_scenario,
    change_scenario,
    parse_scenario,
    scenario_toml,
)
from fedelect.scenario.validation import hold_out


def numbered(samples: int = 120, classes: int = 4, *, owners: int = 0) -> Dataset:
    """Data whose inputs are the samples' own numbers."""
    labels = np.arange(samples) % classes
    inputs = np.arange(samples, dtype=np.float64)[:, None]
    test = -1.0 - np.arange(40.0)[:, None]
    belongs: dict[str, Any] = (
        {} if not owners else {"owners": np.arange(samples) % owners, "test_owners": np.arange(40) % owners}
    )
    return Dataset(inputs, labels, test, np.arange(40) % classes, "numbered", **belongs)


def config(**changes: Any) -> ScenarioConfig:
    base = {
        "clients": 5,
        "budget": 2,
        "data": {"source": "arrays", "samples": [10, 20], "skew": "dirichlet", "iid_clients": 1},
        "model": {"precision": "float64"},
        "validation": {"share": 0.2},
    }
    return change_scenario(ScenarioConfig(), base | changes)


def held_by_clients(scenario: Any) -> set[float]:
    return {float(value) for inputs in scenario.train_inputs for value in inputs[:, 0]}


@pytest.mark.parametrize("owners", [0, 5])
def test_no_client_holds_a_sample_of_the_server(owners: int) -> None:
    data = numbered(owners=owners)
    scenario = build_scenario(config(), data)
    server = scenario.validation_inputs[:, 0]
    assert server.size == 24 and held_by_clients(scenario).isdisjoint(server.tolist())
    assert np.bincount(scenario.validation_labels).tolist() == [6, 6, 6, 6]
    assert (scenario.validation_labels == data.labels[server.astype(int)]).all()
    assert not scenario.validation_inputs.flags.writeable


def test_without_the_table_the_server_holds_nothing_and_nothing_else_changes() -> None:
    plain = change_scenario(ScenarioConfig(), {"clients": 5, "budget": 2, "data": {"samples": [10, 20]}})
    scenario = build_scenario(plain, numbered())
    assert scenario.validation_inputs.shape == (0, 1) and scenario.validation_labels.shape == (0,)


def test_what_is_held_follows_from_seed_and_draw() -> None:
    data = numbered()
    taken = [build_scenario(config(), data, draw=draw).validation_inputs.ravel().tolist() for draw in (0, 0, 1)]
    assert taken[0] == taken[1] != taken[2]
    other = build_scenario(config(seed=2), data)
    assert other.validation_inputs.ravel().tolist() != taken[0]


def test_flaws_spare_the_server_and_drift_does_not() -> None:
    flawed = build_scenario(config(flaws={"random_labels": {"share": 1.0}}), numbered())
    assert (flawed.validation_labels == flawed.validation_inputs[:, 0].astype(int) % 4).all()
    drifted = build_scenario(config(drift={"slot": 3, "share": 1.0}), numbered())
    before, after = drifted.at(2).validation_labels, drifted.at(3).validation_labels
    names = {int(old): int(new) for old, new in zip(before, after, strict=True)}
    assert (before != after).any()
    renamed = [names[int(label)] for label in drifted.at(2).global_test_labels]
    assert drifted.at(3).global_test_labels.tolist() == renamed  # the same new names as everywhere


@given(st.integers(2, 60), st.integers(2, 5), st.floats(0.01, 0.99), st.integers(1, 6), st.integers(0, 100))
def test_every_class_and_every_client_keeps_some(
    samples: int, classes: int, share: float, owners: int, seed: int
) -> None:
    samples, owners = max(samples, classes, owners), min(owners, 40)
    data = numbered(samples, classes, owners=owners)
    try:
        part = hold_out(ValidationConfig(share=share), data, seed=seed)
    except DataError as refused:
        assert "raise it" in str(refused)
        return
    assert len(part.labels) + len(part.rest.labels) == samples
    assert set(part.rest.labels.tolist()) == set(range(classes)) and part.rest.owners is not None
    assert set(part.rest.owners.tolist()) == set(range(owners))
    everything = sorted([*part.inputs[:, 0].tolist(), *part.rest.inputs[:, 0].tolist()])
    assert everything == list(range(samples))


def test_a_share_that_is_no_sample_is_refused() -> None:
    with pytest.raises(DataError, match=r"validation.share: got 0.01, which is no sample of any class of numbered"):
        build_scenario(config(validation={"share": 0.01}), numbered())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[validation]\nshare = 0.0", r"validation\.share: got 0\.0; allowed: a number > 0 and < 1"),
        ("[validation]\nshare = 1.0", r"validation\.share: got 1\.0; allowed: a number > 0 and < 1"),
        ('[validation]\nscore = "auc"', r"validation\.score: got 'auc'; allowed: \"accuracy\" or \"loss\""),
        ("[validation]\nshares = 0.1", r"validation\.shares: got an unknown key \(did you mean \"share\"\?\)"),
    ],
)
def test_a_wrong_key_is_named(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        parse_scenario(text)


def test_the_table_is_written_and_read_back() -> None:
    text = scenario_toml(config(validation={"share": 0.25, "score": "loss"}))
    assert "[validation]" in text and "share of each class of the training data" in text
    assert parse_scenario(text).validation == ValidationConfig(share=0.25, score="loss")
    assert "# [validation]" in scenario_toml(ScenarioConfig())
