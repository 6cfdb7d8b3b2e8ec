import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.reference import metrics as literal
from tests.sample_runs import sample_header, sample_record, sample_run

from fedelect.errors import ConfigurationError, RunError
from fedelect.records import (
    RunRecords,
    SelectorEntry,
    best_fixed,
    curves,
    gaps_to_best,
    group_shares,
    mean_opinion,
    open_run,
    opinion_curves,
    read_table,
    regret_curves,
    running_mean_curves,
    selection_counts,
    tabulate,
    time_to_target,
)

NOTHING = {"cohort": (), "arrivals": (), "rounds": 0, "opinions": None, "reward": None}


def partial_run() -> RunRecords:
    """Slots 1 to 4 of 6; slot 2 of the random selector's trial 0 was abandoned, slot 3 of its trial 1 skipped."""
    run = sample_run(until=4)
    special: dict[tuple[str, int, int], dict[str, Any]] = {
        ("random", 0, 2): {"status": "abandoned", "note": "the engine failed"},
        ("random", 1, 3): {"status": "skipped", "note": "no agreement", **NOTHING},
    }
    records = tuple(
        sample_record(run.header, *key, **special[key])
        if (key := (record.selector, record.trial, record.slot)) in special
        else record
        for record in run.records
    )
    return RunRecords(run.header, records)


def test_curves_hold_the_mean_of_the_opinions_given_and_nan_where_there_is_none() -> None:
    run = partial_run()
    result = opinion_curves(run)
    expected = {label: np.full((2, 6), np.nan) for label in ("best", "random")}
    for record in run.records:
        if record.status == "done":
            given = [value for value in record.opinions or () if value is not None]
            expected[record.selector][record.trial, record.slot - 1] = sum(given) / len(given)
    for label in expected:
        np.testing.assert_allclose(result[label], expected[label], rtol=1e-12)
    assert np.isnan(result["random"][0]).tolist() == [False, True, False, False, True, True]


def test_a_record_without_opinions_counts_with_its_reward() -> None:
    header = sample_header()
    assert mean_opinion(sample_record(header, "best", 0, 1, opinions=None, reward=0.75)) == 0.75
    assert mean_opinion(sample_record(header, "best", 0, 1, opinions=(None,) * 7, reward=0.75)) is None
    given = (0.25, None, 0.75, None, None, None, None)
    assert mean_opinion(sample_record(header, "best", 0, 1, opinions=given, reward=0.1)) == 0.5
    assert mean_opinion(sample_record(header, "best", 0, 1, status="abandoned", note="why")) is None


def test_running_means_go_on_over_an_abandoned_slot_and_end_with_the_record() -> None:
    run = partial_run()
    opinion = opinion_curves(run)["random"][0].tolist()
    plain = running_mean_curves(run)["random"][0]
    np.testing.assert_allclose(plain[:4], literal.running_mean(opinion)[:4])
    assert plain[1] == plain[0] and np.isnan(plain[4:]).all()
    counted = running_mean_curves(run, with_untrained=True)["random"][0]
    np.testing.assert_allclose(counted[:4], literal.running_mean(opinion, 0.125)[:4])
    np.testing.assert_array_equal(curves(run, "running mean with untrained")["random"][0], counted)
    np.testing.assert_array_equal(curves(run, "running mean")["random"][0], plain)
    np.testing.assert_array_equal(curves(run, "opinion")["random"][0], opinion)


def test_a_run_that_does_not_know_its_untrained_model_says_so() -> None:
    with pytest.raises(ConfigurationError, match="does not hold the untrained model's opinion"):
        running_mean_curves(sample_run(untrained=None), with_untrained=True)


def test_elections_and_uploads_are_counted_for_each_trial_and_client() -> None:
    run = partial_run()
    table = tabulate(run).selectors["random"]
    chosen, tried, arrived = (np.zeros((2, 7), dtype=np.int64) for _ in range(3))
    for record in run.records:
        if record.selector == "random":
            for client, count in zip(record.cohort, record.arrivals, strict=True):
                chosen[record.trial, client] += 1
                tried[record.trial, client] += record.rounds
                arrived[record.trial, client] += count
    np.testing.assert_array_equal(selection_counts(run)["random"], chosen)
    np.testing.assert_array_equal(table.attempts, tried)
    np.testing.assert_array_equal(table.arrivals, arrived)
    assert (table.done, table.abandoned, table.skipped) == (6, 1, 1)
    # An abandoned election is one; a skipped slot elects nobody.
    assert chosen.sum(axis=1).tolist() == [4 * 3, 3 * 3]
    assert tabulate(run).recorded == len(run.records)


def test_group_shares_are_shares_of_all_elections() -> None:
    run = partial_run()
    shares = group_shares(run)
    assert shares["best"]["iid"].tolist() == [1.0, 1.0]
    for trial, counts in enumerate(selection_counts(run)["random"].tolist()):
        expected = literal.group_share(counts, [3, 4, 5, 6])
        assert shares["random"]["skewed"][trial] == pytest.approx(expected)


def test_regret_and_time_to_target_follow_each_trial() -> None:
    run = partial_run()
    opinion = opinion_curves(run)["random"]
    regret = regret_curves(run, 0.9)["random"]
    for trial in range(2):
        np.testing.assert_allclose(regret[trial, :4], literal.regret(opinion[trial].tolist(), 0.9)[:4])
        assert np.isnan(regret[trial, 4:]).all()
        for by in ("opinion", "running mean"):
            curve = curves(run, by)["random"][trial].tolist()
            expected = literal.time_to_target(curve, 0.5)
            times = time_to_target(run, 0.5, by=by)["random"]
            assert (times.slot[trial], times.value[trial], times.reached[trial]) == expected


def test_the_gap_is_to_the_best_of_the_fixed_cohorts_paired_by_slot() -> None:
    fixed = tuple(SelectorEntry(label=label, kind="FixedCohort") for label in ("poor", "good"))
    header = sample_header(selectors=(*fixed, SelectorEntry(label="random", kind="RandomCohort")), trials=2, slots=2)
    opinion = {"poor": 0.25, "good": 0.75, "random": 0.875}
    records = [
        sample_record(header, label, trial, slot, opinions=(opinion[label] - 0.125 * trial,) * 7)
        for label in opinion
        for trial in range(2)
        for slot in (1, 2)
        if (label, slot) != ("random", 2)
    ]
    run = RunRecords(header, tuple(records))
    assert best_fixed(run) == "good"
    gaps = gaps_to_best(run)
    assert gaps is not None
    assert {label: gap.tolist() for label, gap in gaps.items()} == {
        "poor": [0.5, 0.5],
        "good": [0.0, 0.0],
        "random": [-0.125, -0.125],
    }


def test_without_a_fixed_cohort_that_was_played_there_is_no_gap() -> None:
    assert gaps_to_best(sample_run(selectors=(SelectorEntry(label="random", kind="RandomCohort"),))) is None
    assert best_fixed(sample_run(until=0)) is None


def test_a_table_read_from_disk_equals_the_table_of_the_run(tmp_path: Path) -> None:
    run = partial_run()
    with open_run(tmp_path, run.header) as writer:
        writer.append(run.records)
    from_disk, in_memory = read_table(tmp_path), tabulate(run)
    assert tabulate(from_disk) is from_disk
    for label, expected in in_memory.selectors.items():
        one = from_disk.selectors[label]
        for name in ("opinion", "recorded", "selections", "attempts", "arrivals"):
            np.testing.assert_array_equal(getattr(one, name), getattr(expected, name))
        assert (one.done, one.abandoned, one.skipped) == (expected.done, expected.abandoned, expected.skipped)


def test_an_empty_run_has_empty_curves() -> None:
    run = sample_run(until=0)
    assert np.isnan(opinion_curves(run)["best"]).all()
    assert all(math.isnan(share) for share in group_shares(run)["best"]["iid"])
    assert not time_to_target(run, 0.5)["best"].reached.any()


def test_a_run_put_together_from_records_that_do_not_fit_is_refused() -> None:
    run = sample_run()
    stranger = sample_record(run.header, "nobody", 0, 1)
    with pytest.raises(RunError, match="no such selector"):
        tabulate(RunRecords(run.header, (stranger,)))
