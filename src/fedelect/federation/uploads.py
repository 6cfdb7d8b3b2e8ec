"""What a client uploads after its local training: its model, or what its flaw makes of it. Used by all engines."""

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from fedelect.equations.sketch import make_sketch
from fedelect.federation.linear.model import Model
from fedelect.scenario import Scenario
from fedelect.seeds import stream
from fedelect.vocabulary import UPDATE_SIZE, Floats


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


class UploadedChanges:
    """Projections of what the members of a job upload, summed over its rounds; see `Training.updates`.

    Args:
        scenario: Its seed names the projection.
        members: K.
        wanted: Whether they are asked for; if not, nothing is computed.
    """

    def __init__(self, scenario: Scenario, members: int, *, wanted: bool) -> None:
        self._seed = scenario.config.seed
        self._sums = np.zeros((members, UPDATE_SIZE)) if wanted else None
        self._arrived = np.zeros(members, dtype=np.bool_)

    def add(self, uploads: Model, start: Model, arrived: NDArray[np.bool_]) -> None:
        """Add a round: uploads (K, ...), the model that they began from, and whose arrived (K,)."""
        if self._sums is None:
            return
        self._arrived |= arrived
        sketch = make_sketch(start.size, self._seed)
        for member in np.flatnonzero(arrived).tolist():
            self._sums[member] += sketch.project(uploads[member].astype(np.float64) - start)

    @property
    def projected(self) -> Floats | None:
        """(K, 64); nan for members of whom nothing arrived. None if not asked for."""
        return None if self._sums is None else np.where(self._arrived[:, None], self._sums, np.nan)
