"""Regret as it is kept: curves at some slots beside their bounds, in two worlds."""

import msgspec


class RegretCurve(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One selector's regret and its bound.

    Attributes:
        selector: "Quick-Init UCB" or "BP-UCB".
        exploration: mu.
        theorem: Whose bound it is.
        trials: Monte Carlo trials.
        slots: Where the curve is kept.
        mean: Mean pseudo-regret over trials at these slots.
        half_width: Half of its 95 % interval.
        bound: The theorem's bound there.
        ceiling: T R_max there: a bound at or above it is vacuous.
        violated: The theorem's conditions that this run violates.
    """

    selector: str
    exploration: float
    theorem: str
    trials: int
    slots: list[int]
    mean: list[float]
    half_width: list[float]
    bound: list[float]
    ceiling: list[float]
    violated: list[str]

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing even at the last slot."""
        return self.bound[-1] >= self.ceiling[-1]


class RegretWorld(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One world and the curves in it.

    Attributes:
        name: What it is called.
        clients: N.
        budget: K.
        optimum: Mean opinion of the best cohort.
        smallest_gap: R_min.
        largest_gap: R_max.
        curves: One for each selector and exploration.
    """

    name: str
    clients: int
    budget: int
    optimum: float
    smallest_gap: float
    largest_gap: float
    curves: list[RegretCurve]


class Regret(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Both worlds."""

    worlds: list[RegretWorld]
