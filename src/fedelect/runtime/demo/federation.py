"""The graph and settings of a scenario as those of real peers."""

from fedelect.analytics.democratized import LinkedClients, couplings_of
from fedelect.protocol import RULES
from fedelect.runtime.roster import Settings
from fedelect.scenario import ScenarioConfig
from fedelect.seeds import derive


def settings_for(
    config: ScenarioConfig,
    *,
    seed: int,
    rule: str = "bp-ucb",
    exploration: float | None = None,
    faults: int = 0,
    lying: bool = False,
    slot_s: float = 60.0,
    resend_s: float = 0.5,
    patience: int = 8,
) -> Settings:
    """How the clients of a scenario elect, the same as the simulator's `peers` in trial 0 of a run with this seed."""
    beliefs = config.beliefs
    return Settings(
        budget=config.budget,
        rule=rule,
        exploration=RULES.get(rule) if exploration is None else exploration,
        seed=derive(seed, "selection", 0),
        reading=beliefs.reading,
        rounds=beliefs.rounds,
        damping=beliefs.damping,
        faults=faults,
        lying=lying,
        resend_s=resend_s,
        patience=patience,
        slot_s=slot_s,
    )


def couplings_for(linked: LinkedClients) -> tuple[tuple[tuple[int, int], ...], tuple[float, ...]]:
    """The scenario's links, and J of each."""
    edges = tuple((int(one), int(other)) for one, other in linked.edges)
    return edges, tuple(couplings_of(linked).tolist())
