"""The page in a real browser: who won comes first, lines are told apart, and a phone and paper lose nothing."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.browser import Browser, browsing
from tests.sample_runs import measured_run, sample_run

from fedelect.records import RunRecords, SelectorEntry
from fedelect.report import write_report

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("browser")]

LINES = """
const figure = document.getElementById(arguments[0]);
return [...figure.querySelectorAll('svg path[stroke-width]')].filter(p => Number(p.getAttribute('stroke-width')) > 2)
  .map(p => ({colour: p.getAttribute('stroke'), dash: p.getAttribute('stroke-dasharray'),
              width: Number(p.getAttribute('stroke-width')), opacity: Number(p.getAttribute('stroke-opacity') ?? 1),
              right: p.getBoundingClientRect().right}));
"""
TEXTS = """
return [...document.querySelectorAll(`#${arguments[0]} svg text`)].map(t => {
  const box = t.getBoundingClientRect();
  return {text: t.textContent, colour: t.getAttribute('fill'), bold: t.style.fontWeight === '600',
          left: box.left, right: box.right, top: box.top, bottom: box.bottom};
});
"""
NINE = tuple(SelectorEntry(label=f"selector-{number}", kind="RandomCohort") for number in range(9))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


def names_in(browser: Browser, figure: str) -> list[dict[str, Any]]:
    """The names of selectors that stand in a chart, with their colours and boxes in pixels."""
    return [text for text in browser.run(TEXTS, figure) if text["bold"]]


def overlapping(boxes: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Texts of which one covers a part of the other."""
    return [
        (one["text"], other["text"])
        for place, one in enumerate(boxes)
        for other in boxes[:place]
        if min(one["right"], other["right"]) - max(one["left"], other["left"]) > 1
        and min(one["bottom"], other["bottom"]) - max(one["top"], other["top"]) > 1
    ]


def two_loops() -> list[RunRecords]:
    """Measured runs of one world under FL&FA and FL&DA; `mine` differs, `random` and `oracle` are repeated."""
    federated, democratized = measured_run(), measured_run(framework="da")
    other = [
        msgspec.structs.replace(one, measures=msgspec.structs.replace(one.measures, accuracy=0.5), reward=0.5)
        if one.selector == "mine" and one.measures is not None
        else one
        for one in democratized.records
    ]
    return [federated, RunRecords(democratized.header, tuple(other))]


@pytest.mark.parametrize("width", [390, 1280])
def test_the_first_screen_shows_who_won(browser: Browser, tmp_path: Path, width: int) -> None:
    browser.look(width=width)
    browser.open(write_report(measured_run(), tmp_path / "report.html"))
    assert browser.text("h1") == "mine, random and oracle compared in measured"
    assert browser.text(".verdict").startswith("mine is first: accuracy 0.7")
    bottom = "return document.querySelector(arguments[0]).getBoundingClientRect().bottom"
    assert browser.run(bottom, ".verdict") < 700 and browser.run(bottom, "#table-won tbody") < 800
    parts = browser.run("return [...document.querySelectorAll('main > section')].map(s => s.id)")
    assert parts == ["won", "curves", "clients", "map", "numbers"]
    assert browser.run("return document.getElementById('theory').open") is False


def test_a_selector_has_one_look_in_both_loops_and_what_is_repeated_is_drawn_once(
    browser: Browser, tmp_path: Path
) -> None:
    browser.look(width=1280)
    browser.open(write_report(two_loops(), tmp_path / "report.html"))
    names = names_in(browser, "figure-accuracy")
    assert sorted(one["text"] for one in names) == ["measured (2): mine", "mine", "oracle", "random"]
    colours = {one["text"]: one["colour"] for one in names}
    assert colours["mine"] == colours["measured (2): mine"]
    lines = browser.run(LINES, "figure-accuracy")
    looks = sorted((line["colour"], line["dash"] or "") for line in lines if line["width"] == 2.2)
    assert len(looks) == 4 and len(set(looks)) == 3
    assert looks.count((colours["mine"], "")) == 2
    bars = names_in(browser, "figure-shares")
    assert {one["text"]: one["colour"] for one in bars} == colours
    assert browser.complaints() == []


def test_pointing_at_a_name_or_a_line_makes_the_others_pale_in_all_curves(browser: Browser, tmp_path: Path) -> None:
    browser.look(width=1280)
    browser.open(write_report(measured_run(), tmp_path / "report.html"))

    def strong(figure: str) -> list[str | None]:
        lines = browser.run(LINES, figure)
        assert len(lines) >= 2
        return [line["dash"] for line in lines if line["opacity"] > 0.5]

    def move(x: float, y: float) -> None:
        where = {"type": "mouseMoved", "x": x, "y": y}
        browser.driver.execute_cdp_cmd("Input.dispatchMouseEvent", where)

    name = "const b = document.querySelector('#won [data-label=oracle]').getBoundingClientRect();"
    move(*browser.run(f"{name} return [b.left + 5, b.top + 5]"))
    for figure in ("figure-accuracy", "figure-flawed"):
        browser.wait(lambda figure=figure: strong(figure) == ["8,4"], "only the oracle is strong")  # type: ignore[misc]
    move(1, 1)
    browser.wait(lambda: len(strong("figure-accuracy")) == 3, "all are strong again")
    browser.run("document.getElementById('figure-accuracy').scrollIntoView()")
    point = browser.run(
        "const p = document.querySelector('#figure-accuracy path[stroke-dasharray=\"8,4\"]');"
        "const at = p.getPointAtLength(0.7 * p.getTotalLength()).matrixTransform(p.getScreenCTM()); return [at.x, at.y]"
    )
    move(point[0] - 3, point[1] - 3)
    move(*point)
    browser.wait(lambda: strong("figure-flawed") == ["8,4"], "the line's selector is strong in the other chart")
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [390, 1280])
def test_the_names_of_nine_curves_stand_apart(browser: Browser, tmp_path: Path, width: int) -> None:
    browser.look(width=width)
    browser.open(write_report(sample_run(selectors=NINE), tmp_path / "report.html"))
    for figure in ("figure-running", "figure-opinion", "figure-shares"):
        names = names_in(browser, figure)
        assert len(names) == 9 and overlapping(browser.run(TEXTS, figure)) == []
        assert all(one["left"] >= 0 and one["right"] <= width for one in names)
    looks = {(line["colour"], line["dash"]) for line in browser.run(LINES, "figure-running")}
    assert len(looks) == 9


def test_rows_of_bars_bear_the_name_of_their_selector_in_its_colour(browser: Browser, tmp_path: Path) -> None:
    browser.look(width=1280)
    browser.open(write_report(measured_run(), tmp_path / "report.html"))
    names = names_in(browser, "figure-shares")
    assert [one["text"] for one in names] == ["mine", "random", "oracle"]
    bars = browser.run(
        "return [...document.querySelectorAll('#figure-shares svg path')].map(p => [p.getAttribute('fill'),"
        "p.getBoundingClientRect().top, Number(p.getAttribute('fill-opacity') ?? 1)])"
    )
    tops = [one["top"] for one in names]
    for one, below in zip(names, [*tops[1:], float("inf")], strict=True):
        mine = [opacity for colour, top, opacity in bars if colour == one["colour"] and one["top"] <= top < below]
        assert mine == [1] * 6 + [0.4]  # the flawed client is paler
    assert "6*" in [text["text"] for text in browser.run(TEXTS, "figure-shares")]


def test_on_a_phone_tables_scroll_sideways_only_and_the_page_not_at_all(browser: Browser, tmp_path: Path) -> None:
    browser.look(width=390)
    browser.open(write_report(two_loops(), tmp_path / "report.html"))
    browser.run("for (const one of document.querySelectorAll('details')) one.open = true")
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    tables = browser.run(
        "return [...document.querySelectorAll('.scroll')].map(s => [s.scrollWidth > s.clientWidth,"
        "s.scrollHeight > s.clientHeight, s.getBoundingClientRect().right <= innerWidth])"
    )
    assert len(tables) >= 6 and any(wide for wide, _, _ in tables)
    assert all(not tall and inside for _, tall, inside in tables)
    lines = browser.run(
        "return [...document.querySelectorAll('#table-won .series > :last-child')].map(s => s.getClientRects().length"
        " && s.getBoundingClientRect().height / parseFloat(getComputedStyle(s).lineHeight))"
    )
    assert len(lines) == 4 and max(lines) < 2.5  # names break between words, not after every few letters
    for figure in ("accuracy", "difference", "flawed", "low", "shares"):
        assert overlapping(browser.run(TEXTS, f"figure-{figure}")) == []


def test_paper_holds_every_curve_to_its_last_slot_and_what_is_folded_on_the_screen(
    browser: Browser, tmp_path: Path
) -> None:
    browser.look(width=1280)
    runs = [*two_loops(), sample_run(selectors=NINE)]
    browser.open(write_report(runs, tmp_path / "report.html"))
    size = {"width": 688, "height": 1000, "deviceScaleFactor": 1, "mobile": False}  # A4 without its margins
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert browser.run("return document.querySelectorAll('details:not([open]):not(.panel details)').length") == 0
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    outside = "return [...document.querySelectorAll('table, svg, svg text')].filter(e => e.checkVisibility() && "
    outside += "e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 200))"
    assert browser.run(outside) == []
    for figure, last in (("accuracy", "30"), ("flawed", "30"), ("low", "30"), ("running-1", "6"), ("regret-1", "6")):
        texts = browser.run(TEXTS, f"figure-{figure}")
        (end,) = [text for text in texts if text["text"] == last and not text["bold"]]
        lines = browser.run(LINES, f"figure-{figure}")
        assert len(lines) == len([text for text in texts if text["bold"]]) >= 3
        assert all(line["right"] == pytest.approx((end["left"] + end["right"]) / 2, abs=3) for line in lines)
        assert overlapping([text for text in texts if text["bold"]]) == []
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert browser.run("return document.getElementById('theory').open") is False
    browser.look()
    pages = len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(browser.driver.print_page())))
    assert 5 <= pages <= 20 and browser.complaints() == []
