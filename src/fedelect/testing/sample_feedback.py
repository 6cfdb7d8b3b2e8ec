"""Feedback of small made-up worlds, from named random streams, for the conformance suite."""

from typing import Any

import numpy as np

from fedelect.seeds import stream
from fedelect.vocabulary import EXTRA_SIGNALS, UPDATE_SIZE, Cohort, Feedback, Floats, Selection, Signal


def noisy_feedback(selection: Selection, clients: int) -> Feedback:
    """What a small noisy world answers: all signals; it depends on slot and cohort only."""
    rng = stream(99, "conformance", selection.slot, *selection.cohort)
    worth = 0.2 + 0.6 * sum(selection.cohort) / (clients * len(selection.cohort))
    opinions = np.clip(worth + 0.2 * rng.standard_normal(clients), 0.0, 1.0)
    return Feedback(opinions=opinions, beliefs=opinions**2, **noisy_extra(selection, clients))


def noisy_extra(selection: Selection, clients: int) -> dict[Signal, Any]:
    """All extra signals; what only members of the cohort can tell is nan for the others."""
    rng = stream(99, "conformance-extra", selection.slot, *selection.cohort)
    names = [name for name in EXTRA_SIGNALS if name not in ("contributions", "updates")]
    extra = {name: rng.uniform(0.1, 2.0, clients) for name in names}
    rng = stream(99, "conformance-members", selection.slot, *selection.cohort)
    extra["contributions"] = rng.uniform(-0.5, 0.5, clients)
    extra["updates"] = rng.standard_normal((clients, UPDATE_SIZE))
    return _of_members(extra, selection.cohort, clients)


def noisy_reports(candidates: Cohort, slot: int, clients: int, signals: frozenset[Signal]) -> Feedback:
    """What candidates report before an ask; the first of them is silent in every other slot."""
    rng = stream(99, "conformance-reports", slot, *candidates)
    answered = candidates[slot % 2 :]
    reports: dict[str, Any] = {}
    for name in sorted(signals):
        reports[name] = np.full(clients, np.nan)
        reports[name][list(answered)] = rng.uniform(0.1, 2.0, len(answered))
    return Feedback(**reports)


def feedback_by_worth(cohort: Cohort, worth: Floats) -> Feedback:
    """All signals of a world without noise in which a client is described by its worth (N,) alone."""
    reward = float(np.sort(worth[list(cohort)]).mean())
    extra: dict[str, Any] = {name: 1.0 + worth for name in EXTRA_SIGNALS}
    extra["updates"] = np.outer(1.0 + worth, np.cos(np.arange(UPDATE_SIZE)))
    extra = _of_members(extra, cohort, worth.size, names=("contributions", "updates"))
    level = np.full(worth.size, reward)
    return Feedback(opinions=level, beliefs=level * worth, **extra)


def _of_members(
    extra: dict[str, Any],
    cohort: Cohort,
    clients: int,
    names: tuple[Signal, ...] = ("seconds", "contributions", "updates"),
) -> dict[str, Any]:
    """The signals, with `names` nan for those outside the cohort."""
    others = np.setdiff1d(np.arange(clients), cohort)
    kept = {name: values.copy() for name, values in extra.items()}
    for name in names:
        kept[name][others] = np.nan
    return kept
