"""The pages made from the figures: the section in docs/SELECTORS.md, and docs/SELECTOR_REPORT.md, world by world."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedelect.equations.intervals import Interval, mean_interval, paired_difference

DOCS = Path(__file__).parents[2] / "docs"
BEGIN, END = "<!-- selector report: begin -->", "<!-- selector report: end -->"

HEAD = """# The selectors, world by world

Made by `python benchmarks/report_selectors.py` from `benchmarks/results/selector_report.json`; the worlds are those of
`benchmarks/selector_report/worlds.py`, and the paper's atlas. How to read it, and what follows from it:
[SELECTORS.md](SELECTORS.md), "Which wins". ± is a 95 % interval over trials (Student's t); differences are taken trial
by trial, and one that is above 0 means that the entrant does worse."""

OURS = ("set-gp", "loss-gp", "bp-gp")
"""Fedelect's own selectors; all others are published methods."""

Report = dict[str, Any]
"""What results/selector_report.json holds."""


@dataclass(frozen=True)
class Overall:
    """One entrant over all worlds in which it played.

    Attributes:
        text: Its specification.
        worlds: In how many.
        means: Name of a figure -> mean over worlds of the mean over trials.
        difference: Mean over worlds of its running gap minus the reference's, with an interval over worlds.
        better: Worlds in which the paired interval says that its running gap is smaller than the reference's.
        worse: Worlds in which it says the opposite.
    """

    text: str
    worlds: int
    means: dict[str, float]
    difference: Interval
    better: int
    worse: int


FIGURES = ("final_gap", "running_gap", "slots_to_close", "jain_index", "ask_ms")


def difference(report: Report, world: str, text: str, figure: str) -> Interval:
    """An entrant's figure minus the reference's in the same trials of one world."""
    rows = report["worlds"][world]["entrants"]
    return paired_difference(rows[text][figure], rows[report["reference"]][figure])


def sign(interval: Interval) -> int:
    """-1 or 1 if the interval leaves 0 out on that side, else 0."""
    if interval.half_width is None or abs(interval.mean) <= interval.half_width:
        return 0
    return 1 if interval.mean > 0 else -1


def overall(report: Report) -> list[Overall]:
    """All selectors, the smallest mean running difference first."""
    texts = dict.fromkeys(text for world in report["worlds"].values() for text in world["entrants"])
    rows = []
    for text in texts:
        where = [name for name, world in report["worlds"].items() if text in world["entrants"]]
        entries = [report["worlds"][name]["entrants"][text] for name in where]
        apart = [difference(report, name, text, "running_gap") for name in where]
        rows.append(
            Overall(
                text=text,
                worlds=len(where),
                means={key: float(np.mean([np.mean(entry[key]) for entry in entries])) for key in FIGURES},
                difference=mean_interval([one.mean for one in apart]),
                better=sum(sign(one) < 0 for one in apart),
                worse=sum(sign(one) > 0 for one in apart),
            )
        )
    return sorted(rows, key=lambda row: row.difference.mean)


def overall_table(report: Report) -> str:
    """Markdown: selectors over all worlds."""
    reference = report["reference"]
    lines = [
        f"| entrant | worlds | final gap % | running gap % | slots to 2 % | Jain's index | ms an ask "
        f"| running gap minus {reference}'s | better / worse than {reference} in |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in overall(report):
        m = row.means
        apart, count = ("0", "") if row.text == reference else (_pm(row.difference), f"{row.better} / {row.worse}")
        lines.append(
            f"| `{row.text}` | {row.worlds} | {m['final_gap']:.2f} | {m['running_gap']:.2f} | "
            f"{m['slots_to_close']:.0f} | {m['jain_index']:.2f} | {m['ask_ms']:.2f} | {apart} | {count} |"
        )
    return "\n".join(lines)


def worlds_table(report: Report) -> str:
    """Markdown: for each world the best entrant and the best rival beside the reference."""
    reference = report["reference"]
    lines = [
        "| world | N, K | trials | best by running gap | its running, final gap % "
        f"| {reference}'s running, final gap % | {reference}'s place "
        f"| running gap of the best rival minus {reference}'s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, world in report["worlds"].items():
        order = _order(world)
        rival = next(text for text in order if text not in OURS)
        best, ours = world["entrants"][order[0]], world["entrants"][reference]
        apart = _pm(difference(report, name, rival, "running_gap"))
        lines.append(
            f"| `{name}` | {world['clients']}, {world['budget']} | {world['trials']} | `{order[0]}` | {_gaps(best)} | "
            f"{_gaps(ours)} | {order.index(reference) + 1} of {len(order)} | `{rival}` {apart} |"
        )
    return "\n".join(lines)


def world_section(report: Report, name: str) -> str:
    """Markdown: all selectors of one world, with intervals over trials."""
    world = report["worlds"][name]
    best = ", ".join(map(str, world["best"]))
    known = {
        "atlas": "all cohorts known",
        "on demand": "cohorts trained when first elected, once each",
        "warm": "warm start, trained live; best fixed cohort found",
    }[world["kind"]]
    lines = [
        f"## {name}",
        "",
        f"{world['budget']} of {world['clients']} clients, {world['slots']} slots, {world['trials']} trials, {known}: "
        f"{{{best}}} {world['optimum']:.4f}.",
        "",
        "| entrant | FL& | final gap % | running gap % | slots to 2 % | regret | Jain's index | ms an ask "
        f"| final gap minus {report['reference']}'s | running gap minus {report['reference']}'s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for text in _order(world):
        row = world["entrants"][text]
        digits = {"final_gap": 2, "running_gap": 2, "slots_to_close": 0, "regret": 2, "jain_index": 2, "ask_ms": 2}
        cells = [_pm(mean_interval(row[key]), of) for key, of in digits.items()]
        if text != report["reference"]:
            cells += [_pm(difference(report, name, text, key)) for key in ("final_gap", "running_gap")]
        else:
            cells += ["0", "0"]
        lines.append(f"| `{text}` | {row['framework'].upper()} | {' | '.join(cells)} |")
    return "\n".join(lines)


def section(report: Report) -> str:
    """The generated part of docs/SELECTORS.md."""
    return f"{BEGIN}\n\n{overall_table(report)}\n\n{worlds_table(report)}\n\n{END}"


def page(report: Report) -> str:
    """docs/SELECTOR_REPORT.md."""
    sections = [world_section(report, name) for name in report["worlds"]]
    return "\n\n".join([HEAD, *sections]) + "\n"


def write_pages(report: Report) -> None:
    """Write both."""
    text = (DOCS / "SELECTORS.md").read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    (DOCS / "SELECTORS.md").write_text(before + section(report) + after)
    (DOCS / "SELECTOR_REPORT.md").write_text(page(report))


def _order(world: dict[str, Any]) -> list[str]:
    """The selectors of a world by their mean running gap."""
    rows = world["entrants"]
    return sorted(rows, key=lambda text: (float(np.mean(rows[text]["running_gap"])), text))


def _gaps(row: dict[str, Any]) -> str:
    return f"{np.mean(row['running_gap']):.2f}, {np.mean(row['final_gap']):.2f}"


def _pm(interval: Interval, digits: int = 2) -> str:
    mean = f"{interval.mean:.{digits}f}"
    return mean if interval.half_width is None else f"{mean} ± {interval.half_width:.{digits}f}"
