"""Clients of several runs and of thinned ones, in a real browser: bars and sentences are of whom they say."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser import Browser, browsing
from tests.sample_runs import sample_run

from fedelect.records import selection_counts
from fedelect.report import write_report

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("browser")]

NAMES = ("ann", "bob", "eve", "dan", "fay", "gus", "hal")
NAMED = sample_run(client_names=NAMES)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.mark.parametrize("agree", [True, False])
def test_bars_of_several_runs_stand_over_the_same_client_and_bear_names_only_if_the_runs_agree(
    browser: Browser, tmp_path: Path, agree: bool
) -> None:
    names = NAMES[:4] if agree else ("xeno", *NAMES[1:4])
    small = sample_run(seed=5, clients=4, groups={}, client_names=names)
    for file in browser.downloads.iterdir():
        file.unlink()
    browser.open(write_report([NAMED, small], tmp_path / "report.html"))
    browser.run("document.querySelectorAll('#figure-shares .save button')[2].click()")
    rows = list(csv.DictReader(browser.saved("csv").read_text().splitlines()))
    assert [row["client"] for row in rows] == [
        f"{number} {NAMES[number]}" if agree else f"{number}" for number in range(7)
    ]
    for name, run in (("small", NAMED), ("small (2)", small)):
        shares = selection_counts(run)["random"].sum(axis=0) / 12
        shown = [row[f"{name}: random"] for row in rows]
        assert [float(one) for one in shown[: shares.size]] == pytest.approx(shares.tolist(), rel=1e-5)
        assert shown[shares.size :] == [""] * (7 - shares.size)
    assert browser.complaints() == []


def test_bars_of_thinned_runs_stand_over_the_clients_with_their_numbers(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedelect.report.thinning.MAP_CLIENTS", 4)
    small = sample_run(seed=5, clients=4, groups={})
    for file in browser.downloads.iterdir():
        file.unlink()
    browser.open(write_report([sample_run(), small], tmp_path / "report.html"))
    assert "Mean opinion of the clients shown 0." in browser.text("#maps .panel .words")
    assert "Mean opinion 0." in browser.text("#maps .panel:last-child .words")
    browser.run("document.querySelectorAll('#figure-shares .save button')[2].click()")
    rows = list(csv.DictReader(browser.saved("csv").read_text().splitlines()))
    clients = [int(row["client"]) for row in rows]
    assert clients == sorted({0, 1, 2, 3, *clients}) and clients[-1] == 6
    shares = selection_counts(small)["random"].sum(axis=0) / 12
    shown = {int(row["client"]): row["small (2): random"] for row in rows}
    assert [float(shown[client]) for client in range(4)] == pytest.approx(shares.tolist(), rel=1e-5)
    assert shown[6] == "" and browser.complaints() == []
