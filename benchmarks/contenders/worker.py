"""The process a contender runs in: told what to run by lines of JSON, answers with times, values and memory.

    python -m benchmarks.contenders.worker '{"contender": "plain", "threads": 1, "cores": [0], "work": {...}}'

First line out: {"ready": true, "versions", "start_seconds", "start_mb"}, {"missing": reason} or {"failed": reason}.
Then, for each line [[trial, slot, cohort], ...] in: {"seconds", "busy_seconds", "values", "peak_mb"}; busy is the
processor time of all its processes. Ends with its input. Anything a library prints goes to standard error.
"""

import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

CONTENDERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "sgemm": ("ours", "Sgemm", {}),
    "plain": ("ours", "plain", {}),
    "lean-numpy": ("ours", "LeanLoop", {}),
    "stacked-epoch": ("ours", "stacked", {"shuffle": "epoch"}),
    "stacked-round": ("ours", "stacked", {"shuffle": "round"}),
    "stacked-slot": ("ours", "stacked", {"shuffle": "slot"}),
    "torch-loop": ("torch_loop", "TorchLoop", {}),
    "plain-module": ("plain_module", "plain", {}),
    "layers-module": ("ours", "modules", {"engine": "torch-layers"}),
    "loop-module": ("ours", "modules", {"engine": "torch-loop"}),
    "fedjax": ("with_fedjax", "Fedjax", {}),
    "pfl": ("with_pfl", "Pfl", {}),
    "flower": ("with_flower", "Flower", {}),
    "flower-8": ("with_flower", "Flower", {"together": 8}),
}
"""By name: the module beside this one, the class or function in it, and what else to call it with."""


def descendants(process: int) -> Iterator[int]:
    """The process and all its children's children, where /proc tells."""
    yield process
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            listed = children.read_text().split()
        except OSError:  # a thread that has just ended
            continue
        for child in listed:
            yield from descendants(int(child))


def peak_mb() -> float:
    """Highest resident memory since `forget_peak`, summed over this process and its descendants."""
    total = 0.0
    for process in descendants(os.getpid()):
        try:
            status = Path(f"/proc/{process}/status").read_text()
        except OSError:
            continue
        total += sum(float(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    return total


def processor_seconds() -> float:
    """Processor time so far of this process and its descendants, where /proc tells."""
    ticks = 0
    for process in descendants(os.getpid()):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def forget_peak() -> None:
    """Start the high-water mark anew."""
    for process in descendants(os.getpid()):
        try:
            Path(f"/proc/{process}/clear_refs").write_text("5")
        except OSError:
            continue


def start(settings: dict[str, Any]) -> Any:
    """Import the contender, build its world, let it warm up."""
    from benchmarks.contenders.work import Work, covering_visits

    work = Work(**settings["work"])
    module, name, arguments = CONTENDERS[settings["contender"]]
    make: Callable[..., Any] = getattr(importlib.import_module(f"benchmarks.contenders.{module}"), name)
    contender = make(work, settings["threads"], **arguments)
    warm = covering_visits(work)
    # What compiles or caches per client should see them all; a plain loop has nothing to warm but its libraries.
    contender.run(warm if settings["contender"].startswith(("stacked", "flower", "layers")) else warm[:1])
    return contender


def answer(contender: Any, visits: list[list[Any]]) -> dict[str, Any]:
    """Run the visits and say how it went."""
    from benchmarks.contenders.work import Visit

    listed = [Visit(trial, slot, tuple(cohort)) for trial, slot, cohort in visits]
    forget_peak()
    began, busy = time.perf_counter(), processor_seconds()
    values = contender.run(listed)
    seconds, busy = time.perf_counter() - began, processor_seconds() - busy
    return {"seconds": seconds, "busy_seconds": busy, "values": values, "peak_mb": peak_mb()}


def main() -> None:
    settings = json.loads(sys.argv[1])
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, settings["cores"])
    say = partial(print, file=replies, flush=True)
    began = time.perf_counter()
    try:
        contender = start(settings)
    except ImportError as error:
        traceback.print_exc()
        say(json.dumps({"missing": str(error)}))
        os._exit(0)
    except BaseException as error:
        traceback.print_exc()
        say(json.dumps({"failed": repr(error)}))
        os._exit(1)
    seconds = time.perf_counter() - began
    say(json.dumps({"ready": True, "versions": contender.versions, "start_seconds": seconds, "start_mb": peak_mb()}))
    for line in sys.stdin:
        try:
            say(json.dumps(answer(contender, json.loads(line))))
        except BaseException as error:
            traceback.print_exc()
            say(json.dumps({"failed": repr(error)}))
            break
    if "ray" in sys.modules:
        importlib.import_module("ray").shutdown()
    os._exit(0)  # without waiting for what a library left running


if __name__ == "__main__":
    main()
