"""Our own figures beside the paper's theory: `regret`, `convergence`, `complexity`."""

import itertools
import math
import statistics
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedelect.equations import theory
from paper.catalogue import Experiment
from paper.evidence import Evidence
from paper.figures.canvas import (
    BP_UCB_LOOK,
    LINE_STYLES,
    QUICK_INIT_LOOK,
    RANDOM_LOOK,
    LineStyle,
    legend_below,
    new_sheet,
    write_in_panel,
)
from paper.measurements.complexity import ComplexityTable
from paper.measurements.convergence import ConvergenceTable
from paper.measurements.regret import Regret, RegretCurve, RegretWorld
from paper.published import COUPLING_SCALE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE_STYLES = {"Quick-Init UCB": QUICK_INIT_LOOK, "BP-UCB": BP_UCB_LOOK}

_HIDES = 0.01
"""Curves that differ by less than this share of their height hide each other."""

_IN_SHORT = {
    theory.EXPLORATION_IS_ROOT_TWO: "mu must be √2, or one of the bound's two terms does not follow",
    theory.EVERY_ARM_PLAYED_ONCE: "every cohort must be played once at the start; here most are scored unplayed",
    theory.REWARDS_IGNORE_COHORT: "a client's reward must not depend on who else trains; here it does",
}
"""Conditions of the theorems, for the foot of a figure."""


def draw_regret(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`regret`: measured regret, the theorems' bounds, and the largest possible regret; both axes logarithmic."""
    path = folder / f"{one.name}.svg"
    regret = evidence.measurement("regret", Regret)
    with new_sheet(path, title=one.title, panels=2, width=10.4, height=7.4) as canvas:
        if regret is None:
            for axes in canvas.axes:
                write_in_panel(axes, "not measured yet: regret")
            canvas.footer.append(f"preset {evidence.preset.name}: 0 trials so far")
            return [path]
        curves = [curve for world in regret.worlds for curve in world.curves]
        for axes, world in zip(canvas.axes, regret.worlds, strict=True):
            _draw_world(axes, world, sorted({(curve.selector, curve.exploration) for curve in curves}))
        counts = sorted({curve.trials for curve in curves})
        canvas.footer += [
            f"preset {evidence.preset.name}: {counts[0]} to {counts[-1]} trials, T = "
            f"{', '.join(f'{slots:,}' for slots in sorted({curve.slots[-1] for curve in curves}))}; runs on atlases, "
            "for whose tables optimum, gaps and regret are exact. A bound at or above T R_max is vacuous: every run "
            "is below it.",
            *find_coinciding(regret),
            explain_bounds(regret.worlds[0]),
            *conditions(curves),
        ]
    return [path]


def find_coinciding(regret: Regret) -> list[str]:
    """Name the curves of one selector that hide each other, a sentence each."""
    said = []
    for side, world in zip(("Left", "Right"), regret.worlds, strict=True):
        for one, other in itertools.combinations(world.curves, 2):
            if one.selector != other.selector or one.slots != other.slots:
                continue
            apart = np.abs(np.array(one.mean) - np.array(other.mean))
            both = f"{side}: the curves of {one.selector} for mu = {one.exploration:.3g} and {other.exploration:.3g}"
            if not apart.any():
                said.append(f"{both} coincide at every slot.")
            elif (apart <= _HIDES * np.abs(one.mean)).all():
                said.append(f"{both} differ by at most {100 * _HIDES:g} % at every slot and hide each other.")
    return said


def explain_bounds(world: RegretWorld) -> str:
    """Explain the size of the bounds of the main world."""
    others = math.comb(world.clients, world.budget) - 1
    return (
        f"Left: R_min = {world.smallest_gap:.2g} is the smallest of the differences between the best cohort's mean and "
        f"those of {others:,} others, all estimates over a few trainings, and so below what the table resolves. The "
        "bounds grow with 1 / R_min (Theorem 1) and 1 / R_min² (Theorem 3): their size rests on it."
    )


def conditions(curves: list[RegretCurve]) -> list[str]:
    """Conditions of the proofs that the runs violate, a line for each selector and condition."""
    lines = []
    for selector in _LINE_STYLES:
        own = [curve for curve in curves if curve.selector == selector]
        for sentence in dict.fromkeys(sentence for curve in own for sentence in curve.violated):
            whose = sorted({curve.exploration for curve in own if sentence in curve.violated})
            every = whose == sorted({curve.exploration for curve in own})
            values = "every mu" if every else f"mu = {', '.join(f'{value:.3g}' for value in whose)}"
            lines.append(f"- {selector}, {values}: {_IN_SHORT.get(sentence, sentence.partition(' (')[0])}.")
    return ["What the proofs suppose and these runs do not meet:", *lines] if lines else []


def _draw_world(axes: "Axes", world: RegretWorld, known: list[tuple[str, float]]) -> None:
    """A panel; `known` are the selectors and explorations of all panels, so that each looks the same in both."""
    for curve in world.curves:
        style = _LINE_STYLES[curve.selector]
        explorations = [exploration for selector, exploration in known if selector == curve.selector]
        first = curve.exploration == explorations[0]
        slots, mean, half = np.array(curve.slots), np.array(curve.mean), np.array(curve.half_width)
        axes.plot(
            slots,
            mean,
            color=style.colour,
            linestyle=style.line if first else ":",
            linewidth=1.6,
            marker=style.marker,
            markersize=4 if first else 8,
            markerfacecolor=style.colour if first else "none",
            markevery=(0 if first else 4, 8),
            label=f"{curve.selector}, mu = {curve.exploration:.3g}: {mean[-1]:.4g} ± {half[-1]:.2g} "
            f"({curve.trials} trials)",
        )
        axes.fill_between(
            slots, np.maximum(mean - half, 1e-9), mean + half, color=style.colour, alpha=0.18, linewidth=0
        )
    for selector, style in _LINE_STYLES.items():
        curve = next(curve for curve in world.curves if curve.selector == selector)
        _draw_bound(axes, curve, style)
    longest = max(world.curves, key=lambda curve: curve.slots[-1])
    axes.plot(longest.slots, longest.ceiling, color=RANDOM_LOOK.colour, linewidth=1.0, label="T R_max")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.05)
    axes.set_xlabel("slot T")
    axes.set_ylabel("cumulative regret")
    axes.set_title(
        f"{world.name}: N = {world.clients}, K = {world.budget}, R_min = {world.smallest_gap:.2g}, "
        f"R_max = {world.largest_gap:.2g}",
        loc="left",
        fontsize=9,
    )
    legend_below(axes, columns=1)  # bounds lie high, curves low: no room between


def _draw_bound(axes: "Axes", curve: RegretCurve, style: LineStyle) -> None:
    slots, bound, ceiling = np.array(curve.slots), np.array(curve.bound), np.array(curve.ceiling)
    said = "vacuous up to T" if curve.vacuous else f"not vacuous by T = {slots[bound < ceiling][0]:,}"
    label = f"{curve.theorem}, bound for {curve.selector}: {said}"
    axes.plot(slots[1:], bound[1:], color=style.colour, linewidth=0.9, linestyle=(0, (8, 3)), label=label)


def draw_convergence(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`convergence`: on how many topologies each condition promises convergence, and on how many it happens."""
    path = folder / f"{one.name}.svg"
    table = evidence.measurement("convergence", ConvergenceTable)
    with new_sheet(path, title=one.title) as canvas:
        (axes,) = canvas.axes
        if table is None:
            write_in_panel(axes, "not measured yet: convergence")
            canvas.footer.append(f"preset {evidence.preset.name}: 0 trials so far")
            return [path]
        scales = [row.scale for row in table.rows]
        counts = {
            "Theorem 2 as printed (without C) promises": [row.theorem_as_printed_holds for row in table.rows],
            "Theorem 2 with C promises": [row.theorem_holds for row in table.rows],
            "Corollary 1 promises": [row.corollary_holds for row in table.rows],
            f"settled within {table.rounds} rounds": [row.settled for row in table.rows],
            "settled within 10 rounds": [row.settled_in_ten for row in table.rows],
        }
        for number, ((name, values), style) in enumerate(zip(counts.items(), LINE_STYLES, strict=False)):
            thick = len(counts) - number  # where lines coincide, the lower ones show at the sides of the upper ones
            axes.plot(
                scales,
                values,
                color=style.colour,
                linestyle=style.line,
                linewidth=0.3 + 0.8 * thick,
                marker=style.marker,
                markersize=3.5 + 1.5 * thick,
                label=name,
            )
        axes.axvline(COUPLING_SCALE, color="black", linewidth=0.6, linestyle=(0, (6, 4)))
        axes.text(
            COUPLING_SCALE,
            1.0,
            f" paper: C = {COUPLING_SCALE:g}",
            transform=axes.get_xaxis_transform(),
            fontsize=7,
            va="bottom",
        )
        axes.set_xscale("log")
        axes.set_xlabel("C of the coupling -C d^β")
        axes.set_ylabel(f"topologies, of {table.rows[0].topologies}")
        legend_below(axes)
        canvas.footer += [
            f"preset {evidence.preset.name}: {table.rows[0].topologies} trials, each a topology of N = {table.clients} "
            f"clients with random opinions, for each C; no slots. Settled: residual below {table.tolerance:g}.",
            "Markers: the C that were tried; the lines between them only lead the eye.",
        ]
    return [path]


def draw_complexity(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`complexity`: the paper's operations, and the time a decision takes here."""
    path = folder / f"{one.name}.svg"
    table = evidence.measurement("complexity", ComplexityTable)
    with new_sheet(path, title=one.title, panels=2, width=11) as canvas:
        if table is None:
            for axes in canvas.axes:
                write_in_panel(axes, "not measured yet: complexity")
            canvas.footer.append(f"preset {evidence.preset.name}: 0 trials so far")
            return [path]
        counted, measured = canvas.axes
        clients = [row.clients for row in table.rows]
        operations = (
            ("Quick-Init UCB: T |A|²", [row.quick_init_operations for row in table.rows], QUICK_INIT_LOOK),
            ("BP-UCB: T N³", [row.bp_ucb_operations for row in table.rows], BP_UCB_LOOK),
        )
        for name, counts, style in operations:
            counted.plot(clients, counts, color=style.colour, linestyle=style.line, marker=style.marker, label=name)
        times = (
            ("Quick-Init UCB", [row.quick_init_ms for row in table.rows], QUICK_INIT_LOOK),
            ("BP-UCB", [row.bp_ucb_ms for row in table.rows], BP_UCB_LOOK),
        )
        for name, milliseconds, style in times:
            middle = [statistics.median(row) for row in milliseconds]
            fastest = [median - min(row) for median, row in zip(middle, milliseconds, strict=True)]
            slowest = [max(row) - median for median, row in zip(middle, milliseconds, strict=True)]
            bars = {"color": style.colour, "linestyle": style.line, "marker": style.marker, "capsize": 3}
            measured.errorbar(clients, middle, yerr=[fastest, slowest], label=name, **bars)
        for axes, name in ((counted, "operations, as the paper counts them"), (measured, "ms a decision, median")):
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel("number of clients N")
            axes.set_ylabel(name)
            axes.legend(loc="upper left")
        canvas.footer += [
            f"preset {evidence.preset.name}: {len(table.rows[0].quick_init_ms)} trials (repetitions) for each N, T = "
            f"{table.slots} decisions after the cold start, K = {table.budget}. Right: ask and tell on one machine; "
            "bars from the fastest to the slowest repetition; trust orders of magnitude.",
        ]
    return [path]
