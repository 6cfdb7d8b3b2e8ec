"""FA: the opinions, and with them their average, reach the server."""

from numpy.typing import ArrayLike

from fedelect.vocabulary import Feedback


def federated(opinions: ArrayLike) -> Feedback:
    """What the server learns of a slot: the opinions (N,) and their mean; eq. `est_opinion`.

    Clients without an opinion (nan) are left out of the mean.
    """
    return Feedback(opinions=opinions)
