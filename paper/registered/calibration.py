"""Calibration of the pre-registered run: by the two baselines alone; no bandit is run.

Every setting is drawn once for each drawing of the run. In each drawing the cohort that the paper calls optimal is
trained a few times and some random cohorts once each, the same cohorts in all settings. The rule is `choose`.
"""

import functools
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from fedelect._processes import run_tasks
from fedelect.errors import RunError
from fedelect.federation import DEFAULT_ENGINE, Job, make_engine
from fedelect.measurement import opinions_on
from fedelect.records.files import make_folder, replace_file
from fedelect.scenario import Dataset, build_scenario
from fedelect.seeds import stream
from fedelect.vocabulary import mean_present
from paper.calibration import BEST_KNOWN
from paper.published import Baselines
from paper.registered.settings import SETTINGS, Gradient, Setting

FIXED_TRAININGS = 3
RANDOM_COHORTS = 20


class DrawnBaselines(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Mean opinions of single trainings in one setting and one drawing.

    Attributes:
        setting: The setting.
        drawing: Seed of the drawing.
        fixed: Of the cohort that the paper calls optimal, one for each training.
        random: Of random cohorts.
    """

    setting: Setting
    drawing: int
    fixed: tuple[float, ...]
    random: tuple[float, ...]


class SettingResult(msgspec.Struct, frozen=True, kw_only=True):
    """A setting's baselines over all drawings.

    Attributes:
        setting: The setting.
        baselines: Means over drawings.
        spread: Standard deviation between trainings of the fixed cohort, within drawings.
    """

    setting: Setting
    baselines: Baselines
    spread: float

    @property
    def gap(self) -> float:
        """By how much the fixed cohort is above random selection."""
        return self.baselines.fixed - self.baselines.random


class RegisteredCalibration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that was trained for the calibration.

    Attributes:
        data_digest: Hash of the data.
        outcomes: One for each setting and drawing.
    """

    data_digest: str
    outcomes: tuple[DrawnBaselines, ...]

    def results(self) -> list[SettingResult]:
        """One result for each setting, in the order of `SETTINGS`."""
        return [self._result(setting) for setting in SETTINGS if any(one.setting == setting for one in self.outcomes)]

    def _result(self, setting: Setting) -> SettingResult:
        drawn = [one for one in self.outcomes if one.setting == setting]
        fixed = float(np.mean([np.mean(one.fixed) for one in drawn]))
        random = float(np.mean([np.mean(one.random) for one in drawn]))
        variances = [np.var(one.fixed, ddof=1) for one in drawn]
        return SettingResult(
            setting=setting, baselines=Baselines(fixed, random), spread=math.sqrt(float(np.mean(variances)))
        )

    def choose(
        self, aim: Baselines, *, largest_spread: float, most_samples: int, gradient: Gradient | None = None
    ) -> SettingResult:
        """The setting taken for `aim`.

        Rule: of the settings that can be afforded and whose fixed cohort is as stable as the paper's, those whose
        fixed cohort is nearest to the paper's; of these, the one whose gap between the two baselines is nearest. The
        fixed cohort depends on sizes and gradient alone, the gap on the skew. With the paper's gap, what is left is a
        shift, which changes no comparison of two cohorts.

        Args:
            aim: The baselines in the paper.
            largest_spread: Largest standard deviation between trainings of the fixed cohort.
            most_samples: A client's largest share must not be larger.
            gradient: Settings of this gradient only; None for both.
        """
        eligible = [
            result
            for result in self.results()
            if result.spread <= largest_spread
            and result.setting.samples[1] <= most_samples
            and gradient in (None, result.setting.gradient)
        ]
        return min(
            eligible,
            key=lambda result: (
                round(abs(result.baselines.fixed - aim.fixed), 6),
                abs(result.gap - (aim.fixed - aim.random)),
            ),
        )


def calibrate_registered(
    dataset: Dataset,
    path: Path,
    drawings: Sequence[int],
    *,
    workers: int = 1,
    progress: Callable[[int, int], None] = lambda finished, total: None,
) -> RegisteredCalibration:
    """Train what is not on file; rewrite the file whenever a setting and drawing is finished."""
    known: dict[tuple[Setting, int], DrawnBaselines] = {}
    if path.exists():
        on_file = read_registered_calibration(path)
        if on_file.data_digest == dataset.digest:
            known = {(one.setting, one.drawing): one for one in on_file.outcomes}
    wanted = [(setting, drawing) for setting in SETTINGS for drawing in drawings]
    missing = [key for key in wanted if key not in known]
    make_folder(path.parent)
    progress(len(wanted) - len(missing), len(wanted))
    for place, outcome in run_tasks(functools.partial(_train, dataset=dataset), missing, workers=workers):
        known[missing[place]] = outcome
        _write(path, dataset, [known[key] for key in wanted if key in known])
        progress(sum(key in known for key in wanted), len(wanted))
    return read_registered_calibration(path)


def read_registered_calibration(path: Path) -> RegisteredCalibration:
    """Read the calibration from file.

    Raises:
        RunError: It cannot be read.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=RegisteredCalibration)
    except (OSError, msgspec.MsgspecError) as error:
        raise RunError(f"the calibration {path} cannot be read: {error}; delete it to calibrate anew") from error


def _write(path: Path, dataset: Dataset, outcomes: Sequence[DrawnBaselines]) -> None:
    calibration = RegisteredCalibration(data_digest=dataset.digest, outcomes=tuple(outcomes))
    replace_file(path, msgspec.json.format(msgspec.json.encode(calibration), indent=0), b"\n")


def _train(setting: Setting, drawing: int, *, dataset: Dataset) -> DrawnBaselines:
    config = setting.config(drawing)
    world = build_scenario(config, dataset)
    engine = make_engine(DEFAULT_ENGINE, config)
    rng = stream(drawing, "calibration", "cohorts")
    drawn = [sorted(rng.choice(config.clients, config.budget, replace=False).tolist()) for _ in range(RANDOM_COHORTS)]
    cohorts = [BEST_KNOWN] * FIXED_TRAININGS + [tuple(cohort) for cohort in drawn]
    jobs = [Job(cohort=cohort, seed=drawing, trial=trial) for trial, cohort in enumerate(cohorts)]
    with threadpool_limits(limits=1, user_api="blas"):
        models = [training.model for training in engine.train(world, jobs)]
        opinions = [mean_present(judged) or 0.0 for judged in opinions_on(world, models, engine=engine)]
    return DrawnBaselines(
        setting=setting,
        drawing=drawing,
        fixed=tuple(round(one, 6) for one in opinions[:FIXED_TRAININGS]),
        random=tuple(round(one, 6) for one in opinions[FIXED_TRAININGS:]),
    )
