"""Doctests in docstrings, as blocks of code: an extension of Griffe, which reads the docstrings for the site."""

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"^>>> .*\n(?:.+\n?)*", re.MULTILINE)


def fence(text: str) -> str:
    """A docstring whose doctests, up to the next empty line, are fenced."""
    return DOCTEST.sub(lambda found: f"```pycon\n{found.group(0).rstrip()}\n```\n", text)


class Doctests(griffe.Extension):  # type: ignore[misc, unused-ignore]
    """Fences the doctests of every docstring."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for each module, class, function and value that has been read."""
        if obj.docstring is not None:
            obj.docstring.value = fence(obj.docstring.value)
