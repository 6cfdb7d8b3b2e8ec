"""Drawings of the paper's figures from results on file. Nothing is run here."""

from paper.figures.draw import DRAWINGS, draw, draw_from
from paper.figures.sheet import require_matplotlib

__all__ = ["DRAWINGS", "draw", "draw_from", "require_matplotlib"]
