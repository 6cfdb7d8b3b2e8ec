"""FA: the opinions, and with them their average, reach the server."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from fedelect.vocabulary import Feedback, Floats, Signal


def federated(opinions: ArrayLike, extra: Mapping[Signal, Floats] | None = None) -> Feedback:
    """What the server learns of a slot: the opinions (N,) and their mean; eq. `est_opinion`.

    Clients without an opinion (nan) are left out of the mean.

    Args:
        opinions: (N,) in [0, 1].
        extra: What else the clients report of themselves; see `fedelect.vocabulary.EXTRA_SIGNALS`.
    """
    reports: dict[str, Any] = dict(extra or {})
    return Feedback(opinions=opinions, **reports)
