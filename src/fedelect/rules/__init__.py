"""What selectors and peers compute alike: the cold start, the election by index, the election by the value of a set.

Every operation of an election is exactly rounded (+, -, *, /, sqrt, `math.fsum`) and in a fixed order; none that rounds
is left to a linear-algebra library. So different machines elect the same cohort, bit for bit, and each peer can
compute it alone.
"""

from fedelect.rules.cohort_statistics import COLD_START_LIMIT, CohortStatistics
from fedelect.rules.cold_start import ColdStart, cold_start_groups
from fedelect.rules.election import RULE_VERSION, Election, belief_value, elect, elect_set
from fedelect.rules.packing import pack, unpack
from fedelect.rules.posterior import SetPrior
from fedelect.rules.surrogate import LossSurrogate, fit_loss_surrogate

__all__ = [
    "COLD_START_LIMIT",
    "RULE_VERSION",
    "CohortStatistics",
    "ColdStart",
    "Election",
    "LossSurrogate",
    "SetPrior",
    "belief_value",
    "cold_start_groups",
    "elect",
    "elect_set",
    "fit_loss_surrogate",
    "pack",
    "unpack",
]
