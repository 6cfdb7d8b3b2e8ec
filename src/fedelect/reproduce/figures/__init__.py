"""Drawings of the paper's figures from results on file. Nothing is run here."""

from fedelect.reproduce.figures.draw import DRAWINGS, draw

__all__ = ["DRAWINGS", "draw"]
