"""The atlas of the paper's world against what was trained, slot by slot, for the paper's figures.

Seed s of a cohort is what `Job(seed=atlas.seed, trial=s, slot=1)` trains, and trial s of a run under the same seed
trains just that in its first slot. So the committed first slots of trials 0 .. S-1 are entries of the table.
"""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

from fedelect.atlas import load_atlas, shipped_atlases
from fedelect.scenario import ScenarioConfig

RESULTS = Path(__file__).parents[2] / "paper/results/trained/N20-K5-theta1"


@pytest.mark.skipif(not RESULTS.exists(), reason="the results of the reproduction are not here")
@pytest.mark.parametrize("selector", ["random", "round-robin", "subset-ucb"])
def test_the_first_slots_that_were_trained_are_entries_of_the_papers_atlas(selector: str) -> None:
    atlas = load_atlas(shipped_atlases()["paper"])
    with np.load(RESULTS / selector / "trials-000-024.npz") as trained:
        about = json.loads(trained["about"].tobytes())
        cohorts, opinions, first_trial = trained["cohorts"][:, 0], trained["opinions"][:, 0], trained["first_trial"]
    assert msgspec.convert(about["scenario"], ScenarioConfig) == atlas.config and first_trial == 0
    assert (about["seed"], about["data_digest"]) == (atlas.seed, atlas.data_digest)
    ranks = atlas.rank(cohorts[: atlas.seeds].astype(np.int64))
    means = np.array([[atlas.opinions(rank, seed).mean() for seed in range(atlas.seeds)] for rank in ranks.tolist()])
    assert np.diag(means) == pytest.approx(opinions[: atlas.seeds], rel=0, abs=1e-12)
    assert np.abs(np.roll(means, 1, axis=1).diagonal() - opinions[: atlas.seeds]).max() > 1e-3  # not so of other seeds
