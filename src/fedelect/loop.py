"""One slot of the closed loop, for many replicas at once.

    ask -> train -> survey -> digest -> tell -> record

A replica is one selector in one trial. A replica's results do not depend on the others of the same call. The engine
that trains is a parameter: the plain loop, a fast engine or an atlas. Drivers that train elsewhere (Flower, real
peers) use the pieces: `conclude_slot`, `slot_record`, `skipped_record`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from msgspec import UNSET

from fedelect.analytics import OpinionFunction, accuracy, democratized_feedback, federated_feedback
from fedelect.errors import ConfigurationError, FedelectError, MissingSignalError, NoElection, SelectorError
from fedelect.federation import Engine, Job, Model, Training
from fedelect.measurement import (
    LOW_ACCURACY_SLOTS,
    measure_accuracies,
    measure_signals,
    measure_slot,
    opinions_on,
    signals_of_uploads,
)
from fedelect.records import Exchange, Measures, Signals, SlotRecord, from_array
from fedelect.scenario import Mask, Scenario, SurveySample, draw_failures, draw_survey
from fedelect.selectors import AbstractSelector
from fedelect.slot_memory import Presence, SlotMemory
from fedelect.vocabulary import EXTRA_SIGNALS, Cohort, Feedback, Floats, Ints, Selection, Signal

FrameworkName = Literal["fa", "da"]

SUPPLIES: dict[FrameworkName, frozenset[Signal]] = {
    "fa": frozenset({"reward", "opinions", *EXTRA_SIGNALS}),
    "da": frozenset({"opinions", "beliefs"}),
}
"""Signals that a framework supplies. Under FL&FA the server sees opinions, their average and, for selectors that need
them, the clients' own reports and what it makes of uploads; contributions only where it holds validation samples.
Under FL&DA there are beliefs and no server."""


@runtime_checkable
class ElectedByPeers(Protocol):
    """A selector whose clients settle beliefs among themselves, so that it need not be told them."""

    @property
    def settled(self) -> tuple[Floats, Exchange] | None:
        """(N,) beliefs and how they were settled in the last slot told."""


@dataclass(slots=True)
class Replica:
    """One selector in one trial of one world; a warm start trains on from `model`, `memory` is the driver's."""

    label: str
    trial: int
    scenario: Scenario
    selector: AbstractSelector
    model: Model | None = None
    memory: SlotMemory = field(init=False)

    def __post_init__(self) -> None:
        self.memory = SlotMemory(self.scenario.config, trial=self.trial)


def check_fits(selector: AbstractSelector, framework: FrameworkName, label: str, *, validated: bool) -> None:
    """Raise ConfigurationError if the selector needs a signal that the framework does not supply.

    Args:
        selector: The selector.
        framework: "fa" or "da".
        label: The selector's label, for errors.
        validated: Whether the server can score models, on validation samples of its own.
    """
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
    if "contributions" in selector.needs and not validated:
        raise ConfigurationError(
            f"selector {label!r} needs 'contributions', which the server estimates on validation samples of its own; "
            f"give the scenario a table [validation], such as share = 0.1, or choose another selector"
        )


@dataclass(frozen=True, slots=True)
class _Slot:
    """The slot to play, for all replicas; see `play_slot`."""

    number: int
    framework: FrameworkName
    seed: int
    engine: Engine
    opinion: OpinionFunction
    last: bool


@dataclass(slots=True)
class _Turn:
    """One replica's slot as it goes on; what comes after the election is set by `_train` and `_survey`."""

    replica: Replica
    world: Scenario
    presence: Presence
    selection: Selection | NoElection
    training: Training = field(init=False)
    failed: Mask = field(init=False)  # (K,) whose training failed
    sample: SurveySample | None = None  # None: all are asked
    opinions: Floats = field(init=False)  # (N,)
    accuracy: float | None = None
    candidates: Cohort = ()  # asked to report before the election


def play_slot(
    replicas: Sequence[Replica],
    *,
    slot: int,
    framework: FrameworkName,
    seed: int,
    engine: Engine,
    opinion: OpinionFunction = accuracy,
    last: bool = False,
) -> list[SlotRecord]:
    """Play the next slot of every replica; one record for each, in order.

    Args:
        replicas: The replicas; their selectors learn, and under a warm start their models move on.
        slot: The number of that slot, the same for all.
        framework: "fa" or "da".
        seed: The run's seed, from which batch orders, upload luck and who is there come.
        engine: What trains.
        opinion: How a client scores a model on its own data.
        last: Whether it is the last slot of the run, in which more is measured.
    """
    now = _Slot(slot, framework, seed, engine, opinion, last)
    turns = [_elect(replica, now) for replica in replicas]
    worlds: dict[int, list[_Turn]] = {}
    for turn in turns:
        if isinstance(turn.selection, Selection):
            worlds.setdefault(id(turn.world), []).append(turn)
    for together in worlds.values():  # one batch for each world, so that an engine can share work
        _train(together, now)
        _survey(together, now)
    return [
        _conclude(turn, turn.selection, now) if isinstance(turn.selection, Selection) else _skip(turn, now)
        for turn in turns
    ]


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


def skipped_record(
    label: str, slot: int, reason: str, *, trial: int = 0, seconds: float | None = None, **observed: Any
) -> SlotRecord:
    """Record of a slot in which nobody trained, for the given reason; `observed`: more fields of `SlotRecord`."""
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
        **observed,
    )


def count_arrivals(training: Training) -> dict[str, Any]:
    """`arrivals`, `rounds` and `empty_rounds` of a training, as `slot_record` takes them."""
    return {
        "arrivals": np.sum(training.arrivals, axis=0).tolist(),
        "rounds": len(training.arrivals),
        "empty_rounds": int(np.count_nonzero(~training.arrivals.any(axis=1))),
    }


def _elect(replica: Replica, now: _Slot) -> _Turn:
    """Find who is there, and ask the selector for a cohort of them."""
    presence = replica.memory.find_present(now.number, seed=now.seed)
    world = replica.scenario.at(now.number)
    candidates: Cohort = ()
    selection: Selection | NoElection
    try:
        _check_enough(replica.selector, presence)
        candidates = _name_candidates(replica, presence, now)
        reports = _report(replica, world, candidates, now) if candidates else None
        selection = replica.selector.ask(presence.usable, reports=reports)
    except NoElection as reason:
        selection = reason
    except FedelectError:
        raise
    except Exception as error:  # a user's selector may raise anything
        raise selector_failed(replica, error) from error
    return _Turn(replica, world, presence, selection, candidates=candidates)


def _name_candidates(replica: Replica, presence: Presence, now: _Slot) -> Cohort:
    """Clients that report before the election; nobody in a cold start, whose model says nothing yet, or under FL&DA."""
    if now.framework == "da" or replica.scenario.config.start == "cold":
        return ()
    return replica.selector.candidates(presence.usable) or ()


def _check_enough(selector: AbstractSelector, presence: Presence) -> None:
    """Skip the slot and raise NoElection if there are fewer clients than a cohort takes."""
    usable = presence.usable
    if usable is not None and usable.size < selector.budget:
        selector.skip()
        raise NoElection(f"{usable.size} of {selector.clients} clients are there, but a cohort takes {selector.budget}")


def _report(replica: Replica, world: Scenario, candidates: Cohort, now: _Slot) -> Feedback:
    """What candidates report of the model that the slot begins with."""
    model = now.engine.initial_model(world) if replica.model is None else replica.model
    signals = measure_signals(
        world,
        model,
        (),
        label=replica.label,
        needs=replica.selector.asks,
        uses=frozenset(),
        answering=np.array(candidates),
        engine=now.engine,
        seed=now.seed,
        trial=replica.trial,
        slot=now.number - 1,
    )
    asked = np.isin(np.arange(world.clients), candidates)
    reports: dict[str, Any] = {name: np.where(asked, values, np.nan) for name, values in signals.items()}
    return Feedback(**reports)


def _train(turns: Sequence[_Turn], now: _Slot) -> None:
    """Train the cohorts of one world."""
    jobs = []
    for turn in turns:
        assert isinstance(turn.selection, Selection)
        name: dict[str, Any] = {"seed": now.seed, "trial": turn.replica.trial, "slot": turn.selection.slot}
        wanted = _choose_upload_signals(turn, now)
        jobs.append(Job(cohort=turn.selection.cohort, start=turn.replica.model, **wanted, **name))
        turn.failed = draw_failures(turn.world, turn.selection.cohort, **name)
    world = turns[0].world
    trainings = now.engine.train(world, jobs)
    for turn, training in zip(turns, trainings, strict=True):
        turn.training = training
    if world.config.measured:
        accuracies = measure_accuracies(world, [training.model for training in trainings], now.engine)
        for turn, measured in zip(turns, accuracies, strict=True):
            turn.accuracy = measured


def _choose_upload_signals(turn: _Turn, now: _Slot) -> dict[str, bool]:
    """Which signals the server is to make of the uploads, for a selector that needs or uses them; none under FL&DA."""
    declared = turn.replica.selector.needs | turn.replica.selector.uses if now.framework == "fa" else frozenset()
    validated = turn.world.config.validation is not UNSET
    return {"updates": "updates" in declared, "contributions": validated and "contributions" in declared}


def _survey(turns: Sequence[_Turn], now: _Slot) -> None:
    """Ask clients of one world what they think of the trained models: all of them, or a sample and the elected."""
    world, models = turns[0].world, [turn.training.model for turn in turns]
    answering: list[Ints] | None = None
    if world.config.survey is not UNSET or world.config.availability is not UNSET:
        answering = []
        for turn in turns:
            assert isinstance(turn.selection, Selection)
            turn.sample = draw_survey(
                world.config.survey,
                turn.selection.cohort,
                turn.presence.there,
                clients=world.clients,
                seed=now.seed,
                trial=turn.replica.trial,
                slot=now.number,
            )
            answering.append(turn.sample.answering)
    surveys = opinions_on(world, models, engine=now.engine, opinion=now.opinion, clients=answering)
    for turn, opinions in zip(turns, surveys, strict=True):
        turn.opinions = opinions


def _conclude(turn: _Turn, selection: Selection, now: _Slot) -> SlotRecord:
    """Digest what the clients think, tell the selector, and record the slot."""
    replica = turn.replica
    turn.replica.memory.record_training(selection.slot, selection.cohort, turn.failed)
    feedback, mean, exchange = _digest(turn, selection, now)
    try:
        if turn.failed.all():
            note: str | None = "the training of every member failed"
            replica.selector.abandon(selection)
        else:
            note = conclude_slot(replica.selector, selection, feedback)
    except FedelectError:
        raise
    except Exception as error:  # a user's selector may raise anything
        raise selector_failed(replica, error) from error
    if replica.scenario.config.start == "warm":
        replica.model = turn.training.model
    beliefs = feedback.beliefs
    if now.framework == "da" and isinstance(replica.selector, ElectedByPeers) and replica.selector.settled is not None:
        beliefs, exchange = replica.selector.settled
    assert feedback.opinions is not None  # a survey was held
    return slot_record(
        replica.label,
        selection,
        trial=replica.trial,
        note=note,
        **count_arrivals(turn.training),
        opinions=from_array(feedback.opinions),
        beliefs=None if beliefs is None else from_array(beliefs),
        mean_opinion=mean,
        reward=None if now.framework == "da" else feedback.reward,  # nobody sees the average there
        exchange=exchange,
        signals=_signals(feedback),
        failed=tuple(np.array(selection.cohort)[turn.failed].tolist()),
        candidates=turn.candidates,
        measures=_measures(turn, turn.training.model, selection.cohort, now),
        **_presence_fields(turn.presence),
    )


def _digest(turn: _Turn, selection: Selection, now: _Slot) -> tuple[Feedback, float | None, Exchange | None]:
    """What the selector is told, the average opinion as far as anybody sees it, and how beliefs were settled."""
    replica, world, opinions = turn.replica, turn.world, turn.opinions
    if now.framework == "da":
        if isinstance(replica.selector, ElectedByPeers):
            return Feedback(opinions=opinions), None, None  # its peers settle the beliefs when they are told
        feedback, exchange = democratized_feedback(world, opinions)
        return feedback, None, exchange
    mean = turn.replica.memory.average_opinion(opinions, None if turn.sample is None else turn.sample.counted)
    if mean is None:  # nobody of the sample answered, and what the elected think is no survey
        opinions = np.full(world.clients, np.nan)
    extra = measure_signals(
        world,
        turn.training.model,
        selection.cohort,
        label=replica.label,
        needs=replica.selector.needs,
        uses=replica.selector.uses,
        answering=None if turn.sample is None else turn.sample.answering,
        engine=now.engine,
        seed=now.seed,
        trial=replica.trial,
        slot=selection.slot,
    )
    extra |= signals_of_uploads(
        world,
        turn.training,
        selection.cohort,
        label=replica.label,
        needs=replica.selector.needs,
        engine=now.engine,
    )
    return federated_feedback(opinions, extra, reward=turn.replica.memory.find_reward(mean)), mean, None


def _skip(turn: _Turn, now: _Slot) -> SlotRecord:
    """Record a slot without an election; in a warm start the model stays as it is."""
    replica, measures = turn.replica, None
    if replica.scenario.config.start == "warm":
        standing = now.engine.initial_model(turn.world) if replica.model is None else replica.model
        (turn.accuracy,) = measure_accuracies(turn.world, [standing], now.engine)
        measures = _measures(turn, standing, (), now)
    fields = _presence_fields(turn.presence) | {"measures": measures, "candidates": turn.candidates}
    return skipped_record(replica.label, now.number, str(turn.selection), trial=replica.trial, **fields)


def _measures(turn: _Turn, model: Model, cohort: Cohort, now: _Slot) -> Measures | None:
    if not turn.world.config.measured:
        return None
    asked = turn.world.clients if turn.sample is None else turn.sample.asked.size
    asked += len(turn.candidates)
    return measure_slot(
        turn.world,
        model,
        cohort,
        accuracy=turn.accuracy,
        failed=int(np.count_nonzero(turn.failed)) if cohort else 0,
        evaluations=asked if cohort else 0,
        with_low_accuracy=now.last or now.number in LOW_ACCURACY_SLOTS,
        engine=now.engine,
    )


def _presence_fields(presence: Presence) -> dict[str, Any]:
    usable = presence.usable
    return {"available": None if usable is None else int(usable.size), "left_out": presence.left_out}


def selector_failed(replica: Replica, error: Exception) -> SelectorError:
    """The error that says which selector failed in which trial, and of what."""
    return SelectorError(
        f"selector {replica.label!r} failed in trial {replica.trial}: {type(error).__name__}: {error}; "
        f"--debug shows where"
    )


def _signals(feedback: Feedback) -> Signals | None:
    told = {name: from_array(values) for name, values in feedback.per_client().items() if name in EXTRA_SIGNALS}
    return Signals(**told) if told else None
