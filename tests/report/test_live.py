"""The live page: follows a folder, says what it waits for, answers this machine only."""

import http.client
import json
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sample_runs import sample_run

from fedelect.errors import ConfigurationError
from fedelect.records import open_run
from fedelect.report import render_update
from fedelect.report.live import LiveServer, RunWatcher
from fedelect.report.live import server as server_module
from fedelect.report.live.server import LOOPBACK


class Clock:
    """Time that passes when a test says so, or by `step_s` at each look."""

    def __init__(self) -> None:
        self.now, self.step_s = 0.0, 0.0

    def __call__(self) -> float:
        self.now += self.step_s
        return self.now


def test_a_run_is_waited_for_followed_and_ended(tmp_path: Path) -> None:
    run = sample_run()
    watcher = RunWatcher([tmp_path / "run"])
    first = watcher.update()
    assert first.content["runs"] == [] and "waiting for run to begin" in first.content["message"] and not first.complete
    assert watcher.update() is first
    with open_run(tmp_path / "run", run.header) as writer:
        begun = watcher.update_now()
        assert begun.version != first.version and "0 of 24 slots" in begun.content["message"]
        writer.append(run.records[:8])
        grown = watcher.update_now()
        assert grown.content["runs"][0]["curveSlots"] == [1, 2]
        assert "8 of 24 slots are on record (33.3 %)" in grown.content["message"]
        assert "on record" not in grown.content["parts"]["facts"]  # the banner says it once
        writer.append(run.records[8:])
    end = watcher.update_now()
    assert end.complete and end.content["message"].startswith("Complete")
    assert watcher.update_now() is end


def test_a_folder_that_is_begun_anew_is_read_anew(tmp_path: Path) -> None:
    run, other = sample_run(), sample_run(seed=9, until=2)
    with open_run(tmp_path / "run", run.header) as writer:
        writer.append(run.records)
    watcher = RunWatcher([tmp_path / "run"])
    assert watcher.update().complete
    shutil.rmtree(tmp_path / "run")
    assert watcher.update_now().complete  # what was read stays
    with open_run(tmp_path / "run", other.header) as writer:
        writer.append(other.records)
    again = watcher.update_now()
    assert not again.complete and again.content["runs"][0]["curveSlots"] == [1, 2]


def test_damage_is_told_and_the_page_keeps_what_it_has(tmp_path: Path) -> None:
    run = sample_run(until=3)
    with open_run(tmp_path / "run", run.header) as writer:
        writer.append(run.records)
    watcher = RunWatcher([tmp_path / "run"])
    assert not watcher.update().content["trouble"]
    file = tmp_path / "run" / "slots.jsonl"
    sound = file.read_bytes()
    file.write_bytes(sound + b"nonsense\n")
    hurt = watcher.update_now()
    assert hurt.content["trouble"] and "line 13" in hurt.content["message"]
    assert hurt.content["runs"][0]["curveSlots"] == [1, 2, 3]
    file.write_bytes(sound)
    assert not watcher.update_now().content["trouble"]


def test_updates_that_are_costly_are_made_more_rarely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, clock = sample_run(), Clock()

    def slow(analyses: Any) -> dict[str, Any]:
        clock.now += 1.0
        return render_update(analyses)

    monkeypatch.setattr("fedelect.report.live.watcher.render_update", slow)
    with open_run(tmp_path / "run", run.header) as writer:
        watcher = RunWatcher([tmp_path / "run"], clock=clock)
        first = watcher.update()
        writer.append(run.records[:8])
        clock.now += 3.5
        assert watcher.update() is first
        clock.now += 1.0
        assert watcher.update() is not first


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    run = sample_run(until=2)
    with open_run(tmp_path / "run", run.header) as writer:
        writer.append(run.records)
    with LiveServer(RunWatcher([tmp_path / "run"]), port=0) as serving:
        yield serving


def ask(server: LiveServer, path: str, *, method: str = "GET", host: str | None = None) -> tuple[int, bytes, Any]:
    connection = http.client.HTTPConnection(LOOPBACK, server.port, timeout=60)
    try:
        connection.request(method, path, headers={} if host is None else {"Host": host})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


def test_the_server_gives_the_page_and_then_the_news(server: LiveServer) -> None:
    status, body, headers = ask(server, "/")
    assert status == 200 and headers["Content-Type"].startswith("text/html")
    assert b"connect-src 'self'" in body and b'"live":true' in body
    assert headers["X-Frame-Options"] == "DENY" and headers["X-Content-Type-Options"] == "nosniff"
    status, body, _ = ask(server, "/data.json?after=")
    news = json.loads(body)
    assert status == 200 and news["runs"][0]["curveSlots"] == [1, 2]
    assert ask(server, f"/data.json?after={news['version']}")[:2] == (204, b"")


@pytest.mark.parametrize("path", ["/run.json", "/../run.json", "/slots.jsonl", "//etc/passwd", "/data.json/x"])
def test_the_server_gives_nothing_else(server: LiveServer, path: str) -> None:
    assert ask(server, path)[0] == 404


def test_the_server_only_answers_questions(server: LiveServer) -> None:
    assert ask(server, "/", method="POST")[0] == 501


def test_requests_under_another_name_are_refused(server: LiveServer) -> None:
    assert ask(server, "/", host="evil.example")[0] == 421
    assert ask(server, "/data.json", host=f"evil.example:{server.port}")[0] == 421
    assert ask(server, "/data.json", host="192.168.1.7")[0] == 421
    for name in ("[", "[::1", "[nonsense]", ""):
        assert ask(server, "/data.json", host=name)[0] == 421
    for name in ("localhost", f"localhost:{server.port}", "127.0.0.1", "[::1]:80"):
        assert ask(server, "/data.json", host=name)[0] == 200


def test_the_server_listens_on_this_machine_alone(server: LiveServer) -> None:
    assert server.address == f"http://127.0.0.1:{server.port}/"
    assert server._http.server_address[0] == LOOPBACK


def test_a_port_that_is_asked_for_and_taken_is_an_error(server: LiveServer, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=rf"cannot listen on 127\.0\.0\.1:{server.port}: .*--port"):
        LiveServer(RunWatcher([tmp_path]), port=server.port)


def test_the_usual_port_is_taken_if_free_and_passed_over_if_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        usual = taken.getsockname()[1]
        monkeypatch.setattr(server_module, "DEFAULT_PORT", usual)
        with LiveServer(RunWatcher([tmp_path])) as elsewhere:
            assert elsewhere.port != usual
    asked = []

    class AnyPort(server_module._Server):
        """Listens on a free port, whichever is asked for: another program may hold that one."""

        def __init__(self, address: tuple[str, int], handler: Any) -> None:
            asked.append(address[1])
            super().__init__((address[0], 0), handler)

    monkeypatch.setattr(server_module, "_Server", AnyPort)
    with LiveServer(RunWatcher([tmp_path])):
        assert asked == [usual]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed(tmp_path: Path, clock: Clock) -> Iterator[LiveServer]:
    """A server whose time stands still."""
    run = sample_run(until=2)
    with open_run(tmp_path / "run", run.header) as writer:
        writer.append(run.records)
    with LiveServer(RunWatcher([tmp_path / "run"], clock=clock), port=0, clock=clock) as serving:
        yield serving


def wait_for_pages(server: LiveServer) -> threading.Thread:
    waiting = threading.Thread(target=server.wait_for_pages, daemon=True)
    waiting.start()
    return waiting


@pytest.mark.parametrize("asked", ["/", "/data.json?after="])
def test_a_page_that_asked_recently_is_waited_for(timed: LiveServer, tmp_path: Path, asked: str) -> None:
    ask(timed, asked)
    run = sample_run()
    with open_run(tmp_path / "run", run.header) as writer:
        writer.append(run.records[8:])
    waiting = wait_for_pages(timed)
    waiting.join(timeout=0.3)
    assert waiting.is_alive()
    assert json.loads(ask(timed, "/data.json?after=")[1])["complete"]
    waiting.join()


def test_pages_are_waited_for_no_longer_than_the_timeout(timed: LiveServer, clock: Clock) -> None:
    ask(timed, "/")
    clock.step_s = 0.25
    timed.wait_for_pages(timeout_s=2.0)
    assert 2.0 <= clock.now < 5.0  # later, the page would count as closed


def test_nothing_is_waited_for_if_no_page_is_open(timed: LiveServer) -> None:
    timed.wait_for_pages()
