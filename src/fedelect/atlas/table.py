"""The atlas as a value: every client's opinion of every cohort's model; and the plan of an atlas.

Seed s of cohort c is what `Job(cohort=c, seed=atlas.seed, trial=s, slot=1)` trains, so every entry can be checked.
Opinions that are accuracies are stored as counts of right answers on test shares of known sizes.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import UNSET
from numpy.typing import ArrayLike, NDArray

from fedelect.atlas.ranks import cohort_ranks, cohorts_at
from fedelect.errors import ConfigurationError, DataError, UnmeasuredError
from fedelect.records import Provenance
from fedelect.scenario import Scenario, ScenarioConfig
from fedelect.vocabulary import Cohort, Floats, Ints

COUNTS = np.dtype(np.uint16)
"""Type of stored opinions that are accuracies: counts of right answers."""

FLOATS = np.dtype(np.float32)
"""Type of all other stored opinions, rounded to it; nan where a client has none."""

LOSSES = np.dtype(np.float16)
"""Type of the clients' stored losses, with five binary digits after the first: to about 1.6 %."""

LARGEST_LOSS = 64512.0
"""Largest loss that can be stored."""

FEWEST_FRESH = 4
"""Fewest fresh seeds: two halves, one of them with an interval."""


@dataclass(frozen=True, kw_only=True)
class AtlasPlan:
    """An atlas to build.

    Attributes:
        config: The world.
        seed: Seed of all trainings.
        seeds: S, trainings of every cohort.
        contenders: R, how many of the best are trained again.
        fresh: F, how often; one half chooses the optimum, the other values it.
        losses: Q, of how many training seeds the clients' losses are kept, for selectors that need them; 0 for none.

    Raises:
        ConfigurationError: There is no atlas of such a scenario, or a number is out of range.
    """

    config: ScenarioConfig
    seed: int = 1
    seeds: int = 3
    contenders: int = 100
    fresh: int = 20
    losses: int = 0

    def __post_init__(self) -> None:
        if self.config.start != "cold":
            raise ConfigurationError(
                f'start: got "{self.config.start}"; an atlas needs "cold": under a warm start what a cohort is worth '
                f"depends on all that trained before it"
            )
        if self.config.redraw_every:
            raise ConfigurationError(
                f"redraw_every: got {self.config.redraw_every}; an atlas is of one draw of the world, so it needs 0"
            )
        if self.config.drift is not UNSET:
            raise ConfigurationError("drift: got a table; an atlas is of a world that stays, so leave [drift] out")
        if "failing" in self.config.special_clients:
            raise ConfigurationError(
                "flaws.failing: got a table; who fails is drawn anew in each slot, so an atlas does not know it"
            )
        for name, least in (("seeds", 1), ("contenders", 1), ("fresh", FEWEST_FRESH), ("seed", 0)):
            if getattr(self, name) < least:
                raise ConfigurationError(f"{name}: got {getattr(self, name)}; allowed: a whole number >= {least}")
        if not 0 <= self.losses <= self.seeds:
            raise ConfigurationError(f"losses: got {self.losses}; allowed: from 0 to the {self.seeds} training seeds")

    @property
    def cohorts(self) -> int:
        """C(N, K)."""
        return math.comb(self.config.clients, self.config.budget)

    @property
    def trainings(self) -> int:
        """How many slots are trained in all."""
        return self.cohorts * self.seeds + min(self.contenders, self.cohorts) * self.fresh


@dataclass(frozen=True, kw_only=True, eq=False)
class Atlas:
    """The value of every cohort of a scenario with a cold start.

    Attributes:
        world: The scenario, with all facts but the data: its training and test shares are empty.
        seed: The seed from which all trainings come.
        engine: What trained.
        data_digest: Hash of the data set that the clients held shares of.
        test_sizes: (N,) samples in each client's test share.
        untrained: (N,) each client's opinion of the untrained model; nan where it has none.
        table: (S, N, C) for each training seed, client and cohort: right answers (uint16) or the opinion (float32).
        contenders: (R,) numbers of the cohorts that looked best in the table, in ascending order.
        fresh: (F, N, R) the same as `table` for the contenders alone, with seeds S .. S + F - 1.
        provenance: Where the atlas comes from.
        digest: Hash of all but the provenance: 32 hexadecimal digits.
        losses: (2, Q, N, C) for the first Q training seeds mean, and root of the mean square, of each client's losses
            (float16, to about 1.6 %, at most 64512); None if they were not kept.
    """

    world: Scenario
    seed: int
    engine: str
    data_digest: str
    test_sizes: Ints
    untrained: Floats
    table: NDArray[Any]
    contenders: Ints
    fresh: NDArray[Any]
    provenance: Provenance
    digest: str
    losses: NDArray[Any] | None = None

    @property
    def config(self) -> ScenarioConfig:
        """The scenario's configuration."""
        return self.world.config

    @property
    def seeds(self) -> int:
        """S, training seeds of every cohort."""
        return len(self.table)

    @property
    def cohorts(self) -> int:
        """C, how many cohorts there are."""
        return int(self.table.shape[2])

    @property
    def counted(self) -> bool:
        """Whether opinions are kept as counts, exactly; if not, they are rounded to 32-bit floats."""
        return self.table.dtype == COUNTS

    def rank(self, cohorts: ArrayLike) -> Ints:
        """The number of each cohort: (..., K) -> (...)."""
        return cohort_ranks(cohorts, clients=self.config.clients)

    def cohort(self, rank: int) -> Cohort:
        """The cohort of that number."""
        return tuple(cohorts_at(rank, clients=self.config.clients, budget=self.config.budget).tolist())

    def opinions(self, rank: int, seed: int) -> Floats:
        """(N,) opinions on the model that cohort number `rank` trains with the training seed `seed`, 0 .. S-1."""
        return opinions_from(self.table[seed, :, rank], self.test_sizes)

    def client_losses(self, rank: int, seed: int) -> Floats:
        """(2, N) mean, and root of the mean square, of the clients' losses of that model.

        Where only those of the first Q seeds are kept, they are of the same cohort under training seed `seed` mod Q.

        Raises:
            UnmeasuredError: The atlas keeps none.
        """
        if self.losses is None:
            raise UnmeasuredError(
                "this atlas does not know the clients' losses; build it with --losses 1, or choose another selector"
            )
        return np.asarray(self.losses[:, seed % self.losses.shape[1], :, rank], dtype=np.float64)

    def seed_means(self) -> Floats:
        """(S, C) mean opinion of all clients that have one, for each training seed and cohort."""
        return mean_opinions(self.table, self.test_sizes)

    def fresh_means(self) -> Floats:
        """(F, R) the same for the fresh trainings of the contenders."""
        return mean_opinions(self.fresh, self.test_sizes)


def encode_opinions(opinions: Floats, test_sizes: Ints, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Opinions as the table stores them. Shapes: (..., N), (N,) -> (..., N).

    Raises:
        DataError: They are to be stored as counts but are no counts.
    """
    if dtype != COUNTS:
        return opinions.astype(FLOATS)
    counts = np.rint(np.where(np.isnan(opinions), 0.0, opinions * test_sizes)).astype(COUNTS)
    if not np.array_equal(opinions_from(counts, test_sizes), opinions, equal_nan=True):
        raise DataError("an accuracy is not a count of right answers over the size of the test share")
    return counts


def encode_losses(losses: Floats) -> NDArray[Any]:
    """Losses as the atlas stores them, the same shape: float16 with the last five of its ten binary digits zero.

    The result compresses well and hardly ever changes which client has the largest loss. Losses above `LARGEST_LOSS`,
    also infinite ones, are stored as that value.

    Raises:
        ConfigurationError: One is below 0 or not a number.
    """
    sound = losses >= 0.0
    if not sound.all():
        raise ConfigurationError(
            f"a client's loss is {losses[~sound][0]}; an atlas keeps losses >= 0: lower the model's `step` if the "
            f"training diverges, change its `loss`, or build without --losses"
        )
    bits = np.minimum(losses, LARGEST_LOSS).astype(LOSSES, order="C").view(np.uint16)
    return np.asarray((bits + np.uint16(0x10)) & np.uint16(0xFFE0)).view(LOSSES)


def opinions_from(entries: NDArray[Any], test_sizes: Ints) -> Floats:
    """The opinions that entries of the table stand for, clients along the last axis; nan where a client has none."""
    if entries.dtype != COUNTS:
        return entries.astype(np.float64)
    shares = np.where(test_sizes > 0, test_sizes, np.nan)
    return np.asarray(entries / shares)


def mean_opinions(entries: NDArray[Any], test_sizes: Ints) -> Floats:
    """Mean over the clients that have an opinion, nan if none has: (S, N, C) -> (S, C)."""
    means = np.empty((entries.shape[0], entries.shape[2]))
    for seed, of_seed in enumerate(entries):  # a seed at a time: the whole table as floats may be large
        opinions = opinions_from(of_seed.T, test_sizes)
        present = ~np.isnan(opinions)
        terms = present.sum(axis=1)
        total = np.where(present, opinions, 0.0).sum(axis=1)
        means[seed] = np.divide(total, terms, out=np.full(terms.shape, math.nan), where=terms > 0)
    return means


def known_means(entries: NDArray[Any], test_sizes: Ints) -> Floats:
    """Mean over the clients that have an opinion: (S, N, C) -> (S, C).

    Raises:
        ConfigurationError: No client has an opinion of some model, so the value of its cohort is unknown.
    """
    means = mean_opinions(entries, test_sizes)
    if np.isnan(means).any():
        raise ConfigurationError(
            f"nobody has an opinion on {np.isnan(means).sum()} of {means.size} models; an atlas needs one on each: "
            f"change `opinion`, or the test shares"
        )
    return means
