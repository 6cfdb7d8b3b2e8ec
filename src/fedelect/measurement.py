"""What is measured in a slot: opinions, signals that a selector needs or uses, and measures that no selector sees.

Signals are computed for the selector that declares them, of the clients that answer. Measures tell what a slot
achieved and cost.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from fedelect.analytics import OpinionFunction, accuracy, judge
from fedelect.errors import UnmeasuredError
from fedelect.federation import ClientLosses, Engine, MeasuresAccuracy, MeasuresLosses, Model, Training
from fedelect.records import Measures
from fedelect.scenario import Scenario, simulated_signals
from fedelect.vocabulary import EXTRA_SIGNALS, Cohort, Floats, Ints, Signal

_T = TypeVar("_T")

LOW_ACCURACY_SLOTS = frozenset({25, 50, 100})
"""Slots, beside the last one, in which the accuracy of all clients is measured."""

LOW_QUANTILE = 0.1
"""Share of the clients below `Measures.low_accuracy`."""

_LOSSES = frozenset({"loss", "loss_rms"})
_TIMES = frozenset({"seconds", "upload_s"})  # these depend on the size of a model


@runtime_checkable
class SizesModels(Protocol):
    """An engine whose models stand for larger ones, of a known size."""

    def model_bits(self, scenario: Scenario) -> int:
        """Size of a model of this scenario, bits."""


@runtime_checkable
class KnowsOpinions(Protocol):
    """An engine that knows the clients' opinions of its models, so that no test share is scored."""

    def opinions(self, scenario: Scenario, models: Sequence[Model]) -> Sequence[Floats]:
        """For each model the (N,) opinions of the clients; nan where a client has none."""


def opinions_on(
    scenario: Scenario,
    models: Sequence[Model],
    *,
    engine: Engine,
    opinion: OpinionFunction = accuracy,
    clients: Sequence[Ints] | None = None,
) -> Iterable[Floats]:
    """For each model the (N,) opinions of the clients, from the engine's knowledge or from its scores.

    Args:
        scenario: The world.
        models: The models.
        engine: What trained them.
        opinion: How a client scores a model.
        clients: For each model the clients that give an opinion, sorted; None for all.
    """
    if isinstance(engine, KnowsOpinions):
        known = engine.opinions(scenario, models)
        return known if clients is None else map(_keep, known, clients)
    if clients is None:
        return (judge(scenario, scores, opinion) for scores in engine.scores(scenario, models))
    scored = zip(engine.scores(scenario, models, clients=clients), clients, strict=True)
    return (judge(scenario, scores, opinion, clients=asked) for scores, asked in scored)


def _keep(values: Floats, clients: Ints) -> Floats:
    kept = np.full(values.size, np.nan)
    kept[clients] = values[clients]
    return kept


def measure_signals(
    scenario: Scenario,
    model: Model,
    cohort: Cohort,
    *,
    label: str,
    needs: frozenset[Signal],
    uses: frozenset[Signal],
    answering: Ints | None,
    engine: Engine,
    seed: int,
    trial: int,
    slot: int,
) -> dict[Signal, Floats]:
    """(N,) those of `EXTRA_SIGNALS` that a selector needs or uses; nothing else is computed.

    An optional signal is left out where the engine does not know it.

    Args:
        scenario: The world.
        model: The trained model.
        cohort: Who trained it.
        label: The selector's label, for errors.
        needs: What it needs.
        uses: What it takes where it is there.
        answering: Clients that report losses; None for all.
        engine: What trained.
        seed: Seed of the run.
        trial: Number of the trial.
        slot: The slot.
    """
    wanted = (needs | uses) & EXTRA_SIGNALS.keys()
    if not wanted:
        return {}
    signals = simulated_signals(
        scenario,
        cohort,
        model_bits=_measure(lambda: model_bits(scenario, model, engine), needed=bool(needs & _TIMES)),
        seed=seed,
        trial=trial,
        slot=slot,
    )
    if wanted & _LOSSES:
        losses = _measure(lambda: _losses(scenario, model, engine, answering, label), needed=bool(needs & _LOSSES))
        signals |= {} if losses is None else {"loss": losses.mean, "loss_rms": losses.rms}
    return {name: signals[name] for name in EXTRA_SIGNALS if name in wanted and name in signals}


def signals_of_uploads(
    scenario: Scenario, training: Training, cohort: Cohort, *, label: str, needs: frozenset[Signal], engine: Engine
) -> dict[Signal, Floats]:
    """What the server made of the members' uploads: updates (N, 64), contributions (N,); nan for all others.

    Args:
        scenario: The world.
        training: What was trained.
        cohort: Who trained.
        label: The selector's label, for errors.
        needs: What it needs.
        engine: What trained.

    Raises:
        UnmeasuredError: The selector needs what the engine does not compute.
    """
    found: dict[Signal, Floats] = {}
    for name in ("updates", "contributions"):
        values: Floats | None = getattr(training, name)
        if values is not None:
            found[name] = np.full((scenario.clients, *values.shape[1:]), np.nan)
            found[name][list(cohort)] = values
        elif name in needs:
            raise UnmeasuredError(
                f"selector {label!r} needs the clients' {name}, which the engine {engine.name!r} does not know; use "
                f"another engine, or choose another selector"
            )
    return found


def _measure(measure: Callable[[], _T], *, needed: bool) -> _T | None:
    """Call `measure`; None if the engine does not know the quantity and no selector needs it."""
    try:
        return measure()
    except UnmeasuredError:
        if needed:
            raise
        return None


def model_bits(scenario: Scenario, model: Model, engine: Engine) -> int:
    """Size of a model as it is sent, bits.

    Raises:
        UnmeasuredError: The engine does not know it.
    """
    return engine.model_bits(scenario) if isinstance(engine, SizesModels) else 8 * model.nbytes


def _losses(scenario: Scenario, model: Model, engine: Engine, answering: Ints | None, label: str) -> ClientLosses:
    if not isinstance(engine, MeasuresLosses):
        raise UnmeasuredError(
            f"selector {label!r} needs the clients' losses, which the engine {engine.name!r} does not measure; use "
            f"another engine, or choose another selector"
        )
    return engine.losses(scenario, model, clients=answering)


def measure_accuracies(scenario: Scenario, models: Sequence[Model], engine: Engine) -> list[float | None]:
    """Accuracy of each model on the clean test set of all clients; None where the engine cannot tell."""
    if not isinstance(engine, MeasuresAccuracy) or not len(scenario.global_test_labels):
        return [None] * len(models)
    return list(engine.accuracies(scenario, models))


def measure_slot(
    scenario: Scenario,
    model: Model,
    cohort: Cohort,
    *,
    accuracy: float | None,
    failed: int,
    evaluations: int,
    with_low_accuracy: bool,
    engine: Engine,
) -> Measures:
    """What a slot achieved and cost.

    A model is sent to each member in each round, and the trained one to each client that is asked to evaluate it. A
    member sends an update in each round, also one that the channel loses, unless its training failed.

    Args:
        scenario: The world.
        model: The model after the slot.
        cohort: Who trained; empty if nobody did.
        accuracy: Its accuracy, from `measure_accuracies`.
        failed: Members whose training failed.
        evaluations: Clients asked to evaluate.
        with_low_accuracy: Whether to measure the accuracy of all clients.
        engine: What trained.
    """
    bits = _measure(lambda: model_bits(scenario, model, engine), needed=False)
    rounds, size = scenario.config.rounds_per_slot, None if bits is None else bits // 8
    return Measures(
        accuracy=accuracy,
        low_accuracy=_low_accuracy(scenario, model, engine) if with_low_accuracy else None,
        flawed_share=float(scenario.flawed[list(cohort)].mean()) if cohort else None,
        evaluations=evaluations,
        bytes_down=None if size is None else size * (rounds * len(cohort) + evaluations),
        bytes_up=None if size is None else size * rounds * (len(cohort) - failed),
    )


def _low_accuracy(scenario: Scenario, model: Model, engine: Engine) -> float | None:
    """10th percentile over all clients of the accuracy on their own clean test shares; None if there is none."""
    if not isinstance(engine, MeasuresAccuracy):
        return None
    own = engine.client_accuracies(scenario, model)
    own = own[~np.isnan(own)]
    return float(np.quantile(own, LOW_QUANTILE)) if own.size else None
