"""The data files made from the figures, for docs/results/selectors.md and docs/SELECTOR_REPORT.md."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.data_files import make_csv, write_files

from fedelect.equations.intervals import Interval, mean_interval, paired_difference

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
    """CSV: selectors over all worlds."""
    reference = report["reference"]
    head = ("entrant", "worlds", "final gap %", "running gap %", "slots to 2 %", "Jain's index", "ms an ask")
    against = (f"running gap minus {reference}'s", f"better than {reference} in", f"worse than {reference} in")
    rows = []
    for row in overall(report):
        m = row.means
        compared = ["0", "", ""] if row.text == reference else [_pm(row.difference), str(row.better), str(row.worse)]
        figures = [f"{m[key]:.{0 if key == 'slots_to_close' else 2}f}" for key in FIGURES]
        rows.append([row.text, str(row.worlds), *figures, *compared])
    return make_csv((*head, *against), rows)


KNOWN = {
    "atlas": "all cohorts known",
    "on demand": "cohorts trained when first elected, once each",
    "warm": "warm start, trained live; best fixed cohort found",
}
"""Kind of a world -> how its optimum is known."""


def worlds_table(report: Report) -> str:
    """CSV: for each world its facts, the best entrant, and the best rival beside the reference."""
    reference = report["reference"]
    head = ("world", "N", "K", "slots", "trials", "optimum", "best cohort", "how it is known", "best by running gap")
    against = ("its running gap %", "its final gap %", f"{reference}'s running gap %", f"{reference}'s final gap %")
    last = (f"{reference}'s place", "best rival", f"its running gap minus {reference}'s")
    rows = []
    for name, world in report["worlds"].items():
        order = _order(world)
        rival = next(text for text in order if text not in OURS)
        best, ours = world["entrants"][order[0]], world["entrants"][reference]
        facts = [str(world[key]) for key in ("clients", "budget", "slots", "trials")]
        optimum = [f"{world['optimum']:.4f}", " ".join(map(str, world["best"])), KNOWN[world["kind"]]]
        place = f"{order.index(reference) + 1} of {len(order)}"
        apart = _pm(difference(report, name, rival, "running_gap"))
        rows.append([name, *facts, *optimum, order[0], *_gaps(best), *_gaps(ours), place, rival, apart])
    return make_csv((*head, *against, *last), rows)


def entrants_table(report: Report) -> str:
    """CSV: every selector in every world, with intervals over trials."""
    reference = report["reference"]
    digits = {"final_gap": 2, "running_gap": 2, "slots_to_close": 0, "regret": 2, "jain_index": 2, "ask_ms": 2}
    head = ("world", "entrant", "FL&", "final gap %", "running gap %", "slots to 2 %", "regret", "Jain's index")
    against = ("ms an ask", f"final gap minus {reference}'s", f"running gap minus {reference}'s")
    rows = []
    for name, world in report["worlds"].items():
        for text in _order(world):
            row = world["entrants"][text]
            cells = [_pm(mean_interval(row[key]), of) for key, of in digits.items()]
            apart = ["0", "0"]
            if text != reference:
                apart = [_pm(difference(report, name, text, key)) for key in ("final_gap", "running_gap")]
            rows.append([name, text, row["framework"].upper(), *cells, *apart])
    return make_csv((*head, *against), rows)


def make_files(report: Report) -> dict[str, str]:
    """Name -> text of the data files."""
    return {
        "selectors-overall.csv": overall_table(report),
        "selectors-worlds.csv": worlds_table(report),
        "selectors-by-world.csv": entrants_table(report),
    }


def write_pages(report: Report) -> None:
    """Write the data files."""
    write_files(make_files(report))


def _order(world: dict[str, Any]) -> list[str]:
    """The selectors of a world by their mean running gap."""
    rows = world["entrants"]
    return sorted(rows, key=lambda text: (float(np.mean(rows[text]["running_gap"])), text))


def _gaps(row: dict[str, Any]) -> list[str]:
    return [f"{np.mean(row[key]):.2f}" for key in ("running_gap", "final_gap")]


def _pm(interval: Interval, digits: int = 2) -> str:
    mean = f"{interval.mean:.{digits}f}"
    return mean if interval.half_width is None else f"{mean} ± {interval.half_width:.{digits}f}"
