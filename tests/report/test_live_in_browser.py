"""A live page in a real browser: it follows a run of another process, and survives a server that goes away."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser import DEADLINE_S, Browser, browsing
from tests.sample_runs import sample_run

from fedelect import load_scenario
from fedelect.records import SelectorEntry, open_run, read_table
from fedelect.report.live import LiveServer, RunWatcher
from fedelect.runtime.launch import reserve_addresses
from fedelect.scenario import change_scenario, scenario_toml

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("browser")]

FEDELECT = (sys.executable, "-m", "fedelect")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


def test_the_page_follows_the_records_and_keeps_what_was_chosen(browser: Browser, tmp_path: Path) -> None:
    run = sample_run()
    with LiveServer(RunWatcher([tmp_path / "run"]), port=0) as server:
        browser.open(server.address)
        browser.wait(lambda: "waiting for run to begin" in browser.text("#live"), "the page says that it waits")
        with open_run(tmp_path / "run", run.header) as writer:
            writer.append(run.records[:8])
            browser.wait(lambda: browser.text("#slot-name") == "2 of 2", "two slots are shown")
            browser.click("#selectors input[data-name='random']")
            browser.run("document.querySelector('#maps select').focus()")
            writer.append(run.records[8:20])
            browser.wait(lambda: browser.text("#slot-name") == "5 of 5", "five slots are shown")
            assert "20 of 24 slots" in browser.text("#live")
            assert browser.run("return document.body.innerText.split('20 of 24 slots').length - 1") == 1
            assert (
                browser.run("return document.querySelector(\"#selectors input[data-name='random']\").checked") is False
            )
            assert browser.run("return document.activeElement.tagName") == "SELECT"
            writer.append(run.records[20:])
        browser.wait(lambda: browser.text("#live").startswith("Complete"), "the run is complete")
        assert browser.text("#table-final tbody tr td:last-child") == "12"
    assert browser.complaints() == []


def test_the_map_shows_the_newest_slot_of_the_trial_shown(browser: Browser, tmp_path: Path) -> None:
    run = sample_run()
    ahead = [one for one in run.records if one.slot <= 2 or (one.trial == 0 and one.slot <= 5)]
    with LiveServer(RunWatcher([tmp_path / "run"]), port=0) as server, open_run(tmp_path / "run", run.header) as writer:
        writer.append(ahead)
        browser.open(server.address)
        browser.wait(lambda: browser.text("#slot-name") == "5 of 5", "five slots are shown")
        assert browser.text("#maps .panel .words").startswith("Slot 5: elected ")
        browser.run(
            "const t = document.querySelectorAll('#maps .panel select')[1];"
            "t.value = '1'; t.dispatchEvent(new Event('change'))"
        )
        assert browser.text("#maps .panel .words").startswith("Slot 2: elected ")
        writer.append([one for one in run.records if one.trial == 1 and one.slot == 3])
        browser.wait(lambda: "Slot 3: elected " in browser.text("#maps .panel .words"), "its next slot is shown")
    browser.open("about:blank")
    assert all("ERR_" in line for line in browser.complaints())


def test_a_lost_connection_is_said_and_recovers(browser: Browser, tmp_path: Path) -> None:
    run = sample_run()
    with reserve_addresses(1) as (address,), open_run(tmp_path / "run", run.header) as writer:
        port = int(address.rpartition(":")[2])  # nobody else can take it while no server listens
        writer.append(run.records[:8])
        with LiveServer(RunWatcher([tmp_path / "run"]), port=port) as server:
            browser.open(server.address)
            browser.wait(lambda: "8 of 24 slots" in browser.text("#live"), "the page is up to date")
        browser.wait(lambda: "connection is lost" in browser.text("#live"), "the page says that the server is gone")
        assert browser.text("#slot-name") == "2 of 2"
        writer.append(run.records[8:12])
        with LiveServer(RunWatcher([tmp_path / "run"]), port=port):
            browser.wait(lambda: "12 of 24 slots" in browser.text("#live"), "the page has recovered")
            assert browser.text("#slot-name") == "3 of 3"
    browser.open("about:blank")
    assert all("ERR_" in line for line in browser.complaints())  # of the connection, whatever became of it


def panels(browser: Browser) -> list[list[str]]:
    """What each map shows: the chosen texts of its menus."""
    found: list[list[str]] = browser.run(
        "return [...document.querySelectorAll('#maps .panel')].map("
        "panel => [...panel.querySelectorAll('select')].map(menu => menu.selectedOptions[0].textContent))"
    )
    return found


def test_maps_keep_their_run_and_selector_when_the_lists_of_them_change(browser: Browser, tmp_path: Path) -> None:
    browser.look(width=700)
    late, early = sample_run(), sample_run(seed=4, until=2)
    with LiveServer(RunWatcher([tmp_path / "late", tmp_path / "early"]), port=0) as server:
        with open_run(tmp_path / "early", early.header) as writer:
            writer.append(early.records)
        browser.open(server.address)
        browser.wait(lambda: panels(browser) == [["best", "0"]], "the run that is there is shown")
        browser.run(
            "const [s, t] = document.querySelectorAll('#maps select'); s.value = t.value = '1';"
            "s.dispatchEvent(new Event('change')); t.dispatchEvent(new Event('change'))"
        )
        browser.click("#selectors input[data-name='best']")
        with open_run(tmp_path / "late", late.header) as writer:  # comes first in the list
            writer.append(late.records[:4])
        browser.wait(lambda: len(panels(browser)) == 2, "the new run has a map")
        assert panels(browser) == [["early", "random", "1"], ["late", "best", "0"]]
        ticks = "return [...document.querySelectorAll('#selectors input')].map(t => [t.dataset.name, t.checked])"
        assert dict(browser.run(ticks)) == {"best": False, "random": True}
        shutil.rmtree(tmp_path / "early")
        fewer = sample_run(trials=1, selectors=(SelectorEntry(label="new", kind="RandomCohort"),))
        with open_run(tmp_path / "early", fewer.header) as writer:
            browser.wait(lambda: "new" in dict(browser.run(ticks)), "the run that was begun anew is offered")
            writer.append(fewer.records)
        browser.wait(lambda: browser.text("#slot-name") == "6 of 6", "its slots are shown")
        assert panels(browser) == [["early", "new", "0"], ["late", "best", "0"]]
        assert browser.text("#maps .panel .words").startswith("Slot 6: elected ")
    browser.open("about:blank")
    assert all("ERR_" in line for line in browser.complaints())
    browser.look()


def test_a_run_that_is_begun_anew_with_fewer_selectors_is_shown_from_its_first_slot(
    browser: Browser, tmp_path: Path
) -> None:
    browser.look()
    run, other = sample_run(), sample_run(selectors=(SelectorEntry(label="random", kind="RandomCohort"),))
    with LiveServer(RunWatcher([tmp_path / "run"]), port=0) as server:
        with open_run(tmp_path / "run", run.header) as writer:
            writer.append(run.records[:20])
        browser.open(server.address)
        browser.wait(lambda: panels(browser) == [["best", "0"], ["random", "0"]], "both selectors are shown")
        shutil.rmtree(tmp_path / "run")
        with open_run(tmp_path / "run", other.header) as writer:
            browser.wait(lambda: "0 of 12 slots" in browser.text("#live"), "nothing is on record")
            browser.click("#theme")
            writer.append(other.records)
        browser.wait(lambda: browser.text("#live").startswith("Complete"), "the other run is complete")
        assert panels(browser)[0] == ["random", "0"] and browser.text("#slot-name") == "6 of 6"
        assert browser.complaints() == []


def test_news_that_the_page_fails_to_show_are_told_from_a_lost_connection(browser: Browser, tmp_path: Path) -> None:
    run = sample_run()
    with LiveServer(RunWatcher([tmp_path / "run"]), port=0) as server, open_run(tmp_path / "run", run.header) as writer:
        writer.append(run.records[:4])
        browser.open(server.address)
        browser.wait(lambda: "4 of 24 slots" in browser.text("#live"), "the page is up to date")
        browser.run("document.getElementById('part-numbers').remove()")
        writer.append(run.records[4:8])
        browser.wait(lambda: "failed to show them (TypeError" in browser.text("#live"), "the failure is told")
        assert "connection" not in browser.text("#live") and "TypeError" in " ".join(browser.complaints())
    browser.open("about:blank")
    browser.complaints()


def test_a_table_whose_button_was_used_goes_on_being_replaced_and_the_button_keeps_the_focus(
    browser: Browser, tmp_path: Path
) -> None:
    run = sample_run()
    cell = "#table-final tbody tr td:last-child"
    with LiveServer(RunWatcher([tmp_path / "run"]), port=0) as server:
        with open_run(tmp_path / "run", run.header) as writer:
            writer.append(run.records[:4])
            browser.open(server.address)
            browser.wait(lambda: "4 of 24 slots" in browser.text("#live"), "the page is up to date")
            browser.run("document.querySelector('#numbers details').open = true")
            browser.run("const b = document.querySelector('button[data-table=table-final]'); b.focus(); b.click()")
            assert browser.text(cell) == "2"
            writer.append(run.records[4:])
        browser.wait(lambda: browser.text("#live").startswith("Complete"), "the run is complete")
        assert browser.text(cell) == "12"
        assert browser.run("return document.activeElement.dataset.table") == "table-final"
    assert browser.complaints() == []


def started(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*FEDELECT, *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "200"},
    )


def address_from(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        line = process.stdout.readline()
        if line.startswith("live: "):
            return line.split()[1]
        assert line or process.poll() is None, "the command ended without an address"
    raise AssertionError(f"no address within {DEADLINE_S:g} s")


def test_a_run_in_another_process_is_watched_by_the_command(browser: Browser, tmp_path: Path) -> None:
    watching = started("live", "out", "--port", "0", cwd=tmp_path)
    try:
        browser.open(address_from(watching))
        run = started("run", "digits", "--slots", "12", "--trials", "1", "--workers", "1", "--out", "out", cwd=tmp_path)
        try:
            browser.wait(lambda: browser.text("#live").startswith("Complete"), "the run is complete")
        finally:
            assert run.wait(timeout=DEADLINE_S) == 0
            assert run.stdout is not None
            run.stdout.close()
        table = read_table(tmp_path / "out")
        assert browser.text("#slot-name") == "12 of 12" and table.recorded == 24
        watching.send_signal(signal.SIGINT)
        assert watching.wait(timeout=DEADLINE_S) == 0
    finally:
        watching.kill()
        watching.wait(timeout=DEADLINE_S)
        assert watching.stdout is not None
        watching.stdout.close()


WAITING_OPINION = """
import pathlib
import time

from fedelect.analytics import accuracy


def opinion(scores, labels):
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    return accuracy(scores, labels)
"""


def test_a_run_shows_itself_and_its_page_gets_the_last_word(browser: Browser, tmp_path: Path) -> None:
    config = change_scenario(load_scenario("digits"), {"opinion": "waiting:opinion"})
    (tmp_path / "mine.toml").write_text(scenario_toml(config))
    (tmp_path / "waiting.py").write_text(WAITING_OPINION)
    options = ("--slots", "120", "--workers", "1", "--out", "out", "--live", "--live-port", "0")
    run = started("run", "mine.toml", *options, cwd=tmp_path)
    try:
        browser.open(address_from(run))
        (tmp_path / "go").touch()  # the run waits for its page, however slow the browser is
        browser.wait(lambda: browser.text("#live").startswith("Complete"), "the run is complete")
        out, _ = run.communicate(timeout=DEADLINE_S)
        assert run.returncode == 0 and "records: out" in out
        assert browser.text("#slot-name") == "120 of 120"
    finally:
        run.kill()
        run.wait(timeout=DEADLINE_S)
        assert run.stdout is not None
        run.stdout.close()
