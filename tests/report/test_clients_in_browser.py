"""Clients of several runs and of thinned ones, in a real browser: bars and sentences are of whom they say."""

import csv
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.browser import Browser, browsing
from tests.sample_runs import sample_run

from fedelect.records import RunRecords, selection_counts
from fedelect.report import write_report

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("browser")]

NAMES = ("ann", "bob", "eve", "dan", "fay", "gus", "hal")
NAMED = sample_run(client_names=NAMES)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


def saved_bars(browser: Browser, figure: str) -> list[dict[str, str]]:
    """The rows that a chart of bars is saved as."""
    for file in browser.downloads.iterdir():
        file.unlink()
    browser.run("document.getElementById(arguments[0]).querySelectorAll('.save button')[2].click()", figure)
    return list(csv.DictReader(browser.saved("csv").read_text().splitlines()))


@pytest.mark.parametrize("agree", [True, False])
def test_bars_of_several_runs_stand_over_the_same_client_and_bear_names_only_if_the_runs_agree(
    browser: Browser, tmp_path: Path, agree: bool
) -> None:
    names = NAMES if agree else ("xeno", *NAMES[1:])
    democratized = sample_run(framework="da", client_names=names)
    last = [
        msgspec.structs.replace(one, cohort=(4, 5, 6)) if one.selector == "random" else one
        for one in democratized.records
    ]
    other = RunRecords(democratized.header, tuple(last))
    browser.open(write_report([NAMED, other], tmp_path / "report.html"))
    rows = saved_bars(browser, "figure-shares")
    assert [row["client"] for row in rows] == [
        f"{number} {NAMES[number]}" if agree else f"{number}" for number in range(7)
    ]
    assert list(rows[0]) == ["client", "best", "random", "small (2): random"]
    for name, run in (("random", NAMED), ("small (2): random", other)):
        shares = selection_counts(run)["random"].sum(axis=0) / 12
        assert [float(row[name]) for row in rows] == pytest.approx(shares.tolist(), rel=1e-5)
    assert browser.complaints() == []


def test_bars_of_thinned_runs_stand_over_the_clients_with_their_numbers(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedelect.report.thinning.MAP_CLIENTS", 4)
    small = sample_run(seed=5, clients=4, groups={})
    browser.open(write_report([sample_run(), small], tmp_path / "report.html"))
    assert "Mean opinion of the clients shown 0." in browser.text("#maps .panel .words")
    assert "Mean opinion 0." in browser.text("#maps .panel:last-child .words")
    for figure, run, clients in (
        ("figure-shares", sample_run(), [0, 1, 2, 6]),
        ("figure-shares-1", small, [0, 1, 2, 3]),
    ):
        rows = saved_bars(browser, figure)
        assert [int(row["client"]) for row in rows] == clients
        shares = selection_counts(run)["random"].sum(axis=0)[clients] / 12
        assert [float(row["random"]) for row in rows] == pytest.approx(shares.tolist(), rel=1e-5)
    assert browser.complaints() == []
