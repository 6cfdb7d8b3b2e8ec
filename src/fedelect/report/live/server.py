"""Web server of a live page: two addresses, `/` and `/data.json`, by default on the loopback interface only.

The page polls every second, so a lost connection needs no repair, and a run of many hours holds no connection open.
Requests with a Host header other than the machine's own names are refused, against DNS rebinding.
"""

import socket
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from types import TracebackType
from typing import Self, cast
from urllib.parse import parse_qs, urlsplit

import msgspec

from fedelect.errors import ConfigurationError
from fedelect.report.live.watcher import PageUpdate, RunWatcher

DEFAULT_PORT = 8765
"""Port of a live page, if it is free."""

LOOPBACK = "127.0.0.1"

_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_RECENT_S = 5.0


class LiveServer:
    """Serves a watcher's page until closed; use it as a context manager.

    Args:
        watcher: What to show.
        host: Address to listen on; this machine alone if left out.
        port: Port to listen on, 0 for any free one; None takes `DEFAULT_PORT`, or any free one if that is taken.
        clock: Monotonic clock, in seconds.

    Raises:
        ConfigurationError: The address cannot be listened on.
    """

    def __init__(
        self,
        watcher: RunWatcher,
        *,
        host: str = LOOPBACK,
        port: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._watcher = watcher
        self._lock = threading.Lock()
        self._host, self._clock = host, clock
        self._last_asked_s = float("-inf")
        self._last_given = ""
        self._http = _listen(self, host, port)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.1,), name="live page", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._http.server_address[1])

    @property
    def address(self) -> str:
        """Address to open in a browser."""
        shown = "127.0.0.1" if self._host in ("", "0.0.0.0", "::") else self._host
        return f"http://{f'[{shown}]' if ':' in shown else shown}:{self.port}/"

    def close(self) -> None:
        """Stop serving; does nothing the second time."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(timeout=5.0)

    def wait_for_pages(self, timeout_s: float = _RECENT_S) -> None:
        """Wait until a page that asked recently has the newest update, at most `timeout_s` seconds."""
        end_s = self._clock() + timeout_s
        with self._lock:
            newest = self._watcher.update_now().version
        while self._clock() < end_s and self._last_given != newest:
            if self._clock() - self._last_asked_s > _RECENT_S:
                return  # no page is open
            time.sleep(0.05)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def page(self) -> bytes:
        """Render the page for a request."""
        with self._lock:
            page = self._watcher.page().encode("utf-8")
        self._last_asked_s = self._clock()  # a page asks for updates as soon as it is loaded
        return page

    def update_after(self, version: str) -> bytes | None:
        """Newest update as JSON, or None if `version` is it."""
        with self._lock:
            update: PageUpdate = self._watcher.update()
        self._last_asked_s = self._clock()
        self._last_given = update.version
        return None if update.version == version else msgspec.json.encode(update.content)

    def is_ours(self, host: str) -> bool:
        """Whether a Host header names this server."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:  # a bracket that is not closed, or no address in it
            return False
        if name in ("localhost", self._host):
            return True
        if self._host != LOOPBACK and name in (socket.gethostname().lower(), socket.getfqdn().lower()):
            return True
        try:
            literal = ip_address(name)
        except ValueError:
            return False
        # A literal address cannot be rebound; a server on the network is reached by one.
        return literal.is_loopback or self._host != LOOPBACK


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    live: LiveServer


class _Server6(_Server):
    address_family = socket.AF_INET6


def _listen(live: LiveServer, host: str, port: int | None) -> _Server:
    wanted = [DEFAULT_PORT, 0] if port is None else [port]
    for number in wanted:
        try:
            server = (_Server6 if ":" in host else _Server)((host, number), _Handler)
        except (OSError, OverflowError) as error:
            if number != wanted[-1]:
                continue
            raise ConfigurationError(
                f"cannot listen on {host}:{number}: {error}; choose another with --host and --port (0 takes a free one)"
            ) from error
        server.live = live
        return server
    raise AssertionError("unreachable: the last port either listens or raises")


class _Handler(BaseHTTPRequestHandler):
    timeout = 30.0
    server_version = "fedelect"
    sys_version = ""

    def do_GET(self) -> None:
        live = cast(_Server, self.server).live
        request = urlsplit(self.path)
        if not live.is_ours(self.headers.get("Host", "")):
            self._answer(HTTPStatus.MISDIRECTED_REQUEST, b"this server goes by another name\n", "text/plain")
        elif request.path == "/":
            self._answer(HTTPStatus.OK, live.page(), "text/html; charset=utf-8")
        elif request.path == "/data.json":
            update = live.update_after(parse_qs(request.query).get("after", [""])[0])
            if update is None:
                self._answer(HTTPStatus.NO_CONTENT, b"", None)
            else:
                self._answer(HTTPStatus.OK, update, "application/json")
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"there is nothing here; the page is at /\n", "text/plain")

    def _answer(self, status: HTTPStatus, body: bytes, kind: str | None) -> None:
        try:
            self.send_response(status)
            for name, value in _HEADERS.items():
                self.send_header(name, value)
            if kind is not None:
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the page went away

    def log_message(self, format: str, *args: object) -> None:
        """Do not log: the terminal belongs to the progress bar."""
