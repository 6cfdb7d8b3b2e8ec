"""The rivals that the paper names, each as its own paper has it, behind the same contract.

PyramidFL is not among them: its gain over Oort comes from elected clients that choose their own number of local
epochs and the part of the model they upload, which is not for a selector to say; what is left of it is Oort's ranking.
"""

from fedelect.selectors.rivals.bandits import AdditiveThompson as AdditiveThompson
from fedelect.selectors.rivals.bandits import ClientThompson as ClientThompson
from fedelect.selectors.rivals.bandits import ClientUcb as ClientUcb
from fedelect.selectors.rivals.bandits import ContextUcb as ContextUcb
from fedelect.selectors.rivals.bandits import RbcsF as RbcsF
from fedelect.selectors.rivals.data_size import DataSize as DataSize
from fedelect.selectors.rivals.fedcs import FedCs as FedCs
from fedelect.selectors.rivals.oort import Oort as Oort
from fedelect.selectors.rivals.power_of_choice import PowerOfChoice as PowerOfChoice
from fedelect.selectors.rivals.proportional_fair import ProportionalFair as ProportionalFair
from fedelect.selectors.rivals.tifl import TiFl as TiFl

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
