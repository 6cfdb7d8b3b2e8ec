"""A live page in a real browser: it follows a run of another process, and survives a server that goes away."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser import Browser, browsing
from tests.sample_runs import sample_run

from fedelect.live import LiveServer, Watch
from fedelect.records import open_run, read_table

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("browser")]

FEDELECT = (sys.executable, "-m", "fedelect")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


def test_the_page_follows_the_records_and_keeps_what_was_chosen(browser: Browser, tmp_path: Path) -> None:
    run = sample_run()
    with LiveServer(Watch([tmp_path / "run"]), port=0) as server:
        browser.open(server.address)
        browser.wait(lambda: "waiting for run to begin" in browser.text("#live"), "the page says that it waits")
        with open_run(tmp_path / "run", run.header) as writer:
            writer.append(run.records[:8])
            browser.wait(lambda: browser.text("#slot-name") == "2 of 2", "two slots are shown")
            browser.click("#selectors input[data-name='random']")
            browser.run("document.querySelector('#maps select').focus()")
            writer.append(run.records[8:20])
            browser.wait(lambda: browser.text("#slot-name") == "5 of 5", "five slots are shown")
            assert "20 of 24 slots" in browser.text("#live") and "20 of 24 slots" in browser.text("#part-facts")
            assert (
                browser.run("return document.querySelector(\"#selectors input[data-name='random']\").checked") is False
            )
            assert browser.run("return document.activeElement.tagName") == "SELECT"
            writer.append(run.records[20:])
        browser.wait(lambda: browser.text("#live").startswith("Complete"), "the run is complete")
        assert browser.text("#table-final tbody tr td:last-child") == "12"
    assert browser.complaints() == []


def test_a_lost_connection_is_said_and_recovers(browser: Browser, tmp_path: Path) -> None:
    run = sample_run()
    with open_run(tmp_path / "run", run.header) as writer:
        writer.append(run.records[:8])
        with LiveServer(Watch([tmp_path / "run"]), port=0) as server:
            port = server.port
            browser.open(server.address)
            browser.wait(lambda: "8 of 24 slots" in browser.text("#live"), "the page is up to date")
        browser.wait(lambda: "connection is lost" in browser.text("#live"), "the page says that the server is gone")
        assert browser.text("#slot-name") == "2 of 2"
        writer.append(run.records[8:12])
        with LiveServer(Watch([tmp_path / "run"]), port=port):
            browser.wait(lambda: "12 of 24 slots" in browser.text("#live"), "the page has recovered")
            assert browser.text("#slot-name") == "3 of 3"
    browser.open("about:blank")
    assert all("ERR_CONNECTION_REFUSED" in line or "ERR_EMPTY_RESPONSE" in line for line in browser.complaints())


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
    end = time.monotonic() + 60.0
    while time.monotonic() < end:
        line = process.stdout.readline()
        if line.startswith("live: "):
            return line.split()[1]
        assert line or process.poll() is None, "the command ended without an address"
    raise AssertionError("no address within a minute")


def test_a_run_in_another_process_is_watched_by_the_command(browser: Browser, tmp_path: Path) -> None:
    watching = started("live", "out", "--port", "0", cwd=tmp_path)
    try:
        browser.open(address_from(watching))
        run = started("run", "digits", "--slots", "12", "--workers", "1", "--out", "out", cwd=tmp_path)
        try:
            browser.wait(lambda: browser.text("#live").startswith("Complete"), "the run is complete")
        finally:
            assert run.wait(timeout=120) == 0
            assert run.stdout is not None
            run.stdout.close()
        table = read_table(tmp_path / "out")
        assert browser.text("#slot-name") == "12 of 12" and table.recorded == 24
        watching.send_signal(signal.SIGINT)
        assert watching.wait(timeout=30) == 0
    finally:
        watching.kill()
        watching.wait(timeout=30)
        assert watching.stdout is not None
        watching.stdout.close()


def test_a_run_shows_itself_and_its_page_gets_the_last_word(browser: Browser, tmp_path: Path) -> None:
    run = started(
        "run", "digits", "--slots", "60", "--workers", "1", "--out", "out", "--live", "--live-port", "0", cwd=tmp_path
    )
    try:
        browser.open(address_from(run))
        browser.wait(lambda: browser.text("#live").startswith("Complete"), "the run is complete")
        out, _ = run.communicate(timeout=120)
        assert run.returncode == 0 and "records: out" in out
        assert browser.text("#slot-name") == "60 of 60"
    finally:
        run.kill()
        run.wait(timeout=30)
        assert run.stdout is not None
        run.stdout.close()
