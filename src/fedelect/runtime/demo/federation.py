"""The graph and settings of a scenario as those of real peers."""

from dataclasses import replace
from typing import Any

from fedelect.analytics import LinkedClients, link_couplings
from fedelect.protocol import ElectionSettings
from fedelect.scenario import ScenarioConfig
from fedelect.seeds import derive


def settings_for(config: ScenarioConfig, *, seed: int, rule: str = "bp-ucb", **settings: Any) -> ElectionSettings:
    """How the clients of a scenario elect, the same as the simulator's `peers` in trial 0 of a run with this seed.

    `settings` may hold any other attribute of `ElectionSettings`. The exploration is written out, so that a roster
    does not depend on the default of a version.
    """
    chosen = ElectionSettings.for_scenario(config, seed=derive(seed, "selection", 0), rule=rule, **settings)
    return replace(chosen, exploration=chosen.exploration_weight)


def couplings_for(linked: LinkedClients) -> tuple[tuple[tuple[int, int], ...], tuple[float, ...]]:
    """The scenario's links, and J of each."""
    edges = tuple((int(one), int(other)) for one, other in linked.edges)
    return edges, tuple(link_couplings(linked).tolist())
