"""Selectors ranked where what every cohort is worth is known."""

from fedelect.bench.figures import Figures, figures_of
from fedelect.bench.play import Elections, Environment, Player, play_together
from fedelect.bench.selectors import Ranked, Ranking, rank_selectors, shipped_worlds
from fedelect.bench.specs import REFERENCE, TUNED, benchmark_specs, default_specs, fixed, left_out

__all__ = [
    "REFERENCE",
    "TUNED",
    "Elections",
    "Environment",
    "Figures",
    "Player",
    "Ranked",
    "Ranking",
    "benchmark_specs",
    "default_specs",
    "figures_of",
    "fixed",
    "left_out",
    "play_together",
    "rank_selectors",
    "shipped_worlds",
]
