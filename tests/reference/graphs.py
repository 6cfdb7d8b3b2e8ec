"""Slow, literal constructions of the clients' graph."""

import math

Edge = tuple[int, int]
Point = tuple[float, float]


def distance(one: Point, other: Point) -> float:
    east, north = one[0] - other[0], one[1] - other[1]
    return math.sqrt(east * east + north * north)


def nearest(points: list[Point], neighbours: int) -> list[Edge]:
    edges = set()
    for here, point in enumerate(points):
        others = sorted((distance(point, other), there) for there, other in enumerate(points) if there != here)
        edges |= {(min(here, there), max(here, there)) for _, there in others[:neighbours]}
    return sorted(edges)


def within(points: list[Point], radius: float) -> list[Edge]:
    count = len(points)
    pairs = [(one, other) for one in range(count) for other in range(one + 1, count)]
    return [(one, other) for one, other in pairs if distance(points[one], points[other]) <= radius]


def connected(points: list[Point], edges: list[Edge]) -> list[Edge]:
    """Kruskal over all pairs, after the given edges."""
    part = list(range(len(points)))
    count = len(points)
    lengths = sorted(
        (distance(points[one], points[other]), one, other) for one in range(count) for other in range(one + 1, count)
    )
    chosen = set(edges)
    for one, other in [*edges, *((one, other) for _, one, other in lengths)]:
        if part[one] != part[other]:
            chosen.add((one, other))
            old, new = part[one], part[other]
            part = [new if label == old else label for label in part]
    return sorted(chosen)
