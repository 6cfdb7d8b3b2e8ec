"""One number out of many opinions, also when some of the clients lie together.

With m opinions of which fewer than half are false, the median stays within the range of the honest ones; the trimmed
mean does as long as the share of false ones is at most the share that is cut off at each end. The mean does not.
"""

import math
from typing import Literal

from fedelect.errors import ConfigurationError
from fedelect.vocabulary import Floats

Average = Literal["mean", "median", "trimmed"]
"""How opinions become one number; "trimmed" is the mean without the lowest and the highest of them."""


def average_opinion(opinions: Floats, kind: Average = "mean", *, trim: float = 0.2) -> float | None:
    """The average of the opinions present, (N,) with nan where there is none; None if there are none at all.

    Args:
        opinions: (N,); they may carry noise and so leave [0, 1].
        kind: Which average.
        trim: Share of the opinions that "trimmed" cuts off at each end, at least 0 and below 0.5; of m opinions it
            is ceil(trim * m), but never so many that none is left.
    """
    check_average(kind, trim)
    present = sorted(opinion for opinion in opinions.tolist() if not math.isnan(opinion))
    if not present:
        return None
    most = (len(present) - 1) // 2
    cut = {"mean": 0, "median": most, "trimmed": min(most, math.ceil(trim * len(present)))}[kind]
    kept = present[cut : len(present) - cut]
    return math.fsum(kept) / len(kept)


def check_average(kind: str, trim: float) -> None:
    """Raise ConfigurationError unless `average_opinion` takes these."""
    if kind not in ("mean", "median", "trimmed"):
        raise ConfigurationError(f'average: got {kind!r}; allowed: "mean", "median" or "trimmed"')
    if not 0.0 <= trim < 0.5:
        raise ConfigurationError(f"trim: got {trim!r}; allowed: a share from 0 to below 0.5, cut off at each end")
