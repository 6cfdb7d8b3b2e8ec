"""The paper's bounds and conditions, written out with loops."""

import itertools
import math
from collections.abc import Sequence


def theorem_1(clients: int, budget: int, slots: int, smallest: float, largest: float) -> float:
    arms = sum(1 for _ in itertools.combinations(range(clients), budget))
    return 8 * arms * math.log(slots) / smallest + (math.pi**2 / 3 + 1) * arms * largest


def theorem_3(clients: int, slots: int, smallest: float, largest: float) -> float:
    return 8 * clients * largest * math.log(slots) / smallest**2 + (math.pi**2 / 3 + 1) * clients * largest


def corollary_1(edges: Sequence[tuple[int, int]], couplings: Sequence[float], clients: int) -> float:
    strength: dict[tuple[int, int], float] = {}
    for (i, j), coupling in zip(edges, couplings, strict=True):
        strength[i, j] = strength[j, i] = math.tanh(abs(coupling))
    largest = 0.0
    for centre in range(clients):
        neighbours = [i for i in range(clients) if (i, centre) in strength]
        for left_out in neighbours:
            largest = max(largest, sum(strength[i, centre] for i in neighbours if i != left_out))
    return largest


def theorem_2(positions: Sequence[tuple[float, float]], scale: float, exponent: float) -> float:
    longest = max(math.dist(one, other) for one in positions for other in positions)
    return (len(positions) - 1) * math.tanh(abs(scale * longest**exponent))
