"""Every selector of the catalogue has its rows and paragraphs in the pages, with the signals that it declares."""

import re
from pathlib import Path

import pytest

from fedelect.selectors import selector_classes
from fedelect.selectors.catalogue import selector_families

DOCS = Path(__file__).parents[2] / "docs"


def rows(page: str, heading: str) -> dict[str, list[str]]:
    """Name -> cells of the table under a heading; a row may name several."""
    text = (DOCS / page).read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and (names := re.findall("`([^`]+)`", cells[0])):
            found |= dict.fromkeys(names, cells)
    return found


def published() -> list[str]:
    families = selector_families()
    return [name for family, classes in families.items() if family.startswith("literature") for name in classes]


@pytest.mark.parametrize("name", selector_classes())
def test_the_table_of_needs_is_that_of_the_classes(name: str) -> None:
    kind, cells = selector_classes()[name], rows("SELECTORS.md", "What each needs, and what it costs")[name]
    assert cells[1] == f"`{kind.__name__}`"
    needs, _, uses = cells[2].rstrip(")").replace("(uses", "; uses").partition("; uses")
    said = {signal for signal in re.split(r"[,\s]+", needs) if signal and signal != "nothing"}
    assert said == set(kind.needs)
    assert {signal for signal in re.split(r"[,\s]+", uses) if signal} == set(kind.uses)


def test_the_table_of_costs_has_every_selector_at_both_sizes() -> None:
    found = rows("results/costs.md", "What a decision costs")
    assert [name for name, cells in found.items() if len(cells) == 5] == list(selector_classes())


@pytest.mark.parametrize("name", published())
def test_every_published_method_has_a_paragraph_and_says_how_faithful_it_is(name: str) -> None:
    assert name in rows("results/costs.md", "Fidelity")
    paragraphs = re.findall(r"^\*\*`.*$", (DOCS / "LITERATURE.md").read_text(), flags=re.MULTILINE)
    assert any(f"`{name}`" in paragraph.split(".")[0] for paragraph in paragraphs)
