"""What is read off results, on made-up ones."""

from pathlib import Path

import numpy as np
import pytest

from paper import PRESETS, Evidence, ResultStoreOnFile, Series, World
from paper.evidence import average_accuracy, elections, final_accuracy, slots_to_target, subtract_paired
from paper.tests.made_up_results import put
from paper.tests.small_store import small

SMALL = World(clients=6, budget=2)
ONE = Series(selector="random", world=SMALL)
OTHER = Series(selector="round-robin", world=SMALL)


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    return Evidence(
        store=ResultStoreOnFile(folder=tmp_path, base=small(), known_digest="none", block=2), preset=PRESETS["paper"]
    )


def test_the_average_counts_0_and_not_the_untrained_model_as_its_first_term(evidence: Evidence) -> None:
    put(evidence.store, ONE, [[0.9, 0.8, np.nan, 0.6]] * 2, untrained=0.1)
    curves = evidence.curves(ONE, slots=4)
    assert curves is not None
    assert average_accuracy(curves)[0] == pytest.approx([0.9 / 2, 1.7 / 3, 1.7 / 3, 2.3 / 4])
    assert final_accuracy(curves) == pytest.approx([0.575, 0.575])


def test_elections_are_counted_by_trial_and_skipped_slots_are_nobodys(evidence: Evidence) -> None:
    cohorts = [[[0, 1], [0, 0], [2, 3]], [[0, 3], [0, 3], [0, 3]]]
    put(evidence.store, ONE, [[0.5, np.nan, 0.5], [0.5, np.nan, 0.5]], cohorts=cohorts)
    curves = evidence.curves(ONE, slots=3)
    assert curves is not None
    assert elections(curves).tolist() == [[1, 1, 1, 1, 0, 0], [3, 0, 0, 3, 0, 0]]  # an abandoned election is one


def test_a_target_is_reached_by_the_average_not_by_a_slot(evidence: Evidence) -> None:
    put(evidence.store, ONE, [[0.92] * 6, [0.5] * 6], untrained=0.1)
    curves = evidence.curves(ONE, slots=6)
    assert curves is not None
    when = slots_to_target(curves, 0.75)  # 0.92 t / (t + 1) >= 0.75 from t = 4.41 on
    assert when.slot.tolist() == [5, 6] and when.reached.tolist() == [True, False]
    assert when.value == pytest.approx([4.6 / 6, 3.0 / 7])


def test_differences_are_over_the_trials_that_both_have(evidence: Evidence) -> None:
    put(evidence.store, ONE, [[0.5], [0.6], [0.7], [0.8]])
    put(evidence.store, OTHER, [[0.1], [0.4]])
    one, other = evidence.curves(ONE, slots=1), evidence.curves(OTHER, slots=1)
    assert one is not None and other is not None
    assert subtract_paired(one, other, final_accuracy) == pytest.approx([0.2, 0.1])  # half of the opinions' differences
    assert subtract_paired(other, one, final_accuracy) == pytest.approx([-0.2, -0.1])


def test_evidence_asks_for_no_more_than_the_preset(evidence: Evidence) -> None:
    put(evidence.store, ONE, [[0.5] * 70] * 10)
    quick = Evidence(store=evidence.store, preset=PRESETS["quick"])
    curves = quick.curves(ONE, slots=70)
    assert curves is not None and curves.opinions.shape == (8, 60)
    assert quick.curves(OTHER, slots=70) is None
