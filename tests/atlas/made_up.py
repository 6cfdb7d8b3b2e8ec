"""Atlases for tests: small ones that are trained once, and made-up ones that need no training."""

import functools
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from tests.sample_runs import PROVENANCE
from tests.worlds import digits, tiny

from fedelect.atlas import Atlas, AtlasPlan, build_atlas
from fedelect.atlas.facts import strip_data
from fedelect.atlas.file import digest_of
from fedelect.scenario import ScenarioConfig, build_scenario
from fedelect.vocabulary import Floats


def plan(config: ScenarioConfig | None = None, **changes: Any) -> AtlasPlan:
    """15 cohorts, two seeds each, five of them six times again."""
    fields: dict[str, Any] = {"config": config or tiny(), "seed": 7, "seeds": 2, "contenders": 5, "fresh": 6}
    return AtlasPlan(**fields | changes)


def built(of: AtlasPlan, out: Path, **options: Any) -> Atlas:
    given: dict[str, Any] = {"engine": "plain", "workers": 1}
    return build_atlas(of, digits(), out, **given | options)


@functools.cache
def trained(upload_probability: float = 0.8) -> Atlas:
    """The atlas of the tiny world, N = 6, K = 2."""
    with tempfile.TemporaryDirectory() as folder:
        return built(plan(tiny(upload_probability=upload_probability)), Path(folder) / "atlas.npz")


def made_up(table: NDArray[Any], fresh: NDArray[Any], contenders: list[int], opinion: str = "accuracy") -> Atlas:
    """An atlas of the tiny world with the given entries, (S, 6, 15) and (F, 6, R)."""
    config = msgspec.structs.replace(tiny(upload_probability=1.0), opinion=opinion)
    world = build_scenario(config, digits())
    atlas = Atlas(
        world=strip_data(world),
        seed=1,
        engine="made up",
        data_digest=digits().digest,
        test_sizes=np.array([len(labels) for labels in world.test_labels], dtype=np.int64),
        untrained=np.full(6, 0.1),
        table=table,
        contenders=np.array(contenders, dtype=np.int64),
        fresh=fresh,
        provenance=PROVENANCE,
        digest="",
    )
    object.__setattr__(atlas, "digest", digest_of(atlas))
    return atlas


def alike(means: Floats) -> NDArray[Any]:
    """(S, C) -> (S, 6, C): all clients have the same opinion."""
    return np.repeat(means[:, np.newaxis], 6, axis=1).astype(np.float32)
