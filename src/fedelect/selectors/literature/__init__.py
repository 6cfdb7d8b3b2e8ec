"""Selectors from the literature, each as its own paper has it, behind the same contract."""

from fedelect.selectors.literature.active_fl import ActiveFl
from fedelect.selectors.literature.additive_thompson import AdditiveThompson
from fedelect.selectors.literature.best_channel import BestChannel
from fedelect.selectors.literature.client_thompson import ClientThompson
from fedelect.selectors.literature.client_ucb import ClientUcb
from fedelect.selectors.literature.clustered import ClusteredBySimilarity, ClusteredBySize
from fedelect.selectors.literature.context_ucb import ContextUcb
from fedelect.selectors.literature.data_size import DataSize
from fedelect.selectors.literature.divfl import DivFl
from fedelect.selectors.literature.e3cs import E3cs
from fedelect.selectors.literature.fair_ucb import FairUcb
from fedelect.selectors.literature.favor import Favor
from fedelect.selectors.literature.fedcor import FedCor
from fedelect.selectors.literature.fedcs import FedCs
from fedelect.selectors.literature.oort import Oort
from fedelect.selectors.literature.power_of_choice import PowerOfChoice
from fedelect.selectors.literature.proportional_fair import ProportionalFair
from fedelect.selectors.literature.pyramid_fl import PyramidFl
from fedelect.selectors.literature.rbcs_f import RbcsF
from fedelect.selectors.literature.shapley import GreedyFed, SFedAvg
from fedelect.selectors.literature.tifl import TiFl

__all__ = [
    "ActiveFl",
    "AdditiveThompson",
    "BestChannel",
    "ClientThompson",
    "ClientUcb",
    "ClusteredBySimilarity",
    "ClusteredBySize",
    "ContextUcb",
    "DataSize",
    "DivFl",
    "E3cs",
    "FairUcb",
    "Favor",
    "FedCor",
    "FedCs",
    "GreedyFed",
    "Oort",
    "PowerOfChoice",
    "ProportionalFair",
    "PyramidFl",
    "RbcsF",
    "SFedAvg",
    "TiFl",
]
