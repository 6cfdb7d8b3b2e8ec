"""Selectors: from feedback to the next cohort.

A selector sees what `tell` gives it and nothing else of the federation.
"""

from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.baselines import FixedCohort, RandomAmong, RandomCohort, RoundRobin, ShuffledCycle
from fedelect.selectors.bp_ucb import BpUcb
from fedelect.selectors.catalogue import Make, SelectorSpec, selector_classes
from fedelect.selectors.gaussian_process import BpGp, LossGp, SetGp
from fedelect.selectors.literature import (
    AdditiveThompson,
    ClientThompson,
    ClientUcb,
    ContextUcb,
    DataSize,
    FedCs,
    Oort,
    PowerOfChoice,
    ProportionalFair,
    RbcsF,
    TiFl,
)
from fedelect.selectors.quick_init_ucb import QuickInitUcb
from fedelect.selectors.recommended import recommended
from fedelect.selectors.sound_cycle import SoundCycle
from fedelect.selectors.subset_ucb import SubsetUcb

__all__ = [
    "AbstractSelector",
    "AdditiveThompson",
    "Available",
    "BpGp",
    "BpUcb",
    "Choice",
    "ClientThompson",
    "ClientUcb",
    "ContextUcb",
    "DataSize",
    "FedCs",
    "FixedCohort",
    "LossGp",
    "Make",
    "Oort",
    "PowerOfChoice",
    "ProportionalFair",
    "QuickInitUcb",
    "RandomAmong",
    "RandomCohort",
    "RbcsF",
    "RoundRobin",
    "SelectorSpec",
    "SetGp",
    "ShuffledCycle",
    "SoundCycle",
    "SubsetUcb",
    "TiFl",
    "recommended",
    "selector_classes",
]
