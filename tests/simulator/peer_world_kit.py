"""A world for simulated peers: clients in a square, each linked to its nearest, opinions from a seed."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedelect.scenario.config import BeliefsConfig, DataConfig, ScenarioConfig
from fedelect.seeds import stream
from fedelect.simulator import LinkConditions
from fedelect.vocabulary import Floats, Ints

BAD_LINKS = LinkConditions(shortest_delay_s=0.01, longest_delay_s=0.3, loss=0.2, repetition=0.1)


@dataclass(frozen=True)
class World:
    """What of a scenario the exchange needs: clients in a square, each linked to its nearest."""

    config: ScenarioConfig
    clients: int
    edges: Ints
    edge_lengths_km: Floats


def world(*, clients: int = 9, budget: int = 4, neighbours: int = 3, **beliefs: Any) -> World:
    positions = stream(clients, "positions").random((clients, 2))
    distances = np.hypot(*(positions[:, None] - positions[None]).transpose(2, 0, 1))
    pairs = {(n, n + 1) for n in range(clients - 1)}
    pairs |= {
        (min(n, m), max(n, m)) for n in range(clients) for m in np.argsort(distances[n])[1 : neighbours + 1].tolist()
    }
    edges = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    settings = BeliefsConfig(**({"rounds": 4, "coupling_scale": -0.4, "coupling_exponent": 0.5} | beliefs))
    config = ScenarioConfig(clients=clients, budget=budget, beliefs=settings, data=DataConfig(iid_clients=0))
    return World(config, clients, edges, distances[edges[:, 0], edges[:, 1]])


def opinions_of(slot: int, clients: int) -> Floats:
    rng = stream(77, "opinions", slot)
    quality = np.linspace(0.2, 0.9, clients)
    opinions = np.clip(quality + 0.1 * rng.normal(size=clients), 0.0, 1.0)
    return np.where(rng.random(clients) < 0.15, np.nan, opinions)
