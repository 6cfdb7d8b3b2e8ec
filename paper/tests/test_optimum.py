"""Whether clients 1 to 5 are the optimum, read off an atlas."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fedelect.atlas import Atlas, load_atlas, save_atlas, shipped_atlases
from fedelect.atlas.file import digest_of
from fedelect.errors import ConfigurationError
from fedelect.records import PartStore
from paper import Context
from paper.measurements.optimum import Optimum, measure_optimum
from paper.measurements.parts import MeasurementParts
from paper.tests.small_store import TINY, small_atlas, small_store


def measured(folder: Path, atlas: Path) -> Optimum:
    context = Context(store=small_store(folder / "results"), preset=TINY, atlas=atlas)
    store = PartStore(folder / "parts", {}, what="the optimum")
    try:
        return measure_optimum(context, MeasurementParts(store))
    finally:
        store.discard()


def accuracies(atlas: Atlas) -> dict[tuple[int, ...], list[float]]:
    """Mean opinion in each fresh training, by cohort, from the counts of right answers."""
    return {
        atlas.cohort(rank): [
            float(np.mean([atlas.fresh[seed, n, place] / atlas.test_sizes[n] for n in range(20)]))
            for seed in range(len(atlas.fresh))
        ]
        for place, rank in enumerate(atlas.contenders.tolist())
    }


def test_the_best_other_is_chosen_by_one_half_and_compared_by_the_other(tmp_path: Path) -> None:
    found = measured(tmp_path, small_atlas(tmp_path))
    known = accuracies(load_atlas(shipped_atlases()["paper"]))
    own = known.pop((0, 1, 2, 3, 4))
    best = max(known, key=lambda cohort: sum(known[cohort][:10]))
    assert found.best_other_cohort == best and found.others == 99
    assert found.first_five == pytest.approx(own[10:]) and found.best_other == pytest.approx(known[best][10:])
    lows = [
        stats.ttest_1samp(np.subtract(own[10:], other[10:]), 0.0).confidence_interval(0.95).low
        for other in known.values()
    ]
    assert found.not_worse == sum(low <= 0.0 for low in lows) == 3


def test_an_atlas_in_which_the_five_are_no_contenders_cannot_tell(tmp_path: Path) -> None:
    atlas = load_atlas(small_atlas(tmp_path))
    kept = [place for place, rank in enumerate(atlas.contenders.tolist()) if rank != int(atlas.rank([0, 1, 2, 3, 4]))]
    fewer = dataclasses.replace(atlas, contenders=atlas.contenders[kept], fresh=atlas.fresh[:, :, kept])
    save_atlas(dataclasses.replace(fewer, digest=digest_of(fewer)), tmp_path / "fewer.npz")
    with pytest.raises(ConfigurationError, match=r"no fresh trainings of clients 1 to 5.*--contenders"):
        measured(tmp_path, tmp_path / "fewer.npz")
