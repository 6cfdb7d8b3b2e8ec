"""Slow, literal belief propagation: sums over all states, and one message at a time by name."""

import itertools
import math
from collections.abc import Sequence

Edge = tuple[int, int]


def field(opinion: float) -> float:
    if math.isnan(opinion):
        return 0.0
    evidence = min(max(opinion**2, 1e-6), 1 - 1e-6)
    return 0.5 * math.log(evidence / (1 - evidence))


def exact_beliefs(fields: Sequence[float], edges: Sequence[Edge], couplings: Sequence[float]) -> list[float]:
    """P(spin up) of each client, summed over all 2^N states."""
    clients = range(len(fields))
    up, everything = [0.0] * len(fields), 0.0
    for spins in itertools.product((-1, 1), repeat=len(fields)):
        energy = sum(fields[n] * spins[n] for n in clients)
        energy += sum(coupling * spins[i] * spins[j] for (i, j), coupling in zip(edges, couplings, strict=True))
        weight = math.exp(energy)
        everything += weight
        for n in clients:
            up[n] += weight if spins[n] == 1 else 0.0
    return [share / everything for share in up]


def literal_messages(
    fields: Sequence[float], edges: Sequence[Edge], couplings: Sequence[float], *, rounds: int, damping: float
) -> dict[Edge, float]:
    """Messages by (sender, receiver) after `rounds` parallel rounds of eq. `BPrewrite` from 0."""
    coupling = {}
    for (i, j), strength in zip(edges, couplings, strict=True):
        coupling[i, j] = coupling[j, i] = strength
    messages = dict.fromkeys(coupling, 0.0)
    for _ in range(rounds):
        new = {}
        for j, i in coupling:
            others = sum(messages[k, to] for k, to in coupling if to == j and k != i)
            update = math.atanh(math.tanh(coupling[j, i]) * math.tanh(fields[j] + others))
            new[j, i] = damping * messages[j, i] + (1 - damping) * update
        messages = new
    return messages


def literal_beliefs(
    fields: Sequence[float], edges: Sequence[Edge], couplings: Sequence[float], *, rounds: int, damping: float
) -> list[float]:
    messages = literal_messages(fields, edges, couplings, rounds=rounds, damping=damping)
    beliefs = []
    for n in range(len(fields)):
        total = fields[n] + sum(value for (_, to), value in messages.items() if to == n)
        beliefs.append(math.exp(total) / (math.exp(total) + math.exp(-total)))
    return beliefs


def state_messages(
    evidence: Sequence[float], edges: Sequence[Edge], compatibility: Sequence[float], *, rounds: int
) -> list[tuple[float, float]]:
    """The printed equations `message` and `Belief` over neighbours: phi and psi do not depend on the state.

    Messages are normalised over the two states. Returns (belief of 0, belief of 1), normalised, for each client.
    """
    psi = {}
    for (i, j), value in zip(edges, compatibility, strict=True):
        psi[i, j] = psi[j, i] = value
    messages = {(link, state): 0.5 for link in psi for state in (0, 1)}
    for _ in range(rounds):
        new = {}
        for i, n in psi:
            for state in (0, 1):
                new[(i, n), state] = sum(
                    evidence[i] * psi[i, n] * math.prod(messages[(k, to), own] for k, to in psi if to == i and k != n)
                    for own in (0, 1)
                )
            total = new[(i, n), 0] + new[(i, n), 1]
            for state in (0, 1):
                new[(i, n), state] /= total
        messages = new
    beliefs = []
    for n in range(len(evidence)):
        raw = [evidence[n] * math.prod(messages[(k, to), s] for k, to in psi if to == n) for s in (0, 1)]
        beliefs.append((raw[0] / sum(raw), raw[1] / sum(raw)))
    return beliefs
