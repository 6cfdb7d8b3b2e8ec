"""Choose the part of a large run that is drawn. Tables are never thinned.

Everything follows from the header, so that the page of a running election does not change its choice on the way.
"""

from dataclasses import dataclass

import numpy as np

from fedelect.records import RunHeader
from fedelect.vocabulary import Ints

CURVE_POINTS = 1000
"""Most points that a curve is drawn with."""

MAP_CLIENTS = 1500
"""Most clients that the map and the bars show."""

MAP_LINKS = 4000
"""Most links between clients that the map draws."""

MAP_BYTES = 2_600_000
"""Most bytes that the maps of one page hold, before they are written as text."""

_LEAST_MAP_SLOTS = 40


@dataclass(frozen=True, eq=False, kw_only=True)
class Thinning:
    """The part of a run that is drawn.

    Attributes:
        curve_slots: Numbers of the slots at which curves are drawn, rising.
        map_trials: The map holds the trials 0 .. map_trials - 1.
        map_slots: Numbers of the slots that the map's slider visits, rising.
        map_clients: The clients that the map shows, rising.
        map_links: The links that the map draws, pairs of clients.
        notes: What was left out, in sentences; empty if nothing was.
    """

    curve_slots: Ints
    map_trials: int
    map_slots: Ints
    map_clients: Ints
    map_links: tuple[tuple[int, int], ...]
    notes: tuple[str, ...]


def choose_thinning(header: RunHeader, *, runs: int = 1) -> Thinning:
    """Choose what to draw of the run with `header`, one of `runs` on the page."""
    clients = _clients(header.clients)
    # Opinion, belief and election count take two bytes each, a member of the cohort four, the rest of a frame eight.
    frame = len(header.selectors) * (clients.size * (6 if header.framework == "da" else 4) + 4 * header.budget + 8)
    frames = max(MAP_BYTES // max(runs, 1) // frame, 1)
    trials = int(min(header.trials, max(frames // header.slots, 1)))
    slots = evenly(header.slots, max(frames // trials, _LEAST_MAP_SLOTS))
    curve = evenly(header.slots, CURVE_POINTS)
    shown = set(clients.tolist())
    links = tuple((i, j) for i, j in header.edges or () if i in shown and j in shown)
    notes = []
    if curve.size < header.slots:
        notes.append(f"Curves are drawn at {curve.size:,} of {header.slots:,} slots, evenly spaced.")
    if trials < header.trials:
        notes.append(f"The map holds {_first(trials)} of {header.trials:,}.")
    if slots.size < header.slots:
        notes.append(f"The map's slider visits {slots.size:,} of {header.slots:,} slots, evenly spaced.")
    if clients.size < header.clients:
        notes.append(
            f"Map and bars show {clients.size:,} of {header.clients:,} clients: the first {clients.size // 2:,} and "
            f"others evenly spaced."
        )
    if len(links) > MAP_LINKS:
        notes.append(f"The map draws {MAP_LINKS:,} of {len(links):,} links.")
        links = tuple(links[int(one)] for one in np.linspace(0, len(links) - 1, MAP_LINKS))
    return Thinning(
        curve_slots=curve,
        map_trials=trials,
        map_slots=slots,
        map_clients=clients,
        map_links=links,
        notes=tuple(notes),
    )


def evenly(slots: int, most: int) -> Ints:
    """At most `most` (at least 2) numbers of 1..slots, evenly spaced, the first and the last among them.

    >>> evenly(9, 5).tolist()
    [1, 3, 5, 7, 9]
    """
    return np.unique(np.linspace(1, slots, min(slots, most)).round()).astype(np.int64)


def _clients(clients: int) -> Ints:
    if clients <= MAP_CLIENTS:
        return np.arange(clients, dtype=np.int64)
    first = MAP_CLIENTS // 2
    return np.concatenate([np.arange(first), first - 1 + evenly(clients - first, MAP_CLIENTS - first)])


def _first(trials: int) -> str:
    return "trial 0" if trials == 1 else f"trials 0 to {trials - 1}"
