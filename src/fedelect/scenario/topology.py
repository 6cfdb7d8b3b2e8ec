"""Positions of the clients, and their graph: undirected and connected."""

from typing import NamedTuple

import numpy as np

from fedelect.errors import ConfigurationError
from fedelect.scenario.config import TopologyConfig
from fedelect.scenario.proximity import connect, distances_km, pairs_within, typical_spacing, unique_edges
from fedelect.seeds import stream
from fedelect.vocabulary import Floats, Ints

_MOST_LINKS = 20_000_000  # more than this is a mistake in radius_km, not a neighbourhood


class Topology(NamedTuple):
    """Positions and links.

    Attributes:
        positions_km: (N, 2).
        server_km: (2,) centre of the square.
        edges: (M, 2) pairs i < j, sorted.
        edge_lengths_km: (M,).
    """

    positions_km: Floats
    server_km: Floats
    edges: Ints
    edge_lengths_km: Floats


def draw_topology(config: TopologyConfig, clients: int, *, seed: int, draw: int = 0) -> Topology:
    """Draw positions (given, or uniform in the square) and the graph over them.

    The shortest missing links between disconnected parts are added to any kind of links, also to a given list, so the
    graph is connected. A link given twice or both ways round counts once.

    Args:
        config: The [topology] table.
        clients: N.
        seed: The scenario's seed; positions come from the stream ("topology", draw).
        draw: Number of the redraw.
    """
    if config.positions_km:
        positions = np.array(config.positions_km, dtype=np.float64)
    else:
        positions = stream(seed, "topology", draw).random((clients, 2)) * config.side_km
    if config.link == "nearest":
        edges = nearest_edges(positions, config.neighbours)
    elif config.link == "radius":
        edges = radius_edges(positions, config.radius_km)
    else:
        edges = unique_edges(np.array(config.edges, dtype=np.int64).reshape(-1, 2), clients)
    edges = connect(positions, edges)
    lengths = distances_km(positions[edges[:, 0]], positions[edges[:, 1]])
    return Topology(positions, np.full(2, config.side_km / 2), edges, lengths)


def nearest_edges(positions: Floats, neighbours: int) -> Ints:
    """Links of every client to its `neighbours` nearest (all if there are fewer), either way round.

    Equally near clients are taken in order of number. Shapes: (N, 2) -> (M, 2), i < j, sorted.
    """
    clients = len(positions)
    wanted = min(neighbours, clients - 1)
    if wanted == 0:
        return np.empty((0, 2), dtype=np.int64)
    found = []
    waiting: Ints = np.arange(clients)
    radius = typical_spacing(positions) * float(np.sqrt(wanted)) / 2
    while waiting.size:
        served = []
        for pairs in pairs_within(positions, waiting, radius):
            order = np.lexsort((pairs.other, pairs.distance, pairs.one))
            one, other = pairs.one[order], pairs.other[order]
            queries, start, count = np.unique(one, return_index=True, return_counts=True)
            enough = count >= wanted
            first = start[enough, None] + np.arange(wanted)
            found.append(np.stack([one[first], other[first]], axis=-1).reshape(-1, 2))
            served.append(queries[enough])
        waiting = np.setdiff1d(waiting, np.concatenate(served))
        radius *= 2
    return unique_edges(np.concatenate(found), clients)


def radius_edges(positions: Floats, radius_km: float) -> Ints:
    """Links between all clients at most `radius_km` apart. Shapes: (N, 2) -> (M, 2), i < j, sorted.

    Raises:
        ConfigurationError: The radius makes more links than the limit.
    """
    found = [np.empty((0, 2), dtype=np.int64)]
    links = 0
    for pairs in pairs_within(positions, np.arange(len(positions)), radius_km):
        upward = pairs.one < pairs.other
        found.append(np.stack([pairs.one[upward], pairs.other[upward]], axis=-1))
        links += len(found[-1])
        if links > _MOST_LINKS:
            raise ConfigurationError(
                f"topology.radius_km: got {radius_km}, which makes more than {_MOST_LINKS} links among "
                f"{len(positions)} clients; allowed: a smaller radius"
            )
    return unique_edges(np.concatenate(found), len(positions))
