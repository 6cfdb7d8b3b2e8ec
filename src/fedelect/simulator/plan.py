"""The plan of a simulation: scenario, framework, selectors, slots, trials, seed and engine.

A plan is a value: worker processes and Ray actors get it as it is, selectors included. It is played over a training
source: a data set to train on, or an atlas of stored results.
"""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec
import numpy as np
from msgspec import UNSET

from fedelect.analytics import OpinionFunction, accuracy, load_opinion
from fedelect.atlas import Atlas, AtlasEngine
from fedelect.errors import ConfigurationError
from fedelect.federation import DEFAULT_ENGINE, Engine, make_engine
from fedelect.loop import FrameworkName, check_fits
from fedelect.protocol.configuration import MEMORY
from fedelect.records import ORACLE
from fedelect.scenario import Dataset, Scenario, ScenarioConfig, build_scenario, most_available
from fedelect.seeds import derive
from fedelect.selectors import AbstractSelector, Make, RandomAmong, SelectorSpec, recommended
from fedelect.simulator.network import LinkConditions
from fedelect.simulator.peer_election import PeerElection
from fedelect.vocabulary import as_int

PEERS = "peers"
"""Selector name under which BP-UCB or BP-GP is elected by simulated peers, message by message."""

TrainingSource = Dataset | Atlas
"""Source of training results: a data set to train on, or an atlas of stored results. Its `digest` is part of a run's
identity."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A simulation to run.

    Attributes:
        config: The scenario.
        framework: "fa" or "da".
        selectors: The selectors to compare, with different labels.
        slots: T, slots in each trial.
        trials: Monte Carlo trials; within one all selectors share batch orders and upload luck.
        seed: The run's seed.
        engine: Name of the engine that trains.
    """

    config: ScenarioConfig
    framework: FrameworkName
    selectors: tuple[SelectorSpec, ...]
    slots: int
    trials: int
    seed: int
    engine: str = DEFAULT_ENGINE

    def __post_init__(self) -> None:
        if not self.selectors:
            raise ConfigurationError("no selector is named; give at least one, for example random")
        texts = [spec.text for spec in self.selectors]
        repeated = sorted({text for text in texts if texts.count(text) > 1})
        if repeated:
            raise ConfigurationError(f"selector {repeated[0]!r} is named twice; name each once")
        for name in ("slots", "trials", "seed"):
            object.__setattr__(self, name, as_int(name, getattr(self, name)))
        for name, value in (("slots", self.slots), ("trials", self.trials)):
            if value < 1:
                raise ConfigurationError(f"{name} must be at least 1, got {value}")
        most = most_available(self.config.availability, self.config.clients, slots=self.slots)
        if most < self.config.budget:
            raise ConfigurationError(
                f"availability: at most {most} of the {self.config.clients} clients are ever there in {self.slots} "
                f"slots, but a cohort takes {self.config.budget}; let more be there, or lower `budget`"
            )

    def build_selector(self, spec: SelectorSpec, scenario: Scenario, trial: int) -> AbstractSelector:
        """Build the selector of `spec` for one trial in one world."""
        seed = derive(self.seed, "selection", trial)
        extras: dict[str, Any] = {}
        if spec.make is recommended:
            extras = {"framework": self.framework, "start": scenario.config.start}
        elif spec.make in _WITH_SCENARIO.values():
            extras = {"scenario": scenario}
        selector = spec.build(clients=scenario.clients, budget=scenario.budget, seed=seed, **extras)
        check_fits(selector, self.framework, spec.text, validated=scenario.config.validation is not UNSET)
        return selector

    def draw(self, trial: int) -> int:
        """Return which draw of the world a trial lives in; trials share one unless the scenario redraws it."""
        return trial // (self.config.redraw_every or self.trials)

    @property
    def bound_to_this_process(self) -> str | None:
        """Name of a selector, opinion or model that other processes cannot import; None if they can import all."""
        for name in (self.config.opinion, self.config.model.kind, self.config.model.loss):
            if name.startswith("__main__:"):
                return name
        return next((spec.text for spec in self.selectors if not spec.importable), None)


def elected_by_peers(
    *,
    scenario: Scenario,
    seed: int,
    rule: str = "bp-ucb",
    exploration: float | None = None,
    forgetting: float = 1.0,
    memory: int = MEMORY,
    loss: float = 0.0,
    repetition: float = 0.0,
    longest_delay_s: float = 0.05,
    max_faulty: int = 0,
    byzantine: bool = False,
    slot_s: float = 60.0,
) -> PeerElection:
    """BP-UCB or BP-GP elected by simulated peers along the scenario's graph, message by message.

    Args:
        scenario: Graph and belief settings.
        seed: Fixes cold-start groups, ties and the luck of the links.
        rule: "bp-ucb" or "bp-gp".
        exploration: As the rule has it; None for its own.
        forgetting: As in `BpGp`; for that rule only.
        memory: The same.
        loss: Probability that a message is lost.
        repetition: Probability that a message arrives twice.
        longest_delay_s: Longest delay of a message in virtual seconds; the shortest is a fifth of it.
        max_faulty: Peers that may fail in a slot; the graph must stay connected without them.
        byzantine: Whether those may send anything, or only crash: with it, a certificate takes more signatures.
        slot_s: Virtual seconds after which the peers give a slot up.
    """
    conditions = LinkConditions(
        shortest_delay_s=longest_delay_s / 5, longest_delay_s=longest_delay_s, loss=loss, repetition=repetition
    )
    return PeerElection.from_scenario(
        scenario,
        rule=rule,
        exploration=exploration,
        forgetting=forgetting,
        memory=memory,
        seed=seed,
        max_faulty=max_faulty,
        byzantine=byzantine,
        slot_s=slot_s,
        conditions=conditions,
    )


def random_unflawed(*, scenario: Scenario, seed: int) -> RandomAmong:
    """The oracle: random cohorts of the unflawed clients, whom no selector can know.

    Where fewer than K of them are available, flawed ones fill the cohort up. Where nobody is flawed it is `random`,
    cohort by cohort. Clients whose honest data is hard are not flawed.
    """
    unflawed = np.flatnonzero(~scenario.flawed).tolist()
    return RandomAmong(clients=scenario.clients, budget=scenario.budget, seed=seed, among=unflawed)


_WITH_SCENARIO: dict[str, Make] = {PEERS: elected_by_peers, ORACLE: random_unflawed}
"""Selectors that are made with the scenario, by name. They are the simulator's own: no user's selector may see it."""


def specify_selectors(selectors: Sequence[str | Make] | str | Make) -> tuple[SelectorSpec, ...]:
    """Make selector specifications from names, classes or functions; see `fedelect.selectors.SelectorSpec.of`.

    Functions and classes that have one bare name, such as two lambdas, are numbered.
    """
    if isinstance(selectors, str) or callable(selectors):
        selectors = [selectors]
    specs = [SelectorSpec.of(one, extra=_WITH_SCENARIO) for one in selectors]
    seen: Counter[str] = Counter()
    for index, (given, spec) in enumerate(zip(selectors, specs, strict=True)):
        seen[spec.text] += 1
        if not isinstance(given, str) and not spec.importable and seen[spec.text] > 1:
            specs[index] = dataclasses.replace(spec, text=f"{spec.text}-{seen[spec.text]}")
    return tuple(specs)


def as_plain(config: ScenarioConfig) -> dict[str, Any]:
    """Return the configuration as plain values, for the record."""
    return cast("dict[str, Any]", msgspec.to_builtins(config))


def build_world(config: ScenarioConfig, source: TrainingSource, *, draw: int = 0) -> Scenario:
    """Build the world of `config` over a data set, or return the atlas' own.

    Raises:
        ConfigurationError: The atlas is of another scenario.
    """
    if isinstance(source, Dataset):
        return build_scenario(config, source, draw=draw)
    if config != source.config:
        raise ConfigurationError(_another_scenario(config, source.config))
    return source.world


def _another_scenario(asked: ScenarioConfig, built: ScenarioConfig) -> str:
    ours, theirs = as_plain(asked), as_plain(built)
    changed = ", ".join(key for key in ours if ours[key] != theirs[key])
    return (
        f"the atlas was built for the scenario {built.name!r}, not for {asked.name!r}, which is asked for ({changed} "
        f"differ); give the atlas of that scenario, or the scenario in place of the atlas"
    )


def make_engine_for(name: str, config: ScenarioConfig, source: TrainingSource) -> Engine:
    """Make the engine called `name`; over an atlas, the one that looks results up.

    Raises:
        ConfigurationError: There is no such engine, or an atlas is to be trained again.
    """
    if isinstance(source, Dataset):
        return make_engine(name, config)
    if name not in (DEFAULT_ENGINE, AtlasEngine.name):
        raise ConfigurationError(f"engine: got {name!r}; an atlas has been trained already, leave the engine out")
    return AtlasEngine(source)


def load_opinion_for(config: ScenarioConfig, source: TrainingSource) -> OpinionFunction:
    """Return how clients score a model; an atlas knows their opinions."""
    return load_opinion(config.opinion) if isinstance(source, Dataset) else accuracy
