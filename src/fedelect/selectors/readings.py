"""What `SoundCycle` reads of the opinions, losses and updates of a slot, for each client.

`arrays` are those that `SoundCycle` declares, (N,) each, and are changed in place; `members` are the clients that
trained.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedelect.rules import pack, unpack
from fedelect.vocabulary import UPDATE_SIZE, Floats, Ints, as_int

FORGET = 0.9
"""Weight that readings keep with each new one of the same client."""

RECENT = 32
"""Updates of earlier slots with which those of a small cohort are compared."""

LEVEL_STEP = 0.3
"""Weight of a new opinion in a client's level, and of a slot in what is usual."""

_LEAST_GAIN = 1e-3  # of an opinion, below which a usual gain is chance
_LARGEST_GAIN = 3.0  # in units of what is usual; one absurd opinion decides nothing
_LOSS_STEP = 0.6  # weight of a new loss
_LEAST_LOSS = 1e-3
_LEAST_FALL = 0.25  # of the level of log losses, below which nothing can be said about who learns
_GOOD_REPORT = 0.35  # quantile of the reported losses that most sound clients reach, also where many are flawed
_LEAST_PROGRESS = 0.15  # of that quantile, a log loss, below which nothing can be said about who falls behind
_BEHIND = 0.25  # share of that progress
_ABOVE = 0.2  # of a log loss
_SILENT = 4.0  # largest log ratio of lengths of updates
_WORTHLESS = 1e-3  # length of an update, in units of the lower median of those it is compared with, that adds nothing
_LEAST_UPDATES = 4  # below which nothing can be said of one of them
_RETURNED = 1e-7  # the same in units of the longest: the model came back as it was, but for rounding


def read_opinions(
    arrays: Mapping[str, Floats], members: Ints, opinions: Floats, *, before: Ints, usual: float
) -> tuple[float, float]:
    """Read the members' own gains.

    An opinion is what all have in common in a slot, plus the client's own level, plus the gain of a member. The own
    level comes from slots in which the client does not train.

    Args:
        arrays: Changed in place.
        members: The cohort.
        opinions: (N,) nan where none was given.
        before: The cohort of the slot before.
        usual: Median absolute gain of the members of a slot, smoothed; nan at first.

    Returns:
        The mean change of opinion outside both cohorts (nan where nobody is known), and the new usual gain.
    """
    resting = np.ones(opinions.size, dtype=np.bool_)
    resting[members] = resting[before] = False
    change = _mean_known((opinions - arrays["opinion"])[resting])
    own = np.zeros(opinions.size) if np.isnan(arrays["own"]).all() else arrays["own"]
    relative = opinions - _mean_known((opinions - own)[resting])
    gains = (relative - arrays["own"])[members]
    known, gains = members[~np.isnan(gains)], gains[~np.isnan(gains)]
    if gains.size:
        median = float(np.median(np.abs(gains)))
        usual = median if math.isnan(usual) else usual + LEVEL_STEP * (median - usual)
        gains = np.clip(gains / max(usual, _LEAST_GAIN), -_LARGEST_GAIN, _LARGEST_GAIN)  # they shrink as it settles
        for name, values in (("gain", gains), ("after", opinions[known] - np.nanmean(opinions)), ("gains", 1.0)):
            arrays[name][known] = FORGET * arrays[name][known] + values
        arrays["last_gain"][known] = gains
    relative[members] = math.nan
    for name, values in (("level", opinions), ("own", relative), ("opinion", opinions)):
        told, old = ~np.isnan(values), arrays[name]
        step = np.where(np.isnan(old) | (name == "opinion"), 1.0, LEVEL_STEP)
        old[told] = (step * values + (1.0 - step) * np.nan_to_num(old))[told]
    return change, usual


def read_losses(arrays: Mapping[str, Floats], members: Ints, losses: Floats, *, level: float) -> float:
    """Read the members' losses against those of all that report, so that time and drift do not matter.

    Args:
        arrays: Changed in place.
        members: The cohort.
        losses: (N,) nan where none was reported.
        level: Median log loss of all that report, smoothed; nan at first.

    Returns:
        The new level.
    """
    members = members[~np.isnan(losses[members])]
    if not members.size:
        return level
    logs = np.log(np.maximum(losses, _LEAST_LOSS))
    median = float(np.nanmedian(logs))
    level = median if math.isnan(level) else level
    level += LEVEL_STEP * (median - level)
    now = logs[members]
    new = arrays["losses"][members] == 0.0
    for name, first in (("first_loss", now), ("first_level", level)):
        arrays[name][members] = np.where(new, first, arrays[name][members])
    for name, values in (("loss", now), ("height", now - median)):
        before = np.where(new, values, arrays[name][members])
        arrays[name][members] = before + _LOSS_STEP * (values - before)
    fallen = arrays["first_level"][members] - max(level, median)
    known = fallen > _LEAST_FALL  # not while the model has learnt little, or after a drift
    told = members[known]
    arrays["learnt"][told] = (arrays["first_loss"][told] - arrays["loss"][told]) / fallen[known]
    arrays["losses"][members] += 1.0
    return level


def read_reports(arrays: Mapping[str, Floats], members: Ints, losses: Floats) -> None:
    """Read the losses of all that report, whether they trained or not, and how far own training lowers them.

    Args:
        arrays: Changed in place.
        members: The cohort.
        losses: (N,) nan where none was reported.
    """
    logs = np.log(np.maximum(losses, _LEAST_LOSS))
    known = ~np.isnan(logs)
    if not known.any():
        return
    level = float(np.quantile(logs[known], _GOOD_REPORT))
    away = known.copy()
    away[members] = False
    read = members[known[members] & ~np.isnan(arrays["away"][members])]
    for name, values in (("drop", arrays["away"][read] - (logs[read] - level)), ("drops", 1.0)):
        arrays[name][read] = FORGET * arrays[name][read] + values
    arrays["away"][away] = logs[away] - level
    for name, values in (("told_height", logs - float(np.median(logs[known]))), ("told_heights", np.ones(logs.size))):
        arrays[name][away] = FORGET * arrays[name][away] + values[away]
    new = known & np.isnan(arrays["report"])
    for name, which in (("first_report", new), ("report", known)):
        arrays[name][which], arrays[f"{name}_level"][which] = logs[which], level


def find_behind(arrays: Mapping[str, Floats]) -> NDArray[np.bool_]:
    """(N,) whose reported loss is high and did not fall since their first report, while that of others did.

    Wrong labels do this from the first slots on. So does rare data, until the client trains: this is no verdict.
    """
    progress = arrays["first_report_level"] - arrays["report_level"]
    fallen, above = arrays["first_report"] - arrays["report"], arrays["report"] - arrays["report_level"]
    behind: NDArray[np.bool_] = (progress > _LEAST_PROGRESS) & (fallen < _BEHIND * progress) & (above > _ABOVE)
    return behind


class RecentUpdates:
    """The updates of the last slots: with fewer than `_LEAST_UPDATES` in a slot, new ones are compared with them, too.

    Args:
        clients: (M,) who sent them.
        directions: (M, 64) of unit length, or 0.
        lengths: (M,) logarithms.
    """

    def __init__(self, clients: Ints, directions: Floats, lengths: Floats) -> None:
        self.clients, self.directions, self.lengths = clients, directions, lengths

    @classmethod
    def empty(cls) -> "RecentUpdates":
        """Nothing was sent yet."""
        return cls(np.empty(0, dtype=np.int64), np.empty((0, UPDATE_SIZE)), np.empty(0))

    def read(self, arrays: Mapping[str, Floats], members: Ints, updates: Floats) -> None:
        """Read direction and length of the members' updates against those of other clients, now and lately.

        Args:
            arrays: Changed in place.
            members: The cohort.
            updates: (N, 64) projected updates, nan where none arrived.
        """
        members = members[~np.isnan(updates[members, 0])]
        rows = updates[members]
        sizes = np.linalg.norm(rows, axis=1)
        longest = float(sizes.max(initial=0.0)) or float(np.exp(self.lengths.max(initial=-math.inf)))
        if not longest:
            return
        returned = sizes <= _RETURNED * longest
        if np.count_nonzero(~returned) >= _LEAST_UPDATES:
            self.clients, self.directions, self.lengths = self.clients[:0], self.directions[:0], self.lengths[:0]
        clients = np.concatenate([self.clients, members[~returned]])
        units = rows / np.maximum(sizes, 1e-300)[:, None]
        directions = np.concatenate([self.directions, units[~returned]])
        logs = np.log(np.maximum(sizes, 1e-6 * longest))
        lengths = np.concatenate([self.lengths, logs[~returned]])
        rest = np.array([np.count_nonzero(clients != client) for client in members.tolist()])
        known, silent = np.flatnonzero(rest >= _LEAST_UPDATES - 1), returned.copy()
        if known.size:
            usual = float(np.quantile(lengths, 0.5, method="lower"))
            silent[known] |= logs[known] <= usual + math.log(_WORTHLESS)
            ratios = np.clip(logs - float(np.median(lengths)), -_SILENT, _SILENT)
            total, read = directions.sum(axis=0), members[known]
            cosines = np.empty(known.size)
            for place, row in enumerate(known.tolist()):
                others = total - directions[clients == members[row]].sum(axis=0)
                cosines[place] = units[row] @ others / max(float(np.linalg.norm(others)), 1e-12)
            for name, values in (("cosine", cosines), ("length", ratios[known]), ("updates", 1.0)):
                arrays[name][read] = FORGET * arrays[name][read] + values
        arrays["silent"][members] = np.where(silent, arrays["silent"][members] + 1.0, 0.0)
        kept = max(RECENT, members.size)
        self.clients, self.directions, self.lengths = clients[-kept:], directions[-kept:], lengths[-kept:]

    def state(self) -> dict[str, Any]:
        """Return them as JSON-able values."""
        return {
            "count": self.clients.size,
            "clients": pack(self.clients, "<i8"),
            "directions": pack(self.directions.ravel(), "<f8"),
            "lengths": pack(self.lengths, "<f8"),
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any], *, clients: int) -> "RecentUpdates":
        """Continue from a saved state of `clients` clients."""
        count = as_int("count", state["count"])
        directions = unpack(state["directions"], "<f8", size=count * UPDATE_SIZE, what="directions")
        recent = cls(
            unpack(state["clients"], "<i8", size=count, what="clients"),
            directions.reshape(count, UPDATE_SIZE),
            unpack(state["lengths"], "<f8", size=count, what="lengths"),
        )
        if ((recent.clients < 0) | (recent.clients >= clients)).any():
            raise ValueError(f"an update of a client outside 0 to {clients - 1}")
        if not (np.isfinite(recent.directions).all() and np.isfinite(recent.lengths).all()):
            raise ValueError("an update that is not finite")
        return recent


def _mean_known(values: Floats) -> float:
    """Mean of the values that are not nan; nan if there is none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else math.nan
