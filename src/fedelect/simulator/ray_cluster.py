"""Play shards on a Ray cluster, one actor each. Ray is imported only when a cluster is asked for."""

import logging
import os
import pickle
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from fedelect._processes import ONE_THREAD, Failed, WorkerLost
from fedelect.errors import ConfigurationError, RunError
from fedelect.simulator.executors import Answer
from fedelect.simulator.plan import Plan, TrainingSource
from fedelect.simulator.shard import Played, Shard, TrialSave, WorkerCheck

LOCAL = "local"
"""The address under which a Ray of our own is started on this machine, and stopped at the end."""

_KNOCK_S = 10.0

SLICE_S = 0.5
"""Seconds of work between two answers of an actor (at least one slot)."""


class RayShard:
    """A shard in an actor. What it is made from comes pickled, for its modules are found once the path is known.

    Args:
        payload: Plan, trials, saves and check, pickled.
        source: Data set or atlas.
        import_paths: Where the driver looks for modules.
    """

    def __init__(self, payload: bytes, source: TrainingSource, import_paths: Sequence[str]) -> None:
        sys.path.extend(path for path in import_paths if path not in sys.path)
        plan, trials, saves, check = pickle.loads(payload)
        self._shard = Shard(plan, source, trials, saves, check=check)

    def play(self, at_least_s: float, save: bool) -> Played | Failed:
        """See `Shard.play`."""
        return self._shard.play(at_least_s, save)


class RayActors:
    """Each shard in an actor of a Ray cluster; fedelect must be installed on its machines.

    Args:
        address: The cluster as `ray.init` takes it ("auto", "HOST:PORT", "ray://HOST:PORT"), or "local".
        cores: How many cores a local Ray may use.
        plan: The plan.
        source: Data set or atlas; sent to each machine once.
        check: What actors must have in common with this process.
    """

    def __init__(self, address: str, *, cores: int, plan: Plan, source: TrainingSource, check: WorkerCheck) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # what is to come; else some versions warn
        import ray

        self._ray: Any = ray
        self._ours = not ray.is_initialized()
        if self._ours:
            self._connect(address, cores)
        self._plan, self._check = plan, check
        self._source = ray.put(source)
        self._actor = ray.remote(num_cpus=1, max_restarts=0, runtime_env={"env_vars": ONE_THREAD})(RayShard)
        self._actors: dict[int, Any] = {}
        self._asked: dict[Any, int] = {}

    @property
    def cores(self) -> int:
        """The cores of the cluster."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def begin(self, number: int, trials: Sequence[int], saves: Mapping[int, TrialSave]) -> None:
        """See `Executor`."""
        self.end(number)
        self._actors[number] = self._actor.remote(
            pickle.dumps((self._plan, trials, saves, self._check)), self._source, sys.path
        )

    def ask(self, number: int, *, save: bool) -> None:
        """See `Executor`."""
        self._asked[self._actors[number].play.remote(SLICE_S, save)] = number

    def answer(self) -> tuple[int, Answer]:
        """See `Executor`."""
        ready: list[Any] = []
        while not ready:  # wakes up now and then, so that Ctrl-C is heard
            ready, _ = self._ray.wait(list(self._asked), num_returns=1, timeout=1.0)
        number = self._asked.pop(ready[0])
        try:
            answer: Answer = self._ray.get(ready[0])
        except self._ray.exceptions.RayTaskError as error:
            return number, Failed(
                RunError(
                    f"a Ray actor failed: {_last_line(error)}; are the same fedelect and its extras installed on all "
                    f"machines of the cluster?"
                )
            )
        except self._ray.exceptions.RayError as error:
            return number, WorkerLost(f"{type(error).__name__}: {_last_line(error)}")
        return number, answer

    def end(self, number: int) -> None:
        """See `Executor`."""
        actor = self._actors.pop(number, None)
        if actor is not None:
            self._asked = {asked: other for asked, other in self._asked.items() if other != number}
            self._ray.kill(actor)

    def close(self) -> None:
        """See `Executor`; a Ray that was running before stays."""
        for number in list(self._actors):
            self.end(number)
        del self._source
        if self._ours:
            self._ray.shutdown()

    def _connect(self, address: str, cores: int) -> None:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address == LOCAL:
            quiet |= {"include_dashboard": False, "num_cpus": cores}
        try:
            _knock(address)
            self._ray.init(address=address, **quiet)
        except (OSError, ValueError, RuntimeError) as error:
            raise ConfigurationError(
                f"there is no Ray cluster to use at {address!r}: {' '.join(str(error).split())}; "
                f'give HOST:PORT of its head, "auto" on one of its machines, or "{LOCAL}"'
            ) from error


def _knock(address: str) -> None:
    """OSError if HOST:PORT cannot be reached: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "://" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK_S).close()


def _last_line(error: BaseException) -> str:
    return str(error).strip().rpartition("\n")[2]
