"""Every selector of the catalogue is in the table of docs/FLOWER.md, and is accepted or refused as it says."""

import re
from pathlib import Path

import pytest

from fedelect.errors import ConfigurationError
from fedelect.flower.checks import SUPPLIED, check_selector
from fedelect.flower.signals import REPORTED
from fedelect.selectors import AbstractSelector, SelectorSpec, selector_classes

PAGE = Path(__file__).parents[2] / "docs/FLOWER.md"
ROWS = {
    "nothing": "nothing more",
    "opinion": "evaluation replies with an opinion",
    "loss": "evaluation replies with a loss (`loss-gp` also with an opinion)",
    "score": "`score=`",
    "peers": "the clients' own election (`PeerElected`)",
    "refused": "refused: the server cannot know it",
}


def group(kind: type[AbstractSelector]) -> str:
    """What a selector takes on Flower, by its needs."""
    if "beliefs" in kind.needs:
        return "peers"
    if kind.needs - SUPPLIED:
        return "refused"
    if "contributions" in kind.needs:
        return "score"
    if kind.needs & REPORTED:
        return "loss"
    return "opinion" if kind.needs & {"reward", "opinions"} else "nothing"


def build(name: str) -> AbstractSelector:
    return SelectorSpec.parse("fixed:cohort=0,1" if name == "fixed" else name).build(clients=6, budget=2, seed=1)


def test_the_table_has_every_selector_in_its_row() -> None:
    page = PAGE.read_text()
    for place, said in ROWS.items():
        (row,) = re.findall(rf"^\| {re.escape(said)} \| (.*) \|$", page, flags=re.MULTILINE)
        expected = [f"`{name}`" for name, kind in selector_classes().items() if group(kind) == place]
        assert row == ", ".join(expected)


@pytest.mark.parametrize("name", selector_classes())
def test_every_selector_is_accepted_or_refused_as_the_table_says(name: str) -> None:
    place, selector = group(selector_classes()[name]), build(name)
    if place in ("peers", "refused"):
        with pytest.raises(ConfigurationError, match="beliefs" if place == "peers" else "not supplied on Flower"):
            check_selector(selector, None, scored=True)
        return
    check_selector(selector, None, scored=True)
    if place == "score":
        with pytest.raises(ConfigurationError, match="score="):
            check_selector(selector, None, scored=False)
    else:
        check_selector(selector, None, scored=False)
