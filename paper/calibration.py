"""Calibration: choose what the paper leaves open, by two baselines alone, before any algorithm of the paper is run.

The paper does not say how large the clients' data are, how skewed, or whether a slot starts from scratch. Each
candidate is one way to fill these in. It is judged by the cohort that the paper calls optimal (the five i.i.d. clients)
and by random selection, under FL&FA: the paper has them near 0.88 and 0.77 at T = 200. Nothing else is used. Its
figures under FL&DA imply other baselines, which are only reported (`published.BASELINES_DEMOCRATIZED`).

Rule: a candidate's distance is the larger of its two deviations. Random selection is known to about `SLACK` (half of
its 95 % interval), so candidates whose distance is within `SLACK` of the smallest count as equal. Of these the one with
the fewest training samples, the cheapest to run, is chosen; of several such, the one with the smallest sum of
deviations.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from fedelect._processes import run_tasks
from fedelect.analytics import judge
from fedelect.equations.intervals import mean_band
from fedelect.errors import RunError
from fedelect.federation import DEFAULT_ENGINE, make_engine
from fedelect.loop import Replica, play_slot
from fedelect.records import mean_opinion
from fedelect.records.files import make_folder, replace_file
from fedelect.scenario import Dataset, ModelConfig, ScenarioConfig, build_scenario
from fedelect.seeds import derive
from fedelect.selectors import AbstractSelector, FixedCohort, RandomCohort
from fedelect.simulator.plan import as_plain
from fedelect.vocabulary import Floats, mean_present
from paper.published import BASELINES, BASELINES_SLOTS, Baselines

SLACK = 0.015
"""About half of the interval within which random selection is known here."""

BEST_KNOWN = (0, 1, 2, 3, 4)
"""The cohort that the paper calls optimal: its clients 1 to 5, which hold i.i.d. data."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to fill in what the paper leaves open.

    Attributes:
        start: "cold" or "warm".
        skew: "labels" or "dirichlet".
        degree: Classes that a client holds, or the concentration alpha.
        samples: Smallest and largest training size of a client.
    """

    start: str
    skew: str
    degree: float
    samples: tuple[int, int]

    @property
    def name(self) -> str:
        """A line that identifies it."""
        return f"{self.start} start, {self.skew}({self.degree:g}), {self.samples[0]} to {self.samples[1]} samples"

    def config(self) -> ScenarioConfig:
        """The scenario, all else as the paper states it."""
        degree = {"classes_per_client": int(self.degree)} if self.skew == "labels" else {"alpha": self.degree}
        return msgspec.convert(
            {
                **as_plain(ScenarioConfig(model=ModelConfig(shuffle="slot"))),
                "start": self.start,
                "data": {"skew": self.skew, "samples": self.samples, **degree},
            },
            ScenarioConfig,
        )


class Trial(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much work a candidate gets.

    Attributes:
        trials: Independent trials, at least 2, for the interval.
        slots: Slots in each. A cold start is stationary: its expectation at T = 200 is that of any slot.
    """

    trials: Annotated[int, msgspec.Meta(ge=2)]
    slots: Annotated[int, msgspec.Meta(ge=1)]


class CandidateResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Baselines of a candidate: mean over trials of the mean opinion of all slots, and of the last one.

    Attributes:
        candidate: The candidate.
        trial: How much work it got.
        total_samples: Training samples of all clients together.
        untrained: Mean opinion of the untrained model.
        fixed: Running mean of the best-known cohort at the last slot, without the untrained model.
        fixed_half_width: Half of its 95 % interval over trials.
        fixed_last: Mean opinion in the last slot.
        random: The same three for random selection.
        random_half_width: See above.
        random_last: See above.
    """

    candidate: Candidate
    trial: Trial
    total_samples: int
    untrained: float
    fixed: float
    fixed_half_width: float
    fixed_last: float
    random: float
    random_half_width: float
    random_last: float

    @property
    def distance(self) -> float:
        """The larger deviation from the paper's two figures."""
        return max(self.deviations(BASELINES))

    @property
    def baselines(self) -> Baselines:
        """Values of the two baselines, without a first term."""
        return Baselines(self.fixed, self.random)

    @property
    def with_first_term(self) -> Baselines:
        """The same with 0 as first term of an average over T = 200 slots."""
        return Baselines(*(BASELINES_SLOTS * value / (BASELINES_SLOTS + 1) for value in self.baselines))

    def deviations(self, aim: Baselines, *, first_term: bool = False) -> tuple[float, float]:
        """Deviations of the fixed cohort and of random selection from `aim`."""
        reached = self.with_first_term if first_term else self.baselines
        return abs(reached.fixed - aim.fixed), abs(reached.random - aim.random)


class Calibration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The outcomes of all candidates.

    Attributes:
        data_digest: Hash of the data.
        seed: Seed of training and selection.
        outcomes: One for each candidate, in the order of `CANDIDATES`.
    """

    data_digest: str
    seed: int
    outcomes: tuple[CandidateResult, ...]

    @property
    def choice(self) -> CandidateResult:
        """The candidate chosen by the rule of this module."""
        return self.choice_for(BASELINES)

    def choice_for(self, aim: Baselines, *, first_term: bool = False) -> CandidateResult:
        """The candidate that the rule would choose for other target figures, or other averages.

        Args:
            aim: Target values of the baselines.
            first_term: Whether 0 counts as first term of the averages.
        """
        off = [outcome.deviations(aim, first_term=first_term) for outcome in self.outcomes]
        nearest = min(map(max, off))
        eligible = [place for place, deviations in enumerate(off) if max(deviations) <= nearest + SLACK]
        return self.outcomes[min(eligible, key=lambda place: (self.outcomes[place].total_samples, sum(off[place])))]


_SKEWS = (
    *(("labels", classes) for classes in (2.0, 3.0, 4.0, 5.0)),
    *(("dirichlet", alpha) for alpha in (0.1, 0.2, 0.3, 0.5, 1.0)),
)
_SIZES = ((200, 900), (400, 1200), (400, 1600), (1000, 2000))

CANDIDATES = tuple(
    Candidate(start="cold", skew=skew, degree=degree, samples=samples)
    for samples, (skew, degree) in itertools.product(_SIZES, _SKEWS)
) + tuple(
    Candidate(start="warm", skew=skew, degree=degree, samples=(200, 900))
    for skew, degree in (("labels", 1.0), ("labels", 2.0), ("dirichlet", 0.1))
)

WORK = {"cold": Trial(trials=30, slots=4), "warm": Trial(trials=4, slots=200)}


def calibrate(
    dataset: Dataset,
    path: Path,
    *,
    seed: int = 1,
    workers: int = 1,
    candidates: Sequence[Candidate] = CANDIDATES,
    work: dict[str, Trial] | None = None,
    progress: Callable[[int, int], None] = lambda finished, total: None,
) -> Calibration:
    """Try every candidate that is not on file; rewrite the file whenever one is finished.

    Args:
        dataset: The data.
        path: The JSON file of the outcomes.
        seed: Seed of training and selection.
        workers: Processes.
        candidates: What to try.
        work: Trials and slots by kind of start; `WORK` if None.
        progress: Called with (candidates finished, candidates in all).
    """
    work = work or WORK
    known: dict[Candidate, CandidateResult] = {}
    if path.exists():
        on_file = read_calibration(path)
        if (on_file.data_digest, on_file.seed) == (dataset.digest, seed):
            known = {one.candidate: one for one in on_file.outcomes if one.trial == work[one.candidate.start]}
    missing = [candidate for candidate in candidates if candidate not in known]
    progress(len(candidates) - len(missing), len(candidates))
    make_folder(path.parent)
    function = functools.partial(_outcome, dataset=dataset, seed=seed)
    requests = [(candidate, work[candidate.start]) for candidate in missing]
    for _, outcome in run_tasks(function, requests, workers=workers):
        known[outcome.candidate] = outcome
        _write(path, dataset, seed, candidates, known)
        progress(len(known), len(candidates))
    return _write(path, dataset, seed, candidates, known)


def read_calibration(path: Path) -> Calibration:
    """Read the outcomes on file.

    Raises:
        RunError: It cannot be read.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Calibration)
    except (OSError, msgspec.MsgspecError) as error:
        raise RunError(f"the calibration {path} cannot be read: {error}; delete it to calibrate anew") from error


def _write(
    path: Path, dataset: Dataset, seed: int, candidates: Sequence[Candidate], known: dict[Candidate, CandidateResult]
) -> Calibration:
    outcomes = tuple(known[candidate] for candidate in candidates if candidate in known)
    calibration = Calibration(data_digest=dataset.digest, seed=seed, outcomes=outcomes)
    replace_file(path, msgspec.json.format(msgspec.json.encode(calibration), indent=1), b"\n")
    return calibration


def _outcome(candidate: Candidate, work: Trial, *, dataset: Dataset, seed: int) -> CandidateResult:
    config = candidate.config()
    world = build_scenario(config, dataset)
    engine = make_engine(DEFAULT_ENGINE, config)
    with threadpool_limits(limits=1, user_api="blas"):
        replicas = [
            Replica(name, trial, world, _baseline(name, config, seed, trial))
            for trial in range(work.trials)
            for name in ("fixed", "random")
        ]
        opinions: dict[str, Any] = {"fixed": [], "random": []}
        for slot in range(1, work.slots + 1):
            records = play_slot(replicas, slot=slot, framework="fa", seed=seed, engine=engine)
            for name, rewards in opinions.items():
                rewards.append([mean_opinion(record) for record in records if record.selector == name])
        (scores,) = engine.scores(world, [engine.initial_model(world)])
    fixed, random = (np.array(opinions[name], dtype=np.float64).T for name in ("fixed", "random"))
    return CandidateResult(
        candidate=candidate,
        trial=work,
        total_samples=int(world.sizes.sum()),
        untrained=mean_present(judge(world, scores)) or 0.0,
        **_summary("fixed", fixed),
        **_summary("random", random),
    )


def _baseline(name: str, config: ScenarioConfig, seed: int, trial: int) -> AbstractSelector:
    if name == "fixed":
        return FixedCohort(clients=config.clients, cohort=BEST_KNOWN)
    return RandomCohort(clients=config.clients, budget=config.budget, seed=derive(seed, "selection", trial))


def _summary(name: str, opinions: Floats) -> dict[str, float]:
    """Of (trials, T) mean opinions."""
    band = mean_band(opinions.mean(axis=1))
    return {
        name: float(band.mean),
        f"{name}_half_width": float(band.half_width),
        f"{name}_last": float(opinions[:, -1].mean()),
    }
