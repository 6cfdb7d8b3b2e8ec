"""`comparison_table`: slots until a target, as Markdown and as CSV, the paper's figures beside ours."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedelect.equations.intervals import Interval, mean_interval
from paper import published
from paper.catalogue import OPTIMAL, RANDOM, TARGETS, Experiment, bp_ucb, quick_init
from paper.evidence import Evidence, slots_to_target
from paper.figures.canvas import fewer, interval_text, trials_text, write_lines
from paper.series import Series

ALGORITHMS: dict[str, tuple[str, Series]] = {
    "optimal": ("optimal solution", OPTIMAL),
    "random": ("random selection", RANDOM),
    "quick-init": ("Quick-Init UCB", quick_init()),
    "bp-ucb": ("BP-UCB", bp_ucb()),
}
"""Columns of the paper's table: key in `published.TABLE` -> its name and our series."""


_COLUMNS = (
    *("target", "algorithm", "paper_slots", "slots", "slots_half_width", "reached", "trials"),
    *("paper_accuracy", "accuracy", "accuracy_half_width", "horizon", "preset"),
)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One algorithm and target, ours.

    Attributes:
        slots: Slots until the target; T in trials that never reach it.
        accuracy: Average accuracy there, or at T.
        reached: Trials that reach it.
        horizon: T.
    """

    slots: Interval
    accuracy: Interval
    reached: int
    horizon: int


def table_cell(evidence: Evidence, series: Series, target: float, *, slots: int, trials: int) -> Cell | None:
    """Our figures for one series and target, or None if nothing is on file."""
    curves = evidence.curves(series, slots=slots, trials=trials)
    if curves is None:
        return None
    when = slots_to_target(curves, target)
    return Cell(
        slots=mean_interval(when.slot.astype(np.float64)),
        accuracy=mean_interval(when.value),
        reached=int(when.reached.sum()),
        horizon=curves.opinions.shape[1],
    )


def draw_table(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`comparison_table` as Markdown and CSV."""
    requests = {request.series: request for request in one.at(evidence.preset)}
    lines = [
        "| target | algorithm | slots, paper | slots, ours | reached | accuracy there, paper | accuracy there, ours |"
    ]
    lines.append("|" + "---|" * 7)
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(_COLUMNS)
    missing, trials, longest = [], [], 0
    for target in TARGETS:
        for key, (name, series) in ALGORITHMS.items():
            request, said = requests[series], published.TABLE[key][target]
            cell = table_cell(evidence, series, target, slots=request.slots, trials=request.trials)
            dash = "-" if said.accuracy is None else f"{said.accuracy:.4f}"
            if cell is None:
                missing.append(name)
                lines.append(f"| {target:g} | {name} | {said.slots:.2f} | not run yet | | {dash} | |")
                continue
            count = cell.slots.count
            trials.append(count)
            longest = max(longest, cell.horizon)
            accuracy = interval_text(cell.accuracy, 4)
            lines.append(
                f"| {target:g} | {name}{fewer([count], request.trials)} | {said.slots:.2f} "
                f"| {interval_text(cell.slots, 2)} "
                f"| {cell.reached} of {count}{_horizon(cell, requests[RANDOM].slots)} | {dash} "
                f"| {accuracy if cell.reached else f'- (at T: {accuracy})'} |"
            )
            rows.writerow(_row(target, key, said, cell, evidence.preset.name))
    slots = max([longest, *(request.slots for request in requests.values())])
    notes = [
        f"{trials_text(evidence.preset.name, trials, slots)}; ± is the 95 % interval over trials. A trial that never "
        "reaches the target counts as T slots, and its accuracy at T is taken, as the paper seems to do.",
    ]
    if missing:
        notes.append(f"not run yet: {', '.join(dict.fromkeys(missing))}")
    page, canvas = folder / f"{one.name}.md", folder / f"{one.name}.csv"
    write_lines(page, [*lines, "", *notes])
    write_lines(canvas, text.getvalue().splitlines())
    return [page, canvas]


def _row(target: float, key: str, said: published.TableCell, cell: Cell, preset: str) -> list[object]:
    """A line of the CSV."""
    slots = [said.slots, *_numbers(cell.slots), cell.reached, cell.slots.count]
    return [target, key, *slots, said.accuracy, *_numbers(cell.accuracy), cell.horizon, preset]


def _numbers(interval: Interval) -> list[str]:
    return [f"{interval.mean:.6g}", "" if interval.half_width is None else f"{interval.half_width:.6g}"]


def _horizon(cell: Cell, slots: int) -> str:
    return "" if cell.horizon == slots else f" (T = {cell.horizon})"
