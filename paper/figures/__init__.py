"""Drawings of the paper's figures from results on file. Nothing is run here."""

from paper.figures.canvas import require_matplotlib
from paper.figures.draw import DRAWINGS, draw, draw_from

__all__ = ["DRAWINGS", "draw", "draw_from", "require_matplotlib"]
