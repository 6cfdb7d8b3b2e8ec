"""Oort: clients by statistical times system utility, with exploration and a pacer."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, final

import numpy as np

from fedelect.seeds import stream
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.parameters import as_float
from fedelect.vocabulary import Feedback, Floats, Ints, Selection, Signal, as_int

_FIRST_SHARE, _SHARE_DECAY, _LAST_SHARE = 0.9, 0.98, 0.2  # exploration factor, Sec. 7.1
_CUT_OFF = 0.95  # c: clients with a utility above c times that of the last place stay in the draw
_FIRST_PERCENT, _STEP_PERCENT = 50.0, 10.0  # preferred duration, and what the pacer adds


@final
class Oort(AbstractSelector):
    """Oort (Lai, Zhu, Madhyastha, Chowdhury, OSDI 2021), Algorithm 1.

    The utility of a client that has trained is |B| sqrt(mean over its samples of loss^2), clipped at the 95th
    percentile, plus sqrt(0.1 ln R / L) for slots gone by since its last election, and times (T / t)^alpha where its
    duration t exceeds the preferred duration T. Of K places a share eps (0.9, times 0.98 each slot, not below 0.2)
    goes to clients never tried, at random; the others are drawn, in proportion to utility, from the clients above 95
    % of the utility of the last place. The pacer raises T when the utility won in the last `window` slots falls
    behind that of the window before.

    T is kept as a percentile of the durations known (50, raised by 10), for seconds differ from federation to
    federation; the paper leaves the figure to the developer. The mean is over all samples, not over the last batch
    only.

    Args:
        clients: N.
        budget: K.
        penalty: alpha, exponent of the penalty for slow clients.
        window: Slots in a window of the pacer.
        most_elections: A client elected this often is left out while others are available; None: never.
        seed: Fixes all draws.
    """

    needs: ClassVar[frozenset[Signal]] = frozenset({"loss_rms", "sizes", "seconds"})
    advice: ClassVar[str] = "Clients may report their losses, and time to accuracy counts: slow clients are penalised."

    initial_arrays: ClassVar[Mapping[str, float]] = {
        "utility": math.nan,
        "last": 0.0,
        "seconds": math.nan,
        "elections": 0.0,
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
        self._won: list[float] = []  # utility gained in each slot with feedback
        self._percent = _FIRST_PERCENT

    def utilities(self, slot: int) -> Floats:
        """(N,) utility of each client in `slot`; nan where it has never trained."""
        known = self.arrays["utility"][~np.isnan(self.arrays["utility"])]
        if not known.size:
            return self.arrays["utility"].copy()
        clipped = np.minimum(self.arrays["utility"], np.percentile(known, 95.0))
        stale = np.sqrt(0.1 * math.log(slot) / np.maximum(self.arrays["last"], 1.0))
        seconds = self.arrays["seconds"]
        durations = seconds[~np.isnan(seconds)]
        preferred = np.percentile(durations, self._percent) if durations.size else math.inf
        late = np.where(seconds > preferred, preferred / np.maximum(seconds, 1e-12), 1.0)
        utilities: Floats = (clipped + stale) * late**self._penalty
        return utilities

    def _choose(self, slot: int, available: Available) -> Choice:
        pool = self._candidates(available)
        utilities = self.utilities(slot)
        tried = pool[~np.isnan(utilities[pool])]
        fresh = pool[np.isnan(utilities[pool])]
        share = max(_FIRST_SHARE * _SHARE_DECAY ** len(self._won), _LAST_SHARE)
        explore = min(round(share * self.budget), fresh.size)
        exploit = min(self.budget - explore, tried.size)
        explore = self.budget - exploit
        chosen = self._exploit(slot, tried, utilities, exploit) + self._pick_random(slot, fresh, explore, "explore")
        return tuple(sorted(chosen)), ()

    def _exploit(self, slot: int, tried: Ints, utilities: Floats, count: int) -> list[int]:
        """`count` of the tried clients, by utility."""
        if not count:
            return []
        fit = tried[self.arrays["elections"][tried] < self._most]
        pool = fit if fit.size >= count else tried
        last_place = np.sort(utilities[pool])[-count]
        admitted = pool[utilities[pool] >= _CUT_OFF * last_place]
        weights = np.maximum(utilities[admitted], 1e-12)
        rng = stream(self.seed, "exploit", slot)
        drawn: list[int] = rng.choice(admitted, count, replace=False, p=weights / weights.sum()).tolist()
        return drawn

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        loss, sizes, seconds = feedback.loss_rms, feedback.sizes, feedback.seconds
        assert loss is not None and sizes is not None and seconds is not None  # declared in `needs`
        members = np.array(selection.cohort)
        gained = np.full(self.clients, np.nan)
        gained[members] = (sizes * loss)[members]
        self._update_known("utility", gained)
        self._update_known("seconds", seconds)
        self._count_election(selection)
        self._won.append(float(np.nansum(gained)))
        self._pace()

    def _abandon(self, selection: Selection) -> None:
        self._count_election(selection)

    def _count_election(self, selection: Selection) -> None:
        members = list(selection.cohort)
        self.arrays["last"][members] = selection.slot
        self.arrays["elections"][members] += 1.0

    def _pace(self) -> None:
        """At the end of a window: if less was won than in the one before, allow longer rounds."""
        window, slots = self._window, len(self._won)
        if slots % window == 0 and slots >= 2 * window:
            before, now = math.fsum(self._won[-2 * window : -window]), math.fsum(self._won[-window:])
            if before > now:
                self._percent = min(self._percent + _STEP_PERCENT, 100.0)

    def _memory(self) -> dict[str, Any]:
        return {"won": list(self._won), "percent": self._percent}

    def _recall(self, memory: dict[str, Any]) -> None:
        self._won = [float(value) for value in memory["won"]]
        self._percent = float(memory["percent"])
