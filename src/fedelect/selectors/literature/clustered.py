"""Clustered sampling: K distributions over the clients, by data size or by similar updates, and one draw from each."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, final

import numpy as np

from fedelect.seeds import stream
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.literature.features import fill_missing
from fedelect.selectors.literature.updates import LastUpdates, squared_distances
from fedelect.vocabulary import Feedback, Floats, Ints, Selection, Signal

_MOST_CLUSTERED = 400  # of more clients a sample of this size is drawn in each slot
_TINY = 1e-9


class _ClusteredSampling(AbstractSelector):
    """What both algorithms share: a distribution over the clients for each place, and the draws."""

    initial_arrays: ClassVar[Mapping[str, float]] = {"sizes": math.nan}

    @abstractmethod
    def distributions(self, slot: int, pool: Ints) -> Floats:
        """(K, n) chances of the n clients of the pool in each of the K draws; rows sum to 1."""

    def _choose(self, slot: int, available: Available) -> Choice:
        pool = self._narrow(slot, self._candidates(available))
        rng, free = stream(self.seed, "members", slot), np.ones(pool.size)
        for chances in self.distributions(slot, pool):
            left = chances * free
            if left.sum() <= _TINY:  # all clients of this distribution are chosen already
                left = free
            free[rng.choice(pool.size, p=left / left.sum())] = 0.0
        return tuple(pool[free == 0.0].tolist()), ()

    def _narrow(self, slot: int, pool: Ints) -> Ints:
        return pool

    def _masses(self, pool: Ints) -> Floats:
        """(n,) K times the clients' shares of the data, none above 1; they sum to K."""
        sizes = np.maximum(fill_missing(self.arrays["sizes"])[pool], _TINY)
        masses, capped = np.zeros(pool.size), np.zeros(pool.size, dtype=np.bool_)
        while True:
            room = self.budget - np.count_nonzero(capped)
            masses = np.where(capped, 1.0, room * sizes / max(sizes[~capped].sum(), _TINY))
            beyond = (masses > 1.0) & ~capped
            if not beyond.any():
                return masses
            capped |= beyond

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.sizes is not None  # declared in `needs`
        self._update_known("sizes", feedback.sizes)


@final
class ClusteredBySize(_ClusteredSampling):
    """Clustered sampling by data size (Fraboni, Vidal, Kameni, Lorenzi, ICML 2021, arXiv 2105.05883), Algorithm 1.

    Every client has K times its share of the data to give away. In order of size, largest first, the clients pour what
    they have into K distributions, each filled up to 1 before the next is begun. One client is drawn from each. A
    client is elected as often as under sampling by data size, with less variance.

    Differs from the original: members are distinct. A client that was drawn already is left out of the next draws, and
    one with more than 1 / K of the data counts as having 1 / K.

    Args:
        clients: N.
        budget: K.
        seed: Fixes all draws and ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"sizes"})
    advice: ClassVar[str] = "Only data sizes are known: as sampling by size, but cohorts differ less from slot to slot."

    def distributions(self, slot: int, pool: Ints) -> Floats:
        """(K, n) chances of the n clients of the pool in each of the K draws; rows sum to 1."""
        masses = self._masses(pool)
        shuffled = stream(self.seed, "order", slot).permutation(pool.size)
        order = shuffled[np.argsort(-masses[shuffled], kind="stable")]
        chances = np.zeros((self.budget, pool.size))
        pour(chances, order, masses)
        return chances


@final
class ClusteredBySimilarity(_ClusteredSampling):
    """Clustered sampling by similarity (Fraboni, Vidal, Kameni, Lorenzi, ICML 2021, arXiv 2105.05883), Algorithm 2.

    Clients are compared by the angle between their last updates; one that has not uploaded counts as having the update
    0, at an angle of 0 to all. The rows of the matrix of angles are clustered by Ward's criterion, and the tree is cut
    into the largest clusters with at most 1 / K of the data. The K largest clusters begin the K distributions; the
    clients of the others are poured into what room is left. One client is drawn from each distribution.

    Differs from the original: members are distinct. A client that was drawn already is left out of the next draws, and
    one with more than 1 / K of the data counts as having 1 / K. Updates are random projections (64 numbers). Of more
    than 400 available clients 400 are drawn to be clustered.

    Args:
        clients: N.
        budget: K.
        seed: Fixes all draws and ties.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"sizes", "updates"})
    advice: ClassVar[str] = "Clients come in kinds: one of each, and yet all as often as their data size says."

    def __init__(self, *, clients: int, budget: int, seed: int) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._updates = LastUpdates(self.clients)

    def _narrow(self, slot: int, pool: Ints) -> Ints:
        most = max(_MOST_CLUSTERED, self.budget)
        return pool if pool.size <= most else np.sort(self._pick_random(slot, pool, most, "clustered"))

    def distributions(self, slot: int, pool: Ints) -> Floats:
        """(K, n) chances of the n clients of the pool in each of the K draws; rows sum to 1."""
        masses = self._masses(pool)
        shuffled = stream(self.seed, "order", slot).permutation(pool.size)
        clusters = self._cut(self._angles(pool[shuffled]), masses[shuffled])
        clusters = [shuffled[cluster] for cluster in clusters]
        clusters.sort(key=lambda cluster: float(masses[cluster].sum()))
        chances: Floats = np.zeros((self.budget, pool.size))
        kept, others = clusters[-self.budget :], clusters[: -self.budget]
        for row, cluster in zip(chances, kept, strict=False):
            row[cluster] = masses[cluster]
        for cluster in others:
            pour(chances, cluster, masses)
        chances /= np.maximum(chances.sum(axis=1, keepdims=True), _TINY)
        return chances

    def _angles(self, pool: Ints) -> Floats:
        """(n, n) angles between the last updates."""
        rows = np.nan_to_num(self._updates.rows[pool])
        norms = np.sqrt((rows**2).sum(axis=1))
        known = norms > 0.0
        units = rows / np.where(known, norms, 1.0)[:, None]
        angles: Floats = np.arccos(np.clip(units @ units.T, -1.0, 1.0))
        return np.where(known[:, None] & known, angles, 0.0)

    def _cut(self, angles: Floats, masses: Floats) -> list[Ints]:
        """The clients' places by cluster: the largest clusters of the tree with a mass of at most 1."""
        members = {place: np.array([place]) for place in range(len(masses))}
        weights = masses.tolist()
        for one, other in merge_by_ward(angles):
            name = len(weights)
            weights.append(weights[one] + weights[other])
            if weights[name] <= 1.0 + _TINY and one in members and other in members:
                members[name] = np.concatenate([members.pop(one), members.pop(other)])
        return list(members.values())

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        assert feedback.updates is not None  # declared in `needs`
        super()._learn(selection, feedback)
        self._updates.add(feedback.updates)

    def _memory(self) -> dict[str, Any]:
        return {"updates": self._updates.state()}

    def _recall(self, memory: dict[str, Any]) -> None:
        self._updates.restore(memory["updates"])


def pour(chances: Floats, order: Ints, masses: Floats) -> None:
    """Pour the masses (n,) of the clients in `order` into the rows of `chances` (K, n), filling each up to 1."""
    row, room = 0, (1.0 - chances.sum(axis=1)).tolist()
    for client in order.tolist():
        left = float(masses[client])
        while left > _TINY and row < len(room):
            poured = max(min(room[row], left), 0.0)
            chances[row, client] += poured
            left -= poured
            room[row] -= poured
            if room[row] <= _TINY:
                row += 1


def merge_by_ward(rows: Floats) -> list[tuple[int, int]]:
    """The n - 1 merges of the rows (n, d), in order; the i-th makes cluster n + i out of two earlier ones.

    Two clusters are merged whose union has the least additional sum of squares. Distances are updated by the formula of
    Lance and Williams, at a cost of O(n^2) for each merge.
    """
    count = len(rows)
    distances = squared_distances(rows, rows)
    np.fill_diagonal(distances, np.inf)
    names, sizes = np.arange(count), np.ones(count)
    merges = list[tuple[int, int]]()
    for step in range(count - 1):
        first, second = sorted(divmod(int(np.argmin(distances)), count))
        low, high = sorted((int(names[first]), int(names[second])))
        merges.append((low, high))
        total = sizes + sizes[first] + sizes[second]
        with np.errstate(invalid="ignore"):  # infinite for what was merged before
            joined = (sizes + sizes[first]) * distances[first] + (sizes + sizes[second]) * distances[second]
            joined = (joined - sizes * distances[first, second]) / total
        joined[~np.isfinite(joined)] = np.inf
        joined[[first, second]] = np.inf
        distances[first], distances[:, first] = joined, joined
        distances[second], distances[:, second] = np.inf, np.inf
        sizes[first] += sizes[second]
        names[first] = count + step
    return merges
