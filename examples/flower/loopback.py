"""Flower on this machine alone: a SuperLink, SuperNodes, keys and certificates, all of them ended by their pid.

Nothing is fetched and nothing is sent out. Also what the integration tests of fedelect are driven by.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

OFFLINE = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
CONNECTION = "loopback"


class Loopback:
    """A Flower federation on 127.0.0.1, with or without TLS and node authentication; use it in a `with` statement.

    Args:
        folder: Where keys, logs and Flower's own files go; better empty.
        simulation: Whether the SuperLink simulates the nodes (Ray), or waits for SuperNodes.
        tls: Whether to use TLS and let in only nodes whose key is registered.
    """

    def __init__(self, folder: Path, *, simulation: bool, tls: bool = False) -> None:
        self.folder = folder
        self.simulation = simulation
        self.tls = tls
        self._held = contextlib.ExitStack()
        self.port = hold_port(self._held)
        self.superlink: subprocess.Popen[bytes] | None = None
        self.nodes: dict[int, subprocess.Popen[bytes]] = {}
        self._keys: set[int] = set()
        # Flower starts its other commands by name, so they must be on the path.
        path = f"{Path(tool('flwr')).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        self._environment = os.environ | OFFLINE | {"FLWR_HOME": str(folder / "home"), "PATH": path}
        for name in ("home", "logs", "keys"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> "Loopback":
        try:
            self._start_superlink()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start_node(
        self, number: int, count: int, *, name: str = "", config: Mapping[str, object] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start SuperNode `number` of `count`; the first time its key is made and registered.

        It is called `name`, by default client-`number`. `config` is added to its node config.
        """
        options = ["--insecure"]
        settings = {"partition-id": number, "num-partitions": count} | dict(config or {})
        if self.tls:
            key = self.folder / "keys" / f"node{number}"
            if number not in self._keys:
                self._keys.add(number)
                self._run("ssh-keygen", "-q", "-t", "ecdsa", "-b", "384", "-N", "", "-C", "", "-f", str(key))
                self.flwr("supernode", "register", f"{key}.pub", CONNECTION, "--name", name or f"client-{number}")
            options = ["--root-certificates", str(self._ca), "--auth-supernode-private-key", str(key)]
        self.nodes[number] = self._start(
            f"node{number}",
            *(tool("flower-supernode"), *options, "--superlink", f"127.0.0.1:{self.port}", "--host", "127.0.0.1"),
            *("--port", str(hold_port(self._held)), "--node-config", as_settings(settings)),
        )
        return self.nodes[number]

    def run(self, app: Path, config: dict[str, object], *, nodes: int = 0) -> int:
        """Submit an app; returns the id of its run. `nodes` is how many a simulation has."""
        extra = []
        if self.simulation:
            cores = os.cpu_count() or 1
            extra = [
                "--federation-config",
                f"num-supernodes={nodes} client-resources-num-cpus=1 init-args-num-cpus={cores}",
            ]
        text = self.flwr("run", str(app), CONNECTION, "-c", as_settings(config), *extra, "--format", "json")
        return int(json.loads(text)["run-id"])

    def status(self, run: int) -> str:
        """What Flower says of a run, such as "finished:completed"; "unknown" if it cannot say. Do not ask often."""
        answer = json.loads(self.flwr("list", CONNECTION, "--run-id", str(run), "--format", "json"))
        return (
            str(answer["runs"][0]["status"]) if "runs" in answer else "unknown"
        )  # a busy machine answers with an error

    def wait(self, run: int, *, deadline_s: float, every_s: float = 10.0) -> str:
        """The status in which a run ended; TimeoutError if it has not by then. Each look costs a second of CPU."""
        until = time.monotonic() + deadline_s
        while not (status := self.status(run)).startswith("finished"):
            if time.monotonic() > until:
                raise TimeoutError(f"run {run} is {status} after {deadline_s:g} s; logs: {self.folder / 'logs'}")
            time.sleep(every_s)
        return status

    def log(self, run: int) -> str:
        """What a run has logged so far."""
        return self.flwr("log", str(run), CONNECTION, "--show")

    def flwr(self, *arguments: str) -> str:
        """The output of one `flwr` command; RuntimeError if it fails."""
        return self._run(tool("flwr"), *arguments)

    def kill_node(self, number: int) -> None:
        """Kill a SuperNode and what it started, as a power cut would."""
        process = self.nodes.pop(number)
        for pid in (process.pid, *descendants(process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()

    def stop_node(self, number: int) -> None:
        """End a SuperNode politely."""
        process = self.nodes.pop(number)
        process.terminate()
        process.wait(timeout=60)

    def close(self) -> None:
        """End every process that was started here, and what they started, by pid."""
        processes = [*self.nodes.values(), *([self.superlink] if self.superlink else [])]
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        end_all(family(self.folder / "home"))
        self._held.close()

    def _start_superlink(self) -> None:
        options = ["--insecure"]
        address = f'address = "127.0.0.1:{self.port}"\n'
        if self.tls:
            self._make_certificates()
            options = ["--ssl-ca-certfile", str(self._ca), "--ssl-certfile", str(self._ca.with_name("server.pem"))]
            options += ["--ssl-keyfile", str(self._ca.with_name("server.key")), "--enable-supernode-auth"]
            address += f'root-certificates = "{self._ca}"\n'
        else:
            address += "insecure = true\n"
        config = f'[superlink]\ndefault = "{CONNECTION}"\n[superlink.{CONNECTION}]\n{address}'
        (self.folder / "home" / "config.toml").write_text(config)
        self.superlink = self._start(
            "superlink",
            *(tool("flower-superlink"), *options, *(["--simulation"] if self.simulation else [])),
            *("--disable-runtime-dependency-installation", "--host", "127.0.0.1", "--port", str(self.port)),
        )
        self._wait_until_healthy()

    def _wait_until_healthy(self, deadline_s: float = 60.0) -> None:
        context = ssl.create_default_context(cafile=str(self._ca)) if self.tls else None
        address = f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}/health"
        until = time.monotonic() + deadline_s
        while True:
            try:
                with urllib.request.urlopen(address, timeout=5, context=context):
                    return
            except OSError as error:
                assert self.superlink is not None
                if self.superlink.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"the SuperLink does not answer; see {self.folder / 'logs'}") from error
                time.sleep(0.2)

    @property
    def _ca(self) -> Path:
        return self.folder / "keys" / "ca.crt"

    def _make_certificates(self) -> None:
        keys = self.folder / "keys"
        request = ("openssl", "req", "-newkey", "rsa:2048", "-nodes")
        authority = ("-subj", "/CN=loopback authority", "-addext", "basicConstraints=critical,CA:TRUE")
        usage = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
        self._run(
            *request, "-x509", "-days", "2", "-keyout", str(keys / "ca.key"), "-out", str(self._ca), *authority, *usage
        )
        self._run(
            *request, "-keyout", str(keys / "server.key"), "-out", str(keys / "server.csr"), "-subj", "/CN=localhost"
        )
        extensions = keys / "extensions.cnf"
        extensions.write_text(
            "subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n"
        )
        signing = ("openssl", "x509", "-req", "-in", str(keys / "server.csr"), "-CA", str(self._ca), "-CAcreateserial")
        output = ("-CAkey", str(keys / "ca.key"), "-days", "2", "-extfile", str(extensions))
        self._run(*signing, *output, "-out", str(keys / "server.pem"))

    def _start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        with open(self.folder / "logs" / f"{name}.log", "ab") as log:
            return subprocess.Popen(
                command, cwd=self.folder, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self._environment, capture_output=True, text=True, timeout=600
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command[:3])} failed: {(done.stderr or done.stdout).strip()[-800:]}")
        return done.stdout


def as_settings(values: Mapping[str, object]) -> str:
    """Settings as Flower's commands take them."""
    return " ".join(f"{key}={json.dumps(value)}" for key, value in values.items())


def tool(name: str) -> str:
    """The path of one of Flower's commands in this Python's environment."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        raise RuntimeError(f"{name} is not installed; run: pip install 'fedelect[flower]' 'flwr[simulation]'")
    return found


def hold_port(until: contextlib.ExitStack) -> int:
    """A port of 127.0.0.1 for a server that reuses addresses; it is bound here, and so given to nobody else."""
    probe = until.enter_context(socket.socket())
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        probe.setsockopt(socket.SOL_SOCKET, option, 1)
    probe.bind(("127.0.0.1", 0))
    return int(probe.getsockname()[1])


def descendants(pid: int) -> list[int]:
    """The processes that a process started, and theirs (Linux)."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, todo = [], [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def command_of(pid: int) -> str:
    """The command line of a process; "" if it is gone (Linux)."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def family(home: Path) -> set[int]:
    """The processes that run with this FLWR_HOME: they inherit it, so they are ours even if their parent is gone."""
    mark = f"FLWR_HOME={home}".encode()
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.add(int(entry.name))
    return found


def end_all(pids: set[int], patience_s: float = 5.0) -> None:
    """End processes of ours that are still there, politely at first."""
    alive = {pid for pid in pids if command_of(pid)}
    for signal_ in (signal.SIGTERM, signal.SIGKILL):
        until = time.monotonic() + patience_s
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal_)
        while (alive := {pid for pid in alive if command_of(pid)}) and time.monotonic() < until:
            time.sleep(0.1)
