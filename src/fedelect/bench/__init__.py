"""Selectors ranked where what every cohort is worth is known, in worlds that no selector was tuned in."""

from fedelect.bench.entrants import TUNED as TUNED
from fedelect.bench.entrants import competitors as competitors
from fedelect.bench.entrants import entrants as entrants
from fedelect.bench.entrants import left_out as left_out
from fedelect.bench.figures import Figures as Figures
from fedelect.bench.figures import figures_of as figures_of
from fedelect.bench.figures import paired_difference as paired_difference
from fedelect.bench.play import Elections as Elections
from fedelect.bench.play import Player as Player
from fedelect.bench.play import Stage as Stage
from fedelect.bench.play import play_together as play_together
from fedelect.bench.selectors import Ranked as Ranked
from fedelect.bench.selectors import Ranking as Ranking
from fedelect.bench.selectors import rank_selectors as rank_selectors
from fedelect.bench.worlds import REPORTING as REPORTING
from fedelect.bench.worlds import TUNING as TUNING
from fedelect.bench.worlds import BenchWorld as BenchWorld
from fedelect.bench.worlds import shipped_worlds as shipped_worlds

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
