"""Oort: clients by statistical times system utility, with exploration and a pacer."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, final

import numpy as np

from fedelect.seeds import stream
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.literature.features import fill_missing
from fedelect.selectors.parameters import as_float
from fedelect.vocabulary import Feedback, Floats, Ints, Selection, Signal, as_int

_AHEAD = 5.0  # clients never tried that are considered for each place they get
_FLAT, _SHARP = 0.1, 5.0  # relative changes of utility at which the pacer relaxes or tightens
_MOST_LEFT_OUT = 0.3  # largest share of the clients that may be left out for having trained often


class AbstractOort(AbstractSelector):
    """Clients by Oort's utility; see `Oort`.

    Args:
        clients: N.
        budget: K.
        penalty: alpha, exponent of the penalty for slow clients.
        window: Slots in a window of the pacer.
        most_elections: A client that trained more often is left out, at most 30 % of all; None: never.
        seed: Fixes all draws.
    """

    shares: ClassVar[tuple[float, float, float]] = (0.9, 0.98, 0.2)
    """Share of places for clients never tried: at first, its factor in each slot, and the lowest (Sec. 7.1)."""

    cut_off: ClassVar[float] = 0.95
    """c: clients with a utility above c times that of the first one left out stay in the draw."""

    clip: ClassVar[float] = 0.95
    """Rewards above this quantile are clipped."""

    percents: ClassVar[tuple[float, float]] = (30.0, 5.0)
    """Percentile of all durations that is preferred at first, and what the pacer adds to it or takes away."""

    needs: ClassVar[frozenset[Signal]] = frozenset({"loss_rms", "sizes", "seconds"})
    uses: ClassVar[frozenset[Signal]] = frozenset({"training_s", "upload_s"})
    initial_arrays: ClassVar[Mapping[str, float]] = {
        "reward": math.nan,
        "last": 0.0,
        "seconds": math.nan,
        "count": 0.0,
    }

    def __init__(
        self,
        *,
        clients: int,
        budget: int,
        penalty: float = 2.0,
        window: int = 20,
        most_elections: int | None = None,
        seed: int,
    ) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._penalty = as_float("penalty", penalty, low=0.0, high=1e3)
        self._window = int(as_float("window", as_int("window", window), low=1, high=1e6))
        most = None if most_elections is None else as_int("most_elections", most_elections)
        self._most = math.inf if most is None else as_float("most_elections", most, low=1, high=1e9)
        self._won: list[float] = []  # mean reward of the clients exploited in each of the last two windows' slots
        self._percent = self.percents[0]
        self._exhausted = False  # whether a slot found no client left to explore

    def utilities(self, slot: int, available: Available = None) -> Floats:
        """(N,) utility of each client in `slot`; nan where it has never trained."""
        rewards = self.arrays["reward"]
        known = rewards[self._fit(slot, available)]
        known = np.sort(known[known > 0.0])  # of clients never tried, their data size
        if not known.size:
            known = np.ones(1)
        clip, low = known[min(int(known.size * self.clip), known.size - 1)], 0.999 * known[0]
        normal = (np.minimum(rewards, clip) - low) / max(known[-1] - low, 1e-4)
        stale = np.sqrt(0.1 * math.log(slot) / np.maximum(self.arrays["last"], 1.0))
        scores = np.maximum((normal + stale) * self._slowness(), 1e-12)
        return np.where(self.arrays["count"] > 0.0, scores, np.nan)

    def _slowness(self) -> Floats:
        """(N,) (T / t)^alpha where a client's duration t exceeds the preferred duration T, else 1."""
        seconds = self.arrays["seconds"]
        known = np.sort(seconds[~np.isnan(seconds)])
        if not known.size or self._percent >= 100.0:
            return np.ones(self.clients)
        preferred = known[min(int(known.size * self._percent / 100.0), known.size - 1)]
        late = np.where(seconds > preferred, preferred / np.maximum(seconds, 1e-4), 1.0)
        slowness: Floats = late**self._penalty
        return slowness

    def _fit(self, slot: int, available: Available) -> Ints:
        """The available clients without those left out for having trained too often."""
        pool = self._candidates(available)
        often = np.flatnonzero(self.arrays["count"] > self._most)
        most = min(often.size, int(_MOST_LEFT_OUT * self.clients))
        left = np.setdiff1d(pool, self._pick_best(self.arrays["count"], slot, often, most))
        return left if left.size >= self.budget else pool

    def _choose(self, slot: int, available: Available) -> Choice:
        return self._rank(slot, available, self.budget)

    def _rank(self, slot: int, available: Available, count: int) -> Choice:
        """Draw `count` clients by utility, and clients never tried beside them; indices as in `Oort`."""
        pool = self._fit(slot, available)
        tried = pool[self.arrays["count"][pool] > 0.0]
        fresh = pool[self.arrays["count"][pool] == 0.0]
        if not self.arrays["count"].any():
            return tuple(sorted(self._pick_random(slot, pool, count, "first"))), ()
        first, decay, last = self.shares
        share = 0.0 if self._exhausted else max(first * decay ** (slot - 1), last)
        exploit = min(int(count * (1.0 - share)), tried.size)
        utilities = self.utilities(slot, available)
        exploited = self._exploit(slot, tried, utilities, exploit)
        chosen = exploited + self._explore(slot, fresh, min(fresh.size, count - exploit))
        others = np.setdiff1d(pool, chosen)
        chosen += self._pick_random(slot, others, count - len(chosen), "fill")
        won = chosen if self.arrays["count"].all() else exploited  # with all tried, the pacer counts the fill, too
        cohort = tuple(sorted(chosen))
        return cohort, tuple(float(utilities[member]) if member in won else 0.0 for member in cohort)

    def _exploit(self, slot: int, tried: Ints, utilities: Floats, count: int) -> list[int]:
        """`count` of the tried clients, in proportion to utility, among those near the best."""
        if not count:
            return []
        first_out = np.sort(utilities[tried])[::-1][min(count, tried.size - 1)]
        admitted = tried[utilities[tried] >= self.cut_off * first_out]
        return self._draw(slot, "exploit", admitted, utilities[admitted], count)

    def _explore(self, slot: int, fresh: Ints, count: int) -> list[int]:
        """`count` of the clients never tried, in proportion to data size and speed, among the best by these."""
        if not count:
            return []
        sizes = fill_missing(self.arrays["reward"][fresh])
        hopes = np.zeros(self.clients)
        hopes[fresh] = np.maximum(sizes * self._slowness()[fresh], 1e-12)
        best = np.array(self._pick_best(hopes, slot, fresh, min(int(_AHEAD * count), fresh.size)))
        return self._draw(slot, "explore", best, hopes[best], count)

    def _draw(self, slot: int, name: str, pool: Ints, weights: Floats, count: int) -> list[int]:
        rng = stream(self.seed, name, slot)
        drawn: list[int] = rng.choice(pool, count, replace=False, p=weights / weights.sum()).tolist()
        return drawn

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        """Learn from the members that reported; those that did not count as their average."""
        loss, sizes, seconds = feedback.loss_rms, feedback.sizes, feedback.seconds
        assert loss is not None and sizes is not None and seconds is not None  # declared in `needs`
        rewards = sizes * loss
        members = np.array(selection.cohort)
        reported = members[~np.isnan(rewards[members])]
        explored_all = bool(self.arrays["count"].all())
        self._update_known("seconds", seconds)
        if feedback.training_s is not None and feedback.upload_s is not None:
            forecast = np.where(self.arrays["count"] > 0.0, np.nan, feedback.training_s + feedback.upload_s)
            forecast[reported] = np.nan
            self._update_known("seconds", forecast)
        self._update_known("reward", np.where(self.arrays["count"] > 0.0, np.nan, sizes))
        if reported.size:
            self.arrays["reward"][members] = rewards[reported].mean()
            self.arrays["reward"][reported] = rewards[reported]
            self.arrays["last"][members] = selection.slot
            self.arrays["count"][members] += 1.0
        exploited = members[np.array(selection.indices or np.zeros(members.size)) > 0.0]
        won = self.arrays["reward"][exploited] if reported.size else np.empty(0)
        self._close(selection.slot, float(won.sum()) / (won.size + 1e-4), explored_all)

    def _abandon(self, selection: Selection) -> None:
        self._close(selection.slot, 0.0, bool(self.arrays["count"].all()))

    def _close(self, slot: int, won: float, explored_all: bool) -> None:
        """Note what the slot won; at the end of a window let the pacer change the preferred duration."""
        self._exhausted = self._exhausted or explored_all
        window, coming = self._window, slot + 1
        self._won = [*self._won, won][-2 * window :]
        if coming >= 2 * window and coming % window == 0:
            before, now = math.fsum(self._won[-2 * window : -window]), math.fsum(self._won[-window:])
            if abs(now - before) <= _FLAT * before:
                self._percent = min(self._percent + self.percents[1], 100.0)
            elif abs(now - before) >= _SHARP * before:
                self._percent = max(self._percent - self.percents[1], self.percents[1])

    def _memory(self) -> dict[str, Any]:
        return {"won": list(self._won), "percent": self._percent, "exhausted": self._exhausted}

    def _recall(self, memory: dict[str, Any]) -> None:
        self._won = [float(value) for value in memory["won"]]
        self._percent, self._exhausted = float(memory["percent"]), bool(memory["exhausted"])


@final
class Oort(AbstractOort):
    """Oort (Lai, Zhu, Madhyastha, Chowdhury, OSDI 2021), Algorithm 1, as in its public code.

    The reward of a client that has trained is |B| sqrt(mean over its samples of loss^2), clipped at the 95th percentile
    and normalised to the range of all rewards; its utility is that plus sqrt(0.1 ln R / L) for its last training in
    slot L, times (T / t)^alpha where its duration t exceeds the preferred duration T. Of K places a share eps (0.9,
    times 0.98 each slot, not below 0.2) goes to clients never tried, in proportion to their data size and speed; the
    others are drawn in proportion to utility, from the clients above 95 % of the utility of the first one left out. T
    is a percentile of all durations. The pacer raises it (by 5, from 30) when the reward won in the last `window` slots
    is within 10 % of the window before. It lowers it when the reward changed five times over. A member that did not
    report counts as the average of those that did. The first cohort is random.

    Differs from the original: the mean of squared losses is over all samples, not over the last batch; durations of
    clients never tried are their forecasts (`training_s`, `upload_s`), where told; rounds are counted from the first
    slot, not from the first call; exploration ends when all clients have been tried, not when all available ones have.

    A selection's indices are the utilities of the members that the pacer counts as exploited, and 0 for the others.

    Args:
        clients: N.
        budget: K.
        penalty: alpha, exponent of the penalty for slow clients.
        window: Slots in a window of the pacer.
        most_elections: A client that trained more often is left out, at most 30 % of all; None: never.
        seed: Fixes all draws.
    """

    advice: ClassVar[str] = "Clients may report their losses, and time to accuracy counts: slow clients are penalised."
    version: ClassVar[int] = 2
