"""Drawings of the paper's figures from results on file. Nothing is run here."""

from fedelect.reproduce.figures.draw import DRAWINGS, draw, draw_from

__all__ = ["DRAWINGS", "draw", "draw_from"]
