"""What is to go wrong: everything about one chaotic run, drawn from its seed before it begins."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedelect.errors import ConfigurationError
from fedelect.protocol import (
    RULES,
    ElectionSettings,
    KeyedHashVerifier,
    PeerConfig,
    Signer,
    Verifier,
    simulated_signers,
)
from fedelect.seeds import stream
from fedelect.simulator.network import LinkConditions

Stage = Literal["before", "after", "sending", "any"]
"""When a peer crashes: before a record is stored, right after, between two messages, or at any moment."""

Keys = Callable[[int, int], tuple[Sequence[Signer], Verifier]]
"""(clients, seed) -> a signer for each client, and what checks their signatures."""


def simulated_keys(clients: int, seed: int) -> tuple[Sequence[Signer], Verifier]:
    """Keyed hashes: cheap, and enough where nobody can read another's memory."""
    return simulated_signers(clients, seed), KeyedHashVerifier()


@dataclass(frozen=True, kw_only=True)
class ChaosPlan:
    """What chaotic runs have in common.

    Attributes:
        clients: N.
        slots: How many slots each run tries to elect for.
        max_faulty: f of the configuration.
        byzantine: Number of Byzantine clients, at most f; with any, the configuration expects them.
        calm: Nothing is lost, repeated or cut, nobody is Byzantine, and at most f peers crash, for good: every slot
            must be decided by all that are left.
        rule: How cohorts follow from maps, "bp-ucb" or "bp-gp".
        keys: How clients sign.
    """

    clients: int = 7
    slots: int = 5
    max_faulty: int = 1
    byzantine: int = 0
    calm: bool = False
    rule: str = "bp-ucb"
    keys: Keys = simulated_keys

    def __post_init__(self) -> None:
        if not 0 <= self.byzantine <= self.max_faulty:
            raise ConfigurationError(f"byzantine must be from 0 to max_faulty, {self.max_faulty}, got {self.byzantine}")
        if self.calm and self.byzantine:
            raise ConfigurationError("calm runs have no Byzantine peers; leave out `byzantine` or `calm`")
        if self.slots < 1:
            raise ConfigurationError(f"slots must be at least 1, got {self.slots}")
        if self.rule not in RULES:
            raise ConfigurationError(f"rule must be one of {', '.join(RULES)}, got {self.rule!r}")


@dataclass(frozen=True, slots=True)
class Crash:
    """A client stops: at a moment, or at its n-th record or message after it."""

    client: int
    at_s: float
    stage: Stage
    count: int
    down_s: float


@dataclass(frozen=True, slots=True)
class Partition:
    """One side is cut off from the rest for a while."""

    side: frozenset[int]
    at_s: float
    heal_s: float


@dataclass(frozen=True, slots=True)
class Rumour:
    """A client's links say that a neighbour is lost, or back, whatever is true."""

    client: int
    neighbour: int
    at_s: float
    lost: bool


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """One chaotic run. `noticed_s` is how long after a crash, a cut or their end links say so; None if never."""

    seed: int
    slots: int
    config: PeerConfig
    signers: Sequence[Signer]
    verifier: Verifier
    conditions: LinkConditions
    crashes: tuple[Crash, ...]
    partitions: tuple[Partition, ...]
    byzantine: frozenset[int]
    late_s: tuple[float, ...]
    noticed_s: float | None
    rumours: tuple[Rumour, ...]

    @property
    def span_s(self) -> float:
        """From the beginning of one slot to that of the next; a little more than peers wait."""
        return self.config.settings.slot_s + 0.5


def draw(seed: int, plan: ChaosPlan) -> Schedule:
    """The schedule that `seed` stands for."""
    rng = stream(seed, "chaos")
    clients = plan.clients
    signers, verifier = plan.keys(clients, seed)
    edges = _edges(rng, clients, plan.max_faulty)
    budget = int(rng.integers(1, max(2, clients // 2 + 1)))
    config = PeerConfig(
        clients=clients,
        edges=edges,
        couplings=tuple(rng.normal(0.0, 0.5, len(edges)).tolist()),
        keys=tuple(signer.key for signer in signers),
        settings=ElectionSettings(
            budget=budget if plan.rule == "bp-ucb" else max(1, clients // 2),  # large: the cold start is soon over
            rule=plan.rule,
            seed=seed,
            reading="ising" if rng.random() < 0.5 else "evidence",
            rounds=int(rng.integers(1, 3)),
            max_faulty=plan.max_faulty,
            byzantine=plan.byzantine > 0,
            resend_s=0.3,
            silent_intervals=3,
            slot_s=5.0,
        ),
    )
    long_s = (config.settings.slot_s + 0.5) * plan.slots
    byzantine = frozenset(rng.permutation(clients)[: plan.byzantine].tolist())
    links = stream(seed, "chaos", "links")
    noticed_s = float(links.choice([0.1, 0.3, 0.6]))  # when all is calm, not before the last message has come
    return Schedule(
        seed=seed,
        slots=plan.slots,
        config=config,
        signers=signers,
        verifier=verifier,
        conditions=LinkConditions() if plan.calm else _conditions(rng),
        crashes=_calm_crashes(rng, plan, long_s) if plan.calm else _crashes(rng, clients, long_s),
        partitions=() if plan.calm else _partitions(rng, clients, long_s),
        byzantine=byzantine,
        late_s=tuple((rng.random(clients) * (0.1 if plan.calm or rng.random() < 0.5 else 1.5)).tolist()),
        noticed_s=noticed_s if links.random() < 0.8 else None,
        rumours=() if plan.calm else _rumours(links, config, long_s),
    )


def _edges(rng: np.random.Generator, clients: int, max_faulty: int) -> tuple[tuple[int, int], ...]:
    # Everybody in a ring, linked to the next m: connected without any 2m - 1 of them. Then some links more.
    reach = max_faulty // 2 + 1
    edges = {tuple(sorted((n, (n + step) % clients))) for n in range(clients) for step in range(1, reach + 1)}
    edges |= {(i, j) for i in range(clients) for j in range(i + 1, clients) if rng.random() < 0.2}
    return tuple(sorted((int(one), int(other)) for one, other in edges if one != other))


def _conditions(rng: np.random.Generator) -> LinkConditions:
    harsh = rng.random()
    return LinkConditions(
        shortest_delay_s=0.01,
        longest_delay_s=float(rng.choice([0.03, 0.2, 0.6])),
        loss=float(rng.choice([0.0, 0.05, 0.3])) if harsh < 0.8 else 0.6,
        repetition=float(rng.choice([0.0, 0.2])),
    )


def _crashes(rng: np.random.Generator, clients: int, long_s: float) -> tuple[Crash, ...]:
    stages: tuple[Stage, ...] = ("before", "after", "sending", "any")
    return tuple(
        Crash(
            client=int(rng.integers(clients)),
            at_s=float(rng.random() * long_s),
            stage=stages[int(rng.integers(4))],
            count=int(rng.integers(1, 4)),
            down_s=float(rng.choice([0.2, 2.0, 20.0])),
        )
        for _ in range(int(rng.integers(0, 7)))
    )


def _calm_crashes(rng: np.random.Generator, plan: ChaosPlan, long_s: float) -> tuple[Crash, ...]:
    stages: tuple[Stage, ...] = ("sending", "any")
    failing = rng.permutation(plan.clients)[: int(rng.integers(0, plan.max_faulty + 1))].tolist()
    return tuple(
        Crash(client, float(rng.random() * long_s), stages[int(rng.integers(2))], int(rng.integers(1, 4)), 2 * long_s)
        for client in failing
    )


def _rumours(rng: np.random.Generator, config: PeerConfig, long_s: float) -> tuple[Rumour, ...]:
    rumours = []
    for _ in range(int(rng.integers(0, 13))):
        client = int(rng.integers(config.clients))
        neighbour = int(rng.choice(list(config.neighbours[client])))
        rumours.append(Rumour(client, neighbour, float(rng.random() * long_s), bool(rng.random() < 0.7)))
    return tuple(rumours)


def _partitions(rng: np.random.Generator, clients: int, long_s: float) -> tuple[Partition, ...]:
    partitions = []
    for _ in range(int(rng.integers(0, 4))):
        start = float(rng.random() * long_s)
        side = frozenset(rng.permutation(clients)[: int(rng.integers(1, clients))].tolist())
        partitions.append(Partition(side, start, start + float(rng.choice([1.0, 9.0, 30.0]))))
    return tuple(partitions)
