"""One slot of the closed loop, for many replicas at once.

    ask -> train -> survey -> digest -> tell -> record

A replica is one selector in one trial. A replica's results do not depend on the others of the same call. The engine
that trains is a parameter: the plain loop, a fast engine or an atlas. Drivers that train elsewhere (Flower, real
peers) use the pieces: `conclude_slot`, `slot_record`, `skipped_record`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np

from fedelect.analytics import OpinionFunction, accuracy, democratized_feedback, federated_feedback, judge
from fedelect.errors import (
    ConfigurationError,
    FedelectError,
    MissingSignalError,
    NoElection,
    SelectorError,
    UnmeasuredError,
)
from fedelect.federation import ClientLosses, Engine, Job, MeasuresLosses, Model, Training
from fedelect.records import Exchange, Signals, SlotRecord, from_array
from fedelect.scenario import Scenario, simulated_signals
from fedelect.selectors import AbstractSelector
from fedelect.vocabulary import EXTRA_SIGNALS, Feedback, Floats, Selection, Signal

FrameworkName = Literal["fa", "da"]

_T = TypeVar("_T")

_LOSSES = frozenset({"loss", "loss_rms"})
_TIMES = frozenset({"seconds", "upload_s"})  # these depend on the size of a model

SUPPLIES: dict[FrameworkName, frozenset[Signal]] = {
    "fa": frozenset({"reward", "opinions", *EXTRA_SIGNALS}),
    "da": frozenset({"opinions", "beliefs"}),
}
"""Signals that a framework supplies. Under FL&FA the server sees opinions, their average and, for selectors that need
them, the clients' own reports. Under FL&DA there are beliefs and no server."""


@runtime_checkable
class ElectedByPeers(Protocol):
    """A selector whose clients settle beliefs among themselves, so that it need not be told them."""

    @property
    def settled(self) -> tuple[Floats, Exchange] | None:
        """(N,) beliefs and how they were settled in the last slot told."""


@runtime_checkable
class KnowsOpinions(Protocol):
    """An engine that knows the clients' opinions of its models, so that no test share is scored."""

    def opinions(self, scenario: Scenario, models: Sequence[Model]) -> Sequence[Floats]:
        """For each model the (N,) opinions of the clients; nan where a client has none."""


@runtime_checkable
class SizesModels(Protocol):
    """An engine whose models stand for larger ones, of a known size."""

    def model_bits(self, scenario: Scenario) -> int:
        """Size of a model of this scenario, bits."""


def opinions_on(
    scenario: Scenario, models: Sequence[Model], *, engine: Engine, opinion: OpinionFunction = accuracy
) -> Iterable[Floats]:
    """For each model the (N,) opinions of all clients, from the engine's knowledge or from its scores."""
    if isinstance(engine, KnowsOpinions):
        return engine.opinions(scenario, models)
    return (judge(scenario, scores, opinion) for scores in engine.scores(scenario, models))


@dataclass(slots=True)
class Replica:
    """One selector in one trial of one world; a warm start trains on from `model`."""

    label: str
    trial: int
    scenario: Scenario
    selector: AbstractSelector
    model: Model | None = None


def check_fits(selector: AbstractSelector, framework: FrameworkName, label: str) -> None:
    """Raise ConfigurationError if the selector needs a signal that the framework does not supply."""
    if framework == "fa" and isinstance(selector, ElectedByPeers):
        raise ConfigurationError(
            f"selector {label!r} is an election among the clients, which FL&FA does not hold; use framework da"
        )
    missing = sorted(selector.needs - SUPPLIES[framework])
    if missing:
        others = [name for name, signals in SUPPLIES.items() if selector.needs <= signals]
        advice = f"use framework {others[0]}" if others else "no framework supplies it"
        raise ConfigurationError(
            f"selector {label!r} needs {' and '.join(map(repr, missing))}, which FL&{framework.upper()} does not "
            f"supply; {advice}, or choose another selector"
        )


def play_slot(
    replicas: Sequence[Replica],
    *,
    slot: int,
    framework: FrameworkName,
    seed: int,
    engine: Engine,
    opinion: OpinionFunction = accuracy,
) -> list[SlotRecord]:
    """Play the next slot of every replica; one record for each, in order.

    Args:
        replicas: The replicas; their selectors learn, and under a warm start their models move on.
        slot: The number of that slot, the same for all.
        framework: "fa" or "da".
        seed: The run's seed, from which batch orders and upload luck come.
        engine: What trains.
        opinion: How a client scores a model on its own data.
    """
    selections = [_ask(replica) for replica in replicas]
    results = _train_and_survey(replicas, selections, seed, engine, opinion)
    records = []
    for index, (replica, selection) in enumerate(zip(replicas, selections, strict=True)):
        if isinstance(selection, NoElection):
            records.append(skipped_record(replica.label, slot, str(selection), trial=replica.trial))
            continue
        training, opinions = results[index]
        extra = _extra_signals(replica, selection, training, framework, seed, engine)
        feedback, exchange = _digest(replica, framework, opinions, extra)
        note = _conclude(replica, selection, feedback)
        if replica.scenario.config.start == "warm":
            replica.model = training.model
        records.append(_record(replica, selection, training, feedback, exchange, note, framework))
    return records


def conclude_slot(selector: AbstractSelector, selection: Selection, feedback: Feedback) -> str | None:
    """Tell the selector; if it lacks a signal it needs, abandon the slot.

    Returns:
        Why the slot was abandoned; None if the selector has learnt from it.
    """
    try:
        selector.tell(selection, feedback)
    except MissingSignalError as reason:
        selector.abandon(selection)
        return str(reason)
    return None


def slot_record(
    label: str,
    selection: Selection,
    *,
    arrivals: Sequence[int],
    rounds: int,
    empty_rounds: int,
    trial: int = 0,
    note: str | None = None,
    **observed: Any,
) -> SlotRecord:
    """Record of a slot in which a cohort trained.

    Args:
        label: The selector's label in the run.
        selection: What was asked.
        arrivals: (K,) uploads that arrived, for each member.
        rounds: Rounds of training.
        empty_rounds: Rounds in which no upload arrived.
        trial: The trial.
        note: Why the slot was abandoned; None if the selector learnt from it.
        observed: More fields of `SlotRecord`: opinions, beliefs, reward, exchange, signals, seconds.
    """
    return SlotRecord(
        selector=label,
        trial=trial,
        slot=selection.slot,
        status="done" if note is None else "abandoned",
        cohort=selection.cohort,
        arrivals=tuple(arrivals),
        rounds=rounds,
        empty_rounds=empty_rounds,
        indices=selection.indices,
        note=note,
        **observed,
    )


def skipped_record(label: str, slot: int, reason: str, *, trial: int = 0, seconds: float | None = None) -> SlotRecord:
    """Record of a slot in which nobody trained, for the given reason."""
    return SlotRecord(
        selector=label,
        trial=trial,
        slot=slot,
        status="skipped",
        cohort=(),
        arrivals=(),
        rounds=0,
        empty_rounds=0,
        note=reason,
        seconds=seconds,
    )


def count_arrivals(training: Training) -> dict[str, Any]:
    """`arrivals`, `rounds` and `empty_rounds` of a training, as `slot_record` takes them."""
    return {
        "arrivals": np.sum(training.arrivals, axis=0).tolist(),
        "rounds": len(training.arrivals),
        "empty_rounds": int(np.count_nonzero(~training.arrivals.any(axis=1))),
    }


def _ask(replica: Replica) -> Selection | NoElection:
    try:
        return replica.selector.ask()
    except NoElection as reason:
        return reason
    except FedelectError:
        raise
    except Exception as error:  # a user's selector may raise anything
        raise selector_failed(replica, error) from error


def _train_and_survey(
    replicas: Sequence[Replica],
    selections: Sequence[Selection | NoElection],
    seed: int,
    engine: Engine,
    opinion: OpinionFunction,
) -> dict[int, tuple[Training, Floats]]:
    """By index of the replica, what was trained and the (N,) opinions of it.

    One batch for each world, so that an engine can share work among the replicas of one world.
    """
    jobs: dict[int, Job] = {}
    worlds: dict[int, list[int]] = {}
    for index, (replica, selection) in enumerate(zip(replicas, selections, strict=True)):
        if isinstance(selection, Selection):
            cohort, slot = selection.cohort, selection.slot
            jobs[index] = Job(cohort=cohort, start=replica.model, seed=seed, trial=replica.trial, slot=slot)
            worlds.setdefault(id(replica.scenario), []).append(index)
    results: dict[int, tuple[Training, Floats]] = {}
    for indices in worlds.values():
        scenario = replicas[indices[0]].scenario
        trainings = engine.train(scenario, [jobs[index] for index in indices])
        surveys = opinions_on(scenario, [one.model for one in trainings], engine=engine, opinion=opinion)
        for index, training, opinions in zip(indices, trainings, surveys, strict=True):
            results[index] = (training, opinions)
    return results


def _extra_signals(
    replica: Replica, selection: Selection, training: Training, framework: FrameworkName, seed: int, engine: Engine
) -> dict[Signal, Floats]:
    """(N,) those of `EXTRA_SIGNALS` that this replica's selector needs or uses; nothing else is computed.

    An optional signal is left out where the engine does not know it.
    """
    scenario, model, needs = replica.scenario, training.model, replica.selector.needs
    wanted = (needs | replica.selector.uses) & SUPPLIES[framework] & EXTRA_SIGNALS.keys()
    if not wanted:
        return {}
    signals = simulated_signals(
        scenario,
        selection.cohort,
        model_bits=_measure(lambda: model_bits(scenario, model, engine), needed=bool(needs & _TIMES)),
        seed=seed,
        trial=replica.trial,
        slot=selection.slot,
    )
    if wanted & _LOSSES:
        losses = _measure(lambda: _losses(replica, model, engine), needed=bool(needs & _LOSSES))
        signals |= {} if losses is None else {"loss": losses.mean, "loss_rms": losses.rms}
    return {name: signals[name] for name in EXTRA_SIGNALS if name in wanted and name in signals}


def _measure(measure: Callable[[], _T], *, needed: bool) -> _T | None:
    """Call `measure`; None if the engine does not know the quantity and no selector needs it."""
    try:
        return measure()
    except UnmeasuredError:
        if needed:
            raise
        return None


def model_bits(scenario: Scenario, model: Model, engine: Engine) -> int:
    """Size of a model as it is sent, bits."""
    return engine.model_bits(scenario) if isinstance(engine, SizesModels) else 8 * model.nbytes


def _losses(replica: Replica, model: Model, engine: Engine) -> ClientLosses:
    if not isinstance(engine, MeasuresLosses):
        raise UnmeasuredError(
            f"selector {replica.label!r} needs the clients' losses, which the engine {engine.name!r} does not "
            f"measure; use another engine, or choose another selector"
        )
    return engine.losses(replica.scenario, model)


def _digest(
    replica: Replica, framework: FrameworkName, opinions: Floats, extra: dict[Signal, Floats]
) -> tuple[Feedback, Exchange | None]:
    if framework == "fa":
        return federated_feedback(opinions, extra), None
    if isinstance(replica.selector, ElectedByPeers):
        return Feedback(opinions=opinions), None  # its peers settle the beliefs when they are told
    return democratized_feedback(replica.scenario, opinions)


def _conclude(replica: Replica, selection: Selection, feedback: Feedback) -> str | None:
    try:
        return conclude_slot(replica.selector, selection, feedback)
    except FedelectError:
        raise
    except Exception as error:  # a user's selector may raise anything
        raise selector_failed(replica, error) from error


def selector_failed(replica: Replica, error: Exception) -> SelectorError:
    """The error that says which selector failed in which trial, and of what."""
    return SelectorError(
        f"selector {replica.label!r} failed in trial {replica.trial}: {type(error).__name__}: {error}; "
        f"--debug shows where"
    )


def _record(
    replica: Replica,
    selection: Selection,
    training: Training,
    feedback: Feedback,
    exchange: Exchange | None,
    note: str | None,
    framework: FrameworkName,
) -> SlotRecord:
    beliefs = feedback.beliefs
    if framework == "da" and isinstance(replica.selector, ElectedByPeers) and replica.selector.settled is not None:
        beliefs, exchange = replica.selector.settled
    assert feedback.opinions is not None  # a survey was held
    return slot_record(
        replica.label,
        selection,
        trial=replica.trial,
        note=note,
        **count_arrivals(training),
        opinions=from_array(feedback.opinions),
        beliefs=None if beliefs is None else from_array(beliefs),
        reward=None if framework == "da" else feedback.reward,  # nobody sees the average there
        exchange=exchange,
        signals=_signals(feedback),
    )


def _signals(feedback: Feedback) -> Signals | None:
    told = {name: from_array(values) for name, values in feedback.per_client().items() if name in EXTRA_SIGNALS}
    return Signals(**told) if told else None
