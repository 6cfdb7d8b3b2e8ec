"""The parent's side: teams of contender processes, each with its own cores and threads, asked in turns."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, final

from benchmarks.contenders.work import Visit, Work

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 1800.0


class ContenderError(Exception):
    """A contender is not installed, failed, or did not answer."""


def core_numbers() -> list[int]:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def environment(threads: int) -> dict[str, str]:
    """Threads of every numerical library, and where to find this folder and the package."""
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    libraries = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA")
    return {
        **os.environ,
        **{f"{library}_NUM_THREADS": str(threads) for library in libraries},
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={str(threads > 1).lower()}",
        "JAX_PLATFORMS": "cpu",
    }


@final
class Worker:
    """One process; see `worker.py` for what is said."""

    def __init__(self, contender: str, work: Work, threads: int, cores: Sequence[int], log: Path, python: str) -> None:
        settings = {"contender": contender, "work": asdict(work), "threads": threads, "cores": list(cores)}
        self._log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                [python, "-m", "benchmarks.contenders.worker", json.dumps(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                bufsize=1,
                cwd=ROOT,
                env=environment(1 if contender.startswith("flower") else threads),  # its threads are actors,
            )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def tell(self, visits: Sequence[Visit]) -> None:
        """Let it begin with these."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(visits) + "\n")
        self._process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        """Its next answer."""
        try:
            line = self._lines.get(timeout=PATIENCE_SECONDS)
        except queue.Empty:
            raise ContenderError(f"no answer within {PATIENCE_SECONDS:.0f} s; see {self._log}") from None
        if not line:
            raise ContenderError(f"it ended with code {self._process.wait()}; see {self._log}")
        said: dict[str, Any] = json.loads(line)
        if "missing" in said:
            raise ContenderError(f"not installed ({said['missing']})")
        if "failed" in said:
            raise ContenderError(f"{said['failed']}; see {self._log}")
        return said

    def close(self) -> None:
        """Let it end; kill it if it does not."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@final
class Team:
    """One or more processes of one contender that work side by side.

    One process with one thread stays on one core; several have a core each; one with several threads has as many cores.
    """

    def __init__(
        self, contender: str, work: Work, *, processes: int, threads: int, log: Path, python: str = sys.executable
    ) -> None:
        cores = core_numbers()
        self._workers = [
            Worker(
                contender,
                work,
                threads,
                [cores[(number * threads + thread) % len(cores)] for thread in range(threads)],
                log.with_suffix(f".{number}.log"),
                python,
            )
            for number in range(processes)
        ]

    def ready(self) -> dict[str, Any]:
        """Wait until all have warmed up; versions, seconds and memory of the start."""
        said = [worker.hear() for worker in self._workers]
        return {
            "versions": said[0]["versions"],
            "start_seconds": max(each["start_seconds"] for each in said),
            "start_mb": sum(each["start_mb"] for each in said),
        }

    def run(self, shares: Sequence[Sequence[Visit]]) -> dict[str, Any]:
        """Each process its share, all at once; seconds until the last one is done, and of processor time."""
        busy = [(worker, share) for worker, share in zip(self._workers, shares, strict=True) if share]
        began = time.perf_counter()
        for worker, share in busy:
            worker.tell(share)
        said = [worker.hear() for worker, _ in busy]
        return {
            "seconds": time.perf_counter() - began,
            "busy_seconds": sum(each["busy_seconds"] for each in said),
            "values": [each["values"] for each in said],
            "peak_mb": sum(each["peak_mb"] for each in said),
        }

    def close(self) -> None:
        """End all processes."""
        for worker in self._workers:
            worker.close()
