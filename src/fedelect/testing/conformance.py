"""The selector contract as checks that run.

Each check takes a factory `(clients, budget, seed) -> selector`, returns a sentence on what it tried and raises
ConformanceError if the selector fails. Feedback comes from named random streams, so a verdict is always the same.
"""

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from fedelect.errors import AvailabilityError, ConfigurationError, FeedbackError, StaleSelectionError
from fedelect.seeds import stream
from fedelect.selectors import AbstractSelector, SelectorSpec
from fedelect.testing.requirements import ConformanceError, require, require_cohort, require_refusal, through_json
from fedelect.testing.sample_feedback import feedback_by_worth, noisy_extra, noisy_feedback, noisy_reports
from fedelect.vocabulary import SIGNALS, Cohort, Feedback, Floats, Selection, Signal

Factory = Callable[[int, int, int], AbstractSelector]
"""Builds a fresh selector for (clients, budget, seed)."""

Check = Callable[[Factory], str]
"""Tries a selector and returns a sentence on what was tried."""

CLIENTS, BUDGET, SLOTS = 7, 3, 24


class ConformanceReport(tuple[str, ...]):
    """What was checked, a sentence for each check; prints one to a line."""

    def __str__(self) -> str:
        return "\n".join(self)


def check_selector(selector: type[AbstractSelector] | str | Factory) -> ConformanceReport:
    """Run every check.

    Args:
        selector: A selector's class, its name on the command line, or a function `(clients, budget, seed) -> selector`.

    Returns:
        What was checked. `print(check_selector(MySelector))` shows it.

    Raises:
        ConformanceError: At the first check that fails; the message names it.
    """
    factory = _as_factory(selector) if isinstance(selector, str | type) else selector
    return ConformanceReport(check(factory) for check in selector_checks())


def _as_factory(selector: type[AbstractSelector] | str) -> Factory:
    spec = SelectorSpec.of(selector)
    return lambda clients, budget, seed: spec.build(clients=clients, budget=budget, seed=seed)


def _name_errors(check: Check) -> Check:
    """Let errors of a check name it, whatever the selector raises."""
    name = check.__name__.removeprefix("check_").replace("_", " ")

    @functools.wraps(check)
    def named(factory: Factory) -> str:
        try:
            return check(factory)
        except Exception as error:
            what = str(error) if isinstance(error, ConformanceError) else f"{type(error).__name__}: {error}"
            raise ConformanceError(f"check {name!r} failed: {what}") from error

    return named


def selector_checks() -> list[Check]:
    """The checks one by one, for parametrised tests."""
    return [
        check_cohorts_are_sorted_distinct_clients,
        check_an_open_ask_is_asked_again,
        check_a_seed_repeats,
        check_state_is_plain_json_and_goes_on_exactly,
        check_a_seed_repeats_in_another_process,
        check_stale_asks_are_refused,
        check_unfit_feedback_changes_nothing,
        check_missing_opinions_are_accepted,
        check_optional_signals_may_be_missing,
        check_only_available_clients_are_chosen,
        check_candidates_may_report_before_an_ask,
        check_the_size_of_cohorts_may_change,
        check_abandoned_slots_are_not_reused,
        check_skipped_slots_are_not_reused,
        check_inputs_are_not_aliased,
        check_renaming_clients_changes_only_names,
    ]


@_name_errors
def check_cohorts_are_sorted_distinct_clients(factory: Factory) -> str:
    """Every cohort is a sorted tuple of `budget` distinct clients, and slots count from 1."""
    for clients, budget in ((CLIENTS, BUDGET), (6, 6), (1, 1), (5, 1)):
        selector = _build(factory, clients, budget, seed=3)
        for slot in range(1, SLOTS + 1):
            selection = selector.ask()
            require(selection.slot == slot, f"slot {slot} was asked for as slot {selection.slot}")
            require_cohort(selection.cohort, clients, budget)
            selector.tell(selection, noisy_feedback(selection, clients))
    return f"Cohorts: K distinct clients, sorted, in {SLOTS} slots of (N, K) = (7, 3), (6, 6), (1, 1) and (5, 1)."


@_name_errors
def check_an_open_ask_is_asked_again(factory: Factory) -> str:
    """With a selection open, `ask` returns it again, whichever clients are available."""
    selector = _build(factory, CLIENTS, BUDGET, seed=3)
    first = selector.ask()
    require(selector.ask() == first, "a second ask() before tell() gave another cohort")
    require(selector.ask(range(CLIENTS)) == first, "ask(available) with an ask open did not return the open ask")
    return "Open selection: ask() before tell() returns it again, with and without `available`."


@_name_errors
def check_a_seed_repeats(factory: Factory) -> str:
    """The same seed and feedback give the same cohorts."""
    first, second = (_cohorts(_build(factory, CLIENTS, BUDGET, seed=11), SLOTS) for _ in range(2))
    require(first == second, "the same seed and feedback gave different cohorts; draw from fedelect.seeds.stream")
    return f"Seed: the same seed and feedback give the same cohorts in {SLOTS} slots, N = {CLIENTS}, K = {BUDGET}."


_IN_ANOTHER_PROCESS = """
import importlib, json, sys
from fedelect.testing.conformance import SLOTS, _cohorts
sys.path[:0] = json.loads(sys.argv[1])
kind = importlib.import_module(sys.argv[2])
for name in sys.argv[3].split("."):
    kind = getattr(kind, name)
print(json.dumps(_cohorts(kind.restore(json.load(sys.stdin)), SLOTS)))
"""


@_name_errors
def check_a_seed_repeats_in_another_process(factory: Factory) -> str:
    """A selector restored in mid-run elects the same cohorts in another process with another hash seed."""
    selector = _build(factory, CLIENTS, BUDGET, seed=11)
    _cohorts(selector, SLOTS // 2)
    kind, state = type(selector), json.dumps(selector.state())
    if kind.__module__ == "__main__":
        return "Other process: not tried, for a class of a script or notebook cannot be imported; move it to a module."
    require("<locals>" not in kind.__qualname__, f"{kind.__qualname__} cannot be imported; define it in a module")
    done = subprocess.run(
        [sys.executable, "-c", _IN_ANOTHER_PROCESS, json.dumps(sys.path), kind.__module__, kind.__qualname__],
        input=state,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONHASHSEED": "4242"},
        check=False,
    )
    require(done.returncode == 0, f"another process could not restore the selector: {done.stderr.strip()}")
    here = [list(cohort) for cohort in _cohorts(selector, SLOTS)]
    require(json.loads(done.stdout) == here, "another process elected other cohorts from the same state")
    return (
        f"Other process: restored there after {SLOTS // 2} slots, with another hash seed, it elects the same cohorts "
        f"in {SLOTS} more."
    )


@_name_errors
def check_state_is_plain_json_and_goes_on_exactly(factory: Factory) -> str:
    """At every slot, with the ask open or closed, the state survives JSON and the twin goes on exactly."""
    selector = _build(factory, CLIENTS, BUDGET, seed=5)
    for _ in range(SLOTS):
        for _ in ("closed", "open"):
            twin = type(selector).restore(through_json(selector.state()))
            require(twin.state() == selector.state(), "a restored selector has another state than the one saved")
            selection = selector.ask()
            require(twin.ask() == selection, f"in slot {selection.slot} the restored selector elected another cohort")
            twin.tell(selection, noisy_feedback(selection, CLIENTS))
        selector.tell(selection, noisy_feedback(selection, CLIENTS))
        require(
            twin.state() == selector.state(), f"after slot {selection.slot} the restored selector had learnt otherwise"
        )
    return f"Restore: in each of {SLOTS} slots, before and after ask(), the state survives JSON and goes on exactly."


@_name_errors
def check_stale_asks_are_refused(factory: Factory) -> str:
    """A repeated, forged or missing ask raises StaleSelectionError and changes nothing."""
    selector = _build(factory, CLIENTS, BUDGET, seed=5)
    old = selector.ask()
    selector.tell(old, noisy_feedback(old, CLIENTS))
    require_refusal(
        selector, StaleSelectionError, lambda: selector.tell(old, noisy_feedback(old, CLIENTS)), "a repeated tell"
    )
    selection = selector.ask()
    require_refusal(
        selector, StaleSelectionError, lambda: selector.tell(old, noisy_feedback(old, CLIENTS)), "a stale ask"
    )
    forged = Selection(selection.slot, tuple(range(CLIENTS - BUDGET, CLIENTS)), (0.123,))
    require_refusal(
        selector, StaleSelectionError, lambda: selector.tell(forged, noisy_feedback(selection, CLIENTS)), "a forged ask"
    )
    require_refusal(selector, StaleSelectionError, lambda: selector.abandon(old), "abandoning a closed slot")
    selector.tell(selection, noisy_feedback(selection, CLIENTS))
    return "Stale selections: a repeated, an old and a forged one are refused and change nothing."


@_name_errors
def check_unfit_feedback_changes_nothing(factory: Factory) -> str:
    """Feedback of the wrong length or without a needed signal raises FeedbackError and changes nothing."""
    selector = _build(factory, CLIENTS, BUDGET, seed=5)
    selection = selector.ask()
    short = Feedback(opinions=np.full(CLIENTS - 1, 0.5), beliefs=np.ones(CLIENTS - 1), reward=0.5)
    require_refusal(selector, FeedbackError, lambda: selector.tell(selection, short), "feedback for too few clients")
    if selector.needs:
        require_refusal(
            selector, FeedbackError, lambda: selector.tell(selection, Feedback()), "feedback without what it needs"
        )
    selector.tell(selection, noisy_feedback(selection, CLIENTS))
    return "Unfit feedback: too few clients, or a needed signal missing, is refused and changes nothing."


@_name_errors
def check_missing_opinions_are_accepted(factory: Factory) -> str:
    """A client that gives no opinion or has no belief does not stop the selector."""
    selector = _build(factory, CLIENTS, BUDGET, seed=5)
    for slot in range(1, SLOTS + 1):
        selection = selector.ask()
        full = noisy_feedback(selection, CLIENTS)
        assert full.opinions is not None and full.beliefs is not None
        silent = stream(5, "conformance-silent", slot).random(CLIENTS) < 0.4
        silent[slot % CLIENTS] = False
        opinions, beliefs = np.where(silent, np.nan, full.opinions), np.where(silent, np.nan, full.beliefs)
        extra = noisy_extra(selection, CLIENTS)
        for values in extra.values():
            values[silent] = np.nan
        selector.tell(selection, Feedback(opinions=opinions, beliefs=beliefs, **extra))
        require_cohort(selector.ask().cohort, CLIENTS, BUDGET)
    return f"Missing values: about 40 % of the clients silent in each of {SLOTS} slots."


@_name_errors
def check_optional_signals_may_be_missing(factory: Factory) -> str:
    """The needed signals suffice; each signal that is used may be there, be missing, or come and go."""
    first = _build(factory, CLIENTS, BUDGET, seed=5)
    needs, uses = first.needs, sorted(first.uses)
    told = [(needs, needs), *((needs | {name}, needs | {name}) for name in uses), (needs, needs.union(uses))]
    told += [(needs.union(uses), needs.union(uses) - {name}) for name in uses]
    for even, odd in told:
        selector = _build(factory, CLIENTS, BUDGET, seed=5)
        for slot in range(1, SLOTS + 1):
            selection = selector.ask()
            require_cohort(selection.cohort, CLIENTS, BUDGET)
            selector.tell(selection, _only(odd if slot % 2 else even, noisy_feedback(selection, CLIENTS)))
            twin = type(selector).restore(through_json(selector.state()))
            require(twin.ask() == selector.ask(), f"told {sorted(odd)}, a restored selector elected another cohort")
    tried = f"and {', '.join(uses)} there, missing, or coming and going" if uses else "for it uses no others"
    return f"Optional signals: the needed ones suffice in {SLOTS} slots, {tried}."


def _only(signals: frozenset[Signal], full: Feedback) -> Feedback:
    """The feedback with these signals alone. Opinions bring a reward with them."""
    kept: dict[str, Any] = {name: getattr(full, name) for name in signals}
    return Feedback(**kept)


@_name_errors
def check_only_available_clients_are_chosen(factory: Factory) -> str:
    """Cohorts come out of the available clients; too few of them is AvailabilityError and uses no slot."""
    selector = _build(factory, CLIENTS, BUDGET, seed=5)
    for slot in range(1, SLOTS + 1):
        rng = stream(5, "conformance-available", slot)
        there = rng.permutation(CLIENTS)[: int(rng.integers(BUDGET, CLIENTS + 1))].tolist()
        few = there[: BUDGET - 1]
        require_refusal(selector, AvailabilityError, lambda few=few: selector.ask(few), "an ask with too few clients")  # type: ignore[misc]
        selection = selector.ask(there)
        require(selection.slot == slot, f"slot {slot} was asked for as slot {selection.slot}")
        require_cohort(selection.cohort, CLIENTS, BUDGET)
        require(
            set(selection.cohort) <= set(there),
            f"cohort {selection.cohort} has clients that are not available: {there}",
        )
        selector.tell(selection, noisy_feedback(selection, CLIENTS))
    return f"Availability: in {SLOTS} slots only available clients are elected, and too few of them are refused."


@_name_errors
def check_candidates_may_report_before_an_ask(factory: Factory) -> str:
    """Candidates are available clients, named again when asked again; some may be silent, and nobody need be asked."""
    selector = _build(factory, CLIENTS, BUDGET, seed=5)
    if not selector.asks:
        require(selector.candidates() is None, "it names candidates but no signal in `asks`")
        return "Candidates: nobody is asked before an ask, for `asks` is empty."
    for slot in range(1, SLOTS + 1):
        rng = stream(5, "conformance-candidates", slot)
        there = rng.permutation(CLIENTS)[: int(rng.integers(BUDGET, CLIENTS + 1))].tolist()
        before = selector.state()
        named = selector.candidates(there)
        require(selector.candidates(there) == named, "called again, candidates() named other clients")
        require(selector.state() == before, "candidates() changed the selector's state")
        require(set(named or ()) <= set(there), f"candidates {named} are not all available: {there}")
        reports = None if named is None or slot % 3 == 0 else noisy_reports(named, slot, CLIENTS, selector.asks)
        twin = type(selector).restore(through_json(before))
        selection = selector.ask(there, reports=reports)
        require_cohort(selection.cohort, CLIENTS, BUDGET)
        require(set(selection.cohort) <= set(there), f"cohort {selection.cohort} is not available: {there}")
        require(twin.ask(there, reports=reports) == selection, "with the same reports it elected another cohort")
        require(selector.candidates(there) is None, "with a selection open, candidates() named clients to ask")
        told = selector.needs if reports is None else selector.needs - selector.asks
        selector = type(selector).restore(through_json(selector.state()))  # what was reported need not be told
        selector.tell(selection, _only(told, noisy_feedback(selection, CLIENTS)))
    asked = " and ".join(sorted(selector.asks))
    return f"Candidates: in {SLOTS} slots they report {asked} before the ask, some silent, in some slots nobody asked."


@_name_errors
def check_the_size_of_cohorts_may_change(factory: Factory) -> str:
    """A selector that `resizes` elects as many as it is asked for, and goes on exactly; another refuses."""
    selector = _build(factory, CLIENTS, BUDGET, seed=5)
    sizes = (0, CLIENTS + 1) if selector.resizes else (BUDGET - 1, BUDGET + 1)
    for size in sizes:
        refused = f"an ask for {size} of {CLIENTS} clients"
        require_refusal(selector, ConfigurationError, lambda size=size: selector.ask(size=size), refused)  # type: ignore[misc]
    require(len(selector.ask(size=BUDGET).cohort) == BUDGET, "an ask for the budget's size was not answered")
    if not selector.resizes:
        return "Sizes: another size than the budget is refused, for it does not say `resizes`."
    selector.abandon(selector.ask())
    for slot in range(2, SLOTS + 1):
        rng = stream(5, "conformance-sizes", slot)
        size = int(rng.integers(1, CLIENTS + 1))
        there = rng.permutation(CLIENTS)[: int(rng.integers(size, CLIENTS + 1))].tolist()
        twin = type(selector).restore(through_json(selector.state()))
        selection = selector.ask(there, size=size)
        require_cohort(selection.cohort, CLIENTS, size)
        require(set(selection.cohort) <= set(there), f"cohort {selection.cohort} is not available: {there}")
        require(twin.ask(there, size=size) == selection, "a restored selector elected another cohort")
        selector = type(selector).restore(through_json(selector.state()))  # with the selection open
        if slot % 5:
            selector.tell(selection, noisy_feedback(selection, CLIENTS))
        else:
            selector.abandon(selection)
    return f"Sizes: from 1 to {CLIENTS} clients, drawn anew in each of {SLOTS} slots, saved and restored between."


@_name_errors
def check_abandoned_slots_are_not_reused(factory: Factory) -> str:
    """After `abandon` the next ask has the next slot number."""
    selector = _build(factory, CLIENTS, BUDGET, seed=5)
    for slot in range(1, SLOTS + 1):
        selection = selector.ask()
        require(selection.slot == slot, f"slot {slot} was asked for as slot {selection.slot}")
        if slot % 3:
            selector.tell(selection, noisy_feedback(selection, CLIENTS))
        else:
            selector.abandon(selection)
    return f"Abandon: every third of {SLOTS} slots is abandoned, and its number not used again."


@_name_errors
def check_skipped_slots_are_not_reused(factory: Factory) -> str:
    """After `skip` the next ask has the slot number after it, and a restored selector goes on exactly."""
    selector = _build(factory, CLIENTS, BUDGET, seed=5)
    for slot in range(1, SLOTS + 1):
        if slot % 4 == 0:
            selector.skip()
            selector = type(selector).restore(through_json(selector.state()))
            continue
        selection = selector.ask()
        require(selection.slot == slot, f"slot {slot} was asked for as slot {selection.slot}")
        require_refusal(selector, StaleSelectionError, selector.skip, "a skip with a selection open")
        selector.tell(selection, noisy_feedback(selection, CLIENTS))
    return f"Skip: every fourth of {SLOTS} slots passes without an election, and its number is not used again."


@_name_errors
def check_inputs_are_not_aliased(factory: Factory) -> str:
    """Changing arrays after they were passed to `tell` changes nothing."""
    one, two = (_build(factory, CLIENTS, BUDGET, seed=5) for _ in range(2))
    for _ in range(SLOTS):
        selection = one.ask()
        require(two.ask() == selection, "changing an array after tell() changed the next cohort")
        feedback = noisy_feedback(selection, CLIENTS)
        present = {name: getattr(feedback, name) for name in SIGNALS if name != "reward"}
        arrays: dict[str, Any] = {name: values.copy() for name, values in present.items() if values is not None}
        one.tell(selection, Feedback(**arrays))
        two.tell(selection, feedback)
        for array in arrays.values():
            array[:] = 0.0
    return f"Aliasing: arrays changed after tell() change nothing, in {SLOTS} slots."


@_name_errors
def check_renaming_clients_changes_only_names(factory: Factory) -> str:
    """How often a client is elected depends on its worth, not on its number (over many seeds; 5 sigma)."""
    if not _build(factory, 6, 2, seed=0).symmetric:
        return "Renaming: not tried, the selector says `symmetric = False`."
    seeds, names = 150, np.array([3, 5, 0, 4, 1, 2])
    counts = np.array([_selection_counts(factory, seed, np.arange(6)) for seed in range(seeds)])
    renamed = np.array([_selection_counts(factory, seeds + seed, names) for seed in range(seeds)])
    gap = counts.mean(axis=0) - renamed.mean(axis=0)[names]
    noise = np.sqrt((counts.var(axis=0) + renamed.var(axis=0)[names]) / seeds) + 1e-9
    worst = int(np.argmax(np.abs(gap) / noise))
    require(
        bool(np.abs(gap[worst]) <= 5 * noise[worst]),
        f"renaming client {worst} to {names[worst]} changed how often it is elected by {gap[worst]:.2f} slots; "
        f"break ties by the selector's own stream, never by client number",
    )
    return f"Renaming: over {seeds} seeds, no client is elected more or less often under another number (5 sigma)."


def _selection_counts(factory: Factory, seed: int, names: Any) -> Floats:
    """How often each client is elected in 8 slots of a world in which old client i is now called names[i]."""
    worth = np.empty(6)
    worth[names] = [0.9, 0.9, 0.5, 0.5, 0.1, 0.1]
    selector = _build(factory, 6, 2, seed=seed)
    counts = np.zeros(6)
    for _ in range(8):
        selection = selector.ask()
        counts[list(selection.cohort)] += 1
        selector.tell(selection, feedback_by_worth(selection.cohort, worth))
    return counts


def _build(factory: Factory, clients: int, budget: int, seed: int) -> AbstractSelector:
    selector = factory(clients, budget, seed)
    require(
        (selector.clients, selector.budget) == (clients, budget),
        f"asked for {clients} clients and budget {budget}, got {selector.clients} and {selector.budget}",
    )
    return selector


def _cohorts(selector: AbstractSelector, slots: int) -> list[Cohort]:
    cohorts = []
    for _ in range(slots):
        selection = selector.ask()
        cohorts.append(selection.cohort)
        selector.tell(selection, noisy_feedback(selection, selector.clients))
    return cohorts
