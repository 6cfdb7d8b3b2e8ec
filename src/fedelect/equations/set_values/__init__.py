"""The value of a cohort as a smooth function of the *set*: what was learnt of one cohort tells of those like it.

Every operation is exactly rounded (+, -, *, /, sqrt, `math.fsum`) and in a fixed order, none that rounds is left to a
linear-algebra library, so that machines of different make choose the same cohort to the bit and peers can each
compute it alone.
"""

from fedelect.equations.set_values.hunch import SetHunch as SetHunch
from fedelect.equations.set_values.hunch import loss_hunch as loss_hunch
from fedelect.equations.set_values.played import OPENING as OPENING
from fedelect.equations.set_values.played import PlayedSets as PlayedSets
from fedelect.equations.set_values.posterior import SetPosterior as SetPosterior
from fedelect.equations.set_values.posterior import SetPrior as SetPrior
from fedelect.equations.set_values.search import best_set as best_set
from fedelect.equations.set_values.value import RULE_VERSION as RULE_VERSION
from fedelect.equations.set_values.value import belief_value as belief_value
from fedelect.equations.set_values.value import elect_set as elect_set

__all__ = [
    "OPENING",
    "RULE_VERSION",
    "PlayedSets",
    "SetHunch",
    "SetPosterior",
    "SetPrior",
    "belief_value",
    "best_set",
    "elect_set",
    "loss_hunch",
]
