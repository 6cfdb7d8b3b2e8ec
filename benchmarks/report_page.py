"""How large the report of a large run is, how long it takes to write, and how long a browser takes to open it.

    python benchmarks/report_page.py            # 100 trials x 500 slots x 20 clients, five selectors, with beliefs

The run is made up through the records' own writer. Opening is measured in Chromium, where there is one:
from the request to the moment at which all charts are drawn.
"""

import os
import sys

if sys.path[0].endswith("benchmarks"):
    sys.path[0] = os.path.dirname(sys.path[0])  # here `selectors.py` would hide the standard library's

import argparse
import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fedelect.records import Exchange, Provenance, RunHeader, SelectorEntry, SlotRecord, from_array, open_run
from fedelect.report import write_report
from fedelect.seeds import stream

SELECTORS = {
    "bp-ucb": SelectorEntry(label="bp-ucb", kind="BpUcb", parameters={"exploration": 0.01}),
    "bp-ucb:exploration=1": SelectorEntry(label="bp-ucb:exploration=1", kind="BpUcb", parameters={"exploration": 1.0}),
    "fixed": SelectorEntry(label="fixed", kind="FixedCohort", parameters={}),
    "round-robin": SelectorEntry(label="round-robin", kind="RoundRobin", parameters={}),
    "random": SelectorEntry(label="random", kind="RandomCohort", parameters={}),
}
DRAWN = "return document.readyState === 'complete' && document.querySelectorAll('.plot svg, .plot canvas').length >= 5"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--slots", type=int, default=500)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--budget", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="keep the run and its page in this folder")
    options = parser.parse_args()
    with _folder(options.keep) as folder:
        header = made_up_header(options.clients, options.budget, options.slots, options.trials)
        if not (folder / "run" / "run.json").exists():
            write_run(folder / "run", header)
        begun, worked = time.perf_counter(), time.process_time()
        page = write_report(folder / "run", folder / "report.html")
        print(
            f"{header.trials} trials x {header.slots} slots x {header.clients} clients, {len(header.labels)} selectors"
        )
        print(f"written in   {time.perf_counter() - begun:.1f} s, {time.process_time() - worked:.1f} s of them at work")
        print(f"size         {page.stat().st_size / 1e6:.2f} MB")
        opened = opening(page)
        if opened is None:
            print("opened in    no Chromium here")
        else:
            print(f"opened in    {opened[0]:.2f} s, {opened[1]:.2f} s of them the page's own work on its core")


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        yield keep
        return
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def made_up_header(clients: int, budget: int, slots: int, trials: int) -> RunHeader:
    rng = stream(1, "header")
    places = rng.random((clients, 2))
    return RunHeader(
        source="simulator",
        framework="da",
        seed=1,
        clients=clients,
        budget=budget,
        slots=slots,
        trials=trials,
        selectors=tuple(SELECTORS.values()),
        scenario={"name": "made up", "start": "cold", "topology": {"side_km": 1.0}},
        groups={"iid": tuple(range(min(5, clients))), "skewed": tuple(range(min(5, clients), clients))},
        positions_km=tuple((float(x), float(y)) for x, y in places),
        edges=tuple((client, (client + step) % clients) for client in range(clients) for step in (1, 2)),
        sizes=tuple(rng.integers(200, 900, clients).tolist()),
        upload_probability=(0.9,) * clients,
        untrained=(0.1,) * trials,
        provenance=Provenance(
            created="2025-01-31T12:00:00Z", command="python benchmarks/report_page.py", versions={}, platform="made up"
        ),
    )


def write_run(folder: Path, header: RunHeader) -> None:
    """All records of a made-up run, one trial at a time."""
    with open_run(folder, header) as writer:
        for trial in range(header.trials):
            writer.append(record for label in header.labels for record in trial_records(header, label, trial))


def trial_records(header: RunHeader, label: str, trial: int) -> Iterator[SlotRecord]:
    rng = stream(1, "records", label, trial)
    skill = {"fixed": 1.0, "random": 0.0, "round-robin": 0.1}.get(label, 0.6)
    for slot in range(1, header.slots + 1):
        good = rng.random(header.budget) < skill
        cohort = set(np.flatnonzero(good).tolist())
        while len(cohort) < header.budget:
            cohort.add(int(rng.integers(header.clients)))
        members = tuple(sorted(cohort))
        level = 0.55 + 0.06 * sum(member < 5 for member in members)
        opinions = np.clip(level + 0.06 * rng.standard_normal(header.clients), 0.0, 1.0)
        yield SlotRecord(
            selector=label,
            trial=trial,
            slot=slot,
            status="done",
            cohort=members,
            arrivals=tuple(rng.binomial(15, 0.9, header.budget).tolist()),
            rounds=15,
            empty_rounds=0,
            opinions=from_array(opinions),
            beliefs=from_array(opinions**2),
            reward=float(opinions.mean()),
            exchange=Exchange(rounds=10, residual=1e-12, outcome="settled", messages=80),
        )


def opening(page: Path) -> tuple[float, float] | None:
    """Seconds from asking for the page to all its charts drawn, and processor seconds of the page's main thread.

    The best of three each, for a busy machine adds waiting; None without Chromium.
    """
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        return None
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = binary
    with tempfile.TemporaryDirectory() as profile:
        for flag in ("headless", "no-sandbox", "disable-gpu", "no-first-run", "disable-background-networking"):
            options.add_argument(f"--{flag}")
        options.add_argument(f"--user-data-dir={profile}")
        browser = webdriver.Chrome(options=options, service=Service(driver))
        try:
            taken, worked = [], []
            for _ in range(3):
                browser.get("about:blank")
                browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
                before = _work(browser)
                begun = time.perf_counter()
                browser.get(page.resolve().as_uri())
                while not browser.execute_script(DRAWN):
                    time.sleep(0.01)
                taken.append(time.perf_counter() - begun)
                worked.append(_work(browser) - before)
            return min(taken), min(worked)
        finally:
            browser.quit()


def _work(browser: Any) -> float:
    metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))


if __name__ == "__main__":
    main()
