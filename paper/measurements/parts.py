"""The parts of a measurement, computed in worker processes and stored, so that the same command resumes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from fedelect._processes import run_tasks
from fedelect.records import PartStore
from fedelect.vocabulary import Progress, ignore_progress

_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class MeasurementParts:
    """Computes the parts of one measurement that are not in its store.

    Attributes:
        store: The finished parts.
        workers: Processes; 1 for none beside this one.
        progress: Called whenever a part is finished.
    """

    store: PartStore
    workers: int = 1
    progress: Progress = ignore_progress

    def compute(
        self,
        kind: type[_Kind],
        function: Callable[..., _Kind],
        requests: Mapping[str, tuple[Any, ...]],
        *,
        alone: bool = False,
    ) -> dict[str, _Kind]:
        """Return the value of every request by its name, from the store or computed now.

        Args:
            kind: Type of the values, one that msgspec can encode.
            function: Computes one: a module's function, or `functools.partial` of one.
            requests: Its arguments, by the name of the part.
            alone: One after the other in this process, for measurements by the clock.
        """
        stored = {name: self.store.load(name) for name in requests}
        known = {name: msgspec.msgpack.decode(one, type=kind) for name, one in stored.items() if one is not None}
        missing = [name for name in requests if name not in known]
        self.progress(len(known), len(requests))
        workers = 1 if alone else self.workers
        for index, value in run_tasks(function, [requests[name] for name in missing], workers=workers):
            content = msgspec.msgpack.encode(value)
            self.store.save(missing[index], content)
            known[missing[index]] = msgspec.msgpack.decode(content, type=kind)
            self.progress(len(known), len(requests))
        return {name: known[name] for name in requests}
