"""Slow, literal forms of the paper's bandit algorithms: every arm is listed and every index computed."""

import itertools
import math
from collections.abc import Iterable
from fractions import Fraction

Arm = tuple[int, ...]


class EnumeratingQuickInit:
    """Algorithm 1 with all C(N, K) arms in a table."""

    def __init__(self, clients: int, budget: int, exploration: float) -> None:
        self.clients, self.budget, self.exploration = clients, budget, exploration
        self.cold: dict[int, list[float]] = {client: [] for client in range(clients)}
        self.played: dict[Arm, list[float]] = {}

    def cold_reward(self, group: Arm, reward: float) -> None:
        for client in group:
            self.cold[client].append(reward)

    def play(self, arm: Arm, reward: float) -> None:
        if arm not in self.played:
            self.played[arm] = [self.initial(arm)]
        self.played[arm].append(reward)

    def initial(self, arm: Arm) -> float:
        scores = [sum(self.cold[client]) / len(self.cold[client]) for client in arm]
        return math.fsum(scores) / self.budget

    def index(self, arm: Arm, slot: int) -> float:
        values = self.played.get(arm) or [self.initial(arm)]
        return sum(values) / len(values) + self.exploration * math.sqrt(math.log(slot) / len(values))

    def best(self, slot: int, available: Iterable[int] | None = None) -> tuple[float, set[Arm]]:
        there = sorted(range(self.clients) if available is None else available)
        indices = {arm: self.index(arm, slot) for arm in itertools.combinations(there, self.budget)}
        highest = max(indices.values())
        return highest, {arm for arm, index in indices.items() if index >= highest - 1e-12}


def bp_ucb_indices(
    opinions: list[list[float | None]],
    cohorts: list[Arm],
    beliefs: list[float | None],
    slot: int,
    exploration: float,
) -> list[float]:
    """Eq. `ucb1` for every client, from the whole history: opinions[t][n] and cohorts[t] of slot t + 1."""
    clients = len(beliefs)
    total = sum(Fraction(b) for b in beliefs if b is not None)
    means: list[float | None] = []
    for client in range(clients):
        given = [
            value
            for told, cohort in zip(opinions, cohorts, strict=True)
            if client in cohort and (value := told[client]) is not None
        ]
        means.append(sum(given) / len(given) if given else None)
    known = [mean for mean in means if mean is not None]
    typical = sum(known) / len(known) if known else 0.0
    indices = []
    for client in range(clients):
        mean, belief = means[client], beliefs[client]
        pulls = sum(client in cohort for cohort in cohorts)
        share = float(Fraction(belief) / total) if belief is not None and total else 0.0
        bonus = exploration * math.sqrt(math.log(slot) / pulls)
        indices.append((typical if mean is None else mean) + share / clients + bonus)
    return indices
