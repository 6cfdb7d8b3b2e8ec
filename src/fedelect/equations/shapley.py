"""Shapley values of the members of a cohort, estimated by GTG-Shapley (guided truncation gradient Shapley).

Z. Liu, Y. Chen, H. Yu, Y. Liu, L. Cui, "GTG-Shapley: Efficient and Accurate Participant Contribution Evaluation in
Federated Learning", ACM Trans. Intell. Syst. Technol. 2022. The value of a set of members is the score of the model
that their updates alone would give, so nothing is trained again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from fedelect.vocabulary import Floats

SetValue = Callable[[tuple[int, ...]], float]
"""Value of a set of members 0 .. n-1, sorted; that of the empty set is the value before the round."""

TRUNCATION = 1e-3
"""Difference of values that counts as none, within a round and between rounds."""

TOLERANCE, WINDOW, FEWEST_ORDERS, ORDERS_EACH = 0.05, 10, 30, 50
"""Convergence: the estimates of the last `WINDOW` orders differ from the newest by less than `TOLERANCE`, relative, on
average over the members; looked at after every n orders, from `FEWEST_ORDERS` on. At most `ORDERS_EACH` n are used."""


def guided_orders(members: int, rng: np.random.Generator) -> Iterator[Sequence[int]]:
    """Orders of the members 0 .. n-1 without end, by guided sampling: everyone is first equally often, in turn."""
    while True:
        for first in range(members):
            others = [member for member in range(members) if member != first]
            yield [first, *rng.permutation(others).tolist()]


def gtg_shapley(value: SetValue, members: int, rng: np.random.Generator) -> Floats:
    """(n,) GTG-Shapley estimates for the members 0 .. n-1 of a round; all 0 where the round as a whole gained nothing.

    Args:
        value: Value of a set; called once for each set that is looked at.
        members: n.
        rng: Draws the orders.
    """
    orders = (order for order, _ in zip(guided_orders(members, rng), range(ORDERS_EACH * members), strict=False))
    return truncated_shapley(value, members, orders)


def truncated_shapley(
    value: SetValue,
    members: int,
    orders: Iterable[Sequence[int]],
    *,
    within: float = TRUNCATION,
    between: float = TRUNCATION,
    tolerance: float = TOLERANCE,
) -> Floats:
    """(n,) mean marginal gain of each member over the orders, truncated.

    Between rounds: if all members together gain less than `between`, everyone's estimate is 0 and no set is looked at.
    Within an order: once the set so far is less than `within` away from all members, those that follow gain 0. With
    all three limits 0 and all n! orders it is the Shapley value.

    Args:
        value: Value of a set.
        members: n.
        orders: Permutations of 0 .. n-1; used until the estimates have converged.
        within: Truncation within an order.
        between: Truncation between rounds.
        tolerance: Limit of convergence.
    """
    known: dict[tuple[int, ...], float] = {}

    def look_up(chosen: Iterable[int]) -> float:
        key = tuple(sorted(chosen))
        if key not in known:
            known[key] = value(key)
        return known[key]

    before, after = look_up(()), look_up(range(members))
    if not members or abs(after - before) < between:
        return np.zeros(members)
    total, recent = np.zeros(members), list[Floats]()
    for count, order in enumerate(orders, 1):
        reached = before
        for place, member in enumerate(order, 1):
            if abs(after - reached) < within:
                break
            new = look_up(order[:place])
            total[member] += new - reached
            reached = new
        recent = [*recent, total / count][-WINDOW:]
        if count >= FEWEST_ORDERS and count % members == 0 and _has_converged(recent, tolerance):
            break
    return recent[-1] if recent else total


def _has_converged(estimates: Sequence[Floats], tolerance: float) -> bool:
    """Whether the last estimates (n,) differ little from the newest, on average over the members."""
    newest = estimates[-1]
    errors = [float(np.mean(np.abs(one - newest) / (np.abs(newest) + 1e-12))) for one in estimates]
    return len(estimates) == WINDOW and max(errors) < tolerance
