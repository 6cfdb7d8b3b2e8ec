"""Figures of single clients: `network`, `cen_selected_time`, `BP_value`. Clients carry the paper's numbers, from 1."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedelect.equations.intervals import mean_band
from fedelect.reproduce import paper
from fedelect.reproduce.catalogue import MAIN, Experiment, bp_ucb, quick_init
from fedelect.reproduce.figures.sheet import LOOKS, fewer, new_sheet, plot_line, say, trials_text
from fedelect.reproduce.readings import Evidence, elections
from fedelect.scenario.topology import draw_topology

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER_SLOTS = 500
"""T of the figure for which the paper states elections."""

FIRST_SLOTS = 30
"""Slots in the left panel of `BP_value`."""


def draw_network(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`network`: places and links of the base scenario."""
    path = folder / f"{one.name}.svg"
    config = MAIN.config(evidence.library.base)
    topology = draw_topology(config.topology, config.clients, seed=config.seed)
    places, iid = topology.positions_km, config.data.iid_clients
    with new_sheet(path, title=one.title, width=6.4, height=6.2) as sheet:
        (axes,) = sheet.axes
        for first, second in topology.edges.tolist():
            axes.plot(*places[[first, second]].T, color="#a0a8b0", linewidth=0.9, zorder=1)
        kinds = ((slice(0, iid), "i.i.d. data", LOOKS[0]), (slice(iid, None), "other data", LOOKS[1]))
        for members, label, look in kinds:
            axes.plot(*places[members].T, look.marker, color=look.colour, markersize=9, label=label, zorder=2)
        axes.plot(*topology.server_km, "*", color="black", markersize=14, label="server", zorder=2)
        for client, (x, y) in enumerate(places.tolist()):
            axes.annotate(str(client + 1), (x, y), (6, 5), textcoords="offset points", fontsize=8)
        axes.set_xlim(0.0, config.topology.side_km)
        axes.set_ylim(0.0, config.topology.side_km)
        axes.set_aspect("equal")
        axes.set_xlabel("km")
        axes.set_ylabel("km")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=3)
        sheet.footer += [
            f"preset {evidence.preset.name}: 0 trials, for this is the scenario itself (seed {config.seed}), the same "
            f"in every trial; {config.clients} clients, {len(topology.edges)} links. The paper does not state its "
            "places.",
        ]
    return [path]


def draw_elections(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`cen_selected_time`: how often each client is elected."""
    path = folder / f"{one.name}.svg"
    (demand,) = one.at(evidence.preset)
    curves = evidence.curves(quick_init(), slots=demand.slots, trials=demand.trials)
    iid = evidence.library.base.data.iid_clients
    with new_sheet(path, title=f"How often Quick-Init UCB elects each client in T = {demand.slots} slots") as sheet:
        (axes,) = sheet.axes
        axes.set_xlabel("client")
        axes.set_ylabel("slots in which it is elected")
        count = 0
        if curves is None:
            sheet.missing.append("Quick-Init UCB")
        else:
            count = len(curves.trials)
            band = mean_band(elections(curves).astype(np.float64))
            numbers = np.arange(1, len(band.mean) + 1)
            kinds = ((slice(0, iid), "i.i.d. data", "#0072b2", "//"), (slice(iid, None), "other data", "#b9c4cc", ""))
            for members, name, colour, hatch in kinds:
                axes.bar(
                    numbers[members],
                    band.mean[members],
                    yerr=band.half_width[members],
                    color=colour,
                    hatch=hatch,
                    edgecolor="white",
                    label=f"{name}: mean {band.mean[members].mean():.2f}{fewer(count, demand.trials)}",
                )
            if demand.slots == PAPER_SLOTS:
                _mark_elections(axes, 0.5, iid + 0.5, paper.IID_ELECTIONS)
                _mark_elections(axes, iid + 0.5, len(numbers) + 0.5, paper.SKEWED_ELECTIONS)
            axes.set_xticks(numbers)
            axes.legend(loc="upper right")
        sheet.footer += [
            trials_text(evidence.preset.name, [count] if count else [], demand.slots),
            "Bars: mean over trials with 95 % intervals. Clients carry the paper's numbers, from 1.",
        ]
    return [path]


def _mark_elections(axes: "Axes", low: float, high: float, value: float) -> None:
    axes.plot([low, high], [value, value], color="black", linewidth=0.8)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    axes.text(high, value + 4, f"paper: {value:g}", fontsize=7, ha="right", va="bottom", bbox=box)


def draw_beliefs(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`BP_value`: shares of belief of the first five clients."""
    path = folder / f"{one.name}.svg"
    (demand,) = one.at(evidence.preset)
    curves = evidence.curves(bp_ucb(), slots=demand.slots, trials=demand.trials)
    with new_sheet(path, title=one.title, panels=2, width=11) as sheet:
        count = 0
        for axes in sheet.axes:
            axes.set_xlabel("slot t")
            axes.set_ylabel("share of all clients' beliefs")
        if curves is None or curves.beliefs is None or curves.belief_half_width is None:
            sheet.missing.append("BP-UCB")
            for axes in sheet.axes:
                say(axes, "not run yet")
        else:
            count = len(curves.trials)
            for axes, end in zip(sheet.axes, (FIRST_SLOTS, demand.slots), strict=True):
                for client in range(MAIN.budget):
                    mean, half = curves.beliefs[:end, client], curves.belief_half_width[:end, client]
                    label = f"client {client + 1}{fewer(count, demand.trials)}"
                    plot_line(axes, mean, half, LOOKS[client], label)
                axes.axvline(paper.BELIEF_SLOTS, color="black", linewidth=0.6, linestyle=(0, (6, 4)))
                axes.text(
                    paper.BELIEF_SLOTS,
                    1.0,
                    f" paper: converged after about {paper.BELIEF_SLOTS} slots",
                    transform=axes.get_xaxis_transform(),
                    fontsize=7,
                    va="bottom",
                )
            sheet.axes[0].legend(loc="best")
        sheet.footer += [
            trials_text(evidence.preset.name, [count] if count else [], demand.slots),
            "Left: the first slots. Bands: 95 % intervals over trials. Clients carry the paper's numbers, from 1.",
        ]
    return [path]
