"""Rank selectors: where the value of every cohort is known, and in worlds like those of users."""

from fedelect.bench.figures import Figures, figures_of
from fedelect.bench.play import Elections, Environment, Player, play_together
from fedelect.bench.selectors import Ranked, Ranking, rank_selectors, shipped_worlds
from fedelect.bench.specs import REFERENCE, TUNED, benchmark_specs, default_specs, name_missing_signals, specify_fixed
from fedelect.bench.user_worlds import USER_WORLDS, UserWorld
from fedelect.bench.users import CLAIM_TRIALS, UsersBenchmark, Verdict, WorldFigures, bench_users, judge_worlds

__all__ = [
    "CLAIM_TRIALS",
    "REFERENCE",
    "TUNED",
    "USER_WORLDS",
    "Elections",
    "Environment",
    "Figures",
    "Player",
    "Ranked",
    "Ranking",
    "UserWorld",
    "UsersBenchmark",
    "Verdict",
    "WorldFigures",
    "bench_users",
    "benchmark_specs",
    "default_specs",
    "figures_of",
    "judge_worlds",
    "name_missing_signals",
    "play_together",
    "rank_selectors",
    "shipped_worlds",
    "specify_fixed",
]
