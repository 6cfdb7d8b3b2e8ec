"""Selectors: from feedback to the next cohort.

A selector sees what `tell` gives it and nothing else of the federation.
"""

from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.baselines import FixedCohort, RandomAmong, RandomCohort, RoundRobin, ShuffledCycle
from fedelect.selectors.bp_ucb import BpUcb
from fedelect.selectors.catalogue import Make, SelectorSpec, selector_classes, selector_families
from fedelect.selectors.gaussian_process import BpGp, LossGp, SetGp
from fedelect.selectors.literature import (
    ActiveFl,
    AdditiveThompson,
    BestChannel,
    ClientThompson,
    ClientUcb,
    ClusteredBySimilarity,
    ClusteredBySize,
    ContextUcb,
    DataSize,
    DivFl,
    E3cs,
    FairUcb,
    Favor,
    FedCor,
    FedCs,
    GreedyFed,
    Oort,
    PowerOfChoice,
    ProportionalFair,
    PyramidFl,
    RbcsF,
    SFedAvg,
    TiFl,
)
from fedelect.selectors.quick_init_ucb import QuickInitUcb
from fedelect.selectors.recommended import recommended
from fedelect.selectors.sound_cycle import SoundCycle
from fedelect.selectors.subset_ucb import SubsetUcb

__all__ = [
    "AbstractSelector",
    "ActiveFl",
    "AdditiveThompson",
    "Available",
    "BestChannel",
    "BpGp",
    "BpUcb",
    "Choice",
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
    "FixedCohort",
    "GreedyFed",
    "LossGp",
    "Make",
    "Oort",
    "PowerOfChoice",
    "ProportionalFair",
    "PyramidFl",
    "QuickInitUcb",
    "RandomAmong",
    "RandomCohort",
    "RbcsF",
    "RoundRobin",
    "SFedAvg",
    "SelectorSpec",
    "SetGp",
    "ShuffledCycle",
    "SoundCycle",
    "SubsetUcb",
    "TiFl",
    "recommended",
    "selector_classes",
    "selector_families",
]
