"""The pre-registered run: what the registration says, and verdicts against a literal reading of its rules."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import ArrayLike

from fedelect.errors import ConfigurationError
from fedelect.vocabulary import Floats
from paper.averages import FIRST_TERM, FirstTerm, average_accuracy
from paper.published import BP_UCB, IID_ELECTIONS, QUICK_INIT, TABLE, Baselines, fitted_first_term
from paper.registered import judge_registered, read_registration
from paper.registered.calibration import read_registered_calibration
from paper.registered.registration import RegisteredNumber
from paper.registered.run import CALIBRATION, list_parts, parts_of, parts_of_check
from paper.registered.settings import Setting
from paper.registered.verdicts import compare_gradients, judge_reading, read_number
from paper.tests.committed import ROOT
from paper.tests.made_up_results import put_part

REGISTRATION = read_registration()
FA, DA = REGISTRATION.worlds


def test_the_settings_are_those_that_the_rule_takes_from_the_baselines_on_file() -> None:
    calibration = read_registered_calibration(ROOT / CALIBRATION)
    for world in (FA, DA):
        chosen = calibration.choose(
            world.aim, largest_spread=REGISTRATION.largest_spread, most_samples=REGISTRATION.most_samples
        )
        assert chosen.setting == world.setting
        assert abs(chosen.gap - (world.fixed - world.random)) < 0.005
    other = calibration.choose(FA.aim, largest_spread=math.inf, most_samples=REGISTRATION.most_samples, gradient="sum")
    assert other.setting == REGISTRATION.gradient.setting
    assert other.spread > REGISTRATION.largest_spread
    assert {one.drawing for one in calibration.outcomes} == set(REGISTRATION.drawings)


def test_the_numbers_are_the_papers_and_the_tolerances_those_of_the_page() -> None:
    for world, algorithm, final in ((FA, "quick-init", QUICK_INIT), (DA, "bp-ucb", BP_UCB)):
        slots = [one for one in world.numbers if one.measured == "slots to target"]
        assert [(one.target, one.paper) for one in slots] == [
            (target, cell.slots) for target, cell in TABLE[algorithm].items()
        ]
        assert all(math.isclose(one.tolerance, 0.2 * one.paper) and one.slots == 500 for one in slots)
        decisive = world.numbers[REGISTRATION.decisive]
        assert (decisive.measured, decisive.slots) == ("average accuracy", 200)
        assert (decisive.paper, decisive.tolerance) == (final, 0.01)
        assert math.isclose(world.fixed, fitted_first_term().later, abs_tol=1e-4)
    assert FA.numbers[5].paper == IID_ELECTIONS and DA.numbers[5].paper == TABLE["bp-ucb"][0.85].accuracy
    assert len(FA.numbers) + len(DA.numbers) == 12 and len(REGISTRATION.drawings) >= 6
    assert REGISTRATION.first_term == 0.0 and FIRST_TERM == "zero"


def test_the_page_says_what_the_file_says() -> None:
    page = (ROOT / "paper/PREREGISTRATION.md").read_text(encoding="utf-8")
    check = [part for part in list_parts(REGISTRATION) if part.place == "gradient"]
    assert f"{REGISTRATION.replica_slots:,} replica-slots" in page
    assert f"{sum(part.series.trials * part.slots for part in check):,} for the check" in page
    for world in (FA, DA):
        assert f"{world.setting.skew}({world.setting.degree:g})" in page
        assert all(f"{number.paper}" in page for number in world.numbers)


def test_a_sum_over_the_batch_is_a_step_longer_by_the_size_of_the_batch() -> None:
    mean = Setting(skew="labels", degree=3.0, samples=(400, 1200)).config(5)
    total = Setting(skew="labels", degree=3.0, samples=(400, 1200), gradient="sum").config(5)
    assert math.isclose(total.model.step, mean.model.batch * mean.model.step) and mean.model.step == 1e-7
    assert msgspec.structs.replace(total, model=mean.model) == mean and mean.seed == 5


def test_all_parts_of_a_drawing_come_before_those_of_the_next() -> None:
    parts = list(list_parts(REGISTRATION))
    run = [part for part in parts if part.place != "gradient"]
    assert [part.drawing for part in run] == sorted(part.drawing for part in run)
    assert parts[len(run) :] == [part for part in parts if part.place == "gradient"]
    assert sum(part.series.trials * part.slots for part in run) == REGISTRATION.replica_slots


def fill(root: Path, drawing: int, *, reading: Floats, printed: Floats, worlds: tuple[str, ...] = ("fa", "da")) -> None:
    """Results of one drawing: baselines at 0.87 and 0.75, the given opinions (trials, 500) for the two others."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "calibration.json").write_bytes((ROOT / CALIBRATION).read_bytes())
    opinions: dict[str, ArrayLike] = {"fixed": 0.87, "random": 0.75, "reading": reading, "as printed": printed}
    for world in REGISTRATION.worlds:
        for part in parts_of(world, drawing) if world.name in worlds else ():
            put_part(root, part, opinions[part.series.role])


def literally(number: RegisteredNumber, opinions: Floats, aim: Baselines) -> list[float]:
    """A number of each trial, slot by slot, on the paper's scale, with a first term of 0."""
    values = []
    for trial in opinions.tolist():
        total, found = 0.0, None
        for slot, opinion in enumerate(trial[: number.slots], start=1):
            total += aim.random + (opinion - 0.75) / (0.87 - 0.75) * (aim.fixed - aim.random)
            average = total / (slot + 1)
            if number.target is not None and found is None and average >= number.target - 1e-9:
                found = float(slot) if number.measured == "slots to target" else average
        if number.measured == "average accuracy":
            found = average
        never = float(number.slots) if number.measured == "slots to target" else average
        values.append(never if found is None else found)
    return values


def test_numbers_are_read_off_on_the_papers_scale_as_written_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    reading, printed = rng.uniform(0.78, 0.88, size=(6, 500)), rng.uniform(0.7, 0.85, size=(3, 500))
    fill(tmp_path, 101, reading=reading, printed=printed)
    fill(tmp_path, 103, reading=reading - 0.02, printed=printed)
    for result in judge_registered(REGISTRATION, tmp_path):
        assert [one.drawing for one in result.drawings] == [101, 103] and result.interim
        assert "interim: 2 of 6 drawings" in result.verdict_text
        for one in result.numbers:
            if one.number.measured == "elections":
                continue
            means = [np.mean(literally(one.number, reading - less, result.world.aim)) for less in (0.0, 0.02)]
            np.testing.assert_allclose(one.reading.by_drawing, means, rtol=1e-9)
            mean = np.mean(literally(one.number, printed, result.world.aim))
            np.testing.assert_allclose(one.as_printed.interval.mean, mean, rtol=1e-9)


def test_a_drawing_counts_only_when_all_its_series_are_there(tmp_path: Path) -> None:
    assert [result.verdict for result in judge_registered(REGISTRATION, tmp_path)] == [None, None]
    some = np.full((6, 500), 0.86)
    fill(tmp_path, 101, reading=some, printed=some[:3], worlds=("fa",))
    quick, belief = judge_registered(REGISTRATION, tmp_path)
    assert len(quick.drawings) == 1 and not belief.drawings and not belief.numbers
    assert quick.verdict_text == "no verdict yet (1 of 6 drawings complete, and one has no interval)"
    assert all(one.verdict == "open" for one in quick.numbers)
    next((tmp_path / "101/fa").rglob("random/*.npz")).unlink()
    assert not judge_registered(REGISTRATION, tmp_path)[0].drawings
    assert "0 of 6 drawings" in judge_registered(REGISTRATION, tmp_path)[0].verdict_text


def test_the_check_of_the_gradient_is_on_the_scale_of_its_own_baselines(tmp_path: Path) -> None:
    first, second = REGISTRATION.gradient.drawings
    for drawing in (first, second):
        fill(tmp_path, drawing, reading=np.full(500, 0.87), printed=np.full(500, 0.75), worlds=("fa",))
    # With the sum the baselines are 0.9 and 0.8: a reading at 0.85 is halfway between the paper's.
    opinions = {"fixed": 0.9, "random": 0.8, "reading": 0.85, "as printed": 0.8}
    for drawing in (first, second):
        assert compare_gradients(REGISTRATION, tmp_path) is None
        for part in parts_of_check(REGISTRATION, drawing):
            put_part(tmp_path, part, opinions[part.series.role])
    found = compare_gradients(REGISTRATION, tmp_path)
    assert found is not None and found.drawings == (first, second) and found.slots == 200
    halfway = (FA.fixed + FA.random) / 2
    assert found.reading == pytest.approx((200 * FA.fixed / 201, 200 * halfway / 201))
    assert found.as_printed == pytest.approx((200 * FA.random / 201,) * 2)


def test_elections_are_counted_for_each_of_the_first_five(tmp_path: Path) -> None:
    fill(tmp_path, 101, reading=np.full((6, 500), 0.86), printed=np.full((3, 500), 0.8))
    drawing = judge_registered(REGISTRATION, tmp_path)[0].drawings[0]
    cohorts = np.tile(np.array([[0, 1, 7, 8, 9], [0, 1, 2, 3, 4]], dtype=np.uint8), (250, 1))[np.newaxis]
    curves = dataclasses.replace(drawing.reading, cohorts=cohorts)
    assert read_number(FA.numbers[5], curves.opinions, curves).tolist() == [(2 * 250 + 5 * 250) / 5]


def test_a_reading_is_judged_by_the_registered_rule(tmp_path: Path) -> None:
    fill(tmp_path, 101, reading=np.full((6, 500), 0.86), printed=np.full((3, 500), 0.8))
    numbers = judge_registered(REGISTRATION, tmp_path)[0].numbers
    ideal = []
    for one in numbers:
        interval = dataclasses.replace(one.reading.interval, mean=one.number.paper)
        mean = dataclasses.replace(one.reading, interval=interval)
        ideal.append(dataclasses.replace(one, reading=mean, verdict="open", nearer=True))
    assert judge_reading(ideal, REGISTRATION) == "supported"

    def changed(places: tuple[int, ...], **changes: Any) -> str:
        altered = [dataclasses.replace(one, **changes) if at in places else one for at, one in enumerate(ideal)]
        return judge_reading(altered, REGISTRATION)

    assert changed((0,), verdict="differs") == "supported"
    assert changed((0, 1), verdict="differs") == "left open"
    assert changed((0, 1, 2), verdict="differs") == "contradicted"
    assert changed((4,), verdict="differs") == "contradicted"
    assert changed((5,), nearer=False) == "supported"
    assert changed((3, 5), nearer=False) == "left open"
    assert changed((0, 3, 5), nearer=False) == "contradicted"
    off = dataclasses.replace(ideal[4].reading, interval=dataclasses.replace(ideal[4].reading.interval, mean=0.88))
    assert changed((4,), reading=off) == "left open"


def test_a_first_term_is_none_nought_or_the_untrained_model() -> None:
    opinions = np.array([[0.8, 0.6]])
    expected: dict[FirstTerm, list[float]] = {"none": [0.8, 0.7], "zero": [0.4, 1.4 / 3], "untrained": [0.45, 0.5]}
    for first_term, averages in expected.items():
        found = average_accuracy(opinions, untrained=0.1, first_term=first_term)
        np.testing.assert_allclose(found, [averages])


def test_a_registration_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="restore the committed file"):
        read_registration(tmp_path / "none.toml")
