"""The tables of docs/LITERATURE.md, from results/literature.json."""

from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.literature.plan import GRIDS, ORACLE, PLAYED, RANDOM, UNFLAWED

from fedelect.equations.intervals import Interval, paired_difference
from fedelect.vocabulary import Floats

PAGE = Path(__file__).parents[2] / "docs" / "LITERATURE.md"
BEGIN, END = "<!-- literature table: begin -->", "<!-- literature table: end -->"
WINS_BEGIN, WINS_END = "<!-- literature wins: begin -->", "<!-- literature wins: end -->"
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


def _line(figures: Figures, method: str) -> str:
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

    cells = [
        f"`{method}`",
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
        return -float((own - random).mean()) if own.size else 1.0

    lines = [_line(figures, method) for method in sorted(GRIDS, key=gain)]
    return "\n".join([head, "|---" * 13 + "|", *lines])


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
    return f"{BEGIN}\n{said}\n\n{make_table(figures)}\n{END}"


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
    """What stands between the other marks: the worlds in which a method is clearly above and below random."""
    lines = ["| method | clearly above random | clearly below random |", "|---|---|---|"]
    for method in GRIDS:
        if method != RANDOM:
            cells = [_worlds(found) for found in find_clear(figures, method)]
            lines.append(f"| `{method}` | {cells[0]} | {cells[1]} |")
    counts = [trials for method in GRIDS for trials in count_trials(figures, method)]
    few, many = min(counts), max(counts)
    trials = f"{many}" if few == many else f"{few} to {many}"
    said = f"Over {trials} trials in each world; in brackets the mean difference in points, largest first."
    return f"{WINS_BEGIN}\n{said}\n\n" + "\n".join(lines) + f"\n{WINS_END}"


def _worlds(found: dict[str, float]) -> str:
    ordered = sorted(found.items(), key=lambda item: -abs(item[1]))
    return ", ".join(f"{name} ({100 * mean:+.1f})" for name, mean in ordered) or "none"


def write_page(figures: Figures) -> None:
    """Put both sections into the page."""
    text = PAGE.read_text()
    for begin, end, section in ((BEGIN, END, make_section(figures)), (WINS_BEGIN, WINS_END, make_wins(figures))):
        before, found, rest = text.partition(begin)
        if found:
            text = before + section + rest.partition(end)[2]
    PAGE.write_text(text)
