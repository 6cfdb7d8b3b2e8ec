"""`sensitivity`: our own figure and table of how much exploration and the rule for ties decide, from runs on the atlas.

The sentences below the table are made from its numbers; their words depend on whether intervals overlap.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from fedelect.equations.intervals import Interval
from paper import published
from paper.catalogue import MAIN, Experiment
from paper.evidence import Evidence
from paper.figures.canvas import (
    BP_UCB_LOOK,
    BY_NUMBER_LOOK,
    QUICK_INIT_LOOK,
    interval_text,
    new_sheet,
    write_in_panel,
    write_lines,
)
from paper.measurements.sensitivity import LAST, Estimate, Sensitivity, Variant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AT_RANDOM = ("Quick-Init UCB", "at random")
BY_NUMBER = ("Quick-Init UCB", "by client number")
BP_UCB = ("BP-UCB", "at random")

_LINE_STYLES = {AT_RANDOM: (QUICK_INIT_LOOK, 0.94), BY_NUMBER: (BY_NUMBER_LOOK, 1.0), BP_UCB: (BP_UCB_LOOK, 1.06)}
"""How a selector with a rule for ties is drawn, and by which factor it is set apart from the others."""

_PAPERS_MU = 1.0
_PAPERS_MU_OF_BP_UCB = 0.01


def draw_sensitivity(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`sensitivity`: final and running gap to the optimum, and who is elected, against exploration."""
    path = folder / f"{one.name}.svg"
    measured = evidence.measurement("sensitivity", Sensitivity)
    with new_sheet(path, title=one.title, panels=3, width=11, height=4.8) as canvas:
        if measured is None:
            for axes in canvas.axes:
                write_in_panel(axes, "not measured yet: sensitivity")
            canvas.footer.append(f"preset {evidence.preset.name}: 0 trials so far")
            return [path]
        readings = (
            ("final_gap", f"gap in the {_last(measured)}, % of the optimum"),
            ("running_gap", "gap over all slots, % of the optimum"),
            ("share_of_first_five", "elections of clients 1 to 5, % of all"),
        )
        for axes, (reading, name) in zip(canvas.axes, readings, strict=True):
            _plot_reading(axes, measured, reading)
            axes.set_ylabel(name)
        canvas.axes[0].legend(loc="upper left")
        canvas.footer += [
            *_notes(measured, evidence.preset.name),
            "Points of one mu are set apart a little to be seen.",
        ]
    table = folder / f"{one.name}.md"
    write_lines(table, _table(measured, evidence.preset.name))
    return [path, table]


def _plot_reading(axes: "Axes", measured: Sensitivity, reading: str) -> None:
    for kind, (style, aside) in _LINE_STYLES.items():
        own = variants(measured, kind)
        estimates = [_percent(getattr(variant, reading)) for variant in own]
        axes.errorbar(
            [aside * variant.exploration for variant in own],
            [estimate.mean for estimate in estimates],
            yerr=[estimate.half_width or 0.0 for estimate in estimates],
            color=style.colour,
            linestyle=style.line,
            marker=style.marker,
            capsize=3,
            label=f"{kind[0]}, ties {_ties(kind)}",
        )
    ticks = sorted({variant.exploration for variant in measured.variants})
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlabel("exploration mu")
    axes.set_ylim(0.0, 1.35 * axes.get_ylim()[1])  # room for the legend


def _table(measured: Sensitivity, preset: str) -> list[str]:
    """The same as numbers, in percent, with sentences that compare them with the paper's."""
    gaps = f"gap, {_last(measured)}, % of the optimum | gap, all slots, % of the optimum"
    lines = [f"| selector | mu | ties | {gaps} | elections of clients 1 to 5, % |", "|" + "---|" * 6]
    for one in measured.variants:
        estimates = (one.final_gap, one.running_gap, one.share_of_first_five)
        figures = " | ".join(interval_text(_percent(estimate), 2) for estimate in estimates)
        lines.append(f"| {one.selector} | {one.exploration:g} | {_ties((one.selector, one.ties))} | {figures} |")
    says = [f"- {sentence}" for sentence in explanation(measured)]
    return [*lines, "", " ".join(_notes(measured, preset)), "", *says]


def _notes(measured: Sensitivity, preset: str) -> list[str]:
    return [
        f"preset {preset}: {measured.trials} trials, T = {measured.slots}, on the atlas; 95 % intervals over trials.",
        f"Gaps are to the best cohort of the atlas' table, worth {measured.optimum:.4f}, and relative to it; not to "
        "clients 1 to 5, the paper's optimum. BP-UCB breaks ties by a hash of seed, slot and client.",
    ]


def explanation(measured: Sensitivity) -> list[str]:
    """Sentences that compare the numbers with the paper's results."""
    return [*_beside_the_paper(measured), *_smallest_gaps(measured), *_by_number(measured)]


def _beside_the_paper(measured: Sensitivity) -> list[str]:
    """Quick-Init UCB's gap, in points as the paper has it, with the paper's mu and with that of BP-UCB."""
    own = {variant.exploration: variant for variant in variants(measured, AT_RANDOM)}
    stated, points = 100 * published.QUICK_INIT_GAP, 100 * measured.optimum
    said = []
    for mu in (_PAPERS_MU, _PAPERS_MU_OF_BP_UCB):
        if mu in own:
            gaps = [_percent(estimate, points) for estimate in (own[mu].running_gap, own[mu].final_gap)]
            every, last = (f"{interval_text(gap, 2)} points ({_describe_gap(gap, stated)})" for gap in gaps)
            said.append(f"with mu = {mu:g} by {every} over all slots and {last} in the {_last(measured)}")
    if not said:
        return []
    nearest = min(own, key=lambda mu: abs(points * own[mu].running_gap.mean - stated))
    whose = "the paper's own" if nearest == _PAPERS_MU else f"not the paper's {_PAPERS_MU:g}"
    return [
        f"In the paper Quick-Init UCB is {stated:.2f} points below clients 1 to 5 at T = {published.BASELINES_SLOTS}. "
        f"Here, with ties at random, it is below the best cohort, in T = {measured.slots} slots, {'; '.join(said)}. "
        f"Of the mu tried, {nearest:g} comes nearest to the paper's gap over all slots, {whose}."
    ]


def _smallest_gaps(measured: Sensitivity) -> list[str]:
    """Which mu loses least, for each selector."""
    said = []
    for kind in _LINE_STYLES:
        own = variants(measured, kind)
        if not own:
            continue
        every = _smallest({variant.exploration: _percent(variant.running_gap) for variant in own})
        last = _smallest({variant.exploration: _percent(variant.final_gap) for variant in own})
        mu = every if every == last else f"{every} over all slots and {last} in the {_last(measured)}"
        said.append(f"mu = {mu} for {kind[0]}, ties {_ties(kind)}")
    level = ' ("or": intervals do not tell them apart)' if any(" or " in one for one in said) else ""
    return [f"The gap is smallest, over all slots and in the {_last(measured)}, with {'; '.join(said)}{level}."]


def _by_number(measured: Sensitivity) -> list[str]:
    """What ties by client number change in the share of elections of clients 1 to 5."""
    fair = {variant.exploration: _percent(variant.share_of_first_five) for variant in variants(measured, AT_RANDOM)}
    told = {variant.exploration: _percent(variant.share_of_first_five) for variant in variants(measured, BY_NUMBER)}
    said = [
        f"{interval_text(told[mu], 2)} % instead of {interval_text(fair[mu], 2)} % at mu = {mu:g} "
        f"({_compare(told[mu], fair[mu])})"
        for mu in sorted(fair.keys() & told.keys())
    ]
    iid, skewed = 5 * published.IID_ELECTIONS, (MAIN.clients - 5) * published.SKEWED_ELECTIONS
    if not said:
        return []
    return [
        "With ties by client number instead of at random the share of clients 1 to 5 in Quick-Init UCB's elections is "
        f"{', '.join(said)}; in the paper it is {100 * iid / (iid + skewed):.1f} %."
    ]


def variants(measured: Sensitivity, kind: tuple[str, str]) -> list[Variant]:
    """Those of one selector and rule for ties."""
    return [variant for variant in measured.variants if (variant.selector, variant.ties) == kind]


def _ties(kind: tuple[str, str]) -> str:
    """The rule for ties as it is shown: BP-UCB's hash is as good as chance and is kept as such."""
    return "by a hash" if kind == BP_UCB else kind[1]


def _last(measured: Sensitivity) -> str:
    return f"last {min(LAST, measured.slots)} slots"


def _percent(estimate: Estimate, scale: float = 100.0) -> Interval:
    half = None if estimate.half_width is None else scale * estimate.half_width
    return Interval(scale * estimate.mean, half, 0)


def _describe_gap(gap: Interval, stated: float) -> str:
    """Compare our gap with the paper's, in words."""
    if gap.low is None or gap.high is None:
        return "no interval"
    if gap.low <= stated <= gap.high:
        return "the paper's is within the interval"
    return "more" if gap.low > stated else "less"


def _compare(one: Interval, other: Interval) -> str:
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return "no intervals"
    if one.low <= other.high and other.low <= one.high:
        return "intervals overlap"
    return "more" if one.mean > other.mean else "less"


def _smallest(gaps: dict[float, Interval]) -> str:
    """The mu of the smallest gap, and those that cannot be told from it by their intervals."""
    order = sorted(gaps, key=lambda mu: gaps[mu].mean)
    level = [mu for mu in order[1:] if _compare(gaps[mu], gaps[order[0]]) != "more"]
    return " or ".join(f"{mu:g}" for mu in [order[0], *sorted(level)])
