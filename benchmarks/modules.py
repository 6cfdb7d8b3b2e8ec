"""PyTorch modules: our engine against a plain PyTorch loop, on one core, in turns.

    python benchmarks/modules.py                       # mlp, cnn and a residual network; about ten minutes
    python benchmarks/modules.py --only mlp --rounds 9
    python benchmarks/modules.py --only mlp --only cnn --rivals    # beside pfl and Flower, on one core and on all

A replica-slot is one round of FedAvg by K = 10 of N = 100 clients with 120 samples each (2 epochs, batches of 20, plain
SGD) and the opinions of all N clients on their test shares, 10,000 images of 28 x 28 together. The images are made up:
no network's time depends on what it sees. Every contender has a process of its own with one thread on the same core,
and is warmed up first; then they take turns, and ratios are taken within a round, because the machine may be
loaded by others. Contenders: `plain`, the loop that a tutorial would write (benchmarks/contenders/plain_module.py);
`torch-loop` and `torch-layers`, our two paths, with so many replicas at once. The last table is the growth from 8
replicas to 32. Seconds are processor time of the contender.

With `--rivals` all train from the same first weights, in processes as for `engine.py`; `make bench-contenders` builds
an environment that has them. Seconds are wall time, and beside it processor time of all processes of a contender, which
other jobs on the machine disturb less but in which waiting is free. On several cores ours and pfl have a process on
each, pfl also one process with as many threads, Flower as many actors.
"""

import os
import sys

if sys.path[0].endswith("benchmarks"):
    sys.path[0] = os.path.dirname(sys.path[0])  # here `selectors.py` would hide the standard library's
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from benchmarks.contenders.process import ContenderError, Team, core_numbers
from benchmarks.contenders.work import MODULES, SEED, Scenario, Work, build_world, visit

from fedelect.analytics import judge
from fedelect.federation import Job
from fedelect.seeds import stream

CLIENTS, BUDGET, SAMPLES = 100, 10, 120
REPLICAS = {"mlp": 8, "cnn": 2, "residual": 1}
AIMS = {"mlp": 4.0, "cnn": 1.8, "residual": 1.3}


class Turn(NamedTuple):
    """Milliseconds of a replica-slot, and what came out.

    Attributes:
        train: Of training.
        survey: Of the opinions.
        opinion: Mean over replicas and clients.
        peak_mb: Highest resident memory of the process so far.
    """

    train: float
    survey: float
    opinion: float
    peak_mb: float

    @property
    def total(self) -> float:
        """Training and opinions."""
        return self.train + self.survey


def make_world(kind: str) -> Scenario:
    """The world of a module."""
    return build_world(make_work(kind))


def make_work(kind: str) -> Work:
    """What all contenders work on."""
    return Work(clients=CLIENTS, budget=BUDGET, samples=SAMPLES, module=kind)


def cohorts(replicas: int) -> list[tuple[int, ...]]:
    """One of K clients for each replica."""
    drawn = [stream(SEED, "cohort", trial).choice(CLIENTS, BUDGET, replace=False) for trial in range(replicas)]
    return [tuple(sorted(cohort.tolist())) for cohort in drawn]


def make_contender(name: str, world: Scenario) -> tuple[Callable[[int], Any], Callable[[Any], float]]:
    """What trains so many replicas, and what asks all clients about the models."""
    if name == "plain":
        from benchmarks.contenders.plain_module import PlainModule

        plain = PlainModule(world)
        return (
            lambda replicas: [plain.train(cohort) for cohort in cohorts(replicas)],
            lambda models: float(np.mean([plain.survey(model) for model in models])),
        )
    from fedelect.federation import make_engine

    engine = make_engine(name, world.config)

    def train(replicas: int) -> list[Any]:
        jobs = [Job(cohort=cohort, seed=SEED, trial=trial) for trial, cohort in enumerate(cohorts(replicas))]
        return [result.model for result in engine.train(world, jobs)]

    return train, lambda models: float(
        np.mean([judge(world, scores).mean() for scores in engine.scores(world, models)])
    )


def serve(name: str, kind: str, line: Connection) -> None:
    """The process of a contender: told how many replicas, answers with a `Turn`."""
    import torch

    torch.set_num_threads(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    train, survey = make_contender(name, make_world(kind))
    survey(train(1))
    line.send(None)
    while replicas := line.recv():
        began = time.process_time()
        models = train(replicas)
        between = time.process_time()
        opinion = survey(models)
        ended = time.process_time()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        per_slot = 1e3 / replicas
        line.send(Turn((between - began) * per_slot, (ended - between) * per_slot, opinion, peak))


def compare(kind: str, rounds: int) -> bool:
    """Let all take turns and print the table; whether the aim is met."""
    context = multiprocessing.get_context("spawn")
    lines, processes = {}, []
    for name in ("plain", "torch-loop", "torch-layers"):
        lines[name], other = context.Pipe()
        processes.append(context.Process(target=serve, args=(name, kind, other), daemon=True))
        processes[-1].start()
        other.close()  # so that a contender that fails ends this process too
        lines[name].recv()
    count = REPLICAS[kind]
    runs = [("plain", count), ("torch-loop", count), ("torch-layers", count)]
    runs += [("torch-layers", 8), ("torch-layers", 32)] if kind == "mlp" else []
    turns: dict[tuple[str, int, int], list[Turn]] = {(*run, place): [] for place, run in enumerate(runs)}
    for _ in range(rounds):
        for place, (name, replicas) in enumerate(runs):
            lines[name].send(replicas)
            turns[name, replicas, place].append(lines[name].recv())
    for name, process in zip(lines, processes, strict=True):
        lines[name].send(0)
        process.join()
    plain, *_ = turns.values()
    met = True
    print(f"\n{kind}: milliseconds of a replica-slot, medians of {rounds} rounds")
    print("| contender | replicas at once | train | survey | both | times plain (range) | peak MB | opinion |")
    print("|---" * 8 + "|")
    for (name, replicas, _), own in turns.items():
        ratios = [one.total / other.total for one, other in zip(plain, own, strict=True)]
        parts = [median(getattr(turn, part) for turn in own) for part in ("train", "survey", "total")]
        cells = " | ".join(f"{value:.1f}" for value in parts)
        ratio = f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"| `{name}` | {replicas} | {cells} | {ratio} | {own[-1].peak_mb:.0f} | {own[-1].opinion:.3f} |")
        met = met and (name != "torch-layers" or median(ratios) >= AIMS[kind])
    print(f"aim {AIMS[kind]:g} times plain: {'met' if met else 'MISSED'}", flush=True)
    return met


def make_teams(kind: str, cores: int) -> dict[str, tuple[Team, int, int]]:
    """Each contender's processes, how many there are, and how many slots each trains in a turn."""
    settings = {"plain-module": (1, 1, 1), "layers-module": (cores, 1, REPLICAS[kind]), "pfl": (cores, 1, 1)}
    settings |= {"pfl, threads": (1, cores, 1)} if cores > 1 else {}
    settings |= {"flower": (1, cores, 1), "flower-8": (1, cores, 8)}
    teams = {}
    logs = Path(tempfile.mkdtemp(prefix="modules_benchmark_"))
    for label, (processes, threads, slots) in settings.items():
        log = logs / f"{kind}-{cores}-{label.replace(', ', '-')}.log"
        team = Team(label.partition(",")[0], make_work(kind), processes=processes, threads=threads, log=log)
        try:
            print(f"  {label}: {team.ready()['versions']}", flush=True)
            teams[label] = (team, processes, slots)
        except ContenderError as error:
            team.close()
            print(f"  {label} is left out: {error}", flush=True)
    return teams


def compare_rivals(kind: str, rounds: int, cores: int) -> bool:
    """Let all take turns on this many cores, the plain loop on one; print wall time; whether ours is ahead of all."""
    print(f"\n{kind}, {cores} core(s)")
    teams = make_teams(kind, cores)
    seconds: dict[str, list[float]] = {label: [] for label in teams}
    busy: dict[str, list[float]] = {label: [] for label in teams}
    opinions: dict[str, list[float]] = {label: [] for label in teams}
    for round_ in range(rounds):
        for label, (team, processes, slots) in teams.items():
            trials = range(round_ * processes * slots, (round_ + 1) * processes * slots)
            said = team.run(
                [[visit(make_work(kind), trial) for trial in trials[i::processes]] for i in range(processes)]
            )
            seconds[label].append(said["seconds"] / len(trials))
            busy[label].append(said["busy_seconds"] / len(trials))
            opinions[label] += [value for values in said["values"] for value in values]
    for team, _, _ in teams.values():
        team.close()
    ours, plain = seconds["layers-module"], seconds["plain-module"]
    ahead = True
    columns = ["contender", "slots at once", "wall ms", "processor ms", "times plain on one core (range)"]
    columns += ["ours is so many times as fast: wall", "processor", "opinion"]
    print(f"\n{kind}, {cores} core(s): a replica-slot, medians of {rounds} rounds\n| {' | '.join(columns)} |")
    print("|---" * len(columns) + "|")
    for label, own in seconds.items():
        over = [one / other for one, other in zip(plain, own, strict=True)]
        behind = median(one / other for one, other in zip(own, ours, strict=True))
        work = median(one / other for one, other in zip(busy[label], busy["layers-module"], strict=True))
        ahead = ahead and (label == "layers-module" or behind > 1)
        _, processes, slots = teams[label]
        print(
            f"| `{label}` | {processes * slots} | {1e3 * median(own):.0f} | {1e3 * median(busy[label]):.0f} | "
            f"{median(over):.2f} ({min(over):.2f} to {max(over):.2f}) | {behind:.1f} | {work:.1f} | "
            f"{np.mean(opinions[label]):.3f} |",
            flush=True,
        )
    return ahead


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", choices=list(MODULES), help="may be given again (default: all)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contender (default: 5)")
    parser.add_argument("--rivals", action="store_true", help="beside pfl and Flower, on one core and on all")
    arguments = parser.parse_args()
    kinds = arguments.only or list(MODULES)
    if arguments.rivals:
        ahead = [compare_rivals(kind, arguments.rounds, cores) for kind in kinds for cores in (1, len(core_numbers()))]
        sys.exit(0 if all(ahead) else 1)
    met = [compare(kind, arguments.rounds) for kind in kinds]
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
