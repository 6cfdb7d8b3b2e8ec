"""fedelect: let the clients of a federated learning system elect who trains next.

Start at `fedelect.simulate`, which compares selectors in a simulated federation, at `fedelect.selectors` for a training
loop of your own, or at `fedelect.flower` to run on Flower. Importing this package loads numpy and nothing heavier.
"""

import importlib
from typing import TYPE_CHECKING, Any

from fedelect._version import __version__
from fedelect.errors import FedelectError
from fedelect.vocabulary import Feedback, Selection

if TYPE_CHECKING:
    from fedelect._front import load_run, load_scenario, simulate
    from fedelect._run import Run
    from fedelect.selectors import AbstractSelector

__all__ = [
    "AbstractSelector",
    "FedelectError",
    "Feedback",
    "Run",
    "Selection",
    "__version__",
    "load_run",
    "load_scenario",
    "simulate",
]

_LAZY = {
    "AbstractSelector": "fedelect.selectors",
    "Run": "fedelect._run",
    "load_run": "fedelect._front",
    "load_scenario": "fedelect._front",
    "simulate": "fedelect._front",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'fedelect' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
