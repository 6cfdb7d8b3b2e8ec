"""The tables of docs/results/literature.md, from results/literature.json: data files, and a line in the page."""

from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.data_files import make_csv, write_files
from benchmarks.literature.plan import GRIDS, ORACLE, PLAYED, RANDOM, UNFLAWED

from fedelect.equations.intervals import Interval, paired_difference
from fedelect.vocabulary import Floats

PAGE = Path(__file__).parents[2] / "docs" / "results" / "literature.md"
BEGIN, END = "<!-- literature table: begin -->", "<!-- literature table: end -->"
TABLE, WINS = "literature.csv", "literature-wins.csv"
"""Data files: all methods over all worlds, and the worlds in which each is clearly above or below random."""
WITH_VALIDATION = "+validation"

Figures = dict[str, Any]


def count_trials(figures: Figures, method: str) -> list[int]:
    """Trials that the method has played in each world of the table."""
    return [
        len(_row(figures, kind, world.name, method)["final"]) for kind, worlds in PLAYED.items() for world in worlds
    ]


def _world(figures: Figures, kind: str, world: str, method: str) -> Figures:
    """The world as the method played it: with a validation share if it needs one."""
    played: Figures = figures["played"].get(kind, {})
    twin = played.get(world + WITH_VALIDATION, {})
    found: Figures = twin if method in twin and method != RANDOM else played.get(world, {})
    return found


def _row(figures: Figures, kind: str, world: str, method: str) -> Figures:
    row: Figures = _world(figures, kind, world, method).get(method, {"final": [], "setting": ""})
    return row


def over_worlds(figures: Figures, kind: str, worlds: list[str], method: str, figure: str) -> tuple[Floats, Floats]:
    """A method's figure in each pair of world and trial that it has played, and random's in the same pairs."""
    own, random = list[float](), list[float]()
    for world in worlds:
        kept = _world(figures, kind, world, method)
        if method in kept:
            trials = min(len(kept[method][figure]), len(kept[RANDOM][figure]))
            own += kept[method][figure][:trials]
            random += kept[RANDOM][figure][:trials]
    return np.array(own, dtype=np.float64), np.array(random, dtype=np.float64)


def _points(interval: Interval) -> str:
    if not interval.count:
        return ""
    half = "" if interval.half_width is None else f" ± {100 * interval.half_width:.1f}"
    return f"{100 * interval.mean:+.1f}{half}"


def _line(figures: Figures, method: str) -> list[str]:
    users = [world.name for world in PLAYED["users"]]
    flawed, unflawed = [name for name in users if name not in UNFLAWED], list(UNFLAWED)
    paper = [world.name for world in PLAYED["paper"]]

    def mean(kind: str, worlds: list[str], figure: str, form: str, scale: float = 1.0) -> str:
        found = over_worlds(figures, kind, worlds, method, figure)[0]
        return format(scale * found.mean(), form) if found.size else ""

    def difference(kind: str, worlds: list[str], figure: str) -> str:
        if method == RANDOM:
            return ""
        return _points(paired_difference(*over_worlds(figures, kind, worlds, method, figure)))

    return [
        method,
        mean("users", users, "final", ".1f", 100.0),
        difference("users", flawed, "final"),
        difference("users", unflawed, "final"),
        mean("users", users, "slots", ".0f"),
        difference("users", users, "low"),
        mean("users", users, "jain", ".2f"),
        mean("paper", paper, "final", ".1f", 100.0),
        difference("paper", paper, "final"),
        mean("paper", paper, "slots", ".0f"),
        mean("paper", paper, "jain", ".2f"),
        "" if method == ORACLE or method not in figures["ask_ms"] else f"{figures['ask_ms'][method]:.1f}",
        _setting(figures, method),
    ]


def _setting(figures: Figures, method: str) -> str:
    """What tuning chose in the two kinds of worlds, where it is not the default."""
    chosen = {kind: _row(figures, kind, worlds[0].name, method)["setting"] for kind, worlds in PLAYED.items()}
    return "; ".join(f"{kind}: {setting}" for kind, setting in chosen.items() if setting)


HEAD = (
    "method",
    "users: accuracy",
    "flawed: minus random",
    "unflawed: minus random",
    "slots",
    "low: minus random",
    "Jain",
    "paper's: accuracy",
    "paper's: minus random",
    "paper's: slots",
    "paper's: Jain",
    "ms",
    "setting",
)


def make_table(figures: Figures) -> str:
    """The data file with all methods, the highest difference to random in the users' worlds with flaws first."""
    flawed = [world.name for world in PLAYED["users"] if world.name not in UNFLAWED]

    def gain(method: str) -> float:
        own, random = over_worlds(figures, "users", flawed, method, "final")
        return -float((own - random).mean()) if own.size else 1.0

    return make_csv(HEAD, [_line(figures, method) for method in sorted(GRIDS, key=gain)])


def make_section(figures: Figures) -> str:
    """What stands between the marks of the page."""
    budget = figures["budget"]
    counts = {method: count_trials(figures, method) for method in GRIDS}
    fewest, most = min(map(min, counts.values())), max(map(max, counts.values()))
    pairs = {method: sum(trials) for method, trials in counts.items()}
    said = (
        f"Budget: at most {budget['settings']} settings of each method, in {budget['trials']} trials of "
        f"{budget['slots']} slots in each tuning world."
    )
    if fewest == most:
        said += f" The table: {most} trials in each of {len(counts[RANDOM])} worlds."
    else:
        said += (
            f" **Unfinished**: a method has played {min(pairs.values())} to {max(pairs.values())} pairs of world and "
            f"trial out of {most * len(counts[RANDOM])}; cells of what is missing are empty. The command goes on."
        )
    return f"{BEGIN}\n{said}\n{END}"


def find_clear(figures: Figures, method: str) -> tuple[dict[str, float], dict[str, float]]:
    """World -> mean difference to random over trials, where its 95 % interval is above 0, and where it is below."""
    above, below = dict[str, float](), dict[str, float]()
    for kind, worlds in PLAYED.items():
        for world in worlds:
            found = paired_difference(*over_worlds(figures, kind, [world.name], method, "final"))
            if found.low is not None and found.low > 0.0:
                above[world.name] = found.mean
            if found.high is not None and found.high < 0.0:
                below[world.name] = found.mean
    return above, below


def make_wins(figures: Figures) -> str:
    """The data file with every method and world whose 95 % interval leaves 0 out; differences in points."""
    rows = list[list[str]]()
    for method in GRIDS:
        if method != RANDOM:
            above, below = find_clear(figures, method)
            found = sorted((above | below).items(), key=lambda item: -item[1])
            rows += [[method, world, f"{100 * mean:+.1f}"] for world, mean in found]
    return make_csv(("method", "world", "accuracy minus random"), rows)


def write_page(figures: Figures) -> None:
    """Write the data files, and what stands between the marks of the page."""
    write_files({TABLE: make_table(figures), WINS: make_wins(figures)})
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + make_section(figures) + rest.partition(END)[2])
