"""Searches among points of the plane that never build an N x N matrix.

Pairs of near points come from a grid of cells. Disconnected parts of a graph are joined by the links of a
minimum spanning tree: short ones by Kruskal's rule over the grid, far ones by Boruvka's rule over boxes of points.
Both take links in the same total order (distance, lower client, higher client), so the tree is unique. Distances use
exactly rounded operations only, so that every machine builds the same graph.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedelect.vocabulary import Floats, Ints

_PAIRS_AT_ONCE = 2_000_000  # candidate pairs held in memory together
_GRID_LEVELS = 4  # doublings of the radius after which far parts are joined over boxes
_BOX_POINTS = 64


class Pairs(NamedTuple):
    """Pairs of points and their distance, each (P,)."""

    one: Ints
    other: Ints
    distance: Floats


def distances_km(one: Floats, other: Floats) -> Floats:
    """Euclidean distance of points (..., 2), to the same bit on every machine (no hypot)."""
    return _length(one[..., 0] - other[..., 0], one[..., 1] - other[..., 1])


def _length(east: Floats, north: Floats) -> Floats:
    length: Floats = np.sqrt(east * east + north * north)
    return length


def typical_spacing(positions: Floats) -> float:
    """Distance of neighbours if the (N, 2) points were spread evenly; a start for searches, never 0."""
    extent = float(np.ptp(positions, axis=0).max(initial=0.0))
    return (extent if extent > 0.0 else 1.0) / float(np.sqrt(max(len(positions), 1)))


def unique_edges(pairs: Ints, clients: int) -> Ints:
    """(P, 2) pairs, either way round and repeated, as (M, 2) edges i < j, each once and sorted."""
    low, high = pairs.min(axis=1, initial=clients), pairs.max(axis=1, initial=-1)
    code = np.unique(low * clients + high)
    return np.stack([code // clients, code % clients], axis=-1)


def pairs_within(positions: Floats, queries: Ints, radius: float, *, part: Ints | None = None) -> Iterator[Pairs]:
    """All (query, other point) pairs at most `radius` apart, in blocks that hold whole queries.

    Args:
        positions: (N, 2).
        queries: (Q,) the points whose near points are wanted.
        radius: In the unit of the positions.
        part: (N,) if given, stretches of points that are all in the query's own part may be passed over.
    """
    extent = float(np.ptp(positions, axis=0).max())
    cell = max(radius, extent * 1e-6, float(np.finfo(np.float64).tiny))
    cells = np.floor((positions - positions.min(axis=0)) / cell).astype(np.int64) + 1
    columns = int(cells[:, 0].max()) + 2
    code = cells[:, 1] * columns + cells[:, 0]
    by_cell = np.argsort(code, kind="stable")
    sorted_code = code[by_cell]
    # The three cells side by side in each of three rows are one run of the sorted points.
    middle = code[queries, None] + np.array([-columns, 0, columns])
    start = np.searchsorted(sorted_code, middle - 1, side="left")
    count = np.searchsorted(sorted_code, middle + 1, side="right") - start
    if part is not None:
        count[_runs_of_own_part(part[by_cell], start, count, part[queries])] = 0
    block = np.cumsum(count.sum(axis=1)) // _PAIRS_AT_ONCE
    for rows in np.split(np.arange(queries.size), np.flatnonzero(np.diff(block)) + 1):
        runs, lengths = start[rows].ravel(), count[rows].ravel()
        before = np.cumsum(lengths) - lengths
        other = by_cell[np.arange(lengths.sum()) + np.repeat(runs - before, lengths)]
        one = np.repeat(np.repeat(queries[rows], 3), lengths)
        distance = distances_km(positions[one], positions[other])
        near = (distance <= radius) & (one != other)
        yield Pairs(one[near], other[near], distance[near])


def _runs_of_own_part(sorted_part: Ints, start: Ints, count: Ints, own: Ints) -> NDArray[np.bool_]:
    changes = np.concatenate([[0], np.cumsum(sorted_part[1:] != sorted_part[:-1])])
    first = np.minimum(start, sorted_part.size - 1)
    last = np.maximum(start + count - 1, first).clip(max=sorted_part.size - 1)
    own_only: NDArray[np.bool_] = (changes[first] == changes[last]) & (sorted_part[first] == own[:, None])
    return own_only


def connect(positions: Floats, edges: Ints) -> Ints:
    """`edges` and the shortest links that join its parts (a minimum spanning tree of the parts).

    Shapes: (N, 2), (M, 2) -> (M', 2) edges i < j, each once and sorted.
    """
    clients = len(positions)
    part = parts(clients, edges)
    radius = typical_spacing(positions)
    for _ in range(_GRID_LEVELS):
        edges = np.concatenate([edges, _short_joins(positions, part, radius)])
        part = parts(clients, edges)
        radius *= 2
    while part.max(initial=0) > 0:
        edges = np.concatenate([edges, _far_joins(positions, part)])
        part = parts(clients, edges)
    return unique_edges(edges, clients)


def parts(clients: int, edges: Ints) -> Ints:
    """(N,) number of the connected part each client is in, from 0."""
    label: Ints = np.arange(clients)
    while True:
        ends = label[edges]
        apart = ends[ends[:, 0] != ends[:, 1]]
        if not apart.size:
            break
        # Hook the higher of two roots under the lower, then point every client at its root.
        np.minimum.at(label, apart.max(axis=1), apart.min(axis=1))
        while not np.array_equal(label[label], label):
            label = label[label]
    return np.unique(label, return_inverse=True)[1].astype(np.int64)


def _short_joins(positions: Floats, part: Ints, radius: float) -> Ints:
    """Kruskal's links up to `radius`. Shape (A, 2)."""
    # Whichever two parts a link joins, one of them is not the largest.
    queries = np.flatnonzero(part != np.bincount(part).argmax())
    if not queries.size:
        return np.empty((0, 2), dtype=np.int64)
    blocks = []
    for pairs in _blocks_between_parts(positions, queries, radius, part):
        blocks.append(_shortest(pairs, _part_pair(pairs, part)))
    joining = _concatenate(blocks)
    return _kruskal(_shortest(joining, _part_pair(joining, part)), part)


def _blocks_between_parts(positions: Floats, queries: Ints, radius: float, part: Ints) -> Iterator[Pairs]:
    for pairs in pairs_within(positions, queries, radius, part=part):
        between = part[pairs.one] != part[pairs.other]
        yield Pairs(*(column[between] for column in pairs))


def _part_pair(pairs: Pairs, part: Ints) -> Ints:
    one, other = part[pairs.one], part[pairs.other]
    return np.minimum(one, other) * part.size + np.maximum(one, other)


def _concatenate(blocks: list[Pairs]) -> Pairs:
    return Pairs(*(np.concatenate(column) for column in zip(*blocks, strict=True)))


def _shortest(pairs: Pairs, group: Ints) -> Pairs:
    """The first pair of each group in the order (distance, lower, higher), all in that order."""
    low, high = np.minimum(pairs.one, pairs.other), np.maximum(pairs.one, pairs.other)
    order = np.lexsort((high, low, pairs.distance))
    kept = order[np.sort(np.unique(group[order], return_index=True)[1])]
    return Pairs(pairs.one[kept], pairs.other[kept], pairs.distance[kept])


def _kruskal(pairs: Pairs, part: Ints) -> Ints:
    """Of the pairs, shortest first, those that join what is not joined yet. Shape (A, 2)."""
    parent = list(range(int(part.max()) + 1))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    taken = []
    for here, there in zip(pairs.one.tolist(), pairs.other.tolist(), strict=True):
        one, other = root(int(part[here])), root(int(part[there]))
        if one != other:
            parent[one] = other
            taken.append((here, there))
    return np.array(taken, dtype=np.int64).reshape(-1, 2)


class _Boxes(NamedTuple):
    """Points cut into boxes, each within one part: (B, 2) corners, (B,) part, and the points of each box."""

    low: Floats
    high: Floats
    part: Ints
    points: list[Ints]


def _boxes(positions: Floats, part: Ints) -> _Boxes:
    order = np.lexsort((_along_curve(positions), part))
    index_in_part = np.arange(order.size) - np.searchsorted(part[order], part[order])
    first = np.flatnonzero(index_in_part % _BOX_POINTS == 0)
    low = np.minimum.reduceat(positions[order], first)
    high = np.maximum.reduceat(positions[order], first)
    return _Boxes(low, high, part[order[first]], np.split(order, first[1:]))


def _along_curve(positions: Floats) -> Ints:
    """(N,) position of each point along a Z-order curve through the square."""
    span = np.ptp(positions, axis=0)
    grid = ((positions - positions.min(axis=0)) / np.where(span > 0, span, 1.0) * 65535).astype(np.int64)
    bits = np.arange(16)
    spread = ((grid[:, :, None] >> bits) & 1) << (2 * bits)
    position: Ints = spread[:, 0].sum(axis=1) + (spread[:, 1].sum(axis=1) << 1)
    return position


def _far_joins(positions: Floats, part: Ints) -> Ints:
    """Boruvka's links: for each part the shortest out of it. Shape (A, 2).

    The shortest link out of a part is no longer than the far ends of any of its boxes and a foreign one. So only box
    pairs whose near ends lie within that bound can hold it.
    """
    boxes = _boxes(positions, part)
    rows = max(1, _PAIRS_AT_ONCE // boxes.part.size)
    blocks = [slice(start, start + rows) for start in range(0, boxes.part.size, rows)]
    bound = np.full(int(part.max()) + 1, np.inf)
    for block in blocks:
        far = np.maximum(boxes.high[block, None] - boxes.low, boxes.high - boxes.low[block, None])
        foreign = boxes.part[block, None] != boxes.part
        reach = np.where(foreign, _length(far[..., 0], far[..., 1]), np.inf)
        np.minimum.at(bound, boxes.part[block], reach.min(axis=1))
    found = []
    for block in blocks:
        gap = np.maximum(boxes.low[block, None] - boxes.high, boxes.low - boxes.high[block, None]).clip(min=0.0)
        foreign = boxes.part[block, None] != boxes.part
        reachable = foreign & (_length(gap[..., 0], gap[..., 1]) <= bound[boxes.part[block], None])
        for one, other in np.argwhere(reachable).tolist():
            here, there = np.meshgrid(boxes.points[block.start + one], boxes.points[other])
            pairs = Pairs(here.ravel(), there.ravel(), distances_km(positions[here.ravel()], positions[there.ravel()]))
            found.append(_shortest(pairs, part[pairs.one]))
    best = _concatenate(found)
    links = _shortest(best, part[best.one])
    return np.stack([links.one, links.other], axis=-1)
