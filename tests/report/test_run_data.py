"""What is gathered and packed for the charts is what the records say."""

import base64
from typing import Any

import numpy as np
import pytest
from tests.sample_runs import sample_record, sample_run

from fedelect.equations.intervals import mean_band
from fedelect.records import RunRecords, from_array, opinion_curves
from fedelect.report import analyse_runs, load_runs
from fedelect.report.chart_data import chart_data, client_positions
from fedelect.report.run_data import ALL_CLIENTS, ELECTED, RunAccumulator, RunData
from fedelect.report.worlds import group_worlds
from fedelect.vocabulary import Ints


def with_beliefs(**changes: Any) -> RunRecords:
    run = sample_run(framework="da", **changes)
    records = [
        sample_record(
            run.header,
            one.selector,
            one.trial,
            one.slot,
            beliefs=from_array([0.1 * client if client != 1 else float("nan") for client in range(7)]),
        )
        for one in run.records
    ]
    return RunRecords(run.header, tuple(records))


def chart_data_of(*runs: RunData) -> dict[str, Any]:
    return chart_data(group_worlds(analyse_runs(runs)))


def unpacked(packed: dict[str, Any], *shape: int) -> Ints:
    array = np.frombuffer(base64.b64decode(packed["text"]), dtype=f"<u{packed['width']}").astype(np.int64)
    missing = 0xFFFF if packed["width"] == 2 else 0xFFFFFFFF
    return np.where(array == missing, -1, array).reshape(shape)


def test_the_frames_of_the_map_say_what_the_records_say() -> None:
    run = with_beliefs()
    (data,) = chart_data_of(*load_runs([run]))["runs"]
    assert data["map"]["slots"] == [1, 2, 3, 4, 5, 6] and data["map"]["trials"] == 2
    for record in run.records:
        frames = data["map"]["frames"][run.header.labels.index(record.selector)]
        place = (record.trial, record.slot - 1)
        members = unpacked(frames["members"], 2, 6, 3)[place]
        assert tuple(members) == record.cohort
        assert tuple(unpacked(frames["arrivals"], 2, 6, 3)[place]) == record.arrivals
        assert unpacked(frames["rounds"], 2, 6)[place] == 15
        assert data["map"]["statuses"][unpacked(frames["status"], 2, 6)[place]] == "done"
        opinions = unpacked(frames["opinions"], 2, 6, 7)[place]
        assert record.opinions is not None
        assert opinions.tolist() == [-1 if one is None else round(one * 1e4) for one in record.opinions]
        assert unpacked(frames["beliefs"], 2, 6, 7)[place].tolist() == [0, -1, 2000, 3000, 4000, 5000, 6000]
        before = [r for r in run.records if (r.selector, r.trial) == (record.selector, record.trial)]
        counts = [sum(client in r.cohort for r in before if r.slot <= record.slot) for client in range(7)]
        assert unpacked(frames["elections"], 2, 6, 7)[place].tolist() == counts


def test_the_curves_are_the_means_and_half_widths_of_the_records() -> None:
    run = with_beliefs()
    (data,) = chart_data_of(*load_runs([run]))["runs"]
    for selector in data["selectors"]:
        band = mean_band(opinion_curves(run)[selector["label"]])
        assert selector["curves"]["opinion"]["mean"] == pytest.approx(band.mean.tolist(), rel=1e-5)
        assert selector["curves"]["opinion"]["half"] == pytest.approx(band.half_width.tolist(), rel=1e-5)
        assert selector["beliefs"][ALL_CLIENTS]["mean"] == pytest.approx([2.0 / 6.0] * 6, rel=1e-5)
        assert selector["beliefs"]["iid"]["mean"] == pytest.approx([0.1] * 6, rel=1e-5)
        assert sum(selector["shares"]) == pytest.approx(3.0, rel=1e-5)
    best = data["selectors"][0]
    assert best["beliefs"][ELECTED]["mean"] == pytest.approx([0.1] * 6, rel=1e-5)
    assert best["shares"] == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]


def test_records_may_come_in_any_order() -> None:
    run = with_beliefs()
    forwards, backwards = (RunAccumulator(run.header, name="x") for _ in range(2))
    for record in run.records:
        forwards.add(record)
    for record in reversed(run.records):
        backwards.add(record)
    assert chart_data_of(forwards.result()) == chart_data_of(backwards.result())


def test_what_was_gathered_does_not_change_when_more_comes() -> None:
    run = with_beliefs()
    accumulator = RunAccumulator(run.header, name="x")
    for record in run.records[:4]:
        accumulator.add(record)
    early = accumulator.result()
    before = chart_data_of(early)
    for record in run.records[4:]:
        accumulator.add(record)
    assert chart_data_of(early) == before
    assert chart_data_of(accumulator.result()) != before


def test_a_cohort_larger_than_the_budget_is_drawn_whole() -> None:
    run = sample_run()
    cohort = (0, 1, 2, 3, 4)
    wide = sample_record(run.header, "best", 0, 1, cohort=cohort, arrivals=(15, 14, 13, 12, 11))
    (data,) = chart_data_of(*load_runs([RunRecords(run.header, (wide, *run.records[1:]))]))["runs"]
    frames = data["map"]["frames"][0]
    assert unpacked(frames["members"], 2, 6, 5)[0, 0].tolist() == list(cohort)
    assert unpacked(frames["members"], 2, 6, 5)[0, 1].tolist() == [0, 1, 2, -1, -1]
    assert unpacked(frames["arrivals"], 2, 6, 5)[0, 0].tolist() == [15, 14, 13, 12, 11]


def test_beliefs_beyond_one_keep_four_digits() -> None:
    run = with_beliefs()
    large = [sample_record(run.header, r.selector, r.trial, r.slot, beliefs=(12345.678,) * 7) for r in run.records]
    (data,) = chart_data_of(*load_runs([RunRecords(run.header, tuple(large))]))["runs"]
    decimals = data["map"]["beliefDecimals"]
    value = unpacked(data["map"]["frames"][0]["beliefs"], 2, 6, 7)[0, 0, 0] / 10.0**decimals
    assert value == pytest.approx(12345.678, rel=1e-4)


def test_places_that_are_not_on_record_are_put_on_a_circle() -> None:
    places, square, known = client_positions(sample_run().header)
    assert not known and square == (0.0, 0.0, 1.0, 1.0)
    assert np.hypot(*(places - 0.5).T) == pytest.approx(np.full(7, 0.42))


def test_the_square_is_the_scenarios_or_holds_all_clients() -> None:
    inside = tuple((0.1 * client, 0.2) for client in range(7))
    header = sample_run(positions_km=inside, scenario={"topology": {"side_km": 1.0}}).header
    assert client_positions(header)[1:] == ((0.0, 0.0, 1.0, 1.0), True)
    far = tuple((100.0 + client, -5.0) for client in range(7))
    left, bottom, right, top = client_positions(sample_run(positions_km=far).header)[1]
    assert left < 100.0 and right > 106.0 and bottom < -5.0 < top
    assert right - left == pytest.approx(top - bottom)
