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
from fedelect.selectors.set_process import BpGp as BpGp
from fedelect.selectors.set_process import SetGp as SetGp
from fedelect.selectors.subset_ucb import SubsetUcb as SubsetUcb

__all__ = [
    "AbstractSelector",
    "BpGp",
    "BpUcb",
    "FixedCohort",
    "QuickInitUcb",
    "RandomCohort",
    "RoundRobin",
    "SelectorSpec",
    "SetGp",
    "SubsetUcb",
    "selector_classes",
]
