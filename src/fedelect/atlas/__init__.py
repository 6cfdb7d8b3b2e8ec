"""The value of every cohort in a table, and an engine that looks results up in it instead of training."""

from fedelect.atlas.build import LIMIT, build_atlas
from fedelect.atlas.engine import AtlasEngine, draw_training_seed
from fedelect.atlas.file import load_atlas, save_atlas, shipped_atlases
from fedelect.atlas.ranks import cohort_ranks, cohorts_at
from fedelect.atlas.table import Atlas, AtlasPlan
from fedelect.atlas.truth import Truth, level_contenders, scenario_truth, seed_sets_apart, table_truth

__all__ = [
    "LIMIT",
    "Atlas",
    "AtlasEngine",
    "AtlasPlan",
    "Truth",
    "build_atlas",
    "cohort_ranks",
    "cohorts_at",
    "draw_training_seed",
    "level_contenders",
    "load_atlas",
    "save_atlas",
    "scenario_truth",
    "seed_sets_apart",
    "shipped_atlases",
    "table_truth",
]
