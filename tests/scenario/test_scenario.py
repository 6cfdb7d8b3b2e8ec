from typing import Literal

import msgspec
import numpy as np
import pytest

from fedelect.scenario import (
    ChannelConfig,
    DataConfig,
    Dataset,
    ModelConfig,
    Scenario,
    ScenarioConfig,
    build_scenario,
    draw_arrivals,
    draw_failures,
)
from fedelect.seeds import stream

TEST = [label % 3 for label in range(60)]


def build(draw: int = 0, **keys: object) -> Scenario:
    rng = stream(0, "toy data")
    data = Dataset(
        rng.integers(0, 256, (300, 6)).astype(np.uint8), np.arange(300) % 3, rng.random((60, 6)), np.arange(60) % 3
    )
    config = ScenarioConfig(clients=8, budget=3, data=DataConfig(iid_clients=2, samples=(5, 30)))
    return build_scenario(msgspec.structs.replace(config, **keys), data, draw=draw)


def test_the_built_arrays_fit_each_other() -> None:
    scenario = build()
    assert (scenario.clients, scenario.budget, scenario.classes, scenario.features) == (8, 3, 3, 6)
    assert scenario.groups == {"iid": (0, 1), "skewed": (2, 3, 4, 5, 6, 7)}
    assert scenario.upload_probability.tolist() == [1.0] * 8
    for client in range(8):
        assert scenario.train_inputs[client].shape == (scenario.sizes[client], 6)
        assert scenario.train_labels[client].shape == (scenario.sizes[client],)
        assert scenario.test_inputs[client].shape[0] == scenario.test_labels[client].shape[0]


def test_inputs_take_the_models_precision() -> None:
    assert build().train_inputs[0].dtype == np.float32
    assert build(model=ModelConfig(precision="float64")).test_inputs[0].dtype == np.float64


def test_all_arrays_are_read_only() -> None:
    scenario = build()
    for array in (scenario.sizes, scenario.edges, scenario.positions_km, *scenario.train_inputs, *scenario.test_labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_groups_nobody_is_in_are_left_out() -> None:
    assert build(data=DataConfig(skew="iid", iid_clients=0, samples=(5, 9))).groups == {"iid": tuple(range(8))}
    assert build(data=DataConfig(iid_clients=0, samples=(5, 9))).groups == {"skewed": tuple(range(8))}


def test_building_again_gives_the_same_world_and_another_draw_another() -> None:
    one, same, other = build(), build(), build(draw=1)
    assert np.array_equal(one.train_inputs[3], same.train_inputs[3])
    assert np.array_equal(one.positions_km, same.positions_km)
    assert not np.array_equal(one.positions_km, other.positions_km)
    assert not np.array_equal(one.sizes, other.sizes)


def test_a_channel_setting_does_not_move_data_or_places() -> None:
    one, other = build(), build(channel=ChannelConfig(upload_probability="derived"))
    assert np.array_equal(one.train_inputs[3], other.train_inputs[3])
    assert np.array_equal(one.edges, other.edges)
    distance = np.hypot(*(other.positions_km - other.server_km).T)
    assert np.argsort(-distance).tolist() == np.argsort(other.upload_probability).tolist()


def test_arrivals_have_a_row_for_each_round_and_a_column_for_each_member() -> None:
    scenario = build(channel=ChannelConfig(upload_probability=0.5))
    wide = draw_arrivals(scenario, (1, 4, 6), seed=9, trial=1, slot=2)
    assert wide.shape == (15, 3)
    assert np.array_equal(wide[:, 1:2], draw_arrivals(scenario, (4,), seed=9, trial=1, slot=2))


def test_where_nothing_is_flawed_the_clean_test_shares_are_the_same_arrays() -> None:
    scenario = build()
    assert scenario.flaws == {} and not scenario.flawed.any() and scenario.flawed.shape == (8,)
    assert all(
        one is other for one, other in zip(scenario.clean_test_inputs, scenario.test_inputs, strict=True)
    ) and all(one is other for one, other in zip(scenario.clean_test_labels, scenario.test_labels, strict=True))
    assert scenario.at(1) is scenario is scenario.at(1000)
    assert draw_failures(scenario, (1, 4), seed=1, trial=0, slot=1).tolist() == [False, False]


@pytest.mark.parametrize("test_share", ["global", "own"])
def test_the_global_test_set_is_the_whole_test_part_of_the_data(test_share: Literal["global", "own"]) -> None:
    scenario = build(data=DataConfig(iid_clients=2, samples=(5, 30), test_share=test_share))
    rng = stream(0, "toy data")
    rng.integers(0, 256, (300, 6))
    rows = {(*row, label) for row, label in zip(rng.random((60, 6)).astype(np.float32).tolist(), TEST, strict=True)}
    held = zip(scenario.global_test_inputs.tolist(), scenario.global_test_labels.tolist(), strict=True)
    assert {(*row, label) for row, label in held} == rows
    assert scenario.global_test_inputs.shape == (60, 6) and scenario.global_test_inputs.dtype == np.float32
    if test_share == "global":  # held once
        assert all(np.shares_memory(own, scenario.global_test_inputs) for own in scenario.test_inputs)
