"""What is to be simulated: a scenario, a framework, the selectors, and how long and how often.

And over what: a data set, whose shares are trained on, or an atlas, in which all has been trained.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from fedelect.analytics import Opinion, accuracy, load_opinion
from fedelect.atlas import Atlas, AtlasEngine
from fedelect.errors import ConfigurationError
from fedelect.federation import DEFAULT_ENGINE, Engine, make_engine
from fedelect.loop import FrameworkName, check_fits
from fedelect.protocol.configuration import MEMORY
from fedelect.scenario import Dataset, Scenario, ScenarioConfig, build_scenario
from fedelect.seeds import derive
from fedelect.selectors import AbstractSelector, SelectorSpec
from fedelect.simulator.network import LinkConditions
from fedelect.simulator.peer_election import PeerElection

PEERS = "peers"
"""Selector name under which BP-UCB or BP-GP is elected by simulated peers, message by message."""

TrainingSource = Dataset | Atlas
"""What worlds are made from; its `digest` is part of a run's identity."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A simulation to run.

    Attributes:
        config: The world.
        framework: "fa" or "da".
        selectors: The competitors, with different texts.
        slots: T.
        trials: How many Monte Carlo trials; within one all selectors share batch orders and upload luck.
        seed: The run's seed.
    """

    config: ScenarioConfig
    framework: FrameworkName
    selectors: tuple[SelectorSpec, ...]
    slots: int
    trials: int
    seed: int

    def __post_init__(self) -> None:
        if not self.selectors:
            raise ConfigurationError("no selector is named; give at least one, for example --selector random")
        texts = [spec.text for spec in self.selectors]
        repeated = sorted({text for text in texts if texts.count(text) > 1})
        if repeated:
            raise ConfigurationError(f"selector {repeated[0]!r} is named twice; name each once")
        for name, value in (("slots", self.slots), ("trials", self.trials)):
            if value < 1:
                raise ConfigurationError(f"{name} must be at least 1, got {value}")

    def build(self, spec: SelectorSpec, scenario: Scenario, trial: int) -> AbstractSelector:
        """The selector that `spec` names, for one trial in one world."""
        seed = derive(self.seed, "selection", trial)
        extras: dict[str, Any] = {"scenario": scenario} if spec.make is elected_by_peers else {}
        selector = spec.build(clients=scenario.clients, budget=scenario.budget, seed=seed, **extras)
        check_fits(selector, self.framework, spec.text)
        return selector

    def draw(self, trial: int) -> int:
        """Which draw of the world a trial lives in; trials share one unless the scenario redraws it."""
        return trial // (self.config.redraw_every or self.trials)

    @property
    def can_travel(self) -> bool:
        """Whether another process can make the same selectors, opinions and models from their texts."""
        named = (self.config.opinion, self.config.model.kind, self.config.model.loss)
        if any(name.startswith("__main__:") for name in named):
            return False
        try:
            remade = parse_selectors([spec.text for spec in self.selectors])
        except ConfigurationError:
            return False
        return all(
            spec.make is other.make and spec.parameters == other.parameters and spec.make.__module__ != "__main__"
            for spec, other in zip(self.selectors, remade, strict=True)
        )


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


def parse_selectors(texts: Sequence[str]) -> tuple[SelectorSpec, ...]:
    """Selector specifications from their texts; see `fedelect.selectors.SelectorSpec.parse`."""
    return tuple(SelectorSpec.parse(text, extra={PEERS: elected_by_peers}) for text in texts)


def plain(config: ScenarioConfig) -> dict[str, Any]:
    """The configuration as plain values, for the record."""
    return cast("dict[str, Any]", msgspec.to_builtins(config))


def build_world(config: ScenarioConfig, ground: TrainingSource, *, draw: int = 0) -> Scenario:
    """The world that `config` describes over a data set, or the atlas' own.

    Raises:
        ConfigurationError: The atlas is of another scenario.
    """
    if isinstance(ground, Dataset):
        return build_scenario(config, ground, draw=draw)
    if config != ground.config:
        raise ConfigurationError(_another_scenario(config, ground.config))
    return ground.world


def _another_scenario(asked: ScenarioConfig, built: ScenarioConfig) -> str:
    ours, theirs = plain(asked), plain(built)
    changed = ", ".join(key for key in ours if ours[key] != theirs[key])
    return (
        f"the atlas was built for the scenario {built.name!r}, not for {asked.name!r}, which is asked for ({changed} "
        f"differ); give the atlas of that scenario, for example with --atlas, or leave the atlas out"
    )


def engine_for(name: str, config: ScenarioConfig, ground: TrainingSource) -> Engine:
    """The engine called `name`; over an atlas the one that looks things up there.

    Raises:
        ConfigurationError: There is no such engine, or an atlas is to be trained again.
    """
    if isinstance(ground, Dataset):
        return make_engine(name, config)
    if name not in (DEFAULT_ENGINE, AtlasEngine.name):
        raise ConfigurationError(f"engine: got {name!r}; an atlas has been trained already, leave the engine out")
    return AtlasEngine(ground)


def opinion_for(config: ScenarioConfig, ground: TrainingSource) -> Opinion:
    """How clients score a model; over an atlas, which knows their opinions, nobody is asked."""
    return load_opinion(config.opinion) if isinstance(ground, Dataset) else accuracy
