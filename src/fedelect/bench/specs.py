"""The selectors that are ranked, and their settings.

Every selector had at most 12 settings in the tuning worlds (`benchmarks/selector_report/worlds.py`); `TUNED` holds the
best one where it is not the selector's own default. The design of our own had more attention:
docs/results/selectors.md. A full ranking plays the paper's default beside it, so that both can be seen.
"""

from collections.abc import Sequence

from fedelect.atlas import Atlas, Truth
from fedelect.selectors import selector_classes
from fedelect.vocabulary import Cohort, Signal

REFERENCE = "set-gp"
"""The selector that all others are compared with."""

_AS_IN_THE_PAPER = {
    "quick-init-ucb": ("quick-init-ucb:exploration=1.0", "quick-init-ucb:exploration=0.01"),
    "bp-ucb": ("bp-ucb:exploration=0.01",),
}

TUNED = {
    "quick-init-ucb": "quick-init-ucb:exploration=0.03",
    "bp-ucb": "bp-ucb:exploration=0.3",
    "power-of-choice": "power-of-choice:candidates=5",
    "oort": "oort:penalty=0.0,window=10",
    "tifl": "tifl:tiers=5,credits=200,interval=20",
    "fedcs": "fedcs:candidates=8",
    "rbcs-f": "rbcs-f:patience=100.0,exploration=0.0",
    "context-ucb": "context-ucb:exploration=0.01",
    "client-ucb": "client-ucb:exploration=0.01",
    "client-thompson": "client-thompson:sharpness=30.0",
    "additive-thompson": "additive-thompson:spread=0.1,noise=0.02",
}
"""Selector -> the setting that tuning prefers, the first of its list in benchmarks/results/selector_tuning.json.

Left out are those without a parameter to tune; our own `set-gp`, `loss-gp` and `bp-gp`, whose defaults were chosen in
the tuning worlds; and `subset-ucb`, which hardly ever uses its index there, so that all its settings are equal.
"""

_LOSSES: frozenset[Signal] = frozenset({"loss", "loss_rms"})
_NEVER_KEPT: frozenset[Signal] = frozenset({"updates", "contributions"})  # an atlas holds no models


def default_specs(*, clients: int, budget: int, full: bool = False, losses: bool = True) -> list[str]:
    """The specifications of all selectors that are ranked, in the order of `fedelect selectors`.

    Args:
        clients: N. A number of candidates that tuning prefers is brought between K and N.
        budget: K.
        full: Each with its default and with what tuning prefers; else with the latter alone, but for the paper's own
            selectors, which play as in the paper, too.
        losses: Whether clients report their losses; if not, selectors that need them are left out. Those that need
            updates are left out in any case.
    """
    missing = name_missing_signals(losses=losses)
    texts: list[str] = []
    for name in selector_classes():
        if name == "fixed" or name in missing:
            continue
        default = _AS_IN_THE_PAPER.get(name, (name,))
        texts += default if full or name in _AS_IN_THE_PAPER or name not in TUNED else ()
        texts += [_fit(TUNED[name], clients, budget)] if name in TUNED else []
    return texts


def _fit(text: str, clients: int, budget: int) -> str:
    name, found, candidates = text.partition("candidates=")
    return f"{name}{found}{min(max(int(candidates), budget), clients)}" if found else text


def name_missing_signals(*, losses: bool = False) -> dict[str, str]:
    """Selectors that cannot be played on an atlas -> the signals that they need and it lacks.

    Args:
        losses: Whether the atlas keeps the clients' losses.
    """
    unknown = _NEVER_KEPT | (frozenset() if losses else _LOSSES)
    lacking = {name: sorted(kind.needs & unknown) for name, kind in selector_classes().items()}
    return {name: " and ".join(signals) for name, signals in lacking.items() if signals}


def benchmark_specs(atlas: Atlas, truth: Truth, *, full: bool = False, only: Sequence[str] = ()) -> dict[str, str]:
    """The specifications of all selectors that are ranked on an atlas -> their role, see `Ranked`.

    Two are fixed cohorts for comparison: the first K clients, the best cohort known without an atlas, and the optimum.
    With `only`, just these selectors, the reference and random are beside them.
    """
    config = atlas.config
    losses = atlas.losses is not None
    offered = default_specs(clients=config.clients, budget=config.budget, full=full, losses=losses)
    selectors = [*only, REFERENCE, "random"] if only else offered
    bars = {
        specify_fixed(tuple(range(config.budget))): "first clients",
        specify_fixed(atlas.cohort(truth.best)): "optimum",
    }
    return dict.fromkeys(selectors, "selector") | bars


def specify_fixed(cohort: Cohort) -> str:
    """The specification of the selector that always elects this cohort."""
    return "fixed:cohort=" + ",".join(map(str, cohort)) + ("," if len(cohort) == 1 else "")
