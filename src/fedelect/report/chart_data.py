"""Data of the page's charts as plain values for JSON; the script in assets/ reads it.

Curves are means with half-widths, six digits of each. The map's frames are arrays of whole numbers in base64 (little
endian): opinions and beliefs in steps of a power of ten, the largest number where there is no value.
"""

import base64
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedelect.equations.intervals import mean_band
from fedelect.equations.metrics import failure_share
from fedelect.records import MeasureCurves, RunHeader, SelectorTable
from fedelect.report.analysis import LOW_ACCURACY, RunAnalysis
from fedelect.report.run_data import STATUSES, Frames, RunData, last_recorded_slot
from fedelect.report.worlds import Series, World
from fedelect.vocabulary import Floats, Ints

OPINION_DECIMALS = 4


def chart_data(worlds: Sequence[World]) -> dict[str, Any]:
    """The runs and the worlds that they are in, JSON-able."""
    runs: list[dict[str, Any]] = []
    found = []
    for world in worlds:
        numbers = range(len(runs), len(runs) + len(world.analyses))
        found.append({"name": world.name, "by": world.ranking.by, "runs": list(numbers)})
        runs += [_run(world, analysis) for analysis in world.analyses]
    return {"worlds": found, "runs": runs}


def _run(world: World, analysis: RunAnalysis) -> dict[str, Any]:
    run = analysis.run
    header = run.header
    slots = run.thinning.curve_slots[run.thinning.curve_slots <= _last_slot(run)]
    return {
        "name": run.name,
        "clients": header.clients,
        "budget": header.budget,
        "curveSlots": slots.tolist(),
        "selectors": [_selector(one, slots) for one in world.series if one.analysis is analysis],
        "noisy": run.noise_shown,
        "optimum": None if header.optimum is None or run.told_gains else _six(header.optimum.value),
        "largestGap": None if analysis.oracle is None else analysis.oracle.largest_gap,
        "bounds": [
            {
                "selector": header.labels.index(bound.label),
                "theorem": bound.at_end.theorem,
                "vacuous": bound.at_end.vacuous,
                "values": _numbers(bound.curve[: slots.size]),
            }
            for bound in analysis.bounds
        ],
        "clientNames": _client_names(header, run.thinning.map_clients),
        "flawed": sorted({client for members in header.flaws.values() for client in members}),
        "map": _map(run),
    }


def _last_slot(run: RunData) -> int:
    return max((last_recorded_slot(one) for one in run.table.selectors.values()), default=0)


def _selector(one: Series, slots: Ints) -> dict[str, Any]:
    analysis, label = one.analysis, one.summary.label
    table, shown = analysis.run.table.selectors[label], analysis.run.thinning.map_clients
    failures = failure_share(table.arrivals.sum(axis=0), table.attempts.sum(axis=0))
    return {
        "label": label,
        "name": one.name,
        "look": [one.look.colour, one.look.dash],
        "again": one.again,
        "repeated": one.repeated,
        "curves": {
            name: _sparse_band(curves[label]) if name == LOW_ACCURACY else _band(curves[label], slots)
            for name, curves in analysis.curves.items()
            if label in curves
        },
        "byBytes": None if table.measures is None else _band_by_bytes(table.measures, slots),
        "beliefs": {whose: _band(values, slots) for whose, values in analysis.run.beliefs.get(label, {}).items()},
        "shares": _numbers(selection_shares(table)[shown]),
        "failures": _numbers(failures[shown]),
    }


def selection_shares(table: SelectorTable) -> Floats:
    """(N,) share of the slots on record, over all trials, in which each client was elected; nan before the first."""
    slots = int(table.recorded.sum())
    return table.selections.sum(axis=0) / slots if slots else np.full(table.selections.shape[-1], np.nan)


def _band(values: Floats, slots: Ints) -> dict[str, Any]:
    band = mean_band(values[:, slots - 1])
    half = None if np.isnan(band.half_width).all() else _numbers(band.half_width)
    return {"mean": _numbers(band.mean), "half": half}


def _sparse_band(values: Floats) -> dict[str, Any]:
    """The band of what was measured now and then, with the slots of its points."""
    slots = np.flatnonzero(~np.isnan(values).all(axis=0)) + 1
    return {"x": slots.tolist(), **_band(values, slots)}


def _band_by_bytes(measures: MeasureCurves, slots: Ints) -> dict[str, Any] | None:
    """The band of the accuracy over the megabytes sent up to each slot, on average over trials; None if not known."""
    if np.isnan(measures.bytes_sent).all():
        return None
    spent = np.cumsum(np.nan_to_num(measures.bytes_sent), axis=-1)
    sent = mean_band(np.where(np.isnan(measures.accuracy), np.nan, spent) / 1e6).mean
    return {"x": _numbers(sent[slots - 1]), **_band(measures.accuracy, slots)}


def _client_names(header: RunHeader, shown: Ints) -> list[str]:
    names = header.client_names
    return [str(client) if names is None else f"{client} {names[client]}" for client in shown.tolist()]


def _groups(header: RunHeader) -> dict[int, str]:
    """Client -> the groups it is in and the flaws it has, in words."""
    found: dict[int, list[str]] = {}
    flaws = {f"flaw: {kind}": members for kind, members in header.flaws.items()}
    for name, members in [*header.groups.items(), *flaws.items()]:
        for client in members:
            found.setdefault(client, []).append(name)
    return {client: ", ".join(names) for client, names in found.items()}


def _map(run: RunData) -> dict[str, Any]:
    header, thinning = run.header, run.thinning
    shown, groups = thinning.map_clients.tolist(), _groups(header)
    positions, square, recorded = client_positions(header)
    columns = next(iter(run.frames.values())).status.shape[1] if run.frames else 0
    highest = max((_largest(frames.beliefs) for frames in run.frames.values()), default=0.0)
    decimals = 4 if highest <= 6.0 else math.floor(math.log10(60_000.0 / highest))
    return {
        "trials": thinning.map_trials,
        "slots": thinning.map_slots[:columns].tolist(),
        "clients": shown,
        "places": [[_six(x), _six(y)] for x, y in positions[thinning.map_clients].tolist()],
        "square": [_six(value) for value in square],
        "placesKnown": recorded,
        "links": [list(link) for link in thinning.map_links],
        "sizes": None if header.sizes is None else [header.sizes[client] for client in shown],
        "upload": None if header.upload_probability is None else [header.upload_probability[one] for one in shown],
        "groups": [groups.get(client, "") for client in shown],
        "opinionDecimals": OPINION_DECIMALS,
        "beliefDecimals": decimals,
        "statuses": STATUSES,
        "extents": {
            "opinion": _extent([frames.opinions for frames in run.frames.values()]),
            "belief": _extent([frames.beliefs for frames in run.frames.values() if frames.beliefs is not None]),
        },
        "frames": [_frames(run.frames[label], decimals) for label in header.labels],
    }


def _frames(frames: Frames, decimals: int) -> dict[str, Any]:
    opinions = None if np.isnan(frames.opinions).all() else _as_steps(frames.opinions, OPINION_DECIMALS)
    return {
        "status": _pack(frames.status),
        "rounds": _pack(frames.rounds),
        "members": _pack(frames.members),
        "arrivals": _pack(frames.arrivals),
        "elections": _pack(frames.elections),
        "opinions": None if opinions is None else _pack(opinions),
        "beliefs": None if frames.beliefs is None else _pack(_as_steps(frames.beliefs, decimals)),
    }


def _largest(values: Floats | None) -> float:
    return 0.0 if values is None else float(np.nanmax(values, initial=0.0))


def _extent(arrays: Sequence[Floats]) -> list[float | None]:
    """Range of the map's colours: the 1 % and 99 % quantiles, rounded as drawn."""
    present = np.concatenate([array[~np.isnan(array)] for array in arrays]) if arrays else np.empty(0)
    if not present.size:
        return [0.0, 1.0]
    return [_six(value) for value in np.quantile(present, (0.01, 0.99)).tolist()]


def _as_steps(values: Floats, decimals: int) -> Ints:
    """The values in whole steps of 10^-decimals, -1 where there is none."""
    return np.where(np.isnan(values), -1, np.rint(np.nan_to_num(values) * 10.0**decimals)).astype(np.int64)


def _pack(values: Ints) -> dict[str, Any]:
    """Whole numbers as text: two bytes for each, or four where one does not fit; -1 becomes the largest number."""
    width = 2 if values.max(initial=0) < 0xFFFF else 4
    whole = values.astype(f"<u{width}")  # -1 wraps around to the largest
    return {"width": width, "text": base64.b64encode(whole.tobytes()).decode("ascii")}


def client_positions(header: RunHeader) -> tuple[Floats, tuple[float, float, float, float], bool]:
    """Positions of the clients (N, 2), the square (left, bottom, right, top), and whether they are on record."""
    if header.positions_km is None:
        turn = 2.0 * np.pi * np.arange(header.clients) / header.clients
        return 0.5 + 0.42 * np.column_stack([np.sin(turn), np.cos(turn)]), (0.0, 0.0, 1.0, 1.0), False
    positions = np.array(header.positions_km, dtype=np.float64)
    topology = header.scenario.get("topology")
    side = topology.get("side_km") if isinstance(topology, dict) else None
    if isinstance(side, int | float) and side > 0 and positions.min() >= 0.0 and positions.max() <= side:
        return positions, (0.0, 0.0, float(side), float(side)), True
    centre = (positions.min(axis=0) + positions.max(axis=0)) / 2.0
    reach = max(float(np.ptp(positions, axis=0).max()) * 0.55, 1e-9)
    return positions, (centre[0] - reach, centre[1] - reach, centre[0] + reach, centre[1] + reach), True


def _numbers(values: ArrayLike) -> list[float | None]:
    return [_six(value) for value in np.asarray(values, dtype=np.float64).tolist()]


def _six(value: float) -> float | None:
    """The value to six digits; None for nan and infinity, which JSON lacks."""
    return float(f"{value:.6g}") if math.isfinite(value) else None
