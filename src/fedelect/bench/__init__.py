"""Selectors ranked where what every cohort is worth is known, in worlds that no selector was tuned in."""

from fedelect.bench.entrants import TUNED, competitors, entrants, left_out
from fedelect.bench.figures import Figures, figures_of, paired_difference
from fedelect.bench.play import Elections, Player, Stage, play_together
from fedelect.bench.selectors import Ranked, Ranking, rank_selectors
from fedelect.bench.worlds import REPORTING, TUNING, BenchWorld, shipped_worlds

__all__ = [
    "REPORTING",
    "TUNED",
    "TUNING",
    "BenchWorld",
    "Elections",
    "Figures",
    "Player",
    "Ranked",
    "Ranking",
    "Stage",
    "competitors",
    "entrants",
    "figures_of",
    "left_out",
    "paired_difference",
    "play_together",
    "rank_selectors",
    "shipped_worlds",
]
