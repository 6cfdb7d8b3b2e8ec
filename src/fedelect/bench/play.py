"""One selector on one atlas: who was elected, and what an ask cost. Nothing is written to disk."""

import time
from dataclasses import dataclass

import numpy as np

from fedelect.atlas import Atlas, AtlasEngine
from fedelect.errors import ConfigurationError, NoElection
from fedelect.loop import FrameworkName, Replica, play_slot
from fedelect.processes import Failed, failed
from fedelect.selectors import SelectorSpec
from fedelect.simulator import Plan, parse_selectors
from fedelect.vocabulary import Floats, Ints


@dataclass(frozen=True, eq=False)
class Elections:
    """What a selector did.

    Attributes:
        framework: Where it played: "fa" if it finds there what it needs, else "da".
        cohorts: (trials, T, K) whom it elected.
        ask_ms: (trials,) milliseconds that an ask took, on average over the slots.
    """

    framework: FrameworkName
    cohorts: Ints
    ask_ms: Floats


class Player:
    """Plays selectors on an atlas, here or in a worker process.

    Args:
        atlas: The world.
        slots: T.
        trials: How many trials each.
        seed: Seed of the runs; within a trial all selectors draw the same training seeds.
        first_trial: The number of the first trial.
    """

    def __init__(self, atlas: Atlas, *, slots: int, trials: int, seed: int, first_trial: int = 0) -> None:
        self._atlas, self._slots, self._trials, self._seed = atlas, slots, trials, seed
        self._first_trial = first_trial

    def play(self, text: str) -> Elections | Failed:
        """What the selector of that specification does; or what went wrong."""
        try:
            return self.elections(text)
        except Exception as error:
            return failed(error)

    def elections(self, text: str) -> Elections:
        """What the selector of that specification does; whatever goes wrong is raised."""
        (spec,) = parse_selectors([text])
        atlas = self._atlas
        plan = self._fitting_plan(spec)
        numbers = range(self._first_trial, self._first_trial + self._trials)
        replicas = [Replica(text, trial, atlas.world, plan.build(spec, atlas.world, trial)) for trial in numbers]
        engine = AtlasEngine(atlas)
        cohorts = np.empty((self._trials, self._slots, atlas.config.budget), dtype=np.int64)
        spent = np.zeros(self._trials)
        for slot in range(1, self._slots + 1):
            for trial, replica in enumerate(replicas):
                before = time.perf_counter()
                cohorts[trial, slot - 1] = _asked(replica)  # the loop is given the same ask again
                spent[trial] += time.perf_counter() - before
            play_slot(replicas, slot=slot, framework=plan.framework, seed=self._seed, engine=engine)
        return Elections(plan.framework, cohorts, 1000.0 * spent / self._slots)

    def _fitting_plan(self, spec: SelectorSpec) -> Plan:
        """With a server if the selector finds there what it needs, else without."""
        plan = self._plan(spec, "fa")
        try:
            plan.build(spec, self._atlas.world, 0)
        except ConfigurationError:
            return self._plan(spec, "da")  # where what is wrong otherwise is told
        return plan

    def _plan(self, spec: SelectorSpec, framework: FrameworkName) -> Plan:
        return Plan(
            config=self._atlas.config,
            framework=framework,
            selectors=(spec,),
            slots=self._slots,
            trials=self._first_trial + self._trials,
            seed=self._seed,
        )


def _asked(replica: Replica) -> tuple[int, ...]:
    try:
        return replica.selector.ask().cohort
    except NoElection as error:
        raise ConfigurationError(
            f"selector {replica.label!r} holds no election in some slots ({error}); it cannot be ranked"
        ) from error
