"""The page in a real browser: it draws, it answers, and what it shows is what the records say."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.browser import Browser, browsing
from tests.sample_runs import measured_run, sample_record, sample_run

from fedelect.equations.intervals import mean_band
from fedelect.records import (
    RunRecords,
    SelectorEntry,
    SlotRecord,
    from_array,
    opinion_curves,
    selection_counts,
    summarise,
)
from fedelect.report import write_report

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("browser")]

EVIL = "</script><img src=x onerror=\"document.title='owned'\">"
TRANSFORMS = (
    "return [...document.querySelectorAll('#maps .panel:first-child .plot svg path')].map(p => p.outerHTML).join()"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


def whole_run(**changes: Any) -> RunRecords:
    """A democratized run with everything on record: places, links, sizes, beliefs, lost uploads."""
    fields: dict[str, Any] = {
        "framework": "da",
        "positions_km": tuple((0.1 + 0.12 * client, (0.37 * client) % 1.0) for client in range(7)),
        "edges": ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)),
        "sizes": (200, 300, 400, 500, 600, 700, 800),
        "upload_probability": (0.9,) * 7,
        "client_names": ("ann", "bob", "eve", "dan", "fay", "gus", EVIL),
        "selectors": (
            SelectorEntry(label="best", kind="FixedCohort", parameters={"cohort": [0, 1, 2]}),
            SelectorEntry(label="bp-ucb", kind="BpUcb", parameters={"exploration": 0.01}),
            SelectorEntry(label=EVIL, kind="RandomCohort"),
        ),
        "scenario": {"name": "whole", "start": "cold", "topology": {"side_km": 1.0}},
    }
    run = sample_run(**{**fields, **changes})
    beliefs = from_array(np.linspace(0.1, 0.7, 7))
    records = [sample_record(run.header, r.selector, r.trial, r.slot, beliefs=beliefs) for r in run.records]
    return RunRecords(run.header, tuple(records))


RUN = whole_run()


def record_of(selector: str, trial: int, slot: int) -> SlotRecord:
    return next(r for r in RUN.records if (r.selector, r.trial, r.slot) == (selector, trial, slot))


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Browser:
    browser.look()
    browser.open(write_report(RUN, tmp_path / "report.html"))
    for file in browser.downloads.iterdir():
        file.unlink()
    return browser


def move_to(page: Browser, stop: int) -> None:
    page.run(
        "const s = document.getElementById('slot'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))", stop
    )


def test_it_draws_every_chart_without_a_complaint(page: Browser) -> None:
    drawn = page.run("return [...document.querySelectorAll('.plot')].filter(p => p.querySelector('svg path')).length")
    assert drawn == 2 + 4 + 2
    assert page.complaints() == []
    assert page.driver.title == f"best, bp-ucb and {EVIL} compared in whole"
    assert page.run("return document.querySelectorAll('img').length") == 0


def test_the_slider_moves_the_map_and_names_the_elected(page: Browser) -> None:
    assert page.text("#slot-name") == "6 of 6"
    before = page.run(TRANSFORMS)
    for slot in (1, 4):
        move_to(page, slot - 1)
        record = record_of("best", 0, slot)
        names = [f"{client} {(RUN.header.client_names or ())[client]}" for client in record.cohort]
        values = [round(one, 4) for one in record.opinions or () if one is not None]
        expected = f"Slot {slot}: elected {', '.join(names)}. Mean opinion {np.mean(values):.3f}."
        assert page.text("#maps .panel .words") == expected
        assert page.text("#slot-name") == f"{slot} of 6"
    assert page.run(TRANSFORMS) != before


def test_selector_and_trial_are_chosen_and_the_numbers_of_the_slot_are_the_records(page: Browser) -> None:
    move_to(page, 2)
    page.run(
        "const [s, t] = document.querySelectorAll('#maps .panel select');"
        "s.value = '1'; s.dispatchEvent(new Event('change')); t.value = '1'; t.dispatchEvent(new Event('change'))"
    )
    page.run("document.querySelector('#maps .panel details').open = true")
    page.wait(lambda: page.run("return document.querySelectorAll('#maps .panel table tbody tr').length") == 7, "rows")
    record = record_of("bp-ucb", 1, 3)
    rows = page.run(
        "return [...document.querySelectorAll('#maps .panel:first-child table tr')].map("
        "row => [...row.cells].map(cell => cell.textContent))"
    )
    heads, *clients = rows
    for client, row in enumerate(clients):
        shown = dict(zip(heads, row, strict=True))
        opinion = (record.opinions or ())[client]
        assert shown["client"] == f"{client} {(RUN.header.client_names or ())[client]}"
        assert shown["opinion"] == ("\u2013" if opinion is None else f"{opinion:.4f}".rstrip("0").rstrip("."))
        assert shown["elected now"] == ("yes" if client in record.cohort else "no")
        if client in record.cohort:
            assert shown["uploads arrived"] == f"{record.arrivals[record.cohort.index(client)]} of 15"
        elected = sum(client in record_of("bp-ucb", 1, slot).cohort for slot in (1, 2, 3))
        assert float(shown["elected so far, share of slots"]) == pytest.approx(elected / 3, abs=1e-4)
        assert int(shown["training samples"]) == (RUN.header.sizes or ())[client]


def test_play_runs_through_the_slots_and_stops_at_the_end(page: Browser) -> None:
    page.run("const s = document.getElementById('speed'); s.value = '120'; s.dispatchEvent(new Event('change'))")
    pressed = "const p = document.getElementById('play'); p.click(); return p.textContent"
    assert page.run(pressed) == "Pause"  # in one breath: it may be over before the next question
    page.wait(lambda: page.text("#play") == "Play", "the last slot is reached")
    assert page.text("#slot-name") == "6 of 6"


@pytest.mark.parametrize("kind", ["opinion", "belief", "share"])
def test_the_colours_can_be_switched(page: Browser, kind: str) -> None:
    move_to(page, 3)
    page.click(f"#colour-by input[value={kind}]")
    name = {"opinion": "opinion", "belief": "belief", "share": "selection share"}[kind]
    texts = page.run("return [...document.querySelectorAll('#maps .plot svg text')].map(t => t.textContent)")
    assert any(text.startswith(f"{name} ") for text in texts)
    assert page.complaints() == []


def test_hovering_names_the_client_with_its_numbers(page: Browser) -> None:
    move_to(page, 1)
    page.run("document.querySelector('#maps .plot').focus()")
    for _ in range(2):
        page.run(
            "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}))"
        )
    tip = "return document.querySelector('#maps .plot').innerText"
    record = record_of("best", 0, 2)
    present = [client for client, one in enumerate(record.opinions or ()) if one is not None][1]
    page.wait(lambda: f"client {present} " in page.run(tip), "the tooltip shows the client")
    opinion = (record.opinions or ())[present]
    assert opinion is not None and f"opinion {round(opinion, 4):g}" in page.run(tip)


def test_selectors_are_switched_off_and_on(page: Browser) -> None:
    lines = "return document.querySelectorAll('#figure-opinion svg path[stroke]:not([stroke=none])').length"
    before = page.run(lines)
    page.click("#selectors input[data-name='bp-ucb']")
    page.wait(lambda: page.run(lines) < before, "a line is gone")
    page.click("#selectors input[data-name='bp-ucb']")
    page.wait(lambda: page.run(lines) == before, "it is back")
    assert page.complaints() == []


def test_the_log_scale_and_the_bound_can_be_switched(page: Browser) -> None:
    texts = "return [...document.querySelectorAll('#figure-regret svg text')].map(t => t.textContent).join('|')"
    assert "Theorem 3" not in page.run(texts)
    page.click("#log")
    page.click("#bound")
    page.wait(lambda: "Theorem 3 (vacuous)" in page.run(texts) and "t R_max" in page.run(texts), "the bound is drawn")
    assert page.complaints() == []


def row_of(page: Browser, table: str, label: str) -> dict[str, str]:
    """The texts of a selector's row, by the heads of their columns."""
    heads, row = page.run(
        "const t = document.getElementById(arguments[0]); const texts = (r) => [...r.cells].map(c => c.textContent);"
        "const mine = (r) => r.querySelector('.series').dataset.label === arguments[1];"
        "return [texts(t.tHead.rows[0]), texts([...t.tBodies[0].rows].find(mine))]",
        table,
        label,
    )
    return dict(zip(heads, row, strict=True))


def test_the_tables_of_the_page_equal_the_records(page: Browser) -> None:
    for one in summarise(RUN):
        last = row_of(page, "table-final", one.label)["last slot"]
        assert last == f"{one.final_opinion.mean:.3f} ± {one.final_opinion.half_width:.3f}"
        mean = row_of(page, "table-won", one.label)["mean opinion"]
        assert mean == f"{one.running_mean.mean:.3f} ± {one.running_mean.half_width:.3f}"


def test_every_chart_is_saved_as_png_and_svg_and_its_data_as_csv(page: Browser) -> None:
    for number, ending in enumerate(("png", "svg", "csv")):
        page.run("document.querySelectorAll('#figure-opinion .save button')[arguments[0]].click()", number)
        page.saved(ending)
    assert page.saved("png").read_bytes().startswith(b"\x89PNG")
    assert page.saved("svg").read_text().startswith("<svg")
    rows = list(csv.DictReader(page.saved("csv").read_text().splitlines()))
    band = mean_band(opinion_curves(RUN)["bp-ucb"])
    assert [float(row["bp-ucb mean"]) for row in rows] == pytest.approx(band.mean.tolist(), rel=1e-5)
    low = (band.mean - band.half_width).tolist()
    assert [float(row["bp-ucb low"]) for row in rows] == pytest.approx(low, rel=1e-4, abs=1e-5)
    assert page.complaints() == []


@pytest.mark.parametrize("figure", ["#maps .panel", "#figure-regret", "#figure-beliefs", "#figure-shares"])
def test_other_charts_are_saved_too(page: Browser, figure: str) -> None:
    for number in range(3):
        page.run("document.querySelectorAll(`${arguments[0]} .save button`)[arguments[1]].click()", figure, number)
    assert page.saved("png").stat().st_size > 2000 and "<path" in page.saved("svg").read_text()
    rows = list(csv.reader(page.saved("csv").read_text().splitlines()))
    assert len(rows) > 5
    if figure == "#figure-shares":
        counts = selection_counts(RUN)["best"].sum(axis=0) / 12
        assert [float(row[1]) for row in rows[1:]] == pytest.approx(counts.tolist())


def test_a_table_is_saved_with_figures_in_full(page: Browser) -> None:
    page.click("button[data-table=table-final]")
    rows = list(csv.reader(page.saved("csv").read_text().splitlines()))
    best = summarise(RUN)[0]
    assert rows[0][:3] == ["selector", "last slot", "last slot ±"] and rows[1][0] == "best"
    assert float(rows[1][1]) == best.final_opinion.mean and float(rows[1][2]) == best.final_opinion.half_width


@pytest.mark.parametrize("width", [360, 1600])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_narrow_and_wide_light_and_dark(page: Browser, tmp_path: Path, width: int, dark: bool) -> None:
    page.look(width=width, dark=dark)
    page.open(tmp_path / "report.html")
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    background = page.run("return getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(20, 24, 28)") == dark
    wide = page.run("return [...document.querySelectorAll('.plot svg')].every(s => s.clientWidth <= innerWidth)")
    assert wide and page.complaints() == []
    page.click("#theme")
    assert (page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 28)") != dark


def test_every_control_is_reached_by_keyboard_and_has_a_name(page: Browser) -> None:
    page.run("document.getElementById('theory').open = true")
    nameless = page.run(
        "return [...document.querySelectorAll('button, select, input')].filter(c => c.tabIndex < 0 || "
        "!(c.textContent.trim() || c.getAttribute('aria-label') || c.closest('label')?.textContent.trim())).length"
    )
    assert nameless == 0
    labelled = page.run(
        "return [...document.querySelectorAll('.plot')].filter(p => p.checkVisibility())"
        ".map(p => p.tabIndex === 0 && Boolean(p.ariaLabel))"
    )
    assert labelled == [True] * (2 + 4 + 2)


def test_two_runs_are_shown_side_by_side(browser: Browser, tmp_path: Path) -> None:
    browser.look(width=1600)
    browser.open(write_report([RUN, whole_run(seed=5, slots=4)], tmp_path / "report.html"))
    assert browser.run("return document.querySelectorAll('#maps .panel').length") == 2
    names = browser.run("return [...document.querySelectorAll('#selectors .key-name')].map(n => n.textContent)")
    assert names == ["best", "bp-ucb", EVIL]
    for host, figures in (("curve-charts", ("running", "opinion")), ("bar-charts", ("shares", "failures"))):
        worlds = browser.run(
            "return [...document.querySelectorAll(`#${arguments[0]} .world`)].map(w => ["
            "w.querySelector('h3').textContent, [...w.querySelectorAll('figure')]"
            ".filter(f => f.querySelector('svg path')).map(f => f.id)])",
            host,
        )
        assert worlds == [
            ["whole", [f"figure-{one}" for one in figures]],
            ["whole (2)", [f"figure-{one}-1" for one in figures]],
        ]
    browser.click("#add-map")
    assert browser.run("return document.querySelectorAll('#maps .panel').length") == 3
    assert browser.complaints() == []


@pytest.mark.parametrize("changes", [{"until": 0}, {"until": 1}, {"slots": 1, "trials": 1}, {"trials": 1}])
def test_empty_partial_and_single_runs_open_without_a_complaint(
    browser: Browser, tmp_path: Path, changes: dict[str, Any]
) -> None:
    browser.open(write_report(whole_run(**changes), tmp_path / "report.html"))
    assert browser.complaints() == []
    empty = changes.get("until") == 0
    assert browser.run("return !document.getElementById('empty').hidden") == empty
    assert (browser.run("return document.querySelectorAll('.plot svg path').length") > 0) != empty


def test_a_run_that_knows_neither_places_nor_opinions_opens_without_a_complaint(
    browser: Browser, tmp_path: Path
) -> None:
    run = sample_run(source="flower", groups={}, untrained=None, scenario={})
    silent = [sample_record(run.header, r.selector, r.trial, r.slot, opinions=None) for r in run.records]
    browser.open(write_report(RunRecords(run.header, tuple(silent)), tmp_path / "report.html"))
    kinds = browser.run("return [...document.querySelectorAll('#colour-by input')].map(i => i.value)")
    assert kinds == ["share"] and browser.complaints() == []
    assert "places not on record" in browser.text("#maps .plot svg")


def test_it_prints_in_light_and_without_controls(page: Browser, tmp_path: Path) -> None:
    page.look(dark=True)
    page.open(tmp_path / "report.html")
    pdf = page.driver.print_page()
    assert len(pdf) > 10_000
    assert page.run("return document.documentElement.dataset.theme ?? null") is None
    assert json.loads(page.run("return document.getElementById('data').textContent"))["live"] is False


def test_a_measured_run_draws_accuracy_difference_bytes_flaws_and_low_accuracy(
    browser: Browser, tmp_path: Path
) -> None:
    run = measured_run()
    browser.look(width=1200)
    browser.open(write_report(run, tmp_path / "report.html"))
    drawn = browser.run(
        "return [...document.querySelectorAll('#curve-charts figure')].filter(f => f.querySelector('svg path'))"
        ".map(f => f.id)"
    )
    assert drawn == [f"figure-{name}" for name in ("accuracy", "difference", "flawed", "low", "bytes")]
    assert browser.complaints() == []
    (one,) = [row.measured for row in summarise(run) if row.label == "mine"]
    assert one is not None and one.closure is not None
    closure = f"{one.closure.value:.2f}{one.closure.low:.2f} to {one.closure.high:.2f}"
    assert row_of(browser, "table-accuracy", "mine")["closure"] == closure
    won = row_of(browser, "table-won", "mine")
    assert one.final_low_accuracy is not None
    for head, value, scale, digits in (
        ("accuracy at the end", one.final_accuracy, 1, 3),
        ("10th percentile of clients", one.final_low_accuracy, 1, 3),
        ("flawed among the elected", one.flawed_share, 100, 1),
    ):
        assert won[head].startswith(f"{scale * value.mean:.{digits}f} ± ")
    for file in browser.downloads.iterdir():
        file.unlink()
    browser.run("[...document.querySelectorAll('#figure-bytes .save button')].at(-1).click()")
    rows = list(csv.reader(browser.saved("csv").read_text().splitlines()))
    assert rows[0][:2] == ["MB sent", "mine mean"]
    first = next(row for row in rows[1:] if row[1])
    assert float(first[0]) == pytest.approx((3000 + 500 + 15) / 1e6)


def test_a_run_without_measures_shows_no_part_for_them(page: Browser) -> None:
    figures = page.run("return [...document.querySelectorAll('#curve-charts figure')].map(f => f.id)")
    assert figures == ["figure-running", "figure-opinion"]
    assert page.run("return document.querySelector('#table-accuracy, #table-costs')") is None
    heads = page.run("return [...document.querySelectorAll('#table-won th[scope=col]')].map(h => h.textContent)")
    assert not [head for head in heads if "accuracy" in head or "percentile" in head or "flawed" in head]
