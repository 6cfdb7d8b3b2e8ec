"""The paper's scale: opinions mapped by the two baselines alone."""

import numpy as np

from fedelect.vocabulary import Floats
from paper.published import Baselines


def map_opinions(opinions: Floats, *, ours: Baselines, aim: Baselines) -> Floats:
    """Map opinions by the straight line that maps both baselines of a world to the paper's. Shapes: (...) -> (...).

    Args:
        opinions: Mean opinions.
        ours: A slot of the fixed cohort and of random selection in the world.
        aim: The same in the paper.
    """
    slope = (aim.fixed - aim.random) / (ours.fixed - ours.random)
    return np.asarray(aim.random + slope * (opinions - ours.random))
