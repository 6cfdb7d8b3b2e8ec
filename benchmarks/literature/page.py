"""The table of docs/LITERATURE.md, from results/literature.json."""

from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.literature.plan import GRIDS, ORACLE, PLAYED, RANDOM, UNFLAWED

from fedelect.equations.intervals import Interval, mean_interval, paired_difference
from fedelect.vocabulary import Floats

PAGE = Path(__file__).parents[2] / "docs" / "LITERATURE.md"
BEGIN, END = "<!-- literature table: begin -->", "<!-- literature table: end -->"
WITH_VALIDATION = "+validation"

Figures = dict[str, Any]


def finished_trials(figures: Figures) -> int:
    """Trials that all methods have played in all worlds of the table."""
    return min(
        len(_row(figures, kind, world.name, method)["final"])
        for kind, worlds in PLAYED.items()
        for world in worlds
        for method in GRIDS
    )


def _world(figures: Figures, kind: str, world: str, method: str) -> Figures:
    """The world as the method played it: with a validation share if it needs one."""
    played: Figures = figures["played"][kind]
    twin = played.get(world + WITH_VALIDATION, {})
    found: Figures = twin if method in twin and method != RANDOM else played[world]
    return found


def _row(figures: Figures, kind: str, world: str, method: str) -> Figures:
    row: Figures = _world(figures, kind, world, method).get(method, {"final": []})
    return row


def over_worlds(figures: Figures, kind: str, worlds: list[str], method: str, figure: str) -> tuple[Floats, Floats]:
    """(trials,) means over worlds of a method's figure, and of random's in the same worlds."""
    trials = finished_trials(figures)
    own, random = [], []
    for world in worlds:
        kept = _world(figures, kind, world, method)
        own.append(kept[method][figure][:trials])
        random.append(kept[RANDOM][figure][:trials])
    return np.mean(own, axis=0, dtype=np.float64), np.mean(random, axis=0, dtype=np.float64)


def _points(interval: Interval) -> str:
    half = "" if interval.half_width is None else f" ± {100 * interval.half_width:.1f}"
    return f"{100 * interval.mean:+.1f}{half}"


def _line(figures: Figures, method: str) -> str:
    users = [world.name for world in PLAYED["users"]]
    flawed, unflawed = [name for name in users if name not in UNFLAWED], list(UNFLAWED)
    paper = [world.name for world in PLAYED["paper"]]

    def mean(kind: str, worlds: list[str], figure: str) -> float:
        return mean_interval(over_worlds(figures, kind, worlds, method, figure)[0]).mean

    def difference(kind: str, worlds: list[str], figure: str) -> str:
        if method == RANDOM:
            return ""
        return _points(paired_difference(*over_worlds(figures, kind, worlds, method, figure)))

    cells = [
        f"`{method}`",
        f"{100 * mean('users', users, 'final'):.1f}",
        difference("users", flawed, "final"),
        difference("users", unflawed, "final"),
        f"{mean('users', users, 'slots'):.0f}",
        difference("users", users, "low"),
        f"{mean('users', users, 'jain'):.2f}",
        f"{100 * mean('paper', paper, 'final'):.1f}",
        difference("paper", paper, "final"),
        f"{mean('paper', paper, 'slots'):.0f}",
        f"{mean('paper', paper, 'jain'):.2f}",
        "" if method == ORACLE else f"{figures['ask_ms'][method]:.1f}",
        _setting(figures, method),
    ]
    return "| " + " | ".join(cells) + " |"


def _setting(figures: Figures, method: str) -> str:
    """What tuning chose in the two kinds of worlds, where it is not the default."""
    chosen = {kind: _row(figures, kind, worlds[0].name, method)["setting"] for kind, worlds in PLAYED.items()}
    return "; ".join(f"{kind}: {setting}" for kind, setting in chosen.items() if setting)


def make_table(figures: Figures) -> str:
    """The table, the highest difference to random in the users' worlds with flaws first."""
    head = (
        "| method | users: accuracy | flawed: minus random | unflawed: minus random | slots | low: minus random | Jain "
        "| paper's: accuracy | minus random | slots | Jain | ms | setting |"
    )
    flawed = [world.name for world in PLAYED["users"] if world.name not in UNFLAWED]

    def gain(method: str) -> float:
        own, random = over_worlds(figures, "users", flawed, method, "final")
        return -float((own - random).mean())

    lines = [_line(figures, method) for method in sorted(GRIDS, key=gain)]
    return "\n".join([head, "|---" * 13 + "|", *lines])


def make_section(figures: Figures) -> str:
    """What stands between the marks of the page."""
    budget = figures["budget"]
    said = (
        f"Budget: at most {budget['settings']} settings of each method, in {budget['trials']} trials of "
        f"{budget['slots']} slots in each tuning world. The table: {finished_trials(figures)} trials in each world."
    )
    return f"{BEGIN}\n{said}\n\n{make_table(figures)}\n{END}"


def write_page(figures: Figures) -> None:
    """Put the section into the page; nothing is written before all methods have played one trial everywhere."""
    if not finished_trials(figures):
        print("no trial is finished in all worlds yet; the page is as it was")
        return
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(before + make_section(figures) + after)
