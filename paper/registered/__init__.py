"""The pre-registered run: what was fixed before it, its calibration, its blocks and the verdict code."""

from paper.registered.registration import Registration, read_registration
from paper.registered.verdicts import WorldResult, judge_registered

__all__ = ["Registration", "WorldResult", "judge_registered", "read_registration"]
