"""Average accuracy: the running mean of the slots' mean opinions, with one setting for the term before slot 1.

The paper does not say how it averages. The optimal column of Table I fits a first term of 0
(`published.fitted_first_term`), so `FIRST_TERM` is 0 in the record, the pre-registered run and the readings alike.
Every running average in `paper/` is computed here. The record's calibration compares means of slots, which have no
first term, and says what one would change.
"""

from typing import Literal

import numpy as np

from fedelect.equations import metrics
from fedelect.vocabulary import Floats

FirstTerm = Literal["none", "zero", "untrained"]

FIRST_TERM: FirstTerm = "zero"
"""First term of every average that is published; `first_term = 0.0` in the registration."""


def average_accuracy(opinions: Floats, *, untrained: float, first_term: FirstTerm) -> Floats:
    """Running mean of mean opinions. Shapes: (R, T) -> (R, T).

    Args:
        opinions: (R, T) mean opinion of each slot; nan where nothing was learnt.
        untrained: Mean opinion of the untrained model.
        first_term: The term before the first slot.
    """
    first = {"none": None, "zero": 0.0, "untrained": untrained}[first_term]
    return metrics.running_mean(opinions, None if first is None else np.full(len(opinions), first))
