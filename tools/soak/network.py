"""A network of this machine's own: a namespace for each peer, and two bridges that a partition is made of."""

import os
import shutil
import subprocess
from collections.abc import Iterable
from types import TracebackType
from typing import Self

LIMIT_S = 30.0


def missing_tools() -> str:
    """Say why there can be no such network here; empty if there can."""
    if os.name != "posix" or os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "ip is not installed (Debian: iproute2)"
    probe = f"fsoak{os.getpid()}"
    made = subprocess.run(("ip", "netns", "add", probe), capture_output=True, text=True, timeout=LIMIT_S)
    subprocess.run(("ip", "netns", "delete", probe), capture_output=True, timeout=LIMIT_S)
    return "" if made.returncode == 0 else f"no network namespaces: {made.stderr.strip()}"


def missing_loss() -> str:
    """Say why packets cannot be lost at random here; empty if they can."""
    return "" if shutil.which("nft") is not None else "nft is not installed (Debian: nftables)"


class Network:
    """Namespaces of peers; use it in a `with` statement, which takes them down.

    Args:
        clients: Number of peers.
    """

    def __init__(self, clients: int) -> None:
        base = f"fs{os.getpid()}"
        self._hub = f"{base}h"
        self._spaces = [f"{base}p{client}" for client in range(clients)]
        self.addresses = tuple(f"10.78.0.{client + 1}:7447" for client in range(clients))

    def __enter__(self) -> Self:
        try:
            self._build()
        except BaseException:
            self._take_down()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._take_down()

    def wrap(self, client: int) -> tuple[str, ...]:
        """Return what goes before a command to run it where this peer is."""
        return ("ip", "netns", "exec", self._spaces[client])

    def part(self, side: Iterable[int]) -> None:
        """Cut these peers off from the others; they still reach each other."""
        for client in side:
            self._in_hub("link", "set", f"v{client}", "master", "br1")

    def cut(self, clients: Iterable[int]) -> None:
        """Let no packet pass to or from these peers."""
        for client in clients:
            self._in_hub("link", "set", f"v{client}", "down")

    def lose(self, share: float) -> None:
        """Lose this share of all packets."""
        self._nft("add", "table", "bridge", "t")
        self._nft("add", "chain", "bridge", "t", "f", "{ type filter hook forward priority 0 ; }")
        self._nft(*f"add rule bridge t f numgen random mod 100 < {round(100 * share)} drop".split())

    def mend(self) -> None:
        """Undo all of it."""
        for client in range(len(self._spaces)):
            self._in_hub("link", "set", f"v{client}", "master", "br0")
            self._in_hub("link", "set", f"v{client}", "up")
        if not missing_loss():
            self._nft("add", "table", "bridge", "t")
            self._nft("delete", "table", "bridge", "t")

    def _build(self) -> None:
        for name in (self._hub, *self._spaces):
            _run("ip", "netns", "add", name)
        for bridge in ("br0", "br1"):
            self._in_hub("link", "add", bridge, "type", "bridge")
            self._in_hub("link", "set", bridge, "up")
        for client, name in enumerate(self._spaces):
            port = f"v{client}"
            _run("ip", "-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", self._hub)
            self._in_hub("link", "set", port, "master", "br0", "up")
            _run("ip", "-n", name, "address", "add", f"10.78.0.{client + 1}/24", "dev", "eth0")
            for device in ("eth0", "lo"):
                _run("ip", "-n", name, "link", "set", device, "up")

    def _take_down(self) -> None:
        for name in (*self._spaces, self._hub):
            subprocess.run(("ip", "netns", "delete", name), check=False, capture_output=True, timeout=LIMIT_S)

    def _in_hub(self, *words: str) -> None:
        _run("ip", "-n", self._hub, *words)

    def _nft(self, *words: str) -> None:
        _run("ip", "netns", "exec", self._hub, "nft", *words)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S)
