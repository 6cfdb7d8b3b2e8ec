"""What an election between real processes costs: time, bytes and messages, beside the floor that the network sets.

    python benchmarks/election.py                       # 5, 10, 20 and 40 peers
    python benchmarks/election.py --clients 5 --slots 4
    python benchmarks/election.py --rule bp-gp               # instead of bp-ucb
    python benchmarks/election.py --clients 10 --kills 5     # what it costs when a peer is killed

Peers run on this machine, a process each, over mutual TLS, on a ring with chords (four neighbours each), ready for no
fault, with 10 rounds of belief messages. The time of a slot starts when the last peer has its opinion and ends when the
first, or the last, peer holds the certificate; clocks are one machine's monotonic clock. The floor is the number of
rounds that must follow each other (beliefs, flood, then the votes' way through the graph) times half a round trip,
measured between two processes over the same links. It knows nothing of the processor time that signatures take on a
machine with fewer cores than peers, which is measured beside it.

With `--kills` peers are ready for one fault and keep the default deadlines. A peer is killed (SIGKILL) as soon as it
has been told that a slot begins; the times are until all others have the certificate of that slot, and of the next one,
in which the peer is still away. Then it is started again.
"""

import sys

if sys.path[0].endswith("benchmarks"):
    del sys.path[0]  # selectors.py there would hide the standard library's

import argparse
import contextlib
import json
import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedelect._processes import usable_cores
from fedelect.protocol import ElectionSettings, PeerConfig
from fedelect.protocol.graph import surviving_diameter
from fedelect.runtime.host_messages import SLOTS_NAME, Link, decode_logs
from fedelect.runtime.identity import create_federation, member_names, read_identity
from fedelect.runtime.launch import PeerProcesses, reserve_addresses
from fedelect.runtime.process import transport_of
from fedelect.runtime.server import DirectElections, ElectionServer
from fedelect.runtime.signing import Ed25519Verifier
from fedelect.runtime.transport import Frame, Inbox, LinkUp
from fedelect.seeds import stream

SIZES = (5, 10, 20, 40)
WARM_UP = 2  # slots that are not counted
PINGS = 200
FRAME_BYTES = 1000
_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100

_ECHO = """
import sys
from pathlib import Path
from fedelect.runtime.identity import read_identity
from fedelect.runtime.process import transport_of
from fedelect.runtime.transport import Frame, Inbox
links, inbox = transport_of(read_identity(Path(sys.argv[1]))), Inbox()
links.start(inbox)
while (event := inbox.get(20.0)) is not None:
    if isinstance(event, Frame):
        if not event.content:
            break
        links.send(event.neighbour, event.content)
links.close()
"""


def ring(clients: int) -> tuple[tuple[int, int], ...]:
    """Everybody linked to the next and the one after it."""
    pairs = {(min(n, m), max(n, m)) for n in range(clients) for m in ((n + 1) % clients, (n + 2) % clients)}
    return tuple(sorted(pair for pair in pairs if pair[0] != pair[1]))


@contextlib.contextmanager
def federation(out: Path, clients: int, **settings: Any) -> Iterator[tuple[PeerConfig, dict[int, Path]]]:
    edges = ring(clients)
    chosen = {"budget": min(5, clients // 2), "resend_s": 2.0, "slot_s": 120.0} | settings
    with reserve_addresses(clients) as addresses:
        roster = create_federation(
            out,
            addresses=addresses,
            edges=edges,
            couplings=(-0.001,) * len(edges),
            settings=ElectionSettings(**chosen),
        )
        yield roster.config(), {client: out / name for client, name in enumerate(member_names(clients))}


def round_trip_s(out: Path) -> float:
    """Median time of a frame to another process and back over the links that peers use."""
    with federation(out, 2) as (_, folders):
        return _round_trip_s(folders)


def _round_trip_s(folders: dict[int, Path]) -> float:
    echo = subprocess.Popen([sys.executable, "-c", _ECHO, str(folders[1])])
    links, inbox = transport_of(read_identity(folders[0])), Inbox()
    links.start(inbox)
    try:
        until = time.monotonic() + 60.0
        while not isinstance(inbox.get(1.0), LinkUp):
            if time.monotonic() > until:
                raise SystemExit("the echo never came up")
        times = []
        for _ in range(PINGS):
            began = time.monotonic()
            links.send(1, bytes(FRAME_BYTES))
            while not isinstance(inbox.get(5.0), Frame):
                if time.monotonic() - began > 5.0:
                    break
            times.append(time.monotonic() - began)
        links.send(1, b"")
        return statistics.median(times)
    finally:
        echo.wait(30.0)
        links.close()


def processor_s(numbers: list[int]) -> float:
    """Processor time that these processes have used; 0 where the system does not say."""
    total = 0
    for number in numbers:
        path = Path(f"/proc/{number}/stat")
        if path.exists():
            fields = path.read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total / _TICK


def measure(out: Path, clients: int, slots: int, rule: str) -> dict[str, float]:
    everybody = frozenset(range(clients))
    with federation(out, clients, rule=rule) as (config, folders), PeerProcesses(folders) as peers:
        began = time.monotonic()
        peers.start_all(300.0)
        start_s = time.monotonic() - began
        numbers = [process.number for process in peers.processes.values()]
        server = DirectElections(peers, ElectionServer(config, Ed25519Verifier()))
        used = 0.0
        for slot in range(1, WARM_UP + slots + 1):
            if slot == WARM_UP + 1:
                used = processor_s(numbers)
            rng = stream(1, "opinions", slot)
            given: dict[int, float | None] = dict(enumerate(rng.random(clients).tolist()))
            server.begin_with(slot, judged=slot - 1, opinions=given)
            held = server.hold(slot, within_s=150.0, all_of=everybody)
            if held.decided_by != everybody:
                raise SystemExit(f"slot {slot} was not decided by all: {held.reason}")
        used = processor_s(numbers) - used
        peers.stop_all(300.0)  # their notes are read next
    logs = [
        [log for log in decode_logs((folder / SLOTS_NAME).read_bytes()) if log.slot > WARM_UP]
        for folder in folders.values()
    ]
    first, last, sent, size = [], [], [], []
    for of_slot in zip(*logs, strict=True):
        ready = max(log.began_s for log in of_slot)
        ended = [log.ended_s for log in of_slot if log.ended_s is not None]
        first.append(min(ended) - ready)
        last.append(max(ended) - ready)
        sent.append(statistics.mean(log.sent for log in of_slot))
        size.append(statistics.mean(log.sent_bytes for log in of_slot))
    diameter = surviving_diameter(clients, config.edges, 0)
    return {
        "clients": clients,
        "start_s": start_s,
        "first_certificate_s": statistics.median(first),
        "all_certified_s": statistics.median(last),
        "slowest_s": max(last),
        "rounds": config.settings.rounds + config.flood_rounds + diameter,
        "messages_per_peer": statistics.mean(sent),
        "bytes_per_peer": statistics.mean(size),
        "processor_s_per_slot": used / slots,
    }


def measure_kills(out: Path, clients: int, kills: int) -> dict[str, float]:
    times: dict[str, list[float]] = {"quiet_s": [], "killed_s": [], "away_s": []}
    with federation(out, clients, max_faulty=1, resend_s=0.5) as (config, folders), PeerProcesses(folders) as peers:
        peers.start_all(300.0)
        server = DirectElections(peers, ElectionServer(config, Ed25519Verifier()))
        slot = 0

        def elect(victim: int | None = None) -> float:
            nonlocal slot
            slot += 1
            began = time.monotonic()
            given: dict[int, float | None] = dict(enumerate(stream(1, "opinions", slot).random(clients).tolist()))
            server.begin_with(slot, judged=slot - 1, opinions={client: given[client] for client in peers.alive})
            if victim is not None:
                peers.kill(victim)
            held = server.hold(slot, within_s=150.0, all_of=peers.alive)
            if held.certificate is None:
                raise SystemExit(f"slot {slot} was not decided: {held.reason}")
            return time.monotonic() - began

        elect()
        for victim in range(kills):
            times["quiet_s"].append(elect())
            times["killed_s"].append(elect(victim % clients))
            times["away_s"].append(elect())
            peers.start(victim % clients)
            waiting = set(config.neighbours[victim % clients])

            def back(client: int, notice: object, victim: int = victim % clients, waiting: set[int] = waiting) -> bool:
                if isinstance(notice, Link) and notice.up and notice.neighbour == victim:
                    waiting.discard(client)
                return not waiting

            if not peers.listen(back, 120.0):
                raise SystemExit(f"peer {victim % clients} did not come back")
            elect()  # it catches up
    return {"clients": clients, "kills": kills} | {name: statistics.median(found) for name, found in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="*", default=SIZES)
    parser.add_argument("--slots", type=int, default=10)
    parser.add_argument("--rule", default="bp-ucb", choices=("bp-ucb", "bp-gp"))
    parser.add_argument("--kills", type=int, default=0, help="measure only the cost of this many killed peers")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    options = parser.parse_args()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    cores = usable_cores()
    count = f"{options.kills} kills" if options.kills else f"{options.slots} slots"
    print(f"{platform.machine()}, {cores} cores, load {load:.1f} before the start; median of {count}")
    if options.kills:
        rows = []
        for clients in options.clients:
            with tempfile.TemporaryDirectory() as folder:
                rows.append(
                    measure_kills(Path(folder) / "fed", clients, options.kills) | {"cores": cores, "load": load}
                )
            quiet, killed, away = (f"{rows[-1][name]:.2f} s" for name in ("quiet_s", "killed_s", "away_s"))
            print(
                f"{clients} peers: {quiet} a slot, {killed} if one is killed in it, {away} while it is away", flush=True
            )
        _write(options.out, rows)
        return
    with tempfile.TemporaryDirectory() as folder:
        trip = round_trip_s(Path(folder) / "ping")
        print(f"round trip of {FRAME_BYTES} bytes between two processes: {1000 * trip:.2f} ms (median of {PINGS})\n")
        names = (
            "peers",
            "links up",
            "first cert.",
            "all have it",
            "rounds",
            "floor",
            "processor/cores",
            "messages",
            "kB",
        )
        print(" | ".join(f"{name:>11}" for name in names))
        rows = []
        for clients in options.clients:
            row = measure(Path(folder) / str(clients), clients, options.slots, options.rule)
            row |= {"floor_s": row["rounds"] * trip / 2, "round_trip_s": trip, "cores": cores, "load": load}
            rows.append(row)
            cells = (
                f"{clients}",
                f"{row['start_s']:.1f} s",
                f"{1000 * row['first_certificate_s']:.0f} ms",
                f"{1000 * row['all_certified_s']:.0f} ms",
                f"{row['rounds']:.0f}",
                f"{1000 * row['floor_s']:.1f} ms",
                f"{1000 * row['processor_s_per_slot'] / cores:.0f} ms",
                f"{row['messages_per_peer']:.0f}",
                f"{row['bytes_per_peer'] / 1000:.1f}",
            )
            print(" | ".join(f"{cell:>11}" for cell in cells), flush=True)
    _write(options.out, rows)


def _write(out: Path | None, rows: list[dict[str, float]]) -> None:
    if out is not None:
        out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
