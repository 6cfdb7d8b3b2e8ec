"""Figures of single clients: `network`, `cen_selected_time`, `BP_value`. Clients carry the paper's numbers, from 1."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedelect.equations.intervals import mean_band, mean_interval
from fedelect.scenario import TopologyConfig
from fedelect.scenario.topology import draw_topology
from fedelect.vocabulary import Floats
from paper import published
from paper.blocks import Curves
from paper.catalogue import MAIN, Experiment, bp_ucb, quick_init
from paper.evidence import Evidence, elections
from paper.figures.canvas import (
    LINE_STYLES,
    fewer,
    interval_text,
    legend_below,
    make_title,
    new_sheet,
    plot_line,
    trials_text,
    write_in_panel,
)
from paper.series import RunRequest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER_SLOTS = 500
"""T of the figure for which the paper states elections."""

FIRST_SLOTS = 30
"""Slots in the left panel of `BP_value`."""


def draw_network(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`network`: places and links of the base scenario."""
    path = folder / f"{one.name}.svg"
    config = MAIN.config(evidence.store.base)
    topology = draw_topology(config.topology, config.clients, seed=config.seed)
    places, iid = topology.positions_km, config.data.iid_clients
    with new_sheet(path, title=one.title, width=6.4, height=6.4) as canvas:
        (axes,) = canvas.axes
        for first, second in topology.edges.tolist():
            axes.plot(*places[[first, second]].T, color="#a0a8b0", linewidth=0.9, zorder=1)
        kinds = ((slice(0, iid), "i.i.d. data", LINE_STYLES[0]), (slice(iid, None), "other data", LINE_STYLES[1]))
        for members, label, style in kinds:
            axes.plot(*places[members].T, style.marker, color=style.colour, markersize=9, label=label, zorder=2)
        axes.plot(*topology.server_km, "*", color="black", markersize=14, label="server", zorder=2)
        for client, (x, y) in enumerate(places.tolist()):
            axes.annotate(str(client + 1), (x, y), (6, 5), textcoords="offset points", fontsize=8)
        axes.set_xlim(0.0, config.topology.side_km)
        axes.set_ylim(0.0, config.topology.side_km)
        axes.set_aspect("equal")
        axes.set_xlabel("km")
        axes.set_ylabel("km")
        legend_below(axes, columns=3)
        canvas.footer += [
            f"preset {evidence.preset.name}: 0 trials, for this is the scenario itself (seed {config.seed}), the same "
            f"in every trial; {config.clients} clients, {len(topology.edges)} links.",
            f"{link_rule(config.topology)} The paper does not state its places.",
        ]
    return [path]


def link_rule(topology: TopologyConfig) -> str:
    """By which rule clients are linked, in a sentence or two."""
    if topology.link == "nearest":
        rule = f"Every client is linked to its {topology.neighbours} nearest; as links go both ways, some have more."
    elif topology.link == "radius":
        rule = f"All clients at most {topology.radius_km:g} km apart are linked."
    else:
        rule = "The links are listed in the scenario."
    return f"{rule} Parts that would hang apart are joined by the shortest link between them."


def draw_elections(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`cen_selected_time`: how often each client is elected."""
    path = folder / f"{one.name}.svg"
    (request,) = one.at(evidence.preset)
    curves = evidence.curves(quick_init(), slots=request.slots, trials=request.trials)
    title = f"How often Quick-Init UCB elects each client in T = {request.slots} slots"
    with new_sheet(path, title=make_title(title, evidence.preset)) as canvas:
        (axes,) = canvas.axes
        axes.set_xlabel("client")
        axes.set_ylabel("slots in which it is elected")
        count = 0
        if curves is None:
            canvas.missing.append("Quick-Init UCB")
        else:
            count = len(curves.trials)
            _draw_bars(axes, curves, request, iid=evidence.store.base.data.iid_clients)
        canvas.footer += [
            trials_text(evidence.preset.name, [count] if count else [], request.slots),
            "Bars: mean over trials with 95 % intervals; in the legend the mean over the clients of a kind with its "
            "interval over trials. Clients carry the paper's numbers, from 1.",
        ]
    return [path]


def _draw_bars(axes: "Axes", curves: Curves, request: RunRequest, *, iid: int) -> None:
    counts = elections(curves).astype(np.float64)
    band = mean_band(counts)
    numbers = np.arange(1, len(band.mean) + 1)
    short = fewer([len(counts)], request.trials)
    kinds = ((slice(0, iid), "i.i.d. data", "#0072b2", "//"), (slice(iid, None), "other data", "#b9c4cc", ""))
    for members, name, colour, hatch in kinds:
        together = mean_interval(counts[:, members].mean(axis=1))
        axes.bar(
            numbers[members],
            band.mean[members],
            yerr=band.half_width[members],
            capsize=2,
            color=colour,
            hatch=hatch,
            edgecolor="white",
            label=f"{name}: mean {interval_text(together, 2)}{short}",
        )
    if request.slots == PAPER_SLOTS:
        ends = (0.5, iid + 0.5, np.nan, iid + 0.5, len(numbers) + 0.5)
        first, others = published.IID_ELECTIONS, published.SKEWED_ELECTIONS
        said = (first, first, np.nan, others, others)
        label = f"paper: mean {first:.2f} (i.i.d.) and {others:.2f} (other)"
        axes.plot(ends, said, color="black", linewidth=1.0, linestyle=(0, (6, 3)), label=label)
    axes.set_xticks(numbers)
    axes.set_xlim(0.3, len(numbers) + 0.7)
    axes.grid(visible=False, axis="x")
    legend_below(axes)


def draw_beliefs(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`BP_value`: shares of belief of the first five clients."""
    path = folder / f"{one.name}.svg"
    (request,) = one.at(evidence.preset)
    curves = evidence.curves(bp_ucb(), slots=request.slots, trials=request.trials)
    with new_sheet(
        path, title=make_title(one.title, evidence.preset), panels=2, width=10, height=5.0, share_y=True
    ) as canvas:
        count = 0
        for axes in canvas.axes:
            axes.set_xlabel("slot t")
            axes.set_ylabel("share of all clients' beliefs")
        if curves is None or curves.beliefs is None or curves.belief_half_width is None:
            canvas.missing.append("BP-UCB")
            for axes in canvas.axes:
                write_in_panel(axes, "not run yet")
        else:
            count = len(curves.trials)
            for axes, end in zip(canvas.axes, (FIRST_SLOTS, request.slots), strict=True):
                _draw_shares(axes, curves.beliefs[:end], curves.belief_half_width[:end], fewer([count], request.trials))
            legend_below(canvas.axes[0])
        canvas.footer += [
            trials_text(evidence.preset.name, [count] if count else [], request.slots),
            "Left: the first slots. Bands: 95 % intervals over trials. Clients carry the paper's numbers, from 1. The "
            "vertical axis does not begin at 0.",
        ]
    return [path]


def _draw_shares(axes: "Axes", mean: Floats, half: Floats, short: str) -> None:
    """The first clients' (T, N) shares of belief, and the share that everybody has when all believe alike."""
    for client in range(MAIN.budget):
        plot_line(axes, mean[:, client], half[:, client], LINE_STYLES[client], f"client {client + 1}{short}")
    clients = mean.shape[1]
    axes.axhline(1 / clients, color="black", linewidth=0.7, label=f"1/N = {1 / clients:g}: all beliefs equal")
    axes.axvline(published.BELIEF_SLOTS, color="black", linewidth=0.6, linestyle=(0, (6, 4)))
    axes.text(
        published.BELIEF_SLOTS,
        1.0,
        f" paper: converged after about {published.BELIEF_SLOTS} slots",
        transform=axes.get_xaxis_transform(),
        fontsize=7,
        va="bottom",
    )
