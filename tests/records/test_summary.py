import math

import numpy as np
import pytest
from scipy import stats
from tests.reference import metrics as literal
from tests.sample_runs import sample_run

from fedelect.records import SelectorEntry, opinion_curves, running_mean_curves, selection_counts, summarise


def test_a_summary_equals_its_literal_computation() -> None:
    run = sample_run(trials=5, slots=8)
    opinion, running = opinion_curves(run)["random"], running_mean_curves(run)["random"]
    best = opinion_curves(run)["best"]
    counts = selection_counts(run)["random"]
    one = summarise(run, oracle=0.9, targets=[0.5, 2.0])[1]
    per_trial = {
        "final_opinion": [row[-1] for row in opinion.tolist()],
        "running_mean": [row[-1] for row in running.tolist()],
        "running_mean_with_untrained": [literal.running_mean(row, 0.125)[-1] for row in opinion.tolist()],
        "gap_to_best": [literal.gap(a, b) for a, b in zip(best.tolist(), opinion.tolist(), strict=True)],
        "regret": [literal.regret(row, 0.9)[-1] for row in opinion.tolist()],
        "jain_index": [literal.jain_index(row) for row in counts.tolist()],
        "never_chosen": [float(row.count(0)) for row in counts.tolist()],
    }
    critical = float(stats.t.ppf(0.975, 4))
    for name, values in per_trial.items():
        mean, half = literal.interval(values, critical)
        interval = getattr(one, name)
        assert interval.mean == pytest.approx(mean, rel=1e-9), name
        assert interval.half_width == pytest.approx(half, rel=1e-9), name
        assert interval.count == 5
    shares = [literal.group_share(row, [0, 1, 2]) for row in counts.tolist()]
    assert one.group_shares["iid"].mean == pytest.approx(sum(shares) / 5)
    failed = [
        1 - sum(sum(record.arrivals) for record in mine) / sum(15 * len(record.cohort) for record in mine)
        for trial in range(5)
        if (mine := [r for r in run.records if (r.selector, r.trial) == ("random", trial)])
    ]
    assert one.upload_failures.mean == pytest.approx(sum(failed) / 5)
    np.testing.assert_allclose(one.selections, counts.mean(axis=0))
    assert (one.label, one.kind, one.trials, one.done) == ("random", "RandomCohort", 5, 40)
    easy, hard = one.targets
    times = [literal.time_to_target(row, 0.5) for row in running.tolist()]
    assert easy.slots.mean == pytest.approx(sum(slot for slot, _, _ in times) / 5)
    assert easy.value.mean == pytest.approx(sum(value for _, value, _ in times) / 5)
    assert easy.reached == sum(reached for _, _, reached in times)
    assert (hard.slots.mean, hard.reached, hard.trials) == (8.0, 0, 5)
    assert hard.value.mean == pytest.approx(one.running_mean.mean)


def test_one_trial_gives_means_without_intervals() -> None:
    for one in summarise(sample_run(trials=1), targets=[0.5]):
        assert one.final_opinion.count == 1
        assert one.final_opinion.half_width is None and one.targets[0].slots.half_width is None


def test_what_was_not_asked_for_or_is_not_there_is_none() -> None:
    run = sample_run(untrained=None, selectors=(SelectorEntry(label="random", kind="RandomCohort"),), groups={})
    (one,) = summarise(run)
    assert one.regret is None and one.gap_to_best is None and one.running_mean_with_untrained is None
    assert one.targets == () and one.group_shares == {}


def test_trials_that_have_not_begun_do_not_count() -> None:
    run = sample_run(trials=3)
    begun = type(run)(run.header, tuple(record for record in run.records if record.trial < 2))
    one = summarise(begun, targets=[2.0])[0]
    assert one.trials == 2 and one.never_chosen.count == 2 and one.targets[0].slots.count == 2
    assert one.never_chosen.mean == 4.0
    assert one.selections[:3] == (6.0, 6.0, 6.0)


def test_an_empty_run_has_a_summary_of_nothing() -> None:
    one = summarise(sample_run(until=0), targets=[0.5])[0]
    assert one.trials == one.done == 0
    assert math.isnan(one.final_opinion.mean) and math.isnan(one.jain_index.mean)
    assert set(one.selections) == {0.0}
