"""Text from files and strangers, made fit for a terminal."""

import re

_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]")
"""Control characters but for tab and line feed, marks that turn the direction of writing or are not seen, and halves of
characters."""


def printable(text: str) -> str:
    """Put a replacement character in the place of every character that could command a terminal or hide text.

    >>> printable("a" + chr(27) + "[31mb")
    'a�[31mb'
    """
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)
