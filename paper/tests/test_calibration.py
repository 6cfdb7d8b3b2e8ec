"""The calibration on file, its rule, and that it can be gone on from."""

from pathlib import Path

import msgspec
import pytest
from tests.worlds import digits

from fedelect.errors import RunError
from fedelect.scenario import preset
from paper.calibration import (
    CANDIDATES,
    Calibration,
    Candidate,
    CandidateResult,
    Trial,
    calibrate,
    read_calibration,
)
from paper.published import BASELINES, BASELINES_DEMOCRATIZED

ON_FILE = Path(__file__).parents[2] / "paper/results/calibration.json"


def outcome(fixed: float, random: float, samples: int) -> CandidateResult:
    return CandidateResult(
        candidate=Candidate(start="cold", skew="labels", degree=2.0, samples=(samples, samples)),
        trial=Trial(trials=2, slots=1),
        total_samples=samples,
        untrained=0.1,
        fixed=fixed,
        fixed_half_width=0.0,
        fixed_last=fixed,
        random=random,
        random_half_width=0.0,
        random_last=random,
    )


def test_the_preset_of_the_paper_is_what_the_calibration_on_file_took() -> None:
    on_file = read_calibration(ON_FILE)
    assert [one.candidate for one in on_file.outcomes] == list(CANDIDATES)
    assert on_file.choice.candidate.config() == preset("paper")


def test_of_those_equally_near_the_one_with_the_fewest_samples_is_taken() -> None:
    nearest, cheap, far = outcome(0.88, 0.77, 900), outcome(0.867, 0.77, 300), outcome(0.85, 0.77, 100)
    assert Calibration(data_digest="", seed=1, outcomes=(nearest, cheap, far)).choice is cheap


def test_of_those_with_equal_samples_the_smaller_sum_of_deviations_is_taken() -> None:
    one, other = outcome(0.87, 0.78, 300), outcome(0.87, 0.771, 300)
    assert Calibration(data_digest="", seed=1, outcomes=(one, other)).choice is other


def test_zero_as_first_term_changes_no_choice_and_the_other_framework_would() -> None:
    on_file = read_calibration(ON_FILE)
    taken = on_file.choice
    assert taken.with_first_term.fixed == pytest.approx(200 * taken.fixed / 201, abs=1e-12)
    assert on_file.choice_for(BASELINES, first_term=True) == taken
    other = on_file.choice_for(BASELINES_DEMOCRATIZED)
    # By hand: of the settings within 0.015 of the nearest to (0.894, 0.7202), the one with the fewest samples.
    off = {one.candidate: max(abs(one.fixed - 0.894), abs(one.random - 0.7202)) for one in on_file.outcomes}
    near = [one for one in on_file.outcomes if off[one.candidate] <= min(off.values()) + 0.015]
    assert other.total_samples == min(one.total_samples for one in near) and other in near
    assert other != taken and off[taken.candidate] == max(taken.deviations(BASELINES_DEMOCRATIZED))


def test_a_calibration_goes_on_from_its_file_and_tries_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "calibration.json"
    work = {"cold": Trial(trials=2, slots=1), "warm": Trial(trials=2, slots=2)}
    candidates = tuple(
        Candidate(start=start, skew=skew, degree=degree, samples=(10, 20))
        for start, skew, degree in (("cold", "labels", 3.0), ("warm", "dirichlet", 0.5))
    )
    first = calibrate(digits(), path, candidates=candidates[:1], work=work)
    told: list[tuple[int, int]] = []
    both = calibrate(
        digits(), path, candidates=candidates, work=work, progress=lambda done, of: told.append((done, of))
    )
    assert told == [(1, 2), (2, 2)] and both.outcomes[0] == first.outcomes[0]
    assert read_calibration(path) == both
    warm = both.outcomes[1]
    assert warm.candidate.config().data.alpha == 0.5 and warm.random != warm.random_last
    changed = msgspec.structs.replace(work["cold"], slots=2)
    again = calibrate(digits(), path, candidates=candidates, work=work | {"cold": changed})
    assert again.outcomes[0].trial == changed and again.outcomes[1] == warm


def test_a_broken_calibration_file_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_text("{}")
    with pytest.raises(RunError, match=r"calibration\.json cannot be read.*delete it"):
        read_calibration(path)
