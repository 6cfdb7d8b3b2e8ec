"""The graph of an election: who is linked to whom, and how far apart any two peers are once some have failed."""

import functools
import itertools
import math
from collections.abc import Sequence

from fedelect.errors import ConfigurationError

_MAX_CASES = 200_000  # sets of failed peers; more would take minutes


def neighbourhoods(
    clients: int, edges: Sequence[tuple[int, int]], couplings: Sequence[float]
) -> tuple[dict[int, float], ...]:
    """For each client, its neighbours in order of number and the coupling J of each link.

    Args:
        clients: N.
        edges: M undirected links, each once.
        couplings: M finite numbers.
    """
    if len(edges) != len(couplings) or not all(math.isfinite(coupling) for coupling in couplings):
        raise ConfigurationError(
            f"couplings must be one finite number for each of the {len(edges)} edges, got {list(couplings)}"
        )
    near: list[dict[int, float]] = [{} for _ in range(clients)]
    for (one, other), coupling in zip(edges, couplings, strict=True):
        if not (0 <= one < clients and 0 <= other < clients):
            raise ConfigurationError(f"edges name a client outside 0..{clients - 1}: {one} - {other}")
        if one == other:
            raise ConfigurationError(f"edges link client {one} to itself; remove that edge")
        if other in near[one]:
            raise ConfigurationError(f"edges link clients {one} and {other} twice; keep one of them")
        near[one][other] = near[other][one] = coupling
    return tuple({neighbour: links[neighbour] for neighbour in sorted(links)} for links in near)


def surviving_diameter(clients: int, edges: Sequence[tuple[int, int]], max_faulty: int) -> int:
    """The largest diameter after any at most `max_faulty` clients have failed.

    Raises:
        ConfigurationError: Some such failure disconnects the graph or leaves no client: its connectivity is not above
            `max_faulty`.
    """
    return _surviving_diameter(clients, tuple((one, other) for one, other in edges), max_faulty)


@functools.lru_cache(maxsize=64)  # seconds where many may fail, and elections are configured again and again
def _surviving_diameter(clients: int, edges: tuple[tuple[int, int], ...], max_faulty: int) -> int:
    if math.comb(clients, min(max_faulty, clients)) > _MAX_CASES:
        raise ConfigurationError(
            f"{max_faulty} faulty peers among {clients} clients are too many cases to check; lower `max_faulty` or "
            f"split the clients"
        )
    near = [0] * clients
    for one, other in edges:
        near[one] |= 1 << other
        near[other] |= 1 << one
    worst = 0
    for count in range(min(max_faulty, clients) + 1):
        for failed in itertools.combinations(range(clients), count):
            diameter = _diameter(near, ~sum(1 << client for client in failed), clients)
            if diameter is None:
                without = f"without clients {list(failed)} the others are" if failed else "some clients are"
                raise ConfigurationError(
                    f"the graph does not survive {max_faulty} faulty peers: {without} cut off from each other; "
                    f"add links" + (" or lower `max_faulty`" if max_faulty else "")
                )
            worst = max(worst, diameter)
    return worst


def _diameter(near: Sequence[int], alive: int, clients: int) -> int | None:
    """Diameter of the graph of the clients alive; None if it is not connected."""
    members = [client for client in range(clients) if alive >> client & 1]
    if not members:
        return None
    everyone = sum(1 << client for client in members)
    links = {client: [n for n in members if near[client] >> n & 1] for client in members}
    reached = {client: 1 << client for client in members}
    rounds = 0
    while any(known != everyone for known in reached.values()):
        spread = {client: reached[client] for client in members}
        for client in members:
            for neighbour in links[client]:
                spread[client] |= reached[neighbour]
        if spread == reached:
            return None
        reached, rounds = spread, rounds + 1
    return rounds
