"""What the conformance suite requires, and the error it raises."""

import json
from collections.abc import Callable
from typing import Any

from fedelect.selectors import AbstractSelector
from fedelect.vocabulary import Cohort


class ConformanceError(AssertionError):
    """A selector breaks the contract; the message names the check and says how."""


def through_json(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state as JSON gives it back; ConformanceError if that changes it."""
    try:
        text = json.dumps(state, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConformanceError(f"state() is not plain JSON: {error}") from error
    loaded: dict[str, Any] = json.loads(text)
    require(loaded == state, "state() changes when it passes through JSON (tuples or non-text keys?)")
    return loaded


def require_refusal(selector: AbstractSelector, error: type[Exception], call: Callable[[], object], what: str) -> None:
    """Raise ConformanceError unless `call` raises `error` and leaves the selector as it was."""
    before = selector.state()
    try:
        call()
    except error:
        pass
    else:
        raise ConformanceError(f"{what} was accepted; it must raise {error.__name__}")
    require(selector.state() == before, f"{what} was refused but changed the selector's state")


def require_cohort(cohort: Cohort, clients: int, budget: int) -> None:
    """Raise ConformanceError unless the cohort is a sorted tuple of `budget` distinct clients."""
    fits = type(cohort) is tuple and len(cohort) == budget and list(cohort) == sorted(set(cohort))
    inside = all(type(member) is int and 0 <= member < clients for member in cohort)
    require(fits and inside, f"{cohort!r} is not a sorted tuple of {budget} distinct ints out of 0..{clients - 1}")


def require(holds: bool, sentence: str) -> None:
    """Raise ConformanceError with the sentence unless it holds."""
    if not holds:
        raise ConformanceError(sentence)
