"""Our training engine against other simulators: one interleaved run, the same work for all.

    python benchmarks/engine.py            # D = 600; M = 1, 8, 25, 100 replicas; growth
    python benchmarks/engine.py --quick    # D = 600, M = 8: a few minutes
    python benchmarks/engine.py --full     # D = 200, 600, 3000: about an hour or two
    python benchmarks/engine.py --only stacked-slot --only fedjax

One slot is L = 15 rounds of FedAvg by K = 5 random clients of N = 20, and the opinions of all N clients. A client has D
samples (linear SVM on MNIST, E = 10, B = 100). Every contender runs in a process of its own, on its own cores, with its
own number of threads; they are warmed up first and then take turns, so that a change of the machine's load hits all
alike, and ratios are taken within a round. Contenders that are not installed are left out: `make bench-contenders`
builds an environment that has them. Needs MNIST (`fedelect data fetch mnist`). Results go to a JSON file after each
turn; an interrupted run goes on from the last full round, and a finished one only prints its tables again (`--fresh`
starts over).
"""

import os
import sys

if sys.path[0].endswith("benchmarks"):
    sys.path[0] = os.path.dirname(sys.path[0])  # here `selectors.py` would hide the standard library's

import argparse
import json
import platform
import tempfile
import time
from pathlib import Path
from typing import Any, final

from benchmarks.contenders.process import ContenderError, Team, core_numbers
from benchmarks.contenders.work import Work
from benchmarks.engine_plan import (
    CONTENDERS,
    SAMPLES,
    STACKED,
    Entry,
    Group,
    Run,
    core_group,
    growth_group,
    machine_group,
)
from benchmarks.engine_tables import TOLERANCE, print_group, print_growth

RESULTS = Path(__file__).parent / "results"
KEPT_VALUES = 6  # replicas whose accuracies are kept in a row


@final
class Results:
    """The rows so far, in a file that is replaced as a whole after each turn."""

    def __init__(self, path: Path, settings: dict[str, Any], *, fresh: bool) -> None:
        self.path = path
        self.content: dict[str, Any] = {"settings": settings, "starts": {}, "rounds_done": [], "rows": []}
        if path.exists() and not fresh:
            found = json.loads(path.read_text())
            if found["settings"] != settings:
                sys.exit(f"{path} holds a run with other settings: {found['settings']}; use --fresh or another --out")
            self.content = found
            done = {tuple(each) for each in found["rounds_done"]}
            found["rows"] = [row for row in found["rows"] if (row["group"], row["round"]) in done]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All rows."""
        rows: list[dict[str, Any]] = self.content["rows"]
        return rows

    def rounds_left(self, group: Group) -> list[int]:
        """Rounds that have not been finished."""
        done = {number for name, number in self.content["rounds_done"] if name == group.name}
        return [number for number in range(group.rounds) if number not in done]

    def save(self) -> None:
        """Write the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".part")
        head = {key: value for key, value in self.content.items() if key != "rows"}
        rows = ",\n".join(json.dumps(row) for row in self.rows)
        beside.write_text(f'{json.dumps(head)[:-1]}, "rows": [\n{rows}\n]}}\n')
        beside.replace(self.path)


@final
class Clock:
    """How long the rest will take: guesses, corrected by how wrong they have been so far."""

    def __init__(self, groups: list[Group], results: Results) -> None:
        self.left = sum(
            group.start_seconds + group.round_seconds * len(rounds)
            for group in groups
            if (rounds := results.rounds_left(group))
        )
        self._guessed = self._taken = 60.0

    def passed(self, guessed: float, taken: float) -> None:
        """Something is done."""
        self.left -= guessed
        self._guessed += guessed
        self._taken += taken

    def __str__(self) -> str:
        return f"about {max(0.0, self.left) * self._taken / self._guessed / 60:.0f} min left"


def start_teams(group: Group, results: Results, clock: Clock, logs: Path) -> dict[Entry, Team]:
    """Start and warm up every entry, one after the other; leave out what cannot be had."""
    teams = {}
    for entry in group.entries:
        began = time.perf_counter()
        log = logs / f"{group.name} {entry.label}".replace(" ", "_")
        team = Team(entry.contender, entry.work, processes=entry.processes, threads=entry.threads, log=log)
        try:
            started = team.ready()
        except ContenderError as error:
            team.close()
            started = {"absent": str(error)}
        else:
            teams[entry] = team
        results.content["starts"][f"{group.name}, {entry.label}"] = started
        clock.passed(entry.start_seconds, time.perf_counter() - began)
        how = started.get("absent") or f"{started['versions']}; {started['start_seconds']:.1f} s to start"
        print(f"  {entry.label}: {how}", flush=True)
    return teams


def one_turn(entry: Entry, run: Run, team: Team, round_: int, group: Group) -> dict[str, Any]:
    """Let a team do a run; return its row."""
    shares = entry.shares(run, round_)
    said = team.run(shares)
    busy = [share for share in shares if share]
    values = [
        {str(visit.trial): round(value, 4) for visit, value in list(zip(share, own, strict=True))[:KEPT_VALUES]}
        for share, own in zip(busy, said["values"], strict=True)
    ]
    return {
        "group": group.name,
        "entry": entry.label,
        "run": run.name,
        "round": round_,
        "replica_slots": sum(len(share) for share in shares),
        "seconds": round(said["seconds"], 5),
        "peak_mb": round(said["peak_mb"], 1),
        "values": values,
    }


def run_group(group: Group, results: Results, clock: Clock, logs: Path) -> None:
    """All rounds of a group that are left."""
    rounds = results.rounds_left(group)
    if not rounds:
        return
    print(f"\n{group.name}: {len(group.entries)} entries, {len(rounds)} rounds; {clock}", flush=True)
    teams = start_teams(group, results, clock, logs)
    try:
        for number in rounds:
            for entry in group.entries:
                for run in entry.runs:
                    began = time.perf_counter()
                    if entry in teams:
                        try:
                            row = one_turn(entry, run, teams[entry], number, group)
                        except ContenderError as error:
                            print(f"  {entry.label} {run.name}: left out from now on; {error}", flush=True)
                            teams.pop(entry).close()
                        else:
                            results.rows.append(row)
                            results.save()
                    clock.passed(entry.seconds(run), time.perf_counter() - began)
            results.content["rounds_done"].append([group.name, number])
            results.save()
            print(f"  round {number + 1} of {group.rounds} done; {clock}", flush=True)
    finally:
        for team in teams.values():
            team.close()


def plan(arguments: argparse.Namespace, cores: int) -> list[Group]:
    """The groups of this run."""
    quick, full, only = arguments.quick, arguments.full, arguments.only
    replicas = arguments.replicas or ((8,) if quick else (1, 8, 25, 100))
    groups = []
    for samples in arguments.samples or (SAMPLES if full else (600,)):
        work = Work(samples=samples, skew=arguments.skew)
        rounds = arguments.rounds or (3 if quick or samples > 1000 else 5)
        groups.append(core_group(work, replicas, rounds, only))
        if cores > 1:
            groups.append(machine_group(work, replicas, rounds, only, cores))
    if not only or set(only) & set(STACKED):
        base = Work(samples=300, skew=arguments.skew)
        ours = only or (["stacked-epoch"] if quick else list(STACKED))
        groups.append(growth_group(base, arguments.rounds or 3, ours, (2,) if quick else (2, 4)))
    return [group for group in groups if group.entries]


def print_tables(groups: list[Group], results: Results) -> bool:
    """Print what there is; whether all accuracies agree."""
    seen = {row["group"] for row in results.rows}
    offs = [print_group(results.rows, group.name, group.work) for group in groups if group.name in seen - {"growth"}]
    print_growth(results.rows)
    agree = all(off <= TOLERANCE for off in offs)
    print(f"\nFinal accuracies agree with the plain loop's within {TOLERANCE}: {'yes' if agree else 'NO'}")
    return agree


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="D = 600, M = 8, three rounds")
    size.add_argument("--full", action="store_true", help="D = 200, 600, 3000")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        choices=["lean-numpy", *STACKED, *CONTENDERS],
        help="beside the plain loop",
    )
    parser.add_argument("--samples", action="append", type=int, help="D; may be given again")
    parser.add_argument("--replicas", action="append", type=int, help="M of our engines; may be given again")
    parser.add_argument("--rounds", type=int, help="turns of each contender")
    parser.add_argument("--skew", choices=["iid", "labels"], default="iid", help="what clients hold (default: iid)")
    parser.add_argument("--out", type=Path, help="where results are kept (default: benchmarks/results/engine.json)")
    parser.add_argument("--fresh", action="store_true", help="forget what the file holds")
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    cores = len(core_numbers())
    groups = plan(arguments, cores)
    settings = {
        "groups": {group.name: [entry.label for entry in group.entries] for group in groups},
        "runs": sorted({run.name for group in groups for entry in group.entries for run in entry.runs}),
        "skew": arguments.skew,
        "cores": cores,
        "machine": platform.machine(),
        "python": platform.python_version(),
    }
    name = "engine-quick.json" if arguments.quick else "engine.json"
    results = Results(arguments.out or RESULTS / name, settings, fresh=arguments.fresh)
    clock = Clock(groups, results)
    logs = Path(tempfile.mkdtemp(prefix="engine_benchmark_"))
    print(f"{cores} cores, Python {platform.python_version()}; {clock}; results in {results.path}, logs in {logs}")
    try:
        for group in groups:
            run_group(group, results, clock, logs)
    except KeyboardInterrupt:
        print("\nInterrupted; the same command goes on from the last full round.")
    sys.exit(0 if print_tables(groups, results) else 1)


if __name__ == "__main__":
    main()
