"""Our engines through the seam that the simulator uses, and two yardsticks in NumPy: a lean loop and plain sgemm."""

import itertools
import time
from collections.abc import Sequence
from typing import Any, final

import numpy as np
from benchmarks.contenders.work import (
    SEED,
    Contender,
    Scenario,
    Shuffle,
    Visit,
    Work,
    build_world,
    mean_opinion,
    signs,
    with_ones,
)
from numpy.typing import NDArray

from fedelect import __version__
from fedelect.analytics import judge
from fedelect.federation import Engine, Job, PlainEngine, make_engine

_NUMPY = f"numpy {np.__version__}"


@final
class Seam:
    """An engine of ours: all replicas of a slot in one call, then the opinions."""

    def __init__(self, engine: Engine, world: Scenario, versions: str) -> None:
        self._engine = engine
        self._world = world
        self.versions = versions

    def run(self, visits: Sequence[Visit]) -> list[float]:
        """One call of the engine for each slot."""
        opinions = []
        for _, together in itertools.groupby(visits, key=lambda visit: visit.slot):
            jobs = [Job(cohort=visit.cohort, seed=SEED, trial=visit.trial, slot=visit.slot) for visit in together]
            models = [training.model for training in self._engine.train(self._world, jobs)]
            for scores in self._engine.scores(self._world, models):
                opinions.append(float(judge(self._world, scores).mean()))
        return opinions


def plain(work: Work, threads: int) -> Contender:
    """The reference loop: the baseline of all ratios."""
    return Seam(PlainEngine(), build_world(work), f"fedelect {__version__}, {_NUMPY}")


def stacked(work: Work, threads: int, *, shuffle: Shuffle) -> Contender:
    """All replicas together."""
    from fedelect.federation import StackedEngine

    try:
        from numba import __version__ as numba
    except ImportError:
        numba = "absent"
    versions = f"fedelect {__version__}, {_NUMPY}, numba {numba}"
    return Seam(StackedEngine(), build_world(work, shuffle), versions)


def modules(work: Work, threads: int, *, engine: str) -> Contender:
    """PyTorch modules by the engine of this name."""
    import torch

    torch.set_num_threads(threads)
    world = build_world(work)
    return Seam(make_engine(engine, world.config), world, f"fedelect {__version__}, torch {torch.__version__}")


@final
class LeanLoop:
    """The least NumPy can do: bias as a column of ones, no checks, a gather and two products for each step."""

    versions = _NUMPY

    def __init__(self, work: Work, threads: int) -> None:
        self._world = build_world(work)
        self._settings = self._world.config
        self._inputs = [with_ones(inputs) for inputs in self._world.train_inputs]
        self._signs = [signs(labels) for labels in self._world.train_labels]

    def run(self, visits: Sequence[Visit]) -> list[float]:
        """One slot after the other."""
        return [mean_opinion(self._world, self._slot(visit)) for visit in visits]

    def _slot(self, visit: Visit) -> NDArray[Any]:
        rng = np.random.default_rng(visit.trial)
        model = np.zeros((785, 10), dtype=np.float32)
        for _ in range(self._settings.rounds_per_slot):
            uploads = [train_lean(model, self._inputs[n], self._signs[n], self._settings, rng) for n in visit.cohort]
            model = np.mean(uploads, axis=0)
        return model


def train_lean(
    model: NDArray[Any], inputs: NDArray[Any], targets: NDArray[Any], settings: Any, rng: np.random.Generator
) -> NDArray[Any]:
    """E epochs of minibatch SGD: model (785, 10), inputs (D, 785), targets (D, 10)."""
    batch = settings.model.batch
    for _ in range(settings.model.epochs):
        order = rng.permutation(len(inputs))
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            own, wanted = inputs[chosen], targets[chosen]
            slopes = wanted * (wanted * (own @ model) < 1)
            model = model + np.float32(settings.model.step / len(chosen)) * (own.T @ slopes)
    return model


@final
class Sgemm:
    """A large matrix product: what the machine could do. Its values are GFLOP/s, not opinions."""

    versions = _NUMPY

    def __init__(self, work: Work, threads: int) -> None:
        rng = np.random.default_rng(1)
        self._one, self._other = (rng.random((2048, 2048), dtype=np.float32) for _ in range(2))

    def run(self, visits: Sequence[Visit]) -> list[float]:
        """The median of ten products, for each visit."""
        return [float(np.median([self._rate() for _ in range(10)])) for _ in visits]

    def _rate(self) -> float:
        began = time.perf_counter()
        self._one @ self._other
        return 2.0 * 2048**3 / (time.perf_counter() - began) / 1e9
