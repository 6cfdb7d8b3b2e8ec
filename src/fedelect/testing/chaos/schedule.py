"""The fault schedule of one chaos run, drawn from its seed before the run begins."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
from fedelect.testing.chaos.byzantine import BEHAVIOURS

LARGEST_CLIENTS = 1000
"""N of the largest chaos run: its time grows faster than the square of N."""

CrashPoint = Literal["before", "after", "sending", "any"]
"""Where a peer crashes: before a record is stored, right after, between two messages, or at a moment in time."""

Keys = Callable[[int, int], tuple[Sequence[Signer], Verifier]]
"""(clients, seed) -> a signer for each client, and the verifier of their signatures."""


def simulated_keys(clients: int, seed: int) -> tuple[Sequence[Signer], Verifier]:
    """Keyed hashes: cheap, and sufficient among peers of one process."""
    return simulated_signers(clients, seed), KeyedHashVerifier()


@dataclass(frozen=True, kw_only=True)
class ChaosPlan:
    """What the chaos runs of one command have in common.

    Attributes:
        clients: N.
        slots: Slots to elect for in each run.
        max_faulty: f of the configuration.
        byzantine: Number of Byzantine clients, at most f; with any, the configuration expects them.
        calm: Nothing is lost, repeated or cut, messages arrive within a resend interval, and at most f peers crash,
            for good, or are Byzantine: every slot must be decided by all that are left.
        behaviour: What Byzantine clients do, one of `BEHAVIOURS`; None for two that each of them draws.
        rule: "bp-ucb" or "bp-gp".
        keys: Makes the signers and the verifier.
    """

    clients: int = 7
    slots: int = 5
    max_faulty: int = 1
    byzantine: int = 0
    calm: bool = False
    behaviour: str | None = None
    rule: str = "bp-ucb"
    keys: Keys = simulated_keys

    def __post_init__(self) -> None:
        if self.clients > LARGEST_CLIENTS:
            raise ConfigurationError(f"clients must be at most {LARGEST_CLIENTS} in a chaos run, got {self.clients}")
        if not 0 <= self.byzantine <= self.max_faulty:
            raise ConfigurationError(f"byzantine must be from 0 to max_faulty, {self.max_faulty}, got {self.byzantine}")
        if self.behaviour is not None and self.behaviour not in BEHAVIOURS:
            raise ConfigurationError(f"behaviour must be one of {', '.join(BEHAVIOURS)}, got {self.behaviour!r}")
        if self.slots < 1:
            raise ConfigurationError(f"slots must be at least 1, got {self.slots}")
        if self.rule not in RULES:
            raise ConfigurationError(f"rule must be one of {', '.join(RULES)}, got {self.rule!r}")


@dataclass(frozen=True, slots=True)
class Crash:
    """A client stops for `down_s` seconds: at a moment, or at its `count`-th record or message after it."""

    client: int
    at_s: float
    point: CrashPoint
    count: int
    down_s: float


@dataclass(frozen=True, slots=True)
class NetworkSplit:
    """A set of clients that is cut off from the others for some time."""

    side: frozenset[int]
    at_s: float
    heal_s: float


@dataclass(frozen=True, slots=True)
class LinkReport:
    """A report to a client that a neighbour is lost, or back; it may be wrong."""

    client: int
    neighbour: int
    at_s: float
    lost: bool


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """One chaos run. `report_delay_s`: seconds after which links report a crash, a cut or their end; None for never."""

    seed: int
    slots: int
    config: PeerConfig
    signers: Sequence[Signer]
    verifier: Verifier
    conditions: LinkConditions
    crashes: tuple[Crash, ...]
    splits: tuple[NetworkSplit, ...]
    byzantine: frozenset[int]
    behaviour: str | None
    start_delay_s: tuple[float, ...]
    report_delay_s: float | None
    false_reports: tuple[LinkReport, ...]

    @property
    def slot_span_s(self) -> float:
        """Seconds from the beginning of one slot to that of the next; a little more than peers wait."""
        return self.config.settings.slot_s + 0.5


def draw_schedule(seed: int, plan: ChaosPlan) -> Schedule:
    """Draw the schedule of `seed`."""
    rng = stream(seed, "chaos")
    clients = plan.clients
    signers, verifier = plan.keys(clients, seed)
    config = _draw_config(rng, seed, plan, tuple(signer.key for signer in signers))
    duration_s = (config.settings.slot_s + 0.5) * plan.slots
    byzantine = frozenset(rng.permutation(clients)[: plan.byzantine].tolist())
    links = stream(seed, "chaos", "links")
    report_delay_s = float(links.choice([0.1, 0.3, 0.6]))  # in a calm run, after the last message has arrived
    return Schedule(
        seed=seed,
        slots=plan.slots,
        config=config,
        signers=signers,
        verifier=verifier,
        conditions=_draw_calm_conditions(rng, plan) if plan.calm else _draw_conditions(rng),
        crashes=_draw_calm_crashes(rng, plan, byzantine, duration_s)
        if plan.calm
        else _draw_crashes(rng, clients, duration_s),
        splits=() if plan.calm else _draw_splits(rng, clients, duration_s),
        byzantine=byzantine,
        behaviour=plan.behaviour,
        start_delay_s=_draw_start_delays(rng, plan),
        report_delay_s=report_delay_s if links.random() < 0.8 else None,
        false_reports=() if plan.calm else _draw_false_reports(links, config, duration_s),
    )


def _draw_config(rng: np.random.Generator, seed: int, plan: ChaosPlan, keys: tuple[bytes, ...]) -> PeerConfig:
    clients = plan.clients
    edges = _draw_edges(rng, clients, plan.max_faulty)
    budget = int(rng.integers(1, max(2, clients // 2 + 1)))
    couplings = tuple(rng.normal(0.0, 0.5, len(edges)).tolist())
    settings = ElectionSettings(
        budget=budget if plan.rule == "bp-ucb" else max(1, clients // 2),  # large: the cold start is soon over
        rule=plan.rule,
        seed=seed,
        reading="ising" if rng.random() < 0.5 else "evidence",
        rounds=int(rng.integers(1, 3)),
        max_faulty=plan.max_faulty,
        byzantine=plan.byzantine > 0,
        resend_s=0.3,
        silent_intervals=3,
        slot_s=1e3 if plan.byzantine else 5.0,
    )
    config = PeerConfig(clients=clients, edges=edges, couplings=couplings, keys=keys, settings=settings)
    if not plan.byzantine:
        return config
    slot_s = math.ceil(config.longest_intervals * settings.resend_s)  # not more than it can take
    return replace(config, settings=replace(settings, slot_s=float(slot_s)))


def _draw_edges(rng: np.random.Generator, clients: int, max_faulty: int) -> tuple[tuple[int, int], ...]:
    # A ring in which each client is linked to the next m: connected without any 2m - 1 of them. Then random links.
    reach = max_faulty // 2 + 1
    edges = {tuple(sorted((n, (n + step) % clients))) for n in range(clients) for step in range(1, reach + 1)}
    edges |= {(i, j) for i in range(clients) for j in range(i + 1, clients) if rng.random() < 0.2}
    return tuple(sorted((int(one), int(other)) for one, other in edges if one != other))


def _draw_calm_conditions(rng: np.random.Generator, plan: ChaosPlan) -> LinkConditions:
    # At most a resend interval. Against crashes alone links are quick: there, a neighbour is lost soon after its link.
    return LinkConditions(longest_delay_s=float(rng.choice([0.05, 0.3])) if plan.byzantine else 0.05)


def _draw_start_delays(rng: np.random.Generator, plan: ChaosPlan) -> tuple[float, ...]:
    delays = rng.random(plan.clients)
    if plan.calm:
        return tuple((delays * (0.3 if plan.byzantine else 0.1)).tolist())  # (silent_intervals - 2) intervals at most
    return tuple((delays * (0.1 if rng.random() < 0.5 else 1.5)).tolist())


def _draw_conditions(rng: np.random.Generator) -> LinkConditions:
    harsh = rng.random()
    return LinkConditions(
        shortest_delay_s=0.01,
        longest_delay_s=float(rng.choice([0.03, 0.2, 0.6])),
        loss=float(rng.choice([0.0, 0.05, 0.3])) if harsh < 0.8 else 0.6,
        repetition=float(rng.choice([0.0, 0.2])),
    )


def _draw_crashes(rng: np.random.Generator, clients: int, duration_s: float) -> tuple[Crash, ...]:
    points: tuple[CrashPoint, ...] = ("before", "after", "sending", "any")
    return tuple(
        Crash(
            client=int(rng.integers(clients)),
            at_s=float(rng.random() * duration_s),
            point=points[int(rng.integers(4))],
            count=int(rng.integers(1, 4)),
            down_s=float(rng.choice([0.2, 2.0, 20.0])),
        )
        for _ in range(int(rng.integers(0, 7)))
    )


def _draw_calm_crashes(
    rng: np.random.Generator, plan: ChaosPlan, byzantine: frozenset[int], duration_s: float
) -> tuple[Crash, ...]:
    points: tuple[CrashPoint, ...] = ("sending", "any")
    drawn = rng.permutation(plan.clients)[: int(rng.integers(0, plan.max_faulty - plan.byzantine + 1))].tolist()
    failing = [client for client in drawn if client not in byzantine]
    return tuple(
        Crash(
            client,
            float(rng.random() * duration_s),
            points[int(rng.integers(2))],
            int(rng.integers(1, 4)),
            2 * duration_s,
        )
        for client in failing
    )


def _draw_false_reports(rng: np.random.Generator, config: PeerConfig, duration_s: float) -> tuple[LinkReport, ...]:
    false_reports = []
    for _ in range(int(rng.integers(0, 13))):
        client = int(rng.integers(config.clients))
        neighbour = int(rng.choice(list(config.neighbours[client])))
        false_reports.append(LinkReport(client, neighbour, float(rng.random() * duration_s), bool(rng.random() < 0.7)))
    return tuple(false_reports)


def _draw_splits(rng: np.random.Generator, clients: int, duration_s: float) -> tuple[NetworkSplit, ...]:
    splits = []
    for _ in range(int(rng.integers(0, 4))):
        start = float(rng.random() * duration_s)
        side = frozenset(rng.permutation(clients)[: int(rng.integers(1, clients))].tolist())
        splits.append(NetworkSplit(side, start, start + float(rng.choice([1.0, 9.0, 30.0]))))
    return tuple(splits)
