"""Which path is cheaper for a scenario: by its sizes alone, never by the jobs.

The cost of a path is estimated in vector operations for each sample visited. A step in score space changes all D
scores of a column by the active samples' rows; a step on the model touches the features of a sample that are not zero,
once to score it and once to learn from it. The constants were measured on MNIST, where the paths break even at about
D = 1400 if samples are reshuffled every epoch, at about 600 for softmax.
"""

from typing import Literal

import numpy as np

from fedelect.federation.linear.layout import LANES, NARROW, strips
from fedelect.scenario import Scenario
from fedelect.vocabulary import Floats

Path = Literal["gram", "primal"]

GRAM_BYTES = 2**29
"""Most memory that the Gram matrices of all clients of a scenario may take on the path "auto": 512 MiB."""

_ACTIVE = 0.25  # share of the samples inside the margin, over a slot of the paper's scenario
_FLIPS = 0.02  # share of the margins that flip from one epoch to the next
_DENSE = 0.6  # cost of a row when all rows of a batch are added, against a row that is picked
_ADVANCE = 6.0  # cost of moving a vector of scores on and testing its margins, once for each batch
_SPARSE = 4.0  # cost of a feature that is not zero and a pack of classes
_VECTOR = 8  # numbers in a vector


def cheaper_path(scenario: Scenario, *, compiled: bool) -> Path:
    """The path that "auto" takes.

    Args:
        scenario: The world.
        compiled: Whether the compiled kernels are used, which leave out zeros.
    """
    samples = scenario.sizes.astype(np.float64)
    wide = np.array([strips(size) * LANES for size in scenario.sizes.tolist()], dtype=np.float64)
    if (wide * samples).sum() * np.dtype(scenario.config.model.precision).itemsize > GRAM_BYTES:
        return "primal"
    gram = samples * _row_cost(scenario, compiled=compiled) * wide * scenario.classes / _VECTOR
    primal = samples.sum() * _feature_cost(scenario, compiled=compiled)
    return "gram" if gram.sum() <= primal else "primal"


def _row_cost(scenario: Scenario, *, compiled: bool) -> Floats:
    """(N,) what a sample costs in score space, in additions of its row of the Gram matrix."""
    settings = scenario.config.model
    batch = np.minimum(settings.batch, scenario.sizes)
    if not compiled:
        return np.ones(scenario.clients)
    if settings.kind == "softmax":
        return np.full(scenario.clients, _DENSE)
    active = _ACTIVE if settings.shuffle == "epoch" else _ACTIVE / settings.epochs + _FLIPS
    return active + _ADVANCE / batch


def _feature_cost(scenario: Scenario, *, compiled: bool) -> float:
    """What a sample costs on the model itself."""
    if not compiled:
        return 2.0 * scenario.features * scenario.classes / _VECTOR
    entries = sum(int(np.count_nonzero(inputs)) for inputs in scenario.train_inputs)
    packs = -(-scenario.classes // NARROW)
    return _SPARSE * packs * (entries / int(scenario.sizes.sum()) + 1.0)
