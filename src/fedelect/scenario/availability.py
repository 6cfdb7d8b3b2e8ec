"""[availability]: which clients are there in a slot.

Who is there follows from the run's seed, the trial and the slot alone, so all selectors of a trial meet the same
clients. Draws come from the streams ("availability", trial, slot), ("phases", trial) and ("joins", trial).
"""

import math
from typing import Annotated, Literal

import numpy as np
from msgspec import UNSET, Struct, UnsetType
from numpy.typing import NDArray

from fedelect.scenario.keys import describe_key
from fedelect.seeds import stream
from fedelect.vocabulary import Floats

Mask = NDArray[np.bool_]
"""Array of truth values, (N,): one for each client."""

_SLOTS = "a number of slots >= 1"


class AvailabilityConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[availability]: when clients are there to train and to be asked; leave the table out if all always are."""

    kind: Annotated[
        Literal["always", "random", "on-off", "day-night"],
        describe_key("when a client is there", '"always", "random", "on-off" or "day-night"'),
    ] = "always"
    probability: Annotated[
        float, describe_key('chance to be there in a slot under "random"', "a number in [0, 1]", ge=0.0, le=1.0)
    ] = 0.5
    mean_on: Annotated[
        float, describe_key('mean slots in a row for which a client is there under "on-off"', _SLOTS, ge=1.0, le=1e9)
    ] = 10.0
    mean_off: Annotated[
        float, describe_key('mean slots in a row for which it is away under "on-off"', _SLOTS, ge=1.0, le=1e9)
    ] = 10.0
    period: Annotated[float, describe_key('slots in a day and a night under "day-night"', _SLOTS, ge=1.0, le=1e9)] = (
        24.0
    )
    day_share: Annotated[
        float,
        describe_key(
            'share of the period for which a client is there under "day-night"; clients\' days begin evenly spread',
            "a number in [0, 1]",
            ge=0.0,
            le=1.0,
        ),
    ] = 0.5
    joins_share: Annotated[
        float, describe_key("share of the clients that join later, drawn", "a number in [0, 1]", ge=0.0, le=1.0)
    ] = 0.0
    joins_slot: Annotated[int, describe_key("first slot of those that join", "a whole number >= 1", ge=1)] = 1


class Availability:
    """Who is there, slot by slot, in one trial.

    Args:
        config: The table; unset if all clients are always there.
        clients: N.
        seed: Seed of the run.
        trial: Number of the trial.
    """

    def __init__(self, config: AvailabilityConfig | UnsetType, clients: int, *, seed: int, trial: int) -> None:
        self._config = config
        self._clients, self._seed, self._trial = clients, seed, trial
        self._chain: tuple[int, Mask] | None = None  # last slot asked for, and who was there before joins

    def at(self, slot: int) -> Mask | None:
        """(N,) who is there in `slot`; None means all.

        A slot of an "on-off" world follows from the slot before, so it is cheapest to ask in order. Asked for another
        slot, the chain is drawn again from slot 1; the answer is the same.
        """
        config = self._config
        if config is UNSET or (config.kind == "always" and not config.joins_share):
            return None
        there = self._draw(config, slot)
        if slot < config.joins_slot:
            there[self._newcomers(config)] = False
        return there

    def _draw(self, config: AvailabilityConfig, slot: int) -> Mask:
        if config.kind == "always":
            return np.ones(self._clients, dtype=np.bool_)
        if config.kind == "random":
            return np.asarray(self._luck(slot) < config.probability)
        if config.kind == "day-night":
            order = stream(self._seed, "phases", self._trial).permutation(self._clients)
            phases = (order + 0.5) / self._clients  # how much of its period a client is ahead
            return np.asarray((slot / config.period + phases) % 1.0 < config.day_share)
        first, there = self._chain or (0, np.zeros(self._clients, dtype=np.bool_))
        if first > slot:
            first = 0
        for passed in range(first + 1, slot + 1):
            there = self._step(config, there, passed)
        self._chain = slot, there
        return there.copy()

    def _step(self, config: AvailabilityConfig, there: Mask, slot: int) -> Mask:
        """Who is there in `slot` of an "on-off" world, if these were there in the slot before."""
        if slot == 1:  # as it is in the long run
            return np.asarray(self._luck(slot) < config.mean_on / (config.mean_on + config.mean_off))
        return np.asarray(self._luck(slot) < np.where(there, 1.0 - 1.0 / config.mean_on, 1.0 / config.mean_off))

    def _luck(self, slot: int) -> Floats:
        return stream(self._seed, "availability", self._trial, slot).random(self._clients)

    def _newcomers(self, config: AvailabilityConfig) -> NDArray[np.int64]:
        count = count_newcomers(config, self._clients)
        return stream(self._seed, "joins", self._trial).permutation(self._clients)[:count]


def count_newcomers(config: AvailabilityConfig, clients: int) -> int:
    """How many of the clients join later: the share, rounded to the nearest number."""
    return math.floor(config.joins_share * clients + 0.5)


def most_available(config: AvailabilityConfig | UnsetType, clients: int, *, slots: int) -> int:
    """Most clients that can be there at once in the slots 1 .. `slots`, as far as it is known beforehand."""
    if config is UNSET:
        return clients
    most = clients
    if config.kind == "random" and config.probability == 0.0:
        most = 0
    if config.kind == "day-night":
        most = math.ceil(config.day_share * clients - 1e-9)  # days begin evenly spread
    early = clients - count_newcomers(config, clients)
    return min(most, early if slots < config.joins_slot else clients)
