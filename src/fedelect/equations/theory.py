"""What the paper proves, as figures that carry their conditions.

Every function returns the figure together with the conditions under which the paper's proof gives it, in words. A
bound on regret also knows T * R_max, which no run can exceed: a bound at or above it is vacuous, never "kept".
The condition sentences are module constants, so that a report can name those that a run breaks.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fedelect.equations.beliefs import directed_links
from fedelect.errors import ConfigurationError
from fedelect.vocabulary import Floats, check_budget

BOUNDED_REWARDS = "rewards lie in [0, 1]"
STATIONARY_REWARDS = (
    "rewards are stationary: the mean of an arm is the same in every slot (every slot trains from the same initial "
    "model) and slots are independent given the arms"
)
EXPLORATION_IS_ROOT_TWO = (
    "exploration mu with mu^2 = 2: the 8 ln T term needs mu^2 <= 2, the pi^2 / 3 term needs mu^2 >= 2 "
    "(the triple sum of eq. `bound` has t^2 terms in each t, so the printed mu^2 >= 3/2 is not enough)"
)
EVERY_ARM_PLAYED_ONCE = (
    "every arm is played once before indices are compared (the proof borrows the analysis of plain UCB; the "
    "quick initialisation scores most arms without playing them)"
)
GAPS_ARE_TRUE = "the gaps R_min and R_max are those of the true means, over all arms that are not optimal"
REWARDS_IGNORE_COHORT = (
    "a client's reward does not depend on who else is in the cohort (the number of times a cohort is played is "
    "bounded by the pulls of one member, and each member concentrates around one mean)"
)
BELIEFS_SETTLED = "belief propagation converges in every slot (Theorem 2 or Corollary 1)"
BELIEFS_ONLY_HELP = "adding belief / N to the index does not weaken the concentration of the means"

_PARALLEL = "messages are updated in parallel by eq. `BPrewrite` over neighbours, with finite fields"
_SUFFICIENT = "sufficient, not necessary: belief propagation may settle where this does not hold"
_PATH_LOSS = "couplings are J = -C d^beta; d_max is the greatest distance between any two clients, linked or not"
_SCALE_IS_ONE = "C is at most 1, for the printed condition leaves C out"


@dataclass(frozen=True, slots=True)
class RegretBound:
    """An upper bound on cumulative regret.

    Attributes:
        theorem: Which theorem of the paper.
        value: The bound; infinite where it exceeds all floats.
        ceiling: T * R_max, the most that T slots can lose.
        conditions: What the proof assumes, in words.
    """

    theorem: str
    value: float
    ceiling: float
    conditions: tuple[str, ...]

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing: it is at least T * R_max."""
        return self.value >= self.ceiling


def quick_init_regret_bound(
    *, clients: int, budget: int, slots: int, smallest_gap: float, largest_gap: float
) -> RegretBound:
    """Theorem 1 (`Theorem00`): Reg(T) <= 8 |A| ln T / R_min + (pi^2 / 3 + 1) |A| R_max, |A| = C(N, K).

    Args:
        clients: N.
        budget: K.
        slots: T.
        smallest_gap: R_min, eq. `best0`: optimum minus the best arm that is not optimal.
        largest_gap: R_max, eq. `worst0`: optimum minus the worst arm.
    """
    check_budget(clients, budget)
    _check_gaps(slots, smallest_gap, largest_gap)
    per_arm = 8.0 * math.log(slots) / smallest_gap + (math.pi**2 / 3.0 + 1.0) * largest_gap
    return RegretBound(
        "Theorem 1",
        _as_float(math.comb(clients, budget)) * per_arm,
        slots * largest_gap,
        (BOUNDED_REWARDS, STATIONARY_REWARDS, EXPLORATION_IS_ROOT_TWO, EVERY_ARM_PLAYED_ONCE, GAPS_ARE_TRUE),
    )


def bp_ucb_regret_bound(*, clients: int, slots: int, smallest_gap: float, largest_gap: float) -> RegretBound:
    """Theorem 3 (`Theorem02`): Reg(T) <= 8 N R_max ln T / R_min^2 + (pi^2 / 3 + 1) N R_max.

    Args:
        clients: N.
        slots: T.
        smallest_gap: R_min, the least over clients of eq. `best`.
        largest_gap: R_max, the greatest over clients of eq. `worst`.
    """
    check_budget(clients, 1)
    _check_gaps(slots, smallest_gap, largest_gap)
    pulls = 8.0 * math.log(slots) / smallest_gap / smallest_gap + math.pi**2 / 3.0 + 1.0
    return RegretBound(
        "Theorem 3",
        clients * largest_gap * pulls,
        slots * largest_gap,
        (
            BOUNDED_REWARDS,
            STATIONARY_REWARDS,
            REWARDS_IGNORE_COHORT,
            EXPLORATION_IS_ROOT_TWO,
            GAPS_ARE_TRUE,
            BELIEFS_SETTLED,
            BELIEFS_ONLY_HELP,
        ),
    )


def _check_gaps(slots: int, smallest_gap: float, largest_gap: float) -> None:
    if slots < 1:
        raise ConfigurationError(f"slots must be at least 1, got {slots}")
    if not 0.0 < smallest_gap <= largest_gap < math.inf:
        raise ConfigurationError(
            f"gaps must satisfy 0 < smallest <= largest < infinity, got smallest {smallest_gap!r} and largest "
            f"{largest_gap!r}; if all arms are equally good there is no regret to bound"
        )


def _as_float(count: int) -> float:
    try:
        return float(count)
    except OverflowError:
        return math.inf


@dataclass(frozen=True, slots=True)
class ConvergenceCondition:
    """A sufficient condition for belief propagation to converge from any start: figure < 1.

    Attributes:
        name: Which statement of the paper.
        figure: The left-hand side.
        conditions: What else the proof assumes, in words.
    """

    name: str
    figure: float
    conditions: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether the figure is strictly below 1."""
        return self.figure < 1.0


@dataclass(frozen=True, slots=True)
class Convergence:
    """What the paper can say about convergence on one graph.

    Attributes:
        corollary: Corollary 1, with the exact max-sum over the couplings.
        theorem: Theorem 2 with the constant C that the proof drops; None unless the coupling is the paper's.
        theorem_as_printed: Theorem 2 as printed, without C; None unless the coupling is the paper's.
    """

    corollary: ConvergenceCondition
    theorem: ConvergenceCondition | None
    theorem_as_printed: ConvergenceCondition | None


def convergence(
    edges: ArrayLike,
    couplings: Floats,
    *,
    clients: int,
    positions_km: Floats | None = None,
    scale: float | None = None,
    exponent: float | None = None,
) -> Convergence:
    """Corollary 1 (`cor-1`) for any couplings, and Theorem 2 (`Theorem03`) for the paper's.

    Args:
        edges: (M, 2) undirected links.
        couplings: (M,) J of each link.
        clients: N.
        positions_km: (N, 2) where the clients are; with `scale` and `exponent`, asks for Theorem 2 as well.
        scale: C of J = -C d^beta.
        exponent: beta.
    """
    corollary = ConvergenceCondition(
        "Corollary 1", _largest_cavity_sum(edges, couplings, clients), (_PARALLEL, _SUFFICIENT)
    )
    if positions_km is None or scale is None or exponent is None:
        return Convergence(corollary, None, None)
    reach = largest_distance_km(positions_km) ** exponent
    return Convergence(
        corollary,
        ConvergenceCondition(
            "Theorem 2 with C", (clients - 1) * math.tanh(abs(scale * reach)), (_PARALLEL, _PATH_LOSS, _SUFFICIENT)
        ),
        ConvergenceCondition(
            "Theorem 2 as printed",
            (clients - 1) * math.tanh(reach),
            (_PARALLEL, _PATH_LOSS, _SCALE_IS_ONE, _SUFFICIENT),
        ),
    )


def _largest_cavity_sum(edges: ArrayLike, couplings: Floats, clients: int) -> float:
    # max over l, over neighbours k of l, of the sum of tanh|J_il| over the other neighbours i:
    # for each l that is the whole sum less its smallest term.
    links = directed_links(edges, clients)
    strength = np.tanh(np.abs(np.asarray(couplings, dtype=np.float64)))
    if strength.shape != (links.links.size // 2,):
        raise ConfigurationError(f"couplings has shape {strength.shape} but there are {links.links.size // 2} edges")
    shares = strength[links.links]
    totals = np.bincount(links.targets, weights=shares, minlength=clients)
    smallest = np.full(clients, np.inf)
    np.minimum.at(smallest, links.targets, shares)
    linked = np.isfinite(smallest)
    return float((totals[linked] - smallest[linked]).max(initial=0.0))


def largest_distance_km(positions_km: Floats) -> float:
    """Greatest distance between two of the (N, 2) positions, in km; 0.0 for one client.

    Only corners of the convex hull can be farthest apart, so this stays fast for 10^5 clients.
    """
    points = np.asarray(positions_km, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or not len(points) or not np.isfinite(points).all():
        raise ConfigurationError(f"positions_km must be finite and of shape (N, 2) with N >= 1, got {points.shape}")
    ordered = [(x, y) for x, y in np.unique(points, axis=0).tolist()]
    corners = np.array(_half_hull(ordered) + _half_hull(ordered[::-1]))
    return max(float(np.hypot(*(corners - corner).T).max()) for corner in corners)


def _half_hull(ordered: list[tuple[float, float]]) -> list[tuple[float, float]]:
    hull: list[tuple[float, float]] = []
    for x, y in ordered:
        while len(hull) > 1:
            (ax, ay), (bx, by) = hull[-2:]
            if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0.0:
                break
            hull.pop()
        hull.append((x, y))
    return hull


@dataclass(frozen=True, slots=True)
class Complexity:
    """The paper's count of operations over a whole run (the O-constants taken as 1).

    Attributes:
        operations: The full formula.
        simplified: Its shorter form.
        conditions: What the count assumes, in words.
    """

    operations: int
    simplified: int
    conditions: tuple[str, ...]


_SIMPLIFIED = "the simplified form assumes equal training and test sizes and leaves out all but two terms"


def quick_init_complexity(
    *, clients: int, budget: int, slots: int, batch: int, epochs: int, samples: int
) -> Complexity:
    """Sec. IV-B: T|A| + T|A|^2 + T K B E + N D T, about T|A|^2 + N D T, with |A| = C(N, K).

    Args:
        clients: N.
        budget: K.
        slots: T.
        batch: B.
        epochs: E.
        samples: D, data size.
    """
    check_budget(clients, budget)
    arms, evaluation = math.comb(clients, budget), clients * samples * slots
    return Complexity(
        slots * arms + slots * arms**2 + slots * budget * batch * epochs + evaluation,
        slots * arms**2 + evaluation,
        ("all C(N, K) arms are held and sorted in every slot, at |A|^2 for a sort", _SIMPLIFIED),
    )


def bp_ucb_complexity(*, clients: int, budget: int, slots: int, batch: int, epochs: int, samples: int) -> Complexity:
    """Sec. V-B: T N^3 + T N^2 + N D T + 2 N T + T K B E, about N^3 T + N D T; arguments as in Sec. IV-B."""
    check_budget(clients, budget)
    evaluation = clients * samples * slots
    return Complexity(
        slots * clients**3 + slots * clients**2 + evaluation + 2 * clients * slots + slots * budget * batch * epochs,
        slots * clients**3 + evaluation,
        (
            "each of the N clients sorts all N indices, at N^2 for a sort",
            "gossip costs N^2 and belief propagation N a slot, as if links and rounds were constant",
            _SIMPLIFIED,
        ),
    )
