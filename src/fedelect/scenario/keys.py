"""Keys of a scenario: their meaning and allowed values, beside the type; used by all tables."""

import sys
from typing import Any

from msgspec import Meta

LARGEST = sys.float_info.max
"""A bound that keeps nan and infinity out."""


def describe_key(meaning: str, allowed: str, **bounds: Any) -> Meta:
    """Describe a key, for TOML comments and error messages.

    Args:
        meaning: What it says about the scenario.
        allowed: Its allowed values in words.
        bounds: What msgspec checks: ge, gt, le, lt, pattern, min_length.
    """
    return Meta(description=meaning, extra={"allowed": allowed}, **bounds)
