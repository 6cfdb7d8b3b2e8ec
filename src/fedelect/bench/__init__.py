"""Selectors ranked on atlases, where what every cohort is worth is known."""

from fedelect.bench.play import Player as Player
from fedelect.bench.selectors import Ranked as Ranked
from fedelect.bench.selectors import Ranking as Ranking
from fedelect.bench.selectors import competitors as competitors
from fedelect.bench.selectors import left_out as left_out
from fedelect.bench.selectors import rank_selectors as rank_selectors

__all__ = ["Player", "Ranked", "Ranking", "competitors", "left_out", "rank_selectors"]
