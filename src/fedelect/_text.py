"""Text for people: what comes from files made fit for a terminal, numbers with their nouns, names that were meant."""

import difflib
import re
from collections.abc import Iterable

_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]")
"""Control characters but for tab and line feed, marks that turn the direction of writing or are not seen, and halves of
characters."""


def printable(text: str) -> str:
    """Put a replacement character in the place of every character that could command a terminal or hide text.

    >>> printable("a" + chr(27) + "[31mb")
    'a�[31mb'
    """
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)


def count(number: int, noun: str) -> str:
    """Write a number with its noun, which takes an s unless the number is 1.

    >>> count(1, "trial"), count(8, "trial")
    ('1 trial', '8 trials')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def suggest(name: str, known: Iterable[str]) -> str:
    """Ask whether a similar known name was meant: text to append, empty if none is similar.

    >>> suggest("randon", ["random", "cycle"]), suggest("x", ["random", "cycle"])
    (" (did you mean 'random'?)", '')
    """
    similar = difflib.get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f" (did you mean {similar[0]!r}?)" if similar else ""
