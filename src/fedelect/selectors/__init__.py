"""Feedback in, cohort out: who trains next.

A selector sees what `tell` gives it and nothing else of the world.
"""

from fedelect.selectors.base import AbstractSelector as AbstractSelector
from fedelect.selectors.baselines import FixedCohort as FixedCohort
from fedelect.selectors.baselines import RandomCohort as RandomCohort
from fedelect.selectors.baselines import RoundRobin as RoundRobin
from fedelect.selectors.bp_ucb import BpUcb as BpUcb
from fedelect.selectors.catalogue import SelectorSpec as SelectorSpec
from fedelect.selectors.catalogue import selector_classes as selector_classes
from fedelect.selectors.quick_init_ucb import QuickInitUcb as QuickInitUcb
from fedelect.selectors.rivals import AdditiveThompson as AdditiveThompson
from fedelect.selectors.rivals import ClientThompson as ClientThompson
from fedelect.selectors.rivals import ClientUcb as ClientUcb
from fedelect.selectors.rivals import ContextUcb as ContextUcb
from fedelect.selectors.rivals import DataSize as DataSize
from fedelect.selectors.rivals import FedCs as FedCs
from fedelect.selectors.rivals import Oort as Oort
from fedelect.selectors.rivals import PowerOfChoice as PowerOfChoice
from fedelect.selectors.rivals import ProportionalFair as ProportionalFair
from fedelect.selectors.rivals import RbcsF as RbcsF
from fedelect.selectors.rivals import TiFl as TiFl
from fedelect.selectors.set_process import BpGp as BpGp
from fedelect.selectors.set_process import LossGp as LossGp
from fedelect.selectors.set_process import SetGp as SetGp
from fedelect.selectors.subset_ucb import SubsetUcb as SubsetUcb

__all__ = [
    "AbstractSelector",
    "AdditiveThompson",
    "BpGp",
    "BpUcb",
    "ClientThompson",
    "ClientUcb",
    "ContextUcb",
    "DataSize",
    "FedCs",
    "FixedCohort",
    "LossGp",
    "Oort",
    "PowerOfChoice",
    "ProportionalFair",
    "QuickInitUcb",
    "RandomCohort",
    "RbcsF",
    "RoundRobin",
    "SelectorSpec",
    "SetGp",
    "SubsetUcb",
    "TiFl",
    "selector_classes",
]
