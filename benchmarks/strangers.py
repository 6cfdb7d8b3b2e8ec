"""Strangers at a peer's port: how long a valid neighbour then needs to link, and a restarted peer to be ready.

    python benchmarks/strangers.py                      # all parts, about three minutes
    python benchmarks/strangers.py --part storm --rate 100 --seconds 60
    python benchmarks/strangers.py --part burst --count 300
    python benchmarks/strangers.py --part crowd --count 3000

All of it stays on this machine (127.0.0.1), and count and time are bounded. Strangers come from a process of their own.
They have no certificate and do one of these:

- garbage: send 64 random bytes and wait for the end;
- hello: begin a real TLS handshake, without a certificate;
- idle: say nothing;
- slow: send a byte of a TLS handshake now and then.

`burst` opens many of one kind at once and then measures how long a valid neighbour needs to link. `crowd` does the same
while they stay. `storm` opens garbage and hellos at a rate, to every peer of a federation of four, for as long as it is
told; meanwhile a valid neighbour links again and again, peers are killed and started again, and elections go on.
"""

import sys

if sys.path[0].endswith("benchmarks"):
    del sys.path[0]  # selectors.py there would hide the standard library's

import argparse
import asyncio
import contextlib
import json
import os
import platform
import signal
import ssl
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from fedelect._processes import usable_cores
from fedelect.protocol import ElectionSettings
from fedelect.runtime.host_messages import Link, Notice, Ready
from fedelect.runtime.identity import create_federation, member_names, read_identity
from fedelect.runtime.launch import PeerProcesses, ProcessEnded, reserve_addresses
from fedelect.runtime.process import transport_of
from fedelect.runtime.roster import Roster
from fedelect.runtime.server import DirectElections, ElectionServer
from fedelect.runtime.signing import Ed25519Verifier
from fedelect.runtime.transport import Inbox, LinkUp
from fedelect.seeds import stream

KINDS = ("garbage", "hello", "idle", "slow")
LONGEST_S = 120.0
CLIENTS = 4


class Strangers:
    """Strangers in a process of their own; use it in a `with` statement, which ends them.

    Args:
        addresses: Whom they call, host:port.
        kinds: What they do, in turn; some of `KINDS`.
        rate: New connections a second and address.
        count: Connections to each address; the process then holds those that are still open. 0 for no end.
        wrap: Prefix of the command, as in `PeerProcess`.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        kinds: Sequence[str],
        *,
        rate: float,
        count: int = 0,
        wrap: tuple[str, ...] = (),
    ) -> None:
        self._command = [*wrap, sys.executable, __file__, "--as-strangers", ",".join(addresses), ",".join(kinds)]
        self._command += [str(rate), str(count)]
        self.opened = 0

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self._read_line()  # they are there
        return self

    def _read_line(self) -> None:
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def wait(self) -> None:
        """Wait until `count` connections to each address have been opened."""
        self._read_line()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            told, _ = self._process.communicate(timeout=LONGEST_S)
            self.opened = int(told.split()[-1])
        self._process.kill()
        self._process.wait()


async def _stranger(address: str, kind: str, context: ssl.SSLContext) -> None:
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError, asyncio.TimeoutError):
        if kind == "hello":
            reader, writer = await asyncio.wait_for(asyncio.open_connection(host, int(port), ssl=context), 20.0)
        else:
            reader, writer = await asyncio.wait_for(asyncio.open_connection(host, int(port)), 20.0)
        try:
            if kind == "garbage":
                writer.write(os.urandom(64))
            for byte in b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" if kind == "slow" else b"":
                if writer.is_closing():
                    break
                writer.write(bytes((byte,)))
                await asyncio.sleep(1.0)
            await asyncio.wait_for(reader.read(), LONGEST_S)
        finally:
            writer.transport.abort()


async def _be_strangers(addresses: Sequence[str], kinds: Sequence[str], rate: float, count: int) -> None:
    """Open connections until standard input ends; print the number of those opened."""
    loop, context = asyncio.get_running_loop(), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    over = loop.run_in_executor(None, sys.stdin.read)
    tasks: set[asyncio.Task[None]] = set()
    print("ready", flush=True)
    began, opened, told = loop.time(), 0, False
    while not over.done():
        due = int((loop.time() - began) * rate)
        for turn in range(opened, min(due, count) if count else due):
            for address in addresses:
                task = asyncio.ensure_future(_stranger(address, kinds[turn % len(kinds)], context))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            opened += 1
        if count and opened >= count and not told:
            await asyncio.sleep(0.2)  # the last of them are on their way
            print("opened", flush=True)
            told = True
        await asyncio.sleep(0.005)
    print(opened * len(addresses), flush=True)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def federation(out: Path) -> Iterator[tuple[Roster, dict[int, Path]]]:
    """Folders of peers that are all linked to each other."""
    edges = tuple((i, j) for i in range(CLIENTS) for j in range(i + 1, CLIENTS))
    with reserve_addresses(CLIENTS) as addresses:
        roster = create_federation(
            out,
            addresses=addresses,
            edges=edges,
            couplings=(-0.001,) * len(edges),
            settings=ElectionSettings(budget=2, max_faulty=1, slot_s=60.0),
        )
        yield roster, {client: out / name for client, name in enumerate(member_names(CLIENTS))}


def link_s(folder: Path, others: frozenset[int]) -> float:
    """Seconds that the peer of `folder` needs to link with these neighbours, which listen; inf if too long."""
    links, inbox = transport_of(read_identity(folder)), Inbox()
    began = time.monotonic()
    up: set[int] = set()
    links.start(inbox)
    try:
        while not others <= up:
            event = inbox.get(0.2)
            if isinstance(event, LinkUp):
                up.add(event.neighbour)
            if time.monotonic() - began > LONGEST_S:
                return float("inf")
        return time.monotonic() - began
    finally:
        links.close()


def measure_burst(out: Path, kind: str, count: int, *, stay: bool) -> dict[str, float]:
    """Link time before, and after `count` strangers of one kind came at once; with `stay` they are still there."""
    with federation(out) as (roster, folders), PeerProcesses({0: folders[0]}) as peers:
        peers.start(0)
        quiet = [link_s(folders[n], frozenset((0,))) for n in (1, 2, 3)]
        strangers = Strangers([roster.members[0].address], (kind,), rate=1000.0, count=count)
        with strangers:
            strangers.wait()
            if stay:
                crowded = link_s(folders[1], frozenset((0,)))
        if not stay:
            crowded = link_s(folders[1], frozenset((0,)))
        return {"count": count, "quiet_s": statistics.median(quiet), "linked_s": crowded}


def measure_storm(out: Path, rate: float, seconds: float) -> dict[str, float]:
    """Link times, restart times and elections while strangers call every peer at `rate` a second."""
    links, restarts, slots = [], [], []
    with federation(out) as (roster, folders), PeerProcesses({n: folders[n] for n in (0, 1, 2)}) as peers:
        for client in (0, 1, 2):
            peers.start(client)
        link_s(folders[3], frozenset((0, 1, 2)))
        server = DirectElections(peers, ElectionServer(roster.config(), Ed25519Verifier()))
        addresses = [member.address for member in roster.members[:3]]
        strangers = Strangers(addresses, ("garbage", "hello"), rate=rate)
        with strangers:
            until, turn = time.monotonic() + seconds, 0
            while time.monotonic() < until:
                turn += 1
                links.append(link_s(folders[3], frozenset((0, 1, 2))))
                opinions = dict(enumerate(stream(1, "opinions", turn).random(3).tolist()))
                server.begin_with(turn, judged=turn - 1, opinions=opinions)
                held = server.hold(turn, within_s=LONGEST_S)
                slots.append(held.seconds if held.certificate is not None else float("inf"))
                restarts.append(restart_s(peers, turn % 3))
    found = {"link": links, "restart": restarts, "slot": slots}
    return {"rate": rate, "seconds": seconds, "strangers": strangers.opened, "turns": len(links)} | {
        f"{name}_{what}_s": figure(times)
        for name, times in found.items()
        for what, figure in (("median", statistics.median), ("longest", max))
    }


def restart_s(peers: PeerProcesses, client: int) -> float:
    """Kill a peer and start it again; seconds from its start until it is linked with the two that run."""
    peers.kill(client)
    began, waiting = time.monotonic(), {0, 1, 2} - {client}

    def up(who: int, notice: Notice | ProcessEnded) -> bool:
        if who == client and isinstance(notice, Link) and notice.up:
            waiting.discard(notice.neighbour)
        return not waiting or (who == client and isinstance(notice, Ready))

    peers.start(client)
    return time.monotonic() - began if peers.listen(up, LONGEST_S) else float("inf")


def _print(name: str, row: Mapping[str, float]) -> None:
    print(f"{name}: " + ", ".join(f"{key} {value:.2f}".removesuffix(".00") for key, value in row.items()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("burst", "crowd", "storm"), help="only this part")
    parser.add_argument("--count", type=int, default=0, help="strangers at once; 300 in a burst, 3000 in a crowd")
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS, help="kinds in a burst and a crowd")
    parser.add_argument("--rate", type=float, default=100.0, help="strangers a second and peer in a storm")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of a storm")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    parser.add_argument("--as-strangers", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_strangers:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        addresses, kinds, rate, count = options.as_strangers
        asyncio.run(_be_strangers(addresses.split(","), kinds.split(","), float(rate), int(count)))
        return
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {usable_cores()} cores, load {load:.1f} before the start", flush=True)
    rows: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for part, usual in (("burst", 300), ("crowd", 3000)):
            if options.part in (None, part):
                for kind in options.kinds:
                    out = Path(folder) / f"{part}-{kind}"
                    name = f"{part} {kind}"
                    rows[name] = measure_burst(out, kind, options.count or usual, stay=part == "crowd")
                    _print(name, rows[name])
        if options.part in (None, "storm"):
            rows["storm"] = measure_storm(Path(folder) / "storm", options.rate, options.seconds)
            _print("storm", rows["storm"])
    if options.out is not None:
        options.out.write_text(json.dumps({"load": load, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
