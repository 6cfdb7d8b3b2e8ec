"""Plain English: phrases that make a reader stop have no place in the code."""

import re
from pathlib import Path

import pytest

import fedelect

SOURCE = Path(fedelect.__file__).parent
PHRASES = ("whoever", "somebody", "what came of", "so many", "told of", "in the same breath")


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_sentences_are_plain(path: Path) -> None:
    text = " ".join(path.read_text(encoding="utf-8").split())
    assert re.findall("|".join(rf"\b{phrase}\b" for phrase in PHRASES), text, re.IGNORECASE) == []
