"""Play selectors in an environment and return their elections, rewards and cost of an ask. Nothing is written."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fedelect.atlas import Atlas, AtlasEngine
from fedelect.errors import AvailabilityError, ConfigurationError, FedelectError, NoElection
from fedelect.federation import Engine
from fedelect.loop import FrameworkName, Replica, play_slot, selector_failed
from fedelect.records import SlotRecord, to_array
from fedelect.scenario import Scenario
from fedelect.selectors import SelectorSpec
from fedelect.simulator import Plan, specify_selectors
from fedelect.vocabulary import Floats, Ints, mean_present


@dataclass(frozen=True, eq=False)
class Elections:
    """The elections of a selector.

    Attributes:
        framework: "fa" if it finds what it needs there, else "da".
        cohorts: (trials, T, K) clients elected.
        rewards: (trials, T) mean opinion of the model that was trained in each slot.
        ask_ms: (trials,) milliseconds of CPU time that an ask took, on average over the slots.
    """

    framework: FrameworkName
    cohorts: Ints
    rewards: Floats
    ask_ms: Floats


@dataclass(frozen=True, eq=False)
class Environment:
    """A world to play in, and its engine."""

    world: Scenario
    engine: Engine


def play_together(
    environment: Environment,
    texts: Sequence[str],
    *,
    slots: int,
    trials: int,
    seed: int,
    first_trial: int = 0,
    progress: Callable[[int], None] = lambda slot: None,
) -> list[Elections]:
    """Play the selectors of these specifications together, slot by slot; return their elections in order.

    Each does what it would do alone; the engine trains all cohorts of a slot in one batch.

    Args:
        environment: Where to play.
        texts: Specifications, all different.
        slots: T.
        trials: How many each; within one all have the same training seeds.
        seed: Seed of the runs.
        first_trial: The number of the first trial.
        progress: Called with the number of each finished slot.
    """
    numbers = range(first_trial, first_trial + trials)
    plans = [_make_plan(environment.world, spec, slots, numbers.stop, seed) for spec in specify_selectors(list(texts))]
    replicas = [
        Replica(text, trial, environment.world, plan.build_selector(plan.selectors[0], environment.world, trial))
        for text, plan in zip(texts, plans, strict=True)
        for trial in numbers
    ]
    frameworks = [plan.framework for plan in plans for _ in range(trials)]
    cohorts = np.empty((len(replicas), slots, environment.world.budget), dtype=np.int64)
    rewards, spent = np.empty((len(replicas), slots)), np.zeros(len(replicas))
    for slot in range(1, slots + 1):
        for place, replica in enumerate(replicas):
            before = time.process_time()
            cohorts[place, slot - 1] = _ask(replica, slot, seed)  # the loop is given the same ask again
            spent[place] += time.process_time() - before
        for framework in sorted(set(frameworks)):
            places = [place for place, of in enumerate(frameworks) if of == framework]
            of_framework = [replicas[place] for place in places]
            records = play_slot(of_framework, slot=slot, framework=framework, seed=seed, engine=environment.engine)
            rewards[places, slot - 1] = [_reward(record) for record in records]
        progress(slot)
    shares = [slice(first, first + trials) for first in range(0, len(replicas), trials)]
    return [
        Elections(plan.framework, cohorts[share], rewards[share], 1000.0 * spent[share] / slots)
        for plan, share in zip(plans, shares, strict=True)
    ]


class Player:
    """Play selectors on one atlas, here or in a worker process.

    Args:
        atlas: The world.
        slots: T.
        trials: How many each; within one all selectors draw the same training seeds.
        seed: Seed of the runs: selectors and drawn training seeds.
        first_trial: The number of the first trial.
    """

    def __init__(self, atlas: Atlas, *, slots: int, trials: int, seed: int, first_trial: int = 0) -> None:
        self._atlas, self._slots, self._trials, self._seed = atlas, slots, trials, seed
        self._first_trial = first_trial

    def elections(self, text: str) -> Elections:
        """Return the elections of the selector of that specification."""
        environment = Environment(self._atlas.world, AtlasEngine(self._atlas))
        (elections,) = play_together(
            environment,
            [text],
            slots=self._slots,
            trials=self._trials,
            seed=self._seed,
            first_trial=self._first_trial,
        )
        return elections


def _make_plan(world: Scenario, spec: SelectorSpec, slots: int, trials: int, seed: int) -> Plan:
    """Make the plan: FL&FA if the selector finds what it needs there, else FL&DA."""

    def plan(framework: FrameworkName) -> Plan:
        return Plan(config=world.config, framework=framework, selectors=(spec,), slots=slots, trials=trials, seed=seed)

    try:
        plan("fa").build_selector(spec, world, 0)
    except ConfigurationError:
        return plan("da")  # where what is wrong otherwise is told
    return plan("fa")


def _ask(replica: Replica, slot: int, seed: int) -> tuple[int, ...]:
    """Ask the selector. Errors are raised as in the loop; a slot without an election is an error here."""
    try:
        return replica.selector.ask(replica.memory.find_present(slot, seed=seed).usable).cohort
    except (NoElection, AvailabilityError) as error:
        raise ConfigurationError(
            f"selector {replica.label!r} holds no election in some slots ({error}); it cannot be ranked"
        ) from error
    except FedelectError:
        raise
    except Exception as error:  # whatever a user's selector raises
        raise selector_failed(replica, error) from error


def _reward(record: SlotRecord) -> float:
    """Mean of the opinions given, also where the selector could not learn from them; nan if there are none."""
    mean = mean_present(to_array(record.opinions or ()))
    return float("nan") if mean is None else mean
