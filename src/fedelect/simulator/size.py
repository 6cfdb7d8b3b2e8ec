"""Refuse a simulation that is out of all proportion, before anything is built."""

from fedelect._machine import as_float, refuse_too_large
from fedelect.scenario import Dataset
from fedelect.scenario.size import estimate_training_s, estimate_world_bytes, estimate_world_s
from fedelect.simulator.plan import Plan, TrainingSource

_RECORD_BYTES = 100
"""What the writer remembers of a record on disk."""

_SLOT_S = 5e-5
"""A slot of one replica beside its training."""

_MESSAGE_S = 1e-9


def check_size(plan: Plan, source: TrainingSource, *, processes: int) -> None:
    """Estimate memory and work of a simulation from below, and refuse what no machine of this kind finishes.

    Raises:
        ConfigurationError: See `fedelect._machine.refuse_too_large`.
    """
    config = plan.config
    clients, trials, slots = (as_float(number) for number in (config.clients, plan.trials, plan.slots))
    replicas = len(plan.selectors) * trials
    draws = as_float(plan.draw(plan.trials - 1) + 1)
    memory = replicas * (slots * _RECORD_BYTES + clients * 8.0)
    seconds = replicas * slots * _SLOT_S
    if isinstance(source, Dataset):
        memory += min(as_float(processes), trials) * estimate_world_bytes(config, source)
        seconds += draws * estimate_world_s(config) + replicas * slots * estimate_training_s(config, source)
    if plan.framework == "da":
        seconds += replicas * slots * as_float(config.beliefs.rounds) * clients * _MESSAGE_S
    refuse_too_large(
        f"this simulation ({config.clients:,} clients, {plan.slots:,} slots, {plan.trials:,} trials, "
        f"{len(plan.selectors)} selectors, {config.rounds_per_slot:,} rounds of {config.model.epochs:,} epochs)",
        memory=memory,
        seconds=seconds,
    )
