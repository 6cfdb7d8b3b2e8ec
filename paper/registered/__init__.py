"""The pre-registered run: what was fixed before it, its calibration, its blocks and the verdict code."""
