"""Selectors ranked on atlases, where what every cohort is worth is known."""

from fedelect.bench.selectors import Ranked as Ranked
from fedelect.bench.selectors import Ranking as Ranking
from fedelect.bench.selectors import competitors as competitors
from fedelect.bench.selectors import rank_selectors as rank_selectors

__all__ = ["Ranked", "Ranking", "competitors", "rank_selectors"]
