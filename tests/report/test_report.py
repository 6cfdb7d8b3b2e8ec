import builtins
import re
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from tests.sample_runs import PROVENANCE, sample_record, sample_run

from fedelect.errors import MissingExtraError, RunError
from fedelect.records import Run, SelectorEntry, read_table
from fedelect.report import write_report
from fedelect.report.style import DARK_COLOURS, LIGHT_COLOURS

VOID = {"meta", "br", "link", "img", "hr", "input"}


class Page(HTMLParser):
    """Reads a page: its text, its tags, and whether they are nested properly."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[list[str]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data
        if "td" in self.open or "th" in self.open:
            self.cells[-1][-1] += data


def read(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def test_the_report_is_one_page_that_loads_nothing(tmp_path: Path) -> None:
    path = write_report(sample_run(), tmp_path / "new" / "report.html")
    assert path == tmp_path / "new" / "report.html"
    page = read(path)
    assert [entry.name for entry in path.parent.iterdir()] == ["report.html"]
    assert not {"script", "link", "img", "iframe", "object", "image"} & {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        for name, value in attributes.items():
            if name in ("src", "href", "xlink:href"):
                assert value is not None and value.startswith("#")
    assert re.search(r"url\((?!#)|@import", path.read_text()) is None


def test_the_report_shows_the_figures_of_the_summary(tmp_path: Path) -> None:
    run = sample_run()
    level = {"best": 0.75, "random": 0.5}
    records = [
        sample_record(
            run.header, one.selector, one.trial, one.slot, opinions=(level[one.selector] + 0.01 * one.trial,) * 7
        )
        for one in run.records
    ]
    page = read(write_report(Run(run.header, tuple(records)), tmp_path / "report.html"))
    rows = {row[0]: row[1:] for row in page.cells}
    assert rows["bestFixedCohort"][:4] == ["0.755 ± 0.064", "0.755 ± 0.064", "best", "100.0 ± 0.0 %"]
    assert rows["randomRandomCohort"][:3] == ["0.505 ± 0.064", "0.505 ± 0.064", "0.250 ± 0.000"]
    assert rows["0"][:2] == ["iid", "6.0"] and rows["6"][:2] == ["skewed", "0.0"]
    assert [tag for tag, _ in page.tags].count("svg") == 2
    assert PROVENANCE.command in page.text and "not complete" not in page.text


def test_markup_from_the_configuration_is_shown_and_never_obeyed(tmp_path: Path) -> None:
    evil = "<script>alert('x')</script>\"&$title"
    run = sample_run(
        selectors=(SelectorEntry(label=evil, kind=evil, parameters={evil: evil}),),
        scenario={"name": evil, evil: [evil]},
        groups={evil: (0, 1)},
        client_names=(evil,) * 7,
        provenance=msgspec.structs.replace(PROVENANCE, command=evil, platform=evil, versions={evil: evil}),
    )
    path = write_report(run, tmp_path / "report.html")
    assert "<script" not in path.read_text()
    page = read(path)
    assert page.text.count(evil) >= 10
    assert f"Client selection: {evil}" in page.text


def test_an_empty_run_gives_a_page_that_says_so(tmp_path: Path) -> None:
    page = read(write_report(sample_run(until=0), tmp_path / "report.html"))
    assert "No slot is on record so far." in page.text
    assert "0 of 24 slots are on record" in page.text
    assert "svg" not in [tag for tag, _ in page.tags]


def test_a_partial_run_says_how_far_it_has_got(tmp_path: Path) -> None:
    run = sample_run(until=3)
    extra = sample_record(run.header, "best", 0, 4, status="abandoned", note="the engine failed")
    page = read(write_report(Run(run.header, (*run.records, extra)), tmp_path / "report.html"))
    assert "13 of 24 slots are on record (54.2 %)" in page.text
    assert "1 slot was abandoned." in page.text


@pytest.mark.parametrize(("slots", "trials"), [(1, 1), (1, 3), (6, 1)])
def test_single_slots_and_trials_give_a_page(tmp_path: Path, slots: int, trials: int) -> None:
    page = read(write_report(sample_run(slots=slots, trials=trials), tmp_path / "report.html"))
    assert ("\u00b1" in page.text) == (trials > 1)
    assert "nan" not in page.text and "not complete" not in page.text


def test_a_run_of_which_every_slot_was_abandoned_gives_a_page(tmp_path: Path) -> None:
    run = sample_run()
    lost = [sample_record(run.header, r.selector, r.trial, r.slot, status="abandoned", note="x") for r in run.records]
    page = read(write_report(Run(run.header, tuple(lost)), tmp_path / "report.html"))
    assert "24 slots were abandoned." in page.text and "nan" not in page.text


def test_more_selectors_than_colours_are_told_apart_by_broken_lines(tmp_path: Path) -> None:
    labels = [f"selector {number}" for number in range(len(LIGHT_COLOURS) + 2)]
    run = sample_run(selectors=tuple(SelectorEntry(label=label, kind="BpUcb") for label in labels), groups={})
    path = write_report(run, tmp_path / "report.html")
    keys = [attributes["style"] for tag, attributes in read(path).tags if attributes.get("class") == "key"]
    assert len(set(keys)) == len(labels) and len(LIGHT_COLOURS) == len(DARK_COLOURS)


def test_the_same_run_gives_the_same_page_whether_held_or_read_as_a_table(tmp_path: Path) -> None:
    from fedelect.records import open_run

    run = sample_run()
    with open_run(tmp_path / "run", run.header) as writer:
        writer.append(run.records)
    first = write_report(run, tmp_path / "first.html").read_bytes()
    second = write_report(read_table(tmp_path / "run"), tmp_path / "run" / "report.html").read_bytes()
    assert first == second
    open_run(tmp_path / "run", run.header).close()


def test_without_matplotlib_the_error_holds_the_install_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **named: Any) -> ModuleType:
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r"the report needs .* pip install 'fedelect\[lab\]'"):
        write_report(sample_run(), tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_a_place_that_cannot_be_written_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"cannot write the report .*file/report\.html"):
        write_report(sample_run(), tmp_path / "file" / "report.html")
