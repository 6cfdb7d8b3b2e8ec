"""Our own figures from runs on atlases: `regret` and `sensitivity`."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedelect.reproduce.catalogue import Experiment
from fedelect.reproduce.figures.sheet import BP_UCB_LOOK, LOOKS, QUICK_INIT_LOOK, RANDOM_LOOK, Look, new_sheet, say
from fedelect.reproduce.measurements.regret import Regret, RegretCurve, RegretWorld
from fedelect.reproduce.measurements.sensitivity import Estimate, Sensitivity
from fedelect.reproduce.readings import Evidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOOKS = {"Quick-Init UCB": QUICK_INIT_LOOK, "BP-UCB": BP_UCB_LOOK}


def draw_regret(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`regret`: what was lost, what the theorems allow, and what T slots can lose at all; both axes logarithmic."""
    path = folder / f"{one.name}.svg"
    regret = evidence.measurement("regret", Regret)
    with new_sheet(path, title=one.title, panels=2, width=13, height=7.0) as sheet:
        if regret is None:
            for axes in sheet.axes:
                say(axes, "not measured yet: regret")
            sheet.footer.append(f"preset {evidence.preset.name}: 0 trials so far")
            return [path]
        for axes, world in zip(sheet.axes, regret.worlds, strict=True):
            _draw_world(axes, world)
        curves = [curve for world in regret.worlds for curve in world.curves]
        counts = sorted({curve.trials for curve in curves})
        sheet.footer.append(
            f"preset {evidence.preset.name}: {counts[0]} to {counts[-1]} trials, T = "
            f"{', '.join(f'{slots:,}' for slots in sorted({curve.slots[-1] for curve in curves}))}; runs on atlases, "
            "so that optimum, gaps and regret are exact. A bound at or above T R_max is vacuous: every run is below it."
        )
        for selector in _LOOKS:
            violated = dict.fromkeys(
                sentence for curve in curves if curve.selector == selector for sentence in curve.violated
            )
            sheet.footer.append(f"Conditions that {selector} violates in some run: {'; '.join(violated)}.")
    return [path]


def _draw_world(axes: "Axes", world: RegretWorld) -> None:
    for number, curve in enumerate(world.curves):
        look = _LOOKS[curve.selector]
        slots, mean, half = np.array(curve.slots), np.array(curve.mean), np.array(curve.half_width)
        line = look.line if number % 2 == 0 else ":"
        label = (
            f"{curve.selector}, mu = {curve.exploration:.3g}: {mean[-1]:.4g} ± {half[-1]:.2g} ({curve.trials} trials)"
        )
        axes.plot(slots, mean, color=look.colour, linestyle=line, linewidth=1.6, label=label)
        axes.fill_between(slots, np.maximum(mean - half, 1e-9), mean + half, color=look.colour, alpha=0.18, linewidth=0)
    for selector, look in _LOOKS.items():
        curve = next(curve for curve in world.curves if curve.selector == selector)
        _draw_bound(axes, curve, look)
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
    axes.legend(loc="upper left", bbox_to_anchor=(0.0, -0.13))  # bounds lie high, curves low: no room between


def _draw_bound(axes: "Axes", curve: RegretCurve, look: Look) -> None:
    slots, bound, ceiling = np.array(curve.slots), np.array(curve.bound), np.array(curve.ceiling)
    said = "vacuous up to T" if curve.vacuous else f"not vacuous from T = {slots[bound < ceiling][0]:,}"
    label = f"{curve.theorem}, bound for {curve.selector}: {said}"
    axes.plot(slots[1:], bound[1:], color=look.colour, linewidth=0.9, linestyle=(0, (8, 3)), label=label)


def draw_sensitivity(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`sensitivity`: final and running gap to the optimum, and who is elected, against exploration."""
    path = folder / f"{one.name}.svg"
    measured = evidence.measurement("sensitivity", Sensitivity)
    with new_sheet(path, title=one.title, panels=3, width=14) as sheet:
        if measured is None:
            for axes in sheet.axes:
                say(axes, "not measured yet: sensitivity")
            sheet.footer.append(f"preset {evidence.preset.name}: 0 trials so far")
            return [path]
        kinds = dict.fromkeys((variant.selector, variant.ties) for variant in measured.variants)
        readings = (
            ("final_gap", "gap to the optimum, last slots, %"),
            ("running_gap", "gap to the optimum, all slots, %"),
            ("share_of_first_five", "share of elections of clients 1 to 5, %"),
        )
        for axes, (reading, name) in zip(sheet.axes, readings, strict=True):
            for (selector, ties), look in zip(kinds, LOOKS, strict=False):
                variants = [one for one in measured.variants if (one.selector, one.ties) == (selector, ties)]
                estimates = [getattr(variant, reading) for variant in variants]
                axes.errorbar(
                    [variant.exploration for variant in variants],
                    [100 * estimate.mean for estimate in estimates],
                    yerr=[100 * (estimate.half_width or 0.0) for estimate in estimates],
                    color=look.colour,
                    linestyle=look.line,
                    marker=look.marker,
                    capsize=3,
                    label=f"{selector}, ties {ties}",
                )
            axes.set_xscale("log")
            axes.set_xlabel("exploration mu")
            axes.set_ylabel(name)
            axes.set_ylim(0.0, 1.35 * axes.get_ylim()[1])  # room for the legend
        sheet.axes[0].legend(loc="upper left")
        sheet.footer.append(
            f"preset {evidence.preset.name}: {measured.trials} trials, T = {measured.slots}, on the atlas; 95 % "
            f"intervals over trials. The optimum of the atlas is worth {measured.optimum:.4f}."
        )
    return [path, _sensitivity_table(measured, folder / f"{one.name}.md", evidence.preset.name)]


def _sensitivity_table(measured: Sensitivity, path: Path, preset: str) -> Path:
    """The same as numbers, in percent."""

    def text(estimate: Estimate) -> str:
        return f"{100 * estimate.mean:.2f} ± {100 * (estimate.half_width or 0.0):.2f}"

    lines = ["| selector | mu | ties | gap, last slots, % | gap, all slots, % | elections of clients 1 to 5, % |"]
    lines.append("|" + "---|" * 6)
    for one in measured.variants:
        figures = " | ".join(text(value) for value in (one.final_gap, one.running_gap, one.share_of_first_five))
        lines.append(f"| {one.selector} | {one.exploration:g} | {one.ties} | {figures} |")
    lines += ["", f"preset {preset}: {measured.trials} trials, T = {measured.slots}, on the atlas; 95 % intervals."]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
