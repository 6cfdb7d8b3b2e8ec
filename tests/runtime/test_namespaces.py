"""Real peers on a real network of this machine: a network namespace each, a bridge, and rules that cut and lose."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtime.federation_kit import dense_cohorts, hold_all, make_federation, opinions_of, place

from fedelect.runtime.host_messages import Agreed, Link, Notice, Skipped
from fedelect.runtime.launch import PeerProcesses, ProcessEnded
from fedelect.runtime.server import DirectElections, ElectionServer
from fedelect.runtime.signing import Ed25519Verifier

pytestmark = pytest.mark.integration

CLIENTS = 5
START_S = 120.0


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=30.0)


class Lab:
    """A bridge in a namespace of its own, and one namespace for each peer; all are taken down at the end."""

    def __init__(self) -> None:
        self._base = f"fe{os.getpid()}"
        self.bridge = f"{self._base}b"
        self.spaces = [f"{self._base}p{client}" for client in range(CLIENTS)]
        self.addresses = tuple(f"10.77.0.{client + 1}:7447" for client in range(CLIENTS))

    def build(self) -> None:
        for name in (self.bridge, *self.spaces):
            run("ip", "netns", "add", name)
        run("ip", "-n", self.bridge, "link", "add", "br0", "type", "bridge")
        run("ip", "-n", self.bridge, "link", "set", "br0", "up")
        for client, name in enumerate(self.spaces):
            port = f"v{client}"
            run("ip", "-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", self.bridge)
            run("ip", "-n", self.bridge, "link", "set", port, "master", "br0", "up")
            run("ip", "-n", name, "address", "add", f"10.77.0.{client + 1}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            run("ip", "-n", name, "link", "set", "lo", "up")

    def rules(self, *rules: str) -> None:
        """Rules for whatever passes the bridge, in place of those before."""
        self.nft("add", "table", "bridge", "t")
        self.nft("delete", "table", "bridge", "t")
        self.nft("add", "table", "bridge", "t")
        self.nft("add", "chain", "bridge", "t", "f", "{ type filter hook forward priority 0 ; }")
        for rule in rules:
            self.nft("add", "rule", "bridge", "t", "f", *rule.split())

    def nft(self, *words: str) -> None:
        run("ip", "netns", "exec", self.bridge, "nft", *words)

    def dropped(self) -> int:
        """How many packets the rule with a counter has dropped."""
        command = ("ip", "netns", "exec", self.bridge, "nft", "list", "table", "bridge", "t")
        told = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30.0).stdout.split()
        return int(told[told.index("packets") + 1])

    def wrap(self, client: int) -> tuple[str, ...]:
        return ("ip", "netns", "exec", self.spaces[client])

    def take_down(self) -> None:
        for name in (*self.spaces, self.bridge):
            subprocess.run(("ip", "netns", "delete", name), check=False, capture_output=True, timeout=30.0)


@pytest.fixture
def lab() -> Iterator[Lab]:
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    for tool in ("ip", "nft"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed (Debian: iproute2, nftables)")
    made = Lab()
    try:
        try:
            made.build()
            made.rules("numgen random mod 100 < 0 drop")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"this kernel or container lacks network namespaces, bridges or nft: {error.stderr.strip()}")
        made.rules()
        yield made
    finally:
        made.take_down()


def test_in_a_partition_only_the_majority_elects_and_after_it_all_go_on_together(lab: Lab, tmp_path: Path) -> None:
    roster, folders = make_federation(
        tmp_path / "fed", place(), at=lab.addresses, max_faulty=1, resend_s=0.3, silent_intervals=5, slot_s=20.0
    )
    heard: list[tuple[int, Notice | ProcessEnded]] = []
    with PeerProcesses(folders, {client: lab.wrap(client) for client in folders}) as peers:
        peers.start_all(START_S)
        server = DirectElections(
            peers, ElectionServer(roster.config(), Ed25519Verifier()), lambda *said: heard.append(said)
        )
        hold_all(server, place(), 2)
        lab.rules(*(f"{way} drop" for way in crossing({0, 1}, {2, 3, 4})))
        server.begin_with(3, judged=2, opinions=opinions_of(2, CLIENTS))
        held = server.hold(3, within_s=60.0, all_of=frozenset({2, 3, 4}))
        assert held.certificate is not None and {signer for signer, _ in held.certificate.signatures} == {2, 3, 4}
        assert peers.listen(lambda client, notice: _noted(heard, client, notice) and {0, 1} <= gave_up(heard, 3), 60.0)
        assert not [client for client, notice in heard if client in (0, 1) and _agreed(notice, 3)]
        lab.rules()
        waiting = {(client, other) for client in (0, 1) for other in (2, 3, 4)}

        def healed(client: int, notice: Notice | ProcessEnded) -> bool:
            if isinstance(notice, Link) and notice.up:
                waiting.discard((client, notice.neighbour))
            return not waiting

        assert peers.listen(healed, 60.0), f"links that did not come back: {waiting}"
        hold_all(server, place(), 2, first=4, within_s=60.0)
    assert [one.slot for one in server.chain.certificates] == [1, 2, 3, 4, 5]


def _noted(heard: list[tuple[int, Notice | ProcessEnded]], client: int, notice: Notice | ProcessEnded) -> bool:
    heard.append((client, notice))
    return True


def _agreed(notice: Notice | ProcessEnded, slot: int) -> bool:
    return isinstance(notice, Agreed) and notice.slot == slot


def gave_up(heard: list[tuple[int, Notice | ProcessEnded]], slot: int) -> set[int]:
    return {client for client, notice in heard if isinstance(notice, Skipped) and notice.slot == slot}


def crossing(one: set[int], other: set[int]) -> list[str]:
    pairs = [(a, b) for a in sorted(one) for b in sorted(other)]
    return [f"iifname v{a} oifname v{b}" for pair in pairs for a, b in (pair, pair[::-1])]


def test_one_packet_in_ten_lost_costs_time_and_changes_nothing(lab: Lab, tmp_path: Path) -> None:
    roster, folders = make_federation(
        tmp_path / "fed", place(), at=lab.addresses, resend_s=3.0, silent_intervals=30, slot_s=90.0
    )  # TCP can stall for longer than a link's lease; for two resend intervals a link that is down is still waited for
    with PeerProcesses(folders, {client: lab.wrap(client) for client in folders}) as peers:
        peers.start_all(START_S)
        lab.rules("numgen random mod 100 < 10 counter drop")
        server = DirectElections(peers, ElectionServer(roster.config(), Ed25519Verifier()))
        began = time.monotonic()
        cohorts = hold_all(server, place(), 4, within_s=120.0)
        print(f"4 slots in {time.monotonic() - began:.1f} s, {lab.dropped()} packets lost")
        assert lab.dropped() > 0
    assert cohorts == [cohort for cohort, _ in dense_cohorts(place(), 4)]
