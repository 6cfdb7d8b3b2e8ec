"""The selector to use where nothing speaks for another one."""

from collections.abc import Collection
from typing import Literal

from fedelect.errors import ConfigurationError
from fedelect.selectors.base import AbstractSelector
from fedelect.selectors.baselines import ShuffledCycle
from fedelect.selectors.gaussian_process import BpGp, LossGp, SetGp
from fedelect.selectors.quick_init_ucb import QuickInitUcb
from fedelect.selectors.sound_cycle import SoundCycle
from fedelect.vocabulary import Signal

SET_GP_CLIENTS = 60
"""Most clients for which a Gaussian process over cohorts is recommended: ahead of Quick-Init UCB at 60, not at 100."""


def recommended(
    *,
    clients: int,
    budget: int,
    seed: int,
    framework: Literal["fa", "da"] = "fa",
    start: Literal["cold", "warm"] = "warm",
    signals: Collection[Signal] = ("opinions",),
) -> AbstractSelector:
    """Build the recommended selector for a setting.

    In a warm start all clients take turns, but for those that look flawed (`SoundCycle`, which uses losses and updates
    where they come). Without the clients' opinions, and under FL&DA, where nobody gathers them, all take turns
    (`ShuffledCycle`). In a cold start the averages tell cohorts apart: a Gaussian process over cohorts for few clients,
    Quick-Init UCB for many; under FL&DA its democratized form.

    >>> type(recommended(clients=100, budget=10, seed=1)).__name__
    'SoundCycle'

    Args:
        clients: N.
        budget: K.
        seed: The selector's seed.
        framework: "fa" (the average opinion reaches the server) or "da" (it does not).
        start: "cold" (each slot trains from the initial model) or "warm" (from the last slot's).
        signals: Signals that the driver will supply.
    """
    if framework not in ("fa", "da") or start not in ("cold", "warm"):
        raise ConfigurationError(
            f'framework must be "fa" or "da" and start "cold" or "warm", got {framework!r} and {start!r}'
        )
    if start == "warm":
        judged = framework == "fa" and "opinions" in signals
        return (SoundCycle if judged else ShuffledCycle)(clients=clients, budget=budget, seed=seed)
    if framework == "da":
        return BpGp(clients=clients, budget=budget, seed=seed)
    if clients > SET_GP_CLIENTS:
        return QuickInitUcb(clients=clients, budget=budget, seed=seed)
    kind = LossGp if "loss" in signals else SetGp
    return kind(clients=clients, budget=budget, seed=seed)
