"""What a summary says after its figures: who won, and what is to be doubted."""

import numpy as np

import fedelect
from fedelect.scenario import ScenarioConfig

TINY = {"clients": 6, "budget": 2, "data": {"iid_clients": 2, "samples": [10, 20]}}


def notes_of(step: float, trials: int, selectors: tuple[str, ...] = ("random", "cycle")) -> tuple[str, ...]:
    config: ScenarioConfig = fedelect.load_scenario("digits", **TINY, model={"step": step, "epochs": 1})
    options = {"slots": 2, "trials": trials, "progress": False, "workers": 1}
    return fedelect.simulate(config, selectors=selectors, **options).summary().notes  # type: ignore[arg-type]


def test_a_comparison_says_who_won_and_of_what_trials_cannot_tell() -> None:
    (note,) = notes_of(step=5e-4, trials=2)
    assert " is first: mean opinion 0." in note and "One trial" not in note


def test_one_trial_is_said_to_tell_nothing_about_two_selectors() -> None:
    (note,) = notes_of(step=5e-4, trials=1)
    assert note.endswith("One trial cannot tell skill from luck; play more.")


def test_a_selector_alone_wins_nothing() -> None:
    assert notes_of(step=5e-4, trials=1, selectors=("random",)) == ()


def test_training_that_hardly_helps_is_said_with_both_levels() -> None:
    rng = np.random.default_rng(0)
    labels = np.tile(np.arange(10), 60)
    noise = (rng.random((300, 8)), labels[:300], rng.random((600, 8)), labels)  # nothing to learn
    run = fedelect.simulate(
        fedelect.load_scenario("digits", **TINY), data=noise, slots=2, trials=2, progress=False, workers=1
    )
    _, note = run.summary().notes
    assert run.header.untrained is not None
    assert note.startswith("training hardly helps") and f"{run.header.untrained[0]:.3f} of the untrained model" in note
    assert "model.step" in note and note in str(run.summary()) and note in run.summary()._repr_html_()
