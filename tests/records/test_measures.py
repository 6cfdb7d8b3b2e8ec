"""What is read from the measures of a run: curves, figures of each selector, and tables."""

import json
import math

import msgspec
import numpy as np
import pytest
from scipy import stats
from tests.reference import metrics as literal
from tests.sample_runs import measured_run, sample_run

from fedelect.records import (
    Measures,
    MeasureSummary,
    RunRecords,
    SelectorSummary,
    accuracy_curves,
    curves,
    summarise,
    summary_json,
    summary_table,
    tabulate,
    time_to_target,
)

SLOTS = 30


def of(run: RunRecords, label: str, name: str) -> list[list[float]]:
    """A measure of a selector, trial by trial and slot by slot, read one by one from the records."""
    found = [[math.nan] * run.header.slots for _ in range(run.header.trials)]
    for record in run.records:
        value = getattr(record.measures, name) if record.measures is not None else None
        if record.selector == label and value is not None:
            found[record.trial][record.slot - 1] = value
    return found


def by_label(run: RunRecords) -> dict[str, SelectorSummary]:
    return {row.label: row for row in summarise(run)}


def measured(run: RunRecords, label: str) -> MeasureSummary:
    found = by_label(run)[label].measured
    assert found is not None
    return found


def without(run: RunRecords, *labels: str) -> RunRecords:
    """The run with some selectors left out of header and records."""
    entries = tuple(entry for entry in run.header.selectors if entry.label not in labels)
    header = msgspec.structs.replace(run.header, selectors=entries)
    return RunRecords(header, tuple(record for record in run.records if record.selector not in labels))


def test_curves_hold_what_was_measured_and_nan_where_nothing_was() -> None:
    run = measured_run(until=27)
    table = tabulate(run).selectors["mine"].measures
    assert table is not None
    for name in Measures.__struct_fields__:
        np.testing.assert_array_equal(getattr(table, name), of(run, "mine", name))
    np.testing.assert_array_equal(accuracy_curves(run)["mine"], of(run, "mine", "accuracy"))
    np.testing.assert_array_equal(curves(run, "accuracy")["mine"], of(run, "mine", "accuracy"))
    assert np.isnan(table.accuracy[:, 27:]).all() and not np.isnan(table.accuracy[:, :27]).any()


def test_the_figures_of_a_selector_are_those_worked_out_literally() -> None:
    run = measured_run()
    found = measured(run, "mine")
    finals = {
        label: [literal.final_mean(row, SLOTS) for row in of(run, label, "accuracy")] for label in run.header.labels
    }
    critical = float(stats.t.ppf(0.975, 3))
    lows = [row[-1] for row in of(run, "mine", "low_accuracy")]
    expected = {
        "final_accuracy": finals["mine"],
        "final_low_accuracy": lows,
        "flawed_share": [sum(row) / SLOTS for row in of(run, "mine", "flawed_share")],
        "evaluations": [7.0 * SLOTS] * 4,
        "bytes_down": [sum(row) for row in of(run, "mine", "bytes_down")],
        "bytes_up": [500.0 * SLOTS] * 4,
        "difference": [a - b for a, b in zip(finals["mine"], finals["random"], strict=True)],
        "low_difference": [a - row[-1] for a, row in zip(lows, of(run, "random", "low_accuracy"), strict=True)],
        "oracle_gap": [a - b for a, b in zip(finals["oracle"], finals["random"], strict=True)],
    }
    for name, values in expected.items():
        mean, half = literal.interval(values, critical)
        interval = getattr(found, name)
        assert interval.mean == pytest.approx(mean), name
        assert interval.half_width == pytest.approx(half, abs=1e-12), name
    assert {slot: one.mean for slot, one in found.accuracy_at.items()} == {
        25: pytest.approx(sum(row[24] for row in of(run, "mine", "accuracy")) / 4)
    }
    assert found.low_accuracy_at[25].mean == pytest.approx(sum(row[24] for row in of(run, "mine", "low_accuracy")) / 4)


def test_slots_to_random_are_those_to_its_mean_final_accuracy() -> None:
    run = measured_run()
    finals = [literal.final_mean(row, SLOTS) for row in of(run, "random", "accuracy")]
    target = sum(finals) / 4
    times = [literal.time_to_target(row, target) for row in of(run, "mine", "accuracy")]
    found = measured(run, "mine").slots_to_random
    assert found is not None and found.target == pytest.approx(target)
    assert found.slots.mean == sum(slot for slot, _, _ in times) / 4
    assert (found.reached, found.trials) == (sum(reached for _, _, reached in times), 4)
    assert time_to_target(run, target, by="accuracy")["mine"].slot.tolist() == [slot for slot, _, _ in times]


def test_at_equal_bytes_each_selector_has_sent_what_the_thriftiest_sends_in_all() -> None:
    run = measured_run()
    sent = {
        label: [
            [down + up for down, up in zip(*rows, strict=True)]
            for rows in zip(of(run, label, "bytes_down"), of(run, label, "bytes_up"), strict=True)
        ]
        for label in run.header.labels
    }
    for label in run.header.labels:
        values = []
        for trial in range(4):
            budget = min(sum(rows[trial]) for rows in sent.values())
            end = literal.slots_within(sent[label][trial], budget)
            values.append(literal.final_mean(of(run, label, "accuracy")[trial], end))
            assert end == (SLOTS if label != "mine" else literal.slots_within(sent["mine"][trial], budget))
        found = measured(run, label).accuracy_at_equal_bytes
        assert found.mean == pytest.approx(sum(values) / 4)
    assert measured(run, "mine").accuracy_at_equal_bytes.mean < measured(run, "mine").final_accuracy.mean
    assert measured(run, "oracle").accuracy_at_equal_bytes == measured(run, "oracle").final_accuracy


def test_unknown_bytes_of_one_selector_leave_nothing_to_compare() -> None:
    run = measured_run()
    records = tuple(
        msgspec.structs.replace(one, measures=Measures(accuracy=0.5)) if one.selector == "random" else one
        for one in run.records
    )
    found = measured(RunRecords(run.header, records), "mine")
    assert math.isnan(found.accuracy_at_equal_bytes.mean) and not math.isnan(found.final_accuracy.mean)


def test_closure_is_for_selectors_beside_both_baselines_and_a_clear_gap() -> None:
    run = measured_run()
    finals = {
        label: [literal.final_mean(row, SLOTS) for row in of(run, label, "accuracy")] for label in run.header.labels
    }
    found = measured(run, "mine").closure
    assert found is not None
    assert found.value == pytest.approx(literal.closure(finals["mine"], finals["random"], finals["oracle"]))
    assert found.low < found.value < found.high and found.trials == 4
    assert measured(run, "mine").closure == found, "the bootstrap is the same every time"
    assert measured(run, "random").closure is None and measured(run, "oracle").closure is None
    for missing in ("random", "oracle"):
        rest = measured(without(run, missing), "mine")
        assert rest.closure is None and rest.oracle_gap is None
    assert measured(measured_run(trials=1), "mine").closure is None


def test_without_random_there_is_no_difference_to_it() -> None:
    found = measured(without(measured_run(), "random"), "mine")
    assert (found.difference, found.low_difference, found.equal_bytes_difference, found.slots_to_random) == (None,) * 4
    assert measured(measured_run(), "random").difference is None


def test_a_slot_that_trained_nobody_counts_with_the_model_before_it() -> None:
    run = measured_run()
    gone = {("mine", 0, slot) for slot in (25, 29, 30)}
    records = tuple(
        msgspec.structs.replace(one, measures=None) if (one.selector, one.trial, one.slot) in gone else one
        for one in run.records
    )
    changed = RunRecords(run.header, records)
    before, after = of(run, "mine", "accuracy"), tabulate(changed).measured
    assert after.final_accuracy("mine")[0] == pytest.approx(
        (sum(before[0][20:24] + before[0][25:28]) + before[0][23] + 2 * before[0][27]) / 10
    )
    at_25 = measured(changed, "mine").accuracy_at[25]
    assert at_25.mean == pytest.approx((before[0][23] + sum(row[24] for row in before[1:])) / 4)


def test_a_run_that_is_not_finished_is_compared_at_the_same_slots() -> None:
    run = measured_run()
    records = tuple(one for one in run.records if one.slot <= 12 or (one.selector, one.trial) == ("mine", 0))
    found = tabulate(RunRecords(run.header, records)).measured
    assert found.ends.tolist() == [12] * 4
    expected = [literal.final_mean(row, 12) for row in of(run, "mine", "accuracy")]
    np.testing.assert_allclose(found.final_accuracy("mine"), expected)
    assert found.summary("mine") is not None and measured(RunRecords(run.header, records), "mine").accuracy_at == {}


def test_a_run_without_measures_says_nothing_of_them() -> None:
    run = sample_run()
    assert all(row.measured is None for row in summarise(run))
    table = summary_table(tabulate(run))
    assert table.measures is None and "clean" not in str(table) and table._repr_html_().count("<table>") == 1
    assert all("measured" not in row for row in summary_json(tabulate(run))["selectors"])


def test_shares_of_elections_are_shown_only_of_groups_that_leave_somebody_out() -> None:
    table = summary_table(tabulate(sample_run())).opinions
    assert table.columns[-2:] == ("iid (3)", "skewed (4)") and "share of all elections" in table.caption
    table = summary_table(tabulate(sample_run(groups={"skewed": tuple(range(7))}))).opinions
    assert not any("skewed" in column for column in table.columns) and "elections" not in table.caption


def test_the_table_of_a_measured_run_has_a_second_part_with_the_columns_that_have_figures() -> None:
    table = summary_table(tabulate(measured_run()))
    assert table.measures is not None
    assert table.measures.columns == (
        "clean accuracy", "at 25", "at the end", "minus random", "closure", "slots to random", "low", "flawed", "MB",
        "at equal bytes", "evaluations",
    )  # fmt: skip
    mine = dict(zip(table.measures.columns, table.measures.cells[0], strict=True))
    found = table[0].measured
    assert found is not None and found.closure is not None and found.difference is not None
    assert mine["minus random"] == f"+{found.difference.mean:.3f}±{found.difference.half_width:.3f}"
    assert mine["closure"] == f"{found.closure.value:.2f} [{found.closure.low:.2f}, {found.closure.high:.2f}]"
    assert mine["MB"] == f"{(found.bytes_down.mean + found.bytes_up.mean) / 1e6:.3g}"
    random = dict(zip(table.measures.columns, table.measures.cells[1], strict=True))
    assert random["minus random"] == random["closure"] == "-"
    assert table.notes[0].startswith("mine is first: accuracy 0.783")
    explained = table.measures.explain(table.measures.columns)
    assert str(table).endswith(f"{explained}\n{table.notes[0]}") and table._repr_html_().count("<table>") == 2
    thrifty = summary_table(tabulate(without(measured_run(), "mine"))).blocks[1].columns
    assert "at equal bytes" not in thrifty, "both sent as much"
    assert "closure" not in summary_table(tabulate(without(measured_run(), "oracle"))).blocks[1].columns


def test_measures_are_json_without_nan() -> None:
    figures = summary_json(tabulate(measured_run(until=0)))
    assert "NaN" not in json.dumps(figures)
    figures = json.loads(json.dumps(summary_json(tabulate(measured_run())), allow_nan=False))
    assert figures["selectors"][0]["measured"]["accuracy_at"]["25"]["count"] == 4
