"""The page on beliefs shows numbers that its own snippets compute."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "BELIEFS.md"


def test_the_snippets_of_the_beliefs_page_give_the_numbers_it_states() -> None:
    results = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert results.attempted > 10
    assert results.failed == 0
