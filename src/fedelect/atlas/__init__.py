"""A table that knows what every cohort is worth, and runs on it in place of training."""

from fedelect.atlas.build import LIMIT as LIMIT
from fedelect.atlas.build import build_atlas as build_atlas
from fedelect.atlas.engine import AtlasEngine as AtlasEngine
from fedelect.atlas.engine import drawn_seed as drawn_seed
from fedelect.atlas.file import load_atlas as load_atlas
from fedelect.atlas.file import save_atlas as save_atlas
from fedelect.atlas.file import shipped_atlases as shipped_atlases
from fedelect.atlas.ranks import cohort_ranks as cohort_ranks
from fedelect.atlas.ranks import cohorts_at as cohorts_at
from fedelect.atlas.table import Atlas as Atlas
from fedelect.atlas.table import AtlasPlan as AtlasPlan
from fedelect.atlas.truth import Truth as Truth
from fedelect.atlas.truth import level_contenders as level_contenders
from fedelect.atlas.truth import scenario_truth as scenario_truth
from fedelect.atlas.truth import seed_sets_apart as seed_sets_apart
from fedelect.atlas.truth import table_truth as table_truth

__all__ = [
    "LIMIT",
    "Atlas",
    "AtlasEngine",
    "AtlasPlan",
    "Truth",
    "build_atlas",
    "cohort_ranks",
    "cohorts_at",
    "drawn_seed",
    "level_contenders",
    "load_atlas",
    "save_atlas",
    "scenario_truth",
    "seed_sets_apart",
    "shipped_atlases",
    "table_truth",
]
