"""Frozen values that pass from one stage of the loop to the next.

Clients are numbered from 0 (the paper's client 1 is our client 0). Slots are numbered from 1.
Values are checked where they are made, are never changed afterwards and never alias what they were made from.
"""

import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedelect.errors import BudgetError, ConfigurationError, FeedbackError

ClientId = int
"""A client's number, 0 .. N-1."""

Cohort = tuple[int, ...]
"""The clients elected for one slot: sorted, distinct."""

Floats = NDArray[np.float64]
"""Array of 64-bit floats; the docstring at hand gives the shape."""

Ints = NDArray[np.int64]
"""Array of 64-bit integers; the docstring at hand gives the shape."""

Progress = Callable[[int, int], None]
"""Called with (steps finished, steps in all) during a long call, whose docstring says what a step is."""

Signal = str
"""Name of a part of the feedback: "reward", "opinions", "beliefs", or one of `EXTRA_SIGNALS`."""

EXTRA_SIGNALS: dict[Signal, str] = {
    "loss": "mean loss of the trained model on the client's own training samples",
    "loss_rms": "root of the mean squared loss over those samples",
    "sizes": "training samples the client holds",
    "seconds": "seconds a round of this slot took a member of the cohort, training and upload; nan for all others",
    "training_s": "seconds the client forecasts for its training in a round of the next slot",
    "upload_s": "seconds it forecasts for its upload",
    "channel_db": "received SNR in dB that the client reports for the start of the next slot",
    "contributions": "estimated share of a member of the cohort in what the slot gained; nan for all others",
    "updates": "seeded random projection of the model change that a member uploaded; a row of nan for all others",
}
"""Signals that selectors of the literature need; fields of `Feedback`, nan where a client gave none.

All have shape (N,) but `updates`, which has shape (N, `UPDATE_SIZE`).
"""

UPDATE_SIZE = 64
"""Numbers in a row of the signal `updates`."""

SIGNALS: tuple[Signal, ...] = ("reward", "opinions", "beliefs", *EXTRA_SIGNALS)
"""All signals."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What `ask` returns: `cohort` is to train in `slot`. Pass it back to `tell` or `abandon`.

    Attributes:
        slot: Number of the slot, from 1; never used twice.
        cohort: The clients elected, sorted.
        indices: The upper confidence index that won: one value where the arm is the whole cohort, one value for
            each member (in cohort order) where arms are clients, empty where no index was used (cold start,
            baselines).
    """

    slot: int
    cohort: Cohort
    indices: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Feedback:
    """Result of a slot, as far as a selector may know it.

    Attributes:
        opinions: (N,) each client's score of the trained model in [0, 1]; nan where a client gave none.
        beliefs: (N,) each client's unnormalised belief, from 0 to 1e9; nan where there is none.
        reward: The server's average opinion. If left out, the mean of the opinions present, bit for bit independent of
            their order. If given, it may carry noise and leave [0, 1].
        reward_noise: Standard deviation of any noise that was added to `reward`.
        loss: (N,) this and the next ones as in `EXTRA_SIGNALS`; from 0 to 1e9, or nan.
        loss_rms: (N,).
        sizes: (N,).
        seconds: (N,).
        training_s: (N,).
        upload_s: (N,).
        channel_db: (N,) within ±1e9, or nan.
        contributions: (N,) within ±1e9, or nan.
        updates: (N, 64) within ±1e9; a row is nan as a whole or not at all.
    """

    opinions: Floats | None = None
    beliefs: Floats | None = None
    reward: float | None = None
    reward_noise: float = 0.0
    loss: Floats | None = None
    loss_rms: Floats | None = None
    sizes: Floats | None = None
    seconds: Floats | None = None
    training_s: Floats | None = None
    upload_s: Floats | None = None
    channel_db: Floats | None = None
    contributions: Floats | None = None
    updates: Floats | None = None

    def __init__(
        self,
        opinions: ArrayLike | None = None,
        beliefs: ArrayLike | None = None,
        reward: float | None = None,
        reward_noise: float = 0.0,
        **extra: ArrayLike | None,
    ) -> None:
        noise = _number("reward_noise", reward_noise)
        if not 0.0 <= noise <= _LARGEST:
            raise FeedbackError(
                f"reward_noise must be a standard deviation from 0 to {_LARGEST:g}, got {reward_noise!r}"
            )
        scores = None if opinions is None else _per_client("opinions", opinions, highest=1.0)
        held = None if beliefs is None else _per_client("beliefs", beliefs, highest=_LARGEST)
        if reward is not None:
            reward = _number("reward", reward)
            if not -_LARGEST <= reward <= _LARGEST:
                raise FeedbackError(
                    f"reward must be a number within ±{_LARGEST:g}, got {reward!r}; leave it out if unknown"
                )
        elif scores is not None:
            reward = mean_present(scores)
        object.__setattr__(self, "opinions", scores)
        object.__setattr__(self, "beliefs", held)
        object.__setattr__(self, "reward", reward)
        object.__setattr__(self, "reward_noise", noise)
        unknown = sorted(extra.keys() - EXTRA_SIGNALS.keys())
        if unknown:
            raise TypeError(f"Feedback takes no {unknown[0]!r}; extra signals are {', '.join(EXTRA_SIGNALS)}")
        for name in EXTRA_SIGNALS:
            values = extra.get(name)
            object.__setattr__(self, name, None if values is None else _extra_signal(name, values))

    def per_client(self) -> dict[Signal, Floats]:
        """The (N,) signals that are present, by name."""
        names = ("opinions", "beliefs", *(name for name in EXTRA_SIGNALS if name != "updates"))
        return {name: values for name in names if (values := getattr(self, name)) is not None}


_LARGEST = 1e9  # far above any sensible reward, noise or belief; keeps sums finite
_SIGNED = frozenset({"channel_db", "contributions"})  # the others are not negative


def ignore_progress(finished: int, total: int) -> None:
    """Show no progress; see `Progress`."""


def _number(name: str, value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise FeedbackError(f"{name} must be a number, got {value!r}") from error


def _extra_signal(name: Signal, values: ArrayLike) -> Floats:
    if name == "updates":
        return _update_rows(values)
    return _per_client(name, values, lowest=-_LARGEST if name in _SIGNED else 0.0, highest=_LARGEST)


def _update_rows(values: ArrayLike) -> Floats:
    try:
        rows = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise FeedbackError(f"updates must be a row of numbers for each client, got {type(values).__name__}") from error
    if rows.ndim != 2 or rows.shape[1] != UPDATE_SIZE:
        raise FeedbackError(f"updates must have shape (N, {UPDATE_SIZE}), got {rows.shape}")
    missing = np.isnan(rows)
    partial = np.flatnonzero(missing.any(axis=1) & ~missing.all(axis=1))
    if partial.size:
        raise FeedbackError(f"the update of client {partial[0]} is nan in part; a client without one has a row of nan")
    beyond = np.flatnonzero((np.abs(rows) > _LARGEST).any(axis=1))
    if beyond.size:
        raise FeedbackError(
            f"updates must be within ±{_LARGEST:g}; that of client {beyond[0]} is not. "
            f"If training diverges, take a smaller step"
        )
    rows.flags.writeable = False
    return rows


def _per_client(name: str, values: ArrayLike, *, lowest: float = 0.0, highest: float) -> Floats:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise FeedbackError(f"{name} must be one number for each client, got {type(values).__name__}") from error
    if array.ndim != 1:
        raise FeedbackError(f"{name} must have one dimension (one value for each client), got shape {array.shape}")
    if array.size:
        # fmin and fmax pass over nan, so a missing value never hides a bad one.
        low, high = float(np.fmin.reduce(array)), float(np.fmax.reduce(array))
        if low < lowest or high > highest:
            bad = int(np.flatnonzero((array < lowest) | (array > highest))[0])
            raise FeedbackError(
                f"{name} must be in [{lowest:g}, {highest:g}], or nan where there is none; "
                f"client {bad} has {float(array[bad])}"
            )
    array.flags.writeable = False
    return array


def mean_present(opinions: Floats) -> float | None:
    """Mean of the values in [0, 1] that are not nan, or None if there are none. Shape (N,).

    The sum is rounded once, so the order of the clients cannot change the last bit; otherwise client numbers would
    break ties.
    """
    total = exact_sum(opinions)
    if total != total:  # nan: some are missing
        opinions = opinions[~np.isnan(opinions)]
        total = exact_sum(opinions)
    return total / opinions.size if opinions.size else None


def exact_sum(values: Floats) -> float:
    """Sum of values in [0, 1], correctly rounded; nan if any is nan. Shape (n,).

    Few values go through `math.fsum`. Many are added as integers, in two limbs of 31 bits, twenty times as fast and,
    but for bits below 2**-62 of a value, with the same result.
    """
    if values.size <= 1024:
        return math.fsum(values.tolist())
    if np.isnan(values).any():
        return float("nan")
    limb, high, low = 2.0**31, 0, 0
    for start in range(0, values.size, 16384):
        scaled = values[start : start + 16384] * limb
        whole = np.floor(scaled)
        scaled -= whole
        scaled *= limb
        # Sums of at most 2**14 integers below 2**31 are exact in a float.
        high += int(whole.sum())
        low += int(np.rint(scaled).sum())
    return ((high << 31) + low) / (1 << 62)


def as_cohort(members: Iterable[int], *, clients: int, what: str = "cohort") -> Cohort:
    """Return `members` as a sorted tuple; ConfigurationError unless they are distinct clients in 0 .. clients-1."""
    try:
        cohort = tuple(sorted(map(operator.index, members)))
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{what} must be a list of client numbers, got {members!r}") from error
    if len(set(cohort)) != len(cohort):
        raise ConfigurationError(f"{what} names a client twice: {list(cohort)}")
    if cohort and not 0 <= cohort[0] <= cohort[-1] < clients:
        raise ConfigurationError(f"{what} {list(cohort)} names a client outside 0..{clients - 1}")
    return cohort


def as_int(name: str, value: object) -> int:
    """Return `value` as a plain int; ConfigurationError unless it is a whole number (numpy's too, but not True)."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ConfigurationError(f"{name} must be a whole number, got {value!r}") from None


def check_budget(clients: int, budget: int) -> None:
    """Raise BudgetError unless 1 <= budget <= clients."""
    if clients < 1:
        raise BudgetError(f"clients must be at least 1, got {clients}")
    if not 1 <= budget <= clients:
        raise BudgetError(
            f"budget {budget} is not between 1 and the {clients} clients; change `budget` or the number of clients"
        )
