"""How long clients take, and the channel they report."""

import math

import msgspec
import numpy as np
import pytest
from tests.worlds import digits, tiny

from fedelect.scenario import (
    ScenarioConfig,
    SystemConfig,
    build_scenario,
    draw_arrivals,
    parse_scenario,
    scenario_toml,
    simulated_signals,
)
from fedelect.scenario.system import draw_jitter, draw_snr_db, draw_speeds, training_seconds, upload_seconds


def test_times_are_worked_out_by_hand() -> None:
    config = SystemConfig(seconds_per_sample=0.01, bandwidth_hz=2e6)
    assert training_seconds(config, np.array([100, 50]), np.array([1.0, 0.5]), epochs=3).tolist() == [3.0, 3.0]
    # log2(1 + 3) = 2 bits a second and Hz
    assert upload_seconds(config, np.array([3.0, 1.0]), model_bits=8_000_000).tolist() == [2.0, 4.0]


def test_speeds_have_median_one_and_the_stated_spread() -> None:
    speeds = draw_speeds(SystemConfig(speed_spread=0.5), 20_000, seed=3)
    assert np.median(speeds) == pytest.approx(1.0, abs=0.02) and np.log(speeds).std() == pytest.approx(0.5, abs=0.01)
    assert draw_speeds(SystemConfig(speed_spread=0.0), 5, seed=3).tolist() == [1.0] * 5
    assert draw_speeds(SystemConfig(), 5, seed=3, draw=1).tolist() != draw_speeds(SystemConfig(), 5, seed=3).tolist()


def test_jitter_is_one_unless_asked_for() -> None:
    assert draw_jitter(SystemConfig(), 4, seed=1, trial=0, slot=1).tolist() == [1.0] * 4
    some = [draw_jitter(SystemConfig(jitter=0.3), 4, seed=1, trial=0, slot=slot) for slot in (1, 1, 2)]
    assert np.array_equal(some[0], some[1]) and not np.array_equal(some[0], some[2])


def test_a_reported_snr_above_the_threshold_is_an_upload_that_arrives() -> None:
    base = msgspec.to_builtins(tiny())
    base["channel"] = {"upload_probability": "derived", "threshold_db": 15.0}
    world = build_scenario(msgspec.convert(base, ScenarioConfig), digits())
    seen = set()
    for slot in range(1, 30):
        snr = draw_snr_db(world.mean_snr, rounds=world.config.rounds_per_slot, seed=7, trial=2, slot=slot)
        arrived = draw_arrivals(world, tuple(range(6)), seed=7, trial=2, slot=slot)[0]
        assert (snr > 15.0).tolist() == arrived.tolist()
        seen |= set(arrived.tolist())
    assert seen == {True, False}


def test_signals_are_those_of_this_slot_and_forecasts_of_the_next() -> None:
    world = build_scenario(tiny(), digits())
    signals = simulated_signals(world, (1, 4), model_bits=1000, seed=5, trial=0, slot=3)
    assert np.flatnonzero(~np.isnan(signals["seconds"])).tolist() == [1, 4]
    total = signals["training_s"] + signals["upload_s"]
    assert signals["seconds"][[1, 4]].tolist() == total[[1, 4]].tolist()
    assert signals["sizes"].tolist() == world.sizes.tolist()
    expected = draw_snr_db(world.mean_snr, rounds=2, seed=5, trial=0, slot=4)
    assert signals["channel_db"].tolist() == expected.tolist()


def test_a_table_left_out_is_no_part_of_what_is_written_and_stands_in_the_text_as_a_comment() -> None:
    config = tiny()
    assert "system" not in msgspec.to_builtins(config)
    text = scenario_toml(config)
    assert "# [system]" in text and "# jitter = 0.0" in text and parse_scenario(text) == config
    given = parse_scenario(text.replace("# [system]", "[system]").replace("# jitter = 0.0", "jitter = 0.25"))
    assert given.system == SystemConfig(jitter=0.25) and msgspec.to_builtins(given)["system"]["jitter"] == 0.25
    assert parse_scenario(scenario_toml(given)) == given


def test_the_mean_snr_over_the_clients_is_the_stated_one() -> None:
    world = build_scenario(tiny(), digits())
    assert 10.0 * math.log10(world.mean_snr.mean()) == pytest.approx(world.config.channel.mean_snr_db)
