"""The pre-registered run: its registration, calibration, blocks and verdict code."""

from paper.registered.drawings import Drawings, read_drawings
from paper.registered.registration import Registration, read_registration
from paper.registered.verdicts import WorldResult, judge_registered

__all__ = ["Drawings", "Registration", "WorldResult", "judge_registered", "read_drawings", "read_registration"]
