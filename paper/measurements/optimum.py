"""Whether the cohort that the paper calls optimal is so: clients 1 to 5 against all others, by the atlas' trainings."""

import msgspec

from fedelect.atlas import load_atlas
from fedelect.equations.intervals import mean_interval
from fedelect.errors import ConfigurationError
from paper.calibration import BEST_KNOWN
from paper.measurements.context import Context
from paper.measurements.parts import MeasurementParts


class Optimum(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Clients 1 to 5 beside the cohort that is the best of all others by one half of the fresh trainings.

    Attributes:
        best_other_cohort: That cohort.
        first_five: Mean opinion of the models of clients 1 to 5, in each training of the other half.
        best_other: The same of that cohort, with the same seeds.
        others: How many other cohorts were trained afresh: those that looked best of all.
        not_worse: How many of these the other half does not show to be worse (95 %, each by itself).
    """

    best_other_cohort: tuple[int, ...]
    first_five: list[float]
    best_other: list[float]
    others: int
    not_worse: int


def measure_optimum(context: Context, parts: MeasurementParts) -> Optimum:
    """Read it off the atlas of the main world."""
    atlas = load_atlas(context.atlas_path())
    means = atlas.fresh_means()
    choosing, valuing = means[: len(means) // 2], means[len(means) // 2 :]
    ranks = atlas.contenders.tolist()
    own = int(atlas.rank(BEST_KNOWN))
    if own not in ranks:
        raise ConfigurationError(
            f"the atlas has no fresh trainings of clients 1 to 5: they are not among its best {len(ranks)} cohorts; "
            f"build it with more --contenders"
        )
    place = ranks.index(own)
    others = [other for other in range(len(ranks)) if other != place]
    best = max(others, key=lambda other: float(choosing[:, other].mean()))
    behind = [mean_interval(valuing[:, place] - valuing[:, other]) for other in others]
    return Optimum(
        best_other_cohort=atlas.cohort(ranks[best]),
        first_five=valuing[:, place].tolist(),
        best_other=valuing[:, best].tolist(),
        others=len(others),
        not_worse=sum(interval.low is None or interval.low <= 0.0 for interval in behind),
    )
