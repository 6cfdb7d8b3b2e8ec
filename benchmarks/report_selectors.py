"""The published comparison of selectors: play all of them in the reporting worlds and write figures and pages.

    python benchmarks/report_selectors.py                           # go on where it stopped, then write
    python benchmarks/report_selectors.py --world r-lossy-N12-K4    # only this world; may be given several times
    python benchmarks/report_selectors.py --again set-gp            # play this entrant anew
    python benchmarks/report_selectors.py --as-is                   # play nothing more
    python benchmarks/report_selectors.py --pages                   # only the pages, from the figures that are there

What was played is kept in FOLDER (--kept) as it is finished. Figures go to results/selector_report.json, and from there
into the data files of docs/results/selectors.md and docs/SELECTOR_REPORT.md.
The worlds' atlases come from build_worlds.py; those of MNIST, with
more cohorts than were affordable, are trained as far as they are elected, in fewer trials. MNIST must be there
(`fedelect data fetch mnist`).
"""

import os
import sys

if sys.path[0].endswith("benchmarks"):
    sys.path[0] = os.path.dirname(sys.path[0])  # here `selectors.py` would hide the standard library's

import argparse
import dataclasses
import functools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.selector_report.arenas import SEED, SLOTS, Arena, arena, names
from benchmarks.selector_report.pages import write_pages
from rich.console import Console
from threadpoolctl import threadpool_limits

import fedelect
from fedelect._progress import TerminalBar
from fedelect.bench import REFERENCE, Elections, figures_of
from fedelect.loop import FrameworkName

RESULTS = Path(__file__).parent / "results" / "selector_report.json"


class Kept:
    """Elections on disk: FOLDER/WORLD/ENTRANT.npz."""

    def __init__(self, folder: Path, world: str, trials: int) -> None:
        self._folder, self._trials = folder / world, trials

    def load(self, text: str) -> Elections | None:
        """What is kept of an entrant; None if it is not there, or of another number of trials."""
        if not self._path(text).exists():
            return None
        with np.load(self._path(text)) as file:
            if len(file["ask_ms"]) != self._trials:
                return None
            framework: FrameworkName = "da" if str(file["framework"]) == "da" else "fa"
            return Elections(framework, file["cohorts"].astype(np.int64), file["rewards"], file["ask_ms"])

    def save(self, text: str, elections: Elections) -> None:
        """Keep what an entrant did."""
        self._folder.mkdir(parents=True, exist_ok=True)
        partial = self._folder / "partial.npz"
        np.savez_compressed(
            partial,
            framework=np.array(elections.framework),
            cohorts=elections.cohorts.astype(np.uint8),
            rewards=elections.rewards,
            ask_ms=elections.ask_ms,
        )
        partial.replace(self._path(text))

    def forget(self, text: str) -> None:
        """Play it anew."""
        self._path(text).unlink(missing_ok=True)

    def _path(self, text: str) -> Path:
        return self._folder / (re.sub(r"[^\w.=-]", "_", text) + ".npz")


def play_missing(of: Arena, kept: Kept, console: Console) -> dict[str, Elections]:
    """Elections of all selectors: those on file, and the missing ones played now."""
    found = {text: kept.load(text) for text in of.texts}
    missing = [text for text, elections in found.items() if elections is None]
    groups = [missing] if of.together and missing else [[text] for text in missing]
    bar = TerminalBar(of.name, "slots", console)
    try:
        for number, group in enumerate(groups):
            show = functools.partial(_show, bar, number * SLOTS, len(groups) * SLOTS)
            for text, elections in zip(group, of.play(group, show), strict=True):
                kept.save(text, elections)
                found[text] = elections
    finally:
        bar.stop()
    return {text: elections for text, elections in found.items() if elections is not None}


def _show(bar: TerminalBar, before: int, total: int, slot: int) -> None:
    bar.show(before + slot, total)


def figures(of: Arena, elections: dict[str, Elections]) -> dict[str, Any]:
    """The figures of one world, trial by trial."""
    world = of.environment.world
    best, optimum = of.best(elections)
    rows = {}
    for text, one in elections.items():
        each = dataclasses.asdict(figures_of(one, of.values(one), optimum, world.clients))
        rows[text] = {"framework": one.framework} | {name: np.round(row, 4).tolist() for name, row in each.items()}
    return {
        "kind": of.kind,
        "clients": world.clients,
        "budget": world.budget,
        "slots": SLOTS,
        "trials": of.trials,
        "seed": SEED,
        "best": list(best),
        "optimum": round(optimum, 6),
        "entrants": rows,
    }


def _compact(report: dict[str, Any]) -> str:
    """JSON with a line for each entrant."""
    return json.dumps(report, separators=(",", ":")).replace('{"framework"', '\n{"framework"') + "\n"


def main() -> None:
    """Play what is missing, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", action="append", choices=names(), help="only this world")
    parser.add_argument("--again", action="append", default=[], help="play this entrant anew")
    parser.add_argument(
        "--without", action="append", default=[], help="leave this entrant for later; nothing is written"
    )
    parser.add_argument("--trials", type=int, default=6, help="trials where all is known beforehand, or cheap")
    parser.add_argument("--few", type=int, default=3, help="trials where cohorts are trained on demand")
    parser.add_argument("--kept", type=Path, default=Path("selector_report_kept"), help="folder of what was played")
    parser.add_argument("--as-is", action="store_true", help="play nothing: figures and pages of what is kept")
    parser.add_argument("--pages", action="store_true", help="only write the pages")
    options = parser.parse_args()
    console = Console()
    report = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"worlds": {}}
    with threadpool_limits(limits=1, user_api="blas"):
        for name in () if options.pages else options.world or names():
            few = name.startswith("r-mnist")
            trials = options.few if few else options.trials
            of = arena(name, full=not few, trials=trials)
            kept = Kept(options.kept, name, trials)
            for text in options.again:
                kept.forget(text)
            of.texts = [text for text in of.texts if text not in options.without]
            if options.as_is:
                of.texts = [text for text in of.texts if kept.load(text) is not None]
            elections = play_missing(of, kept, console)
            if options.without:
                continue
            report["worlds"][name] = figures(of, elections)
            report |= {"fedelect": fedelect.__version__, "reference": REFERENCE}
            report["worlds"] = {one: report["worlds"][one] for one in names() if one in report["worlds"]}
            RESULTS.write_text(_compact(report))
    if not options.without:
        write_pages(report)


if __name__ == "__main__":
    main()
