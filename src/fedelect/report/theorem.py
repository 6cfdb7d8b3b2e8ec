"""Regret against a stated oracle, and the theorem's bound beside it with what it is worth.

A run on an atlas knows the optimum and the gaps. Other records do not hold the true means, so oracle and gaps are read
from what was seen: the best fixed cohort (or, where none was run, the cohort with the highest mean opinion) against the
mean opinion of every cohort that was played. What a bound assumes and a run breaks is said in words, condition by
condition.
"""

import math
from dataclasses import dataclass

import numpy as np

from fedelect.equations import theory
from fedelect.records import SelectorEntry, best_fixed
from fedelect.report.run_data import RunData
from fedelect.vocabulary import Cohort, Floats, Ints

_BP_KINDS = ("BpUcb", "PeerElection")


@dataclass(frozen=True, kw_only=True)
class Oracle:
    """Reward of the best cohort in a slot, as far as the records know.

    Attributes:
        value: Mean opinion of that cohort: its true value, or that over all its slots and trials.
        name: Which cohort it is, in words.
        smallest_gap: R_min: oracle minus the best mean seen below it; None if no cohort is below.
        largest_gap: R_max: oracle minus the lowest mean seen; None likewise.
        cohorts: How many different cohorts were played.
        above: How many of them have a higher mean than the oracle.
        exact: Whether value and gaps are those of all cohorts, from an atlas.
    """

    value: float
    name: str
    smallest_gap: float | None
    largest_gap: float | None
    cohorts: int
    above: int
    exact: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Bound:
    """The theorem's bound for one selector.

    Attributes:
        label: The selector.
        at_end: The bound at T with its conditions.
        curve: (S,) the bound at each of the slots asked for.
        broken: (condition, why the run breaks it).
        unknown: (condition, why the records cannot tell).
    """

    label: str
    at_end: theory.RegretBound
    curve: Floats
    broken: tuple[tuple[str, str], ...]
    unknown: tuple[tuple[str, str], ...]


def find_oracle(run: RunData) -> Oracle | None:
    """Find the oracle of a run; None before the first opinion, and where opinions rise with any cohort (warm runs)."""
    if not run.cohorts or run.told_gains:
        return None
    optimum = run.header.optimum
    if optimum is not None:
        return Oracle(
            value=optimum.value,
            name=f"the best of all cohorts, {{{_members(optimum.cohort)}}}",
            smallest_gap=optimum.smallest_gap,
            largest_gap=optimum.largest_gap,
            cohorts=len(run.cohorts),
            above=0,
            exact=True,
        )
    label = best_fixed(run.table)
    if label is not None:
        curve = run.table.selectors[label].opinion
        value, name = float(curve[~np.isnan(curve)].mean()), f"the fixed cohort {label!r}"
    else:
        cohort, (plays, value) = max(run.cohorts.items(), key=lambda item: item[1][1])
        times = "once" if plays == 1 else f"{plays:,} times"
        luck = "(the best of many means is flattered by luck)"
        name = f"the best cohort seen, {{{_members(cohort)}}}, played {times} {luck}"
    gaps = [value - mean for _, mean in run.cohorts.values() if value - mean > 1e-12]
    return Oracle(
        value=value,
        name=name,
        smallest_gap=min(gaps, default=None),
        largest_gap=max(gaps, default=None),
        cohorts=len(run.cohorts),
        above=sum(mean > value + 1e-12 for _, mean in run.cohorts.values()),
    )


def _members(cohort: Cohort) -> str:
    return ", ".join(map(str, cohort[:12])) + (", \u2026" if len(cohort) > 12 else "")


def compute_bounds(run: RunData, oracle: Oracle | None, slots: Ints) -> list[Bound]:
    """The bound of each selector that a theorem speaks of, at `slots`; none where no gap is known."""
    if oracle is None or oracle.smallest_gap is None or oracle.largest_gap is None:
        return []
    found = []
    for entry in run.header.selectors:
        at_end = _bound(run, entry, run.header.slots, oracle.smallest_gap, oracle.largest_gap)
        if at_end is not None:
            curve = [_bound(run, entry, slot, oracle.smallest_gap, oracle.largest_gap) for slot in slots.tolist()]
            verdicts = [(condition, *_verdict(run, entry, condition)) for condition in at_end.conditions]
            found.append(
                Bound(
                    label=entry.label,
                    at_end=at_end,
                    curve=np.array([math.nan if one is None else one.value for one in curve]),
                    broken=tuple((condition, why) for condition, holds, why in verdicts if holds is False),
                    unknown=tuple((condition, why) for condition, holds, why in verdicts if holds is None),
                )
            )
    return found


def _bound(
    run: RunData, entry: SelectorEntry, slots: int, smallest: float, largest: float
) -> theory.RegretBound | None:
    clients, budget = run.header.clients, run.header.budget
    if entry.kind == "QuickInitUcb":
        return theory.quick_init_regret_bound(
            clients=clients, budget=budget, slots=slots, smallest_gap=smallest, largest_gap=largest
        )
    if entry.kind in _BP_KINDS and entry.parameters.get("rule", "bp-ucb") == "bp-ucb":
        return theory.bp_ucb_regret_bound(clients=clients, slots=slots, smallest_gap=smallest, largest_gap=largest)
    return None


def _verdict(run: RunData, entry: SelectorEntry, condition: str) -> tuple[bool | None, str]:
    """Whether the run keeps a condition (None where the records cannot tell), and why."""
    if condition == theory.BOUNDED_REWARDS:
        return not run.noisy, "noise was added to the rewards"
    if condition == theory.STATIONARY_REWARDS:
        return _stationary(run)
    if condition == theory.EXPLORATION_IS_ROOT_TWO:
        exploration = entry.parameters.get("exploration")
        if not isinstance(exploration, int | float):
            return None, "the selector's exploration is not on record"
        return math.isclose(exploration**2, 2.0, rel_tol=1e-9), f"mu is {exploration:g}"
    if condition == theory.EVERY_ARM_PLAYED_ONCE:
        arms, groups = math.comb(run.header.clients, run.header.budget), -(-run.header.clients // run.header.budget)
        return arms <= groups, f"there are {arms:,} arms, and the cold start plays {groups:,}"
    if condition == theory.GAPS_ARE_TRUE:
        if run.header.optimum is not None:
            return True, "they are those of the atlas"
        arms = math.comb(run.header.clients, run.header.budget)
        return False, f"they are estimated from the {len(run.cohorts):,} of {arms:,} cohorts that were played"
    if condition == theory.REWARDS_IGNORE_COHORT:
        return False, "a client judges the model that the whole cohort trained"
    if condition == theory.BELIEFS_SETTLED:
        missed, exchanges = run.unsettled.get(entry.label, (0, 0))
        if not exchanges:
            return None, "no exchange of beliefs is on record"
        return missed == 0, f"{missed:,} of {exchanges:,} exchanges had not settled"
    return None, "the records cannot tell"


def _stationary(run: RunData) -> tuple[bool | None, str]:
    start = run.header.scenario.get("start")
    if start == "cold":
        return True, ""
    return (False, "each slot goes on from the last one's model") if start == "warm" else (None, "not on record")
