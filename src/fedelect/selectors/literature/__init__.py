"""Selectors from the literature, each as its own paper has it, behind the same contract.

PyramidFL is missing: its gain over Oort comes from clients that choose their own number of local epochs and the part
of the model to upload, which a selector cannot decide. Its ranking of clients is Oort's.
"""

from fedelect.selectors.literature.additive_thompson import AdditiveThompson
from fedelect.selectors.literature.client_thompson import ClientThompson
from fedelect.selectors.literature.client_ucb import ClientUcb
from fedelect.selectors.literature.context_ucb import ContextUcb
from fedelect.selectors.literature.data_size import DataSize
from fedelect.selectors.literature.fedcs import FedCs
from fedelect.selectors.literature.oort import Oort
from fedelect.selectors.literature.power_of_choice import PowerOfChoice
from fedelect.selectors.literature.proportional_fair import ProportionalFair
from fedelect.selectors.literature.rbcs_f import RbcsF
from fedelect.selectors.literature.tifl import TiFl

__all__ = [
    "AdditiveThompson",
    "ClientThompson",
    "ClientUcb",
    "ContextUcb",
    "DataSize",
    "FedCs",
    "Oort",
    "PowerOfChoice",
    "ProportionalFair",
    "RbcsF",
    "TiFl",
]
