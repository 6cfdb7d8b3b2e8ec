"""Who won: order, paired differences to random and to the best known, what trials cannot tell."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.sample_runs import measured_run, sample_record, sample_run

from fedelect.records import Optimum, RunRecords, SelectorEntry, rank_world, repeats, tabulate

OPINIONS = {"best": (0.9, 0.9, 0.9), "mine": (0.6, 0.8, 0.7), "other": (0.5, 0.9, 0.6), "random": (0.5, 0.6, 0.4)}
"""Label -> the opinion in each of three trials, the same in all slots."""


def even_run(opinions: Mapping[str, tuple[float, ...]] = OPINIONS, **changes: Any) -> RunRecords:
    kinds = {"best": "FixedCohort"}
    entries = tuple(SelectorEntry(label=label, kind=kinds.get(label, "Any")) for label in opinions)
    run = sample_run(selectors=entries, trials=3, slots=4, **changes)
    records = [
        sample_record(run.header, one.selector, one.trial, one.slot, opinions=(opinions[one.selector][one.trial],) * 7)
        for one in run.records
    ]
    return RunRecords(run.header, tuple(records))


def test_selectors_are_ranked_with_paired_differences_to_random_and_to_the_best_fixed_cohort() -> None:
    ranking = rank_world([tabulate(even_run())])
    assert (ranking.by, ranking.best_known) == ("opinion", "the best fixed cohort")
    assert [(row.label, row.place) for row in ranking.rows] == [
        ("best", None),
        ("mine", 1),
        ("other", 2),
        ("random", 3),
    ]
    best, mine, other, random = ranking.rows
    assert mine.score.mean == pytest.approx(0.7) and mine.minus_random is not None and mine.minus_best is not None
    # Differences to random 0.1, 0.2, 0.3: standard deviation 0.1, t(2, 97.5 %) = 4.302653.
    assert mine.minus_random.mean == pytest.approx(0.2)
    assert mine.minus_random.half_width == pytest.approx(4.302653 * 0.1 / 3**0.5)
    assert mine.minus_best.mean == pytest.approx(-0.2) and best.minus_best is None and random.minus_random is None
    assert mine.level and other.level and other.minus_random != mine.minus_random


def test_the_sentence_names_the_first_and_whom_the_trials_cannot_tell_from_it() -> None:
    text = rank_world([tabulate(even_run())]).sentence()
    assert text.startswith("mine is first: mean opinion 0.700 ± 0.248, +0.200 ± 0.248 against random")
    assert "against random, so not clearly better. The trials cannot tell it from other." in text
    clear = dict(OPINIONS, mine=(0.7, 0.8, 0.6), other=(0.3, 0.4, 0.2))
    text = rank_world([tabulate(even_run(clear))]).sentence()
    assert "+0.200 ± 0.000 against random." in text and "clearly" not in text and "cannot tell" not in text
    alone = rank_world([tabulate(sample_run(trials=1))]).sentence()
    assert alone.endswith("One trial cannot tell skill from luck; play more.")
    assert rank_world([tabulate(sample_run(until=0))]).sentence() == "No selector has a result so far."


def test_measured_runs_are_ranked_by_accuracy_and_the_oracle_is_a_reference() -> None:
    run = tabulate(measured_run())
    ranking = rank_world([run])
    assert (ranking.by, ranking.best_known) == ("accuracy", "oracle")
    assert [(row.label, row.place) for row in ranking.rows] == [("oracle", None), ("mine", 1), ("random", 2)]
    mine = ranking.rows[1]
    measured = run.measured.summary("mine")
    assert measured is not None and mine.score == measured.final_accuracy and mine.minus_random == measured.difference
    expected = run.measured.final_accuracy("mine") - run.measured.final_accuracy("oracle")
    assert mine.minus_best is not None and mine.minus_best.mean == pytest.approx(expected.mean())


def test_the_optimum_of_an_atlas_is_the_best_known() -> None:
    optimum = Optimum(cohort=(0, 1, 2), value=0.95, smallest_gap=0.01, largest_gap=0.5)
    ranking = rank_world([tabulate(even_run(optimum=optimum))])
    assert ranking.best_known == "the optimum"
    gaps = {row.label: row.minus_best.mean for row in ranking.rows if row.minus_best is not None}
    assert gaps == pytest.approx({"best": -0.05, "mine": -0.25, "other": 0.2 / 3 - 0.35, "random": -0.45}, abs=1e-9)


def test_without_a_reference_the_first_is_what_others_are_compared_with() -> None:
    ranking = rank_world([tabulate(even_run({"mine": (0.6, 0.8, 0.7), "random": (0.5, 0.6, 0.4)}))])
    mine, random = ranking.rows
    assert ranking.best_known == "the first" and ranking.first is mine and mine.minus_best is None
    assert random.minus_best is not None and random.minus_best.mean == pytest.approx(-0.2)


def test_baselines_that_two_runs_share_are_ranked_once_and_others_are_not() -> None:
    first, second = tabulate(even_run()), tabulate(even_run(dict(OPINIONS, mine=(0.1, 0.1, 0.1)), framework="da"))
    assert repeats(first.selectors["random"], second.selectors["random"])
    assert not repeats(first.selectors["mine"], second.selectors["mine"])
    ranking = rank_world([first, second])
    assert [(row.run, row.label) for row in ranking.rows] == [
        (0, "best"),
        (0, "mine"),
        (0, "other"),
        (0, "random"),
        (1, "mine"),
    ]
