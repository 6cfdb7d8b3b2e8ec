"""Relays between peers of this machine: every byte passes, in order, but late. Delays come from a seed."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import numpy as np

from fedelect.runtime.roster import ROSTER_NAME, encode_roster, read_roster
from fedelect.seeds import stream

CHUNK = 65536


class Relays:
    """TCP relays, all in one thread; use it in a `with` statement.

    A chunk that is read waits for `middle_s` seconds, give or take `spread_s`, and never overtakes the one before.
    """

    def __init__(self, *, seed: int = 1, middle_s: float = 0.05, spread_s: float = 0.03) -> None:
        self._seed, self._range = seed, (middle_s - spread_s, middle_s + spread_s)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._servers: list[asyncio.Server] = []
        self._open: set[asyncio.Task[None]] = set()
        self.carried = 0  # bytes that were late

    def __enter__(self) -> "Relays":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(20.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20.0)
        assert not self._thread.is_alive()
        self._loop.close()

    def to(self, address: str, *, late: tuple[str, ...] = ("forth", "back")) -> str:
        """The address of a new relay to `address`; only these directions are late, seen from who calls it."""
        door = socket.create_server(("127.0.0.1", 0))
        port = int(door.getsockname()[1])
        asyncio.run_coroutine_threadsafe(self._listen(door, address, late), self._loop).result(20.0)
        return f"127.0.0.1:{port}"

    async def _listen(self, door: socket.socket, address: str, late: tuple[str, ...]) -> None:
        calls = 0

        def called(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal calls
            calls += 1
            rngs = {way: stream(self._seed, "relay", len(self._servers), calls, way) for way in late}
            task = asyncio.ensure_future(self._connect(reader, writer, address, rngs))
            self._open.add(task)
            task.add_done_callback(self._open.discard)

        self._servers.append(await asyncio.start_server(called, sock=door))

    async def _connect(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        address: str,
        rngs: Mapping[str, np.random.Generator],
    ) -> None:
        host, _, port = address.rpartition(":")
        writers = [writer]
        try:
            there, there_writer = await asyncio.open_connection(host, int(port))
            writers.append(there_writer)
            forth = asyncio.ensure_future(self._pump(reader, there_writer, rngs.get("forth")))
            back = asyncio.ensure_future(self._pump(there, writer, rngs.get("back")))
            try:
                await asyncio.wait((forth, back), return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in (forth, back):
                    one.cancel()
                await asyncio.gather(forth, back, return_exceptions=True)
        except OSError:
            pass  # nobody is there: the caller sees a connection that ends, and calls again
        finally:
            for one_writer in writers:
                one_writer.transport.abort()
                with contextlib.suppress(OSError):
                    await one_writer.wait_closed()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rng: np.random.Generator | None
    ) -> None:
        """Carry chunks from one side to the other until either is gone."""
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def write() -> None:
            while True:
                due, chunk = await waiting.get()
                await asyncio.sleep(max(0.0, due - self._loop.time()))
                if not chunk:
                    return
                writer.write(chunk)
                await writer.drain()

        writing = asyncio.ensure_future(write())
        try:
            while chunk := await reader.read(CHUNK):
                late = 0.0 if rng is None else float(rng.uniform(*self._range))
                self.carried += 0 if rng is None else len(chunk)
                waiting.put_nowait((self._loop.time() + late, chunk))
            waiting.put_nowait((self._loop.time(), b""))
            await writing
        except OSError:
            pass
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)


def reroute(folders: Mapping[int, Path], calls: Iterable[tuple[int, int, str]]) -> None:
    """For (caller, called, address): let the caller's roster say this of the called; what they elect by is the same."""
    for caller, called, address in calls:
        roster = read_roster(folders[caller])
        members = list(roster.members)
        members[called] = msgspec.structs.replace(members[called], address=address)
        changed = msgspec.structs.replace(roster, members=tuple(members))
        assert changed.config().digest == roster.config().digest
        (folders[caller] / ROSTER_NAME).write_bytes(encode_roster(changed))
