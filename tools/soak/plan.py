"""What a soak does, drawn from its seed: episode by episode, before any of it begins."""

from dataclasses import dataclass

import numpy as np

from fedelect.seeds import derive, stream
from fedelect.testing.chaos import ChaosPlan

KINDS = ("kill", "stop", "disk", "strangers", "partition", "blackout", "loss", "byzantine")
"""Faults: SIGKILL; SIGSTOP; no room for another byte on disk; strangers at every port; some peers cut off from the
others; no packet passes for a moment; packets lost at random; a member that alters what it sends."""

NETWORK_KINDS = frozenset(("partition", "blackout", "loss"))
"""Those that need network namespaces."""

_DRAWN = ("kill", "kill", "stop", "disk", "strangers", "partition", "blackout", "loss")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        kind: One of `KINDS`, but for "byzantine".
        slot: The slot in which it begins.
        after_s: Seconds from the beginning of that slot.
        clients: The peers that it is done to.
        slots: Number of slots until it is mended; 1 means at the end of its own.
        strength: Strangers a second and peer, or share of packets lost; 0 for other kinds.
    """

    kind: str
    slot: int
    after_s: float
    clients: tuple[int, ...]
    slots: int
    strength: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Episode:
    """Elections between real processes, and what is done to them.

    Attributes:
        seed: Of its opinions and its Byzantine peer.
        clients: N.
        budget: K.
        rule: "bp-ucb" or "bp-gp".
        slots: Slots under faults; a few more follow when all is mended.
        byzantine: The Byzantine peer, or None.
        faults: All that is done.
    """

    seed: int
    clients: int
    budget: int
    rule: str
    slots: int
    byzantine: int | None
    faults: tuple[Fault, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Chaos:
    """A batch of simulated runs, see `fedelect chaos`.

    Attributes:
        plan: What they have in common.
        seeds: One run each.
    """

    plan: ChaosPlan
    seeds: tuple[int, ...]


def draw_chaos(seed: int, number: int, runs: int = 25) -> Chaos:
    """Draw the batch of simulated runs that goes before episode `number`."""
    rng = stream(seed, "soak", "chaos", number)
    max_faulty = int(rng.integers(0, 3))
    calm = bool(rng.random() < 0.3)
    plan = ChaosPlan(
        clients=int(rng.integers(max(4, 3 * max_faulty + 1), 11)),
        slots=int(rng.integers(3, 9)),
        max_faulty=max_faulty,
        byzantine=0 if calm else int(rng.integers(0, max_faulty + 1)),
        calm=calm,
        rule=str(rng.choice(["bp-ucb", "bp-gp"])),
    )
    first = int(rng.integers(1 << 30))
    return Chaos(plan=plan, seeds=tuple(range(first, first + runs)))


def draw_episode(seed: int, number: int) -> Episode:
    """Draw episode `number`: of four to seven peers of which one may fail, some more than one at times."""
    rng = stream(seed, "soak", "episode", number)
    clients = int(rng.integers(4, 8))
    slots = int(rng.integers(6, 13))
    byzantine = int(rng.integers(clients)) if rng.random() < 0.3 else None
    harsh = bool(rng.random() < 0.4)
    return Episode(
        seed=derive(seed, "soak", "episode", number),
        clients=clients,
        budget=int(rng.integers(1, max(2, clients - 2))),
        rule=str(rng.choice(["bp-ucb", "bp-gp"])),
        slots=slots,
        byzantine=byzantine,
        faults=_draw_faults(rng, clients, slots, byzantine, most=max(2, clients // 2) if harsh else 1),
    )


def _draw_faults(
    rng: np.random.Generator, clients: int, slots: int, byzantine: int | None, most: int
) -> tuple[Fault, ...]:
    """Draw faults of which no two touch a slot both, but for strangers."""
    faults, free_from = [], 1
    while free_from <= slots:
        slot = free_from + int(rng.integers(0, 2))
        kind, lasts = str(rng.choice(_DRAWN)), int(rng.integers(1, 4))
        honest = [client for client in range(clients) if client != byzantine]
        victims = rng.permutation(honest)[: int(rng.integers(1, most + 1))].tolist()
        strength = {"strangers": float(rng.choice([10.0, 50.0, 100.0])), "loss": float(rng.choice([0.05, 0.2]))}
        after_s = float(rng.choice([0.0, 0.02, 0.1, 0.5, 2.0]))
        if slot <= slots:
            faults.append(
                Fault(
                    kind=kind,
                    slot=slot,
                    after_s=after_s,
                    clients=tuple(sorted(victims)),
                    slots=lasts,
                    strength=strength.get(kind, 0.0),
                )
            )
        free_from = slot + 1 if kind == "strangers" else slot + lasts
    return tuple(faults)
