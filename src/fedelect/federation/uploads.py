"""What a client uploads after its local training, and what the server makes of uploads. Used by all engines."""

from collections.abc import Callable

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from fedelect.equations.aggregation import aggregate
from fedelect.equations.shapley import gtg_shapley
from fedelect.equations.sketch import make_sketch
from fedelect.federation.linear.model import Model
from fedelect.scenario import Scenario
from fedelect.seeds import stream
from fedelect.vocabulary import UPDATE_SIZE, Cohort, Floats, Ints

WORST_SCORE = -1e6
"""Score that counts for a model whose own is lower or not a number, for its weights have left the range of floats."""


def trains_locally(scenario: Scenario, client: int) -> bool:
    """Whether the client trains at all; free riders do not."""
    return client not in scenario.flaws.get("free_riders", ())


def make_upload(
    scenario: Scenario, client: int, start: Model, trained: Model, *, seed: int, trial: int, slot: int, round_: int
) -> Model:
    """Make what the client uploads.

    A free rider's noise comes from the run's stream ("upload noise", trial, slot, round, client). A client with several
    flaws gets them one after the other: free rider, flipped, scaled.

    Args:
        scenario: Who has which flaw.
        client: The client.
        start: The round's global model, of any shape.
        trained: The client's model after training; a free rider's is not used.
        seed: Seed of the run.
        trial: Number of the trial.
        slot: Number of the slot.
        round_: Number of the round.

    Returns:
        `trained` itself unless the client has a flaw.
    """
    config, flaws = scenario.config.flaws, scenario.flaws
    if config is UNSET:
        return trained
    upload = trained
    if config.free_riders is not UNSET and client in flaws["free_riders"]:
        upload = start
        if config.free_riders.noise:
            rng = stream(seed, "upload noise", trial, slot, round_, client)
            size = config.free_riders.noise * np.sqrt(np.mean(np.square(start, dtype=np.float64)))
            upload = (start + size * rng.standard_normal(start.shape)).astype(start.dtype)
    if config.flipped_updates is not UNSET and client in flaws["flipped_updates"]:
        upload = start - start.dtype.type(config.flipped_updates.scale) * (upload - start)
    if config.scaled_updates is not UNSET and client in flaws["scaled_updates"]:
        upload = start + start.dtype.type(config.scaled_updates.scale) * (upload - start)
    return upload


class UploadSignals:
    """What the server makes of the uploads of a job: projected changes and contributions, summed over its rounds.

    The value of a set of members in a round is the score of the model that FedAvg makes of their uploads alone; a
    member's contribution is its GTG-Shapley estimate (`fedelect.equations.shapley`). Orders of members come from the
    run's stream ("contributions", trial, slot, round).

    Args:
        scenario: Its seed names the projection.
        cohort: The members, sorted.
        score: What a model is worth at the server; see `Job.contributions`.
        updates: Whether projected changes are asked for; if not, they are not computed.
        contributions: The same of contributions.
        name: Seed of the run, trial and slot.
    """

    def __init__(
        self,
        scenario: Scenario,
        cohort: Cohort,
        score: Callable[[Model], float],
        *,
        updates: bool,
        contributions: bool,
        name: tuple[int, int, int],
    ) -> None:
        self._seed, self._name, self._score = scenario.config.seed, name, score
        self._sizes = scenario.sizes[list(cohort)]
        self._changes = np.zeros((len(cohort), UPDATE_SIZE)) if updates else None
        self._gains = np.zeros(len(cohort)) if contributions else None
        self._arrived = np.zeros(len(cohort), dtype=np.bool_)

    def add(self, uploads: Model, start: Model, arrived: NDArray[np.bool_], round_: int) -> None:
        """Add a round: uploads (K, ...), the model that they began from, and whose arrived (K,)."""
        self._arrived |= arrived
        if self._changes is not None:
            sketch = make_sketch(start.size, self._seed)
            for member in np.flatnonzero(arrived).tolist():
                self._changes[member] += sketch.project(uploads[member].astype(np.float64) - start)
        if self._gains is not None and arrived.any():
            self._gains[arrived] += self._estimate(uploads, start, np.flatnonzero(arrived), round_)

    def _estimate(self, uploads: Model, start: Model, there: Ints, round_: int) -> Floats:
        """Contributions of the members whose uploads arrived, in their order."""

        def value(chosen: tuple[int, ...]) -> float:
            mask = np.isin(np.arange(len(uploads)), there[list(chosen)])
            score = self._score(aggregate(uploads, self._sizes, mask, start))
            return max(score, WORST_SCORE) if score == score else WORST_SCORE

        seed, trial, slot = self._name
        return gtg_shapley(value, there.size, stream(seed, "contributions", trial, slot, round_))

    @property
    def updates(self) -> Floats | None:
        """(K, 64); nan for members of whom nothing arrived. None if not asked for."""
        return None if self._changes is None else np.where(self._arrived[:, None], self._changes, np.nan)

    @property
    def contributions(self) -> Floats | None:
        """(K,); nan for members of whom nothing arrived. None if not asked for."""
        return None if self._gains is None else np.where(self._arrived, self._gains, np.nan)
