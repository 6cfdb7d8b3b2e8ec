"""What beliefs have to do with who is elected, on the atlas of the paper's world."""

import numpy as np
from numpy.typing import NDArray

from fedelect.analytics import democratized_feedback
from fedelect.atlas import Atlas, load_atlas, shipped_atlases
from fedelect.seeds import derive, stream
from fedelect.selectors import BpUcb
from fedelect.vocabulary import Feedback, Floats

TRIALS, SLOTS = 8, 100


def played(atlas: Atlas, *, beliefs_count: bool) -> tuple[Floats, NDArray[np.int64], Floats]:
    """Mean share of belief of each client (N,), elections (trials, N) and final mean opinions (trials, N) of BP-UCB."""
    clients = atlas.config.clients
    shares, counts = np.zeros(clients), np.zeros((TRIALS, clients), dtype=np.int64)
    means = np.zeros((TRIALS, clients))
    for trial in range(TRIALS):
        selector = BpUcb(clients=clients, budget=5, exploration=0.01, seed=derive(1, "selection", trial))
        for training_seed in stream(1, "beliefs", trial).integers(atlas.seeds, size=SLOTS).tolist():
            selection = selector.ask()
            told = democratized_feedback(atlas.world, atlas.opinions(int(atlas.rank(selection.cohort)), training_seed))[
                0
            ]
            assert told.beliefs is not None
            shares += told.beliefs / told.beliefs.sum() / (TRIALS * SLOTS)
            counts[trial, list(selection.cohort)] += 1
            selector.tell(
                selection, told if beliefs_count else Feedback(opinions=told.opinions, beliefs=np.ones(clients))
            )
        means[trial] = selector.means
    return shares, counts, means


def correlation(one: Floats, many: NDArray[np.int64]) -> float:
    return float(np.mean([np.corrcoef(one, each)[0, 1] for each in many]))


def test_beliefs_go_along_with_elections_also_where_they_do_not_count() -> None:
    """The reason given for the claim that clients with better beliefs are elected more often."""
    atlas = load_atlas(shipped_atlases()["paper"])
    shares, counts, means = played(atlas, beliefs_count=True)
    _, without, _ = played(atlas, beliefs_count=False)
    with_beliefs, without_beliefs = correlation(shares, counts), correlation(shares, without)
    assert with_beliefs > 0.15 and abs(with_beliefs - without_beliefs) < 0.1
    # In the index beliefs move clients apart hundreds of times less than their own mean opinions do.
    assert np.ptp(shares) / atlas.config.clients < np.ptp(means, axis=1).mean() / 200
    # Common cause: whose test share is easy likes every model.
    ease = (atlas.table / atlas.test_sizes[:, np.newaxis]).mean(axis=(0, 2))
    assert np.corrcoef(ease, shares)[0, 1] > 0.5
