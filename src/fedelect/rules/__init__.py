"""The value of a cohort as a smooth function of the *set*: what was learnt of one cohort tells of those like it.

Every operation is exactly rounded (+, -, *, /, sqrt, `math.fsum`) and in a fixed order, none that rounds is left to a
linear-algebra library, so that machines of different make choose the same cohort to the bit and peers can each
compute it alone.
"""

from fedelect.rules.cohort_statistics import COLD_START_LIMIT, CohortStatistics
from fedelect.rules.posterior import SetPosterior, SetPrior
from fedelect.rules.search import best_set
from fedelect.rules.set_value import RULE_VERSION, belief_value, elect_set
from fedelect.rules.surrogate import LossSurrogate, loss_surrogate

__all__ = [
    "COLD_START_LIMIT",
    "RULE_VERSION",
    "CohortStatistics",
    "LossSurrogate",
    "SetPosterior",
    "SetPrior",
    "belief_value",
    "best_set",
    "elect_set",
    "loss_surrogate",
]
