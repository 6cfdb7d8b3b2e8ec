"""The commands about real peers."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fedelect import load_scenario
from fedelect.cli import main
from fedelect.cli.peers.init import resize
from fedelect.datasets import load_dataset
from fedelect.records import read_run, sorted_records
from fedelect.runtime.control import ControlClient
from fedelect.runtime.host_messages import Stop
from fedelect.runtime.identity import CERTIFICATE_NAME, SIGNING_KEY_NAME, read_identity
from fedelect.runtime.launch import reserve_addresses
from fedelect.runtime.roster import read_roster
from fedelect.simulator import Plan, simulate, specify_selectors
from fedelect.testing.chaos import ChaosPlan, ChaosResult, run_chaos

Fedelect = Callable[..., tuple[int, str, str]]


@pytest.fixture
def fedelect(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Fedelect:
    """Run a command in an empty folder; returns (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # this process keeps its own handlers
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fedelect", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err

    return run


def test_init_writes_folders_that_their_peers_can_use_and_never_over_others(fedelect: Fedelect, tmp_path: Path) -> None:
    (tmp_path / "hosts.txt").write_text("10.0.0.1:7447\nalpha.example:7447\n\n10.0.0.3:7447\n")
    code, out, _ = fedelect("peers", "init", "--clients", "3", "--hosts", "hosts.txt", "--out", "fed")
    assert code == 0 and "3 peers" in out and "2 signatures make a certificate" in out
    identity = read_identity(tmp_path / "fed" / "peer01")
    assert identity.roster.members[1].address == "alpha.example:7447"
    assert identity.config.digest.hex() in out
    assert identity.config.settings.rule == "bp-gp" and "believes" not in out
    code, _, err = fedelect("peers", "init", "--clients", "3", "--out", "fed")
    assert code == 1 and "not empty" in err
    code, out, _ = fedelect("peers", "init", "--clients", "3", "--rule", "bp-ucb", "--out", "by-index")
    assert code == 0 and "bp-ucb believes what clients claim of themselves" in out
    assert read_identity(tmp_path / "by-index" / "peer02").config.settings.rule == "bp-ucb"
    assert "rule must be one of" in fedelect("peers", "init", "--clients", "3", "--rule", "x", "--out", "none")[2]
    code, _, err = fedelect("peers", "init", "--clients", "1000000", "--out", "other")
    assert code == 1 and "1000000 peers on one machine: ports suffice for 58089; give --hosts" in err
    (tmp_path / "wrong.txt").write_text("a:1\nb:65536\n")
    code, _, err = fedelect("peers", "init", "--clients", "2", "--hosts", "wrong.txt", "--out", "other")
    assert code == 1 and "must hold HOST:PORT for each of 2 clients, got 'b:65536'" in err
    code, _, err = fedelect("peers", "init", "--clients", "4", "--hosts", "hosts.txt", "--out", "other")
    assert code == 1 and "each of 4 clients, got 3 lines" in err


@pytest.mark.integration
def test_a_peer_that_stays_outlives_the_reader_of_its_notices(fedelect: Fedelect, tmp_path: Path, hosts: str) -> None:
    assert fedelect("peers", "init", "--clients", "3", "--hosts", hosts, "--out", "fed")[0] == 0
    folder = tmp_path / "fed" / "peer00"
    command = [sys.executable, "-m", "fedelect", "peer", str(folder), "--control", "--stay", "--missing-after", "0.1"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.readline()  # who is missing
            process.stdout.close()
            for _ in range(3):
                with ControlClient(folder) as peer:
                    assert not peer.elect(1, judged=0, opinion=None, within_s=0.5).decided
            with ControlClient(folder) as peer:
                peer.tell(Stop())
            assert process.wait(60.0) == 0 and process.stderr is not None and process.stderr.read() == b""
        finally:
            process.kill()


@pytest.mark.integration
def test_a_peer_that_is_told_to_stop_while_its_input_is_open_ends_without_complaint(
    fedelect: Fedelect, tmp_path: Path, hosts: str
) -> None:
    assert fedelect("peers", "init", "--clients", "3", "--hosts", hosts, "--out", "fed")[0] == 0
    command = [sys.executable, "-m", "fedelect", "peer", "fed/peer00", "--control", "--missing-after", "0.1"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            assert process.stdout is not None and process.stdout.readline()  # who is missing
            with ControlClient(tmp_path / "fed" / "peer00") as peer:
                peer.tell(Stop())
            assert process.wait(60.0) == 0 and process.stderr is not None and process.stderr.read() == b""
        finally:
            process.kill()


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[str]:
    """A file for `--hosts` with three addresses of this machine that are held for these peers."""
    with reserve_addresses(3) as addresses:
        path = tmp_path / "free.txt"
        path.write_text("\n".join(addresses) + "\n")
        yield str(path)


def test_clients_bring_their_own_keys_to_init(fedelect: Fedelect, tmp_path: Path) -> None:
    keys = []
    for client in range(3):
        code, out, _ = fedelect("peers", "key", f"mine{client}")
        assert code == 0 and out.startswith("ed25519:") and len(out.strip()) == 8 + 64
        keys.append(out.strip())
    (tmp_path / "keys.txt").write_text("\n".join(keys) + "\n")
    code, out, _ = fedelect("peers", "init", "--clients", "3", "--keys", "keys.txt", "--out", "fed")
    assert code == 0 and "beside its own signing.key" in out
    assert [member.key for member in read_roster(tmp_path / "fed" / "server").members] == [
        one.removeprefix("ed25519:") for one in keys
    ]
    assert not list((tmp_path / "fed").rglob(SIGNING_KEY_NAME))
    secret = (tmp_path / "mine1" / SIGNING_KEY_NAME).read_text().strip()
    (tmp_path / "keys.txt").write_text("\n".join((keys[0], secret, keys[2])) + "\n")
    code, _, err = fedelect("peers", "init", "--clients", "3", "--keys", "keys.txt", "--out", "other")
    assert code == 1 and "key 2 in keys.txt does not begin with 'ed25519:'" in err and secret not in err
    assert not (tmp_path / "other").exists()
    (tmp_path / "keys.txt").write_text("ed25519:not a key\n" * 3)
    code, _, err = fedelect("peers", "init", "--clients", "3", "--keys", "keys.txt", "--out", "other")
    assert code == 1 and "must hold public keys in hexadecimal" in err


def test_renew_gives_a_new_certificate_and_says_so_if_the_ca_is_another(fedelect: Fedelect, tmp_path: Path) -> None:
    for name in ("fed", "other"):
        assert fedelect("peers", "init", "--clients", "3", "--out", name)[0] == 0
    before = (tmp_path / "fed" / "peer01" / CERTIFICATE_NAME).read_bytes()
    code, _, err = fedelect("peers", "renew", "peer01", "--folder", "fed/peer01", "--ca", "other/ca")
    assert code == 1 and "another CA" in err
    code, _, err = fedelect("peers", "renew", "peer00", "--folder", "fed/peer01", "--ca", "fed/ca")
    assert code == 1 and "is of 'peer01', not of 'peer00'" in err
    assert (tmp_path / "fed" / "peer01" / CERTIFICATE_NAME).read_bytes() == before
    code, out, _ = fedelect("peers", "renew", "peer01", "--folder", "fed/peer01", "--ca", "fed/ca")
    assert code == 0 and "peer01, listening on 127.0.0.1" in out and "good until" in out
    assert (tmp_path / "fed" / "peer01" / CERTIFICATE_NAME).read_bytes() != before
    assert read_identity(tmp_path / "fed" / "peer01").client == 1


def test_folders_that_cannot_be_used_are_named_with_what_to_do(fedelect: Fedelect, tmp_path: Path) -> None:
    (tmp_path / "afile").write_text("in the way")
    code, _, err = fedelect("peers", "key", "afile")
    assert code == 1 and "cannot write afile/signing.key: " in err and "name a folder" in err
    code, _, err = fedelect("peers", "key", "afile/below")
    assert code == 1 and "cannot write afile/below/signing.key: " in err
    assert fedelect("peers", "init", "--clients", "3", "--out", "fed")[0] == 0
    for wrong in ("nowhere", "fed/server"):
        code, _, err = fedelect("peers", "renew", "peer01", "--folder", "fed/peer01", "--ca", wrong)
        assert code == 1 and f"{wrong} has no ca.pem and no ca.key; name the folder `ca`" in err


def test_a_chaos_run_that_broke_a_promise_comes_with_the_whole_command_that_repeats_it(
    fedelect: Fedelect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaking(seed: int, plan: ChaosPlan) -> ChaosResult:
        return dataclasses.replace(run_chaos(seed, plan), split=1)

    monkeypatch.setattr(sys.modules["fedelect.cli.peers.chaos"], "run_chaos", breaking)
    options = ["--clients", "4", "--slots", "2", "--max-faulty", "0", "--rule", "bp-gp", "--byzantine", "0", "--calm"]
    code, out, _ = fedelect("chaos", "--seeds", "3:5", *options)
    assert code == 1 and "seed 4: 1 slot split" in out
    assert f"2 runs violated a guarantee; `fedelect chaos --seeds SEED {' '.join(options)}` repeats one" in out


def test_a_peer_does_not_start_without_tls_or_with_a_key_that_is_not_in_the_roster(
    fedelect: Fedelect, tmp_path: Path
) -> None:
    assert fedelect("peers", "init", "--clients", "3", "--out", "fed")[0] == 0
    (tmp_path / "fed" / "peer00" / "ca.pem").unlink()
    (tmp_path / "fed" / "peer01" / SIGNING_KEY_NAME).write_text("ab" * 32)
    code, out, err = fedelect("peer", "fed/peer00")
    assert (code, out) == (1, "") and "ca.pem" in err
    code, out, err = fedelect("peer", "fed/peer01")
    assert (code, out) == (1, "") and "not in the roster" in err


@pytest.mark.integration
def test_a_lone_peer_names_its_missing_neighbours_and_ends_with_its_input(
    fedelect: Fedelect, tmp_path: Path, hosts: str
) -> None:
    assert fedelect("peers", "init", "--clients", "3", "--hosts", hosts, "--out", "fed")[0] == 0
    second = read_roster(tmp_path / "fed" / "server").members[1]
    command = [sys.executable, "-m", "fedelect", "peer", "fed/peer00", "--missing-after", "0.5"]
    peer = subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert peer.stdout is not None
        notice = json.loads(peer.stdout.readline())
        assert notice["type"] == "missing" and notice["neighbours"] == [1, 2]
        assert f"peer01 at {second.address}" in notice["text"]
        peer.communicate(timeout=120.0)
        assert peer.returncode == 0
    finally:
        peer.kill()
        peer.wait(10.0)


@pytest.mark.integration
@pytest.mark.parametrize("rule", ["bp-ucb", "bp-gp"])
def test_the_demo_ends_with_the_simulators_records_a_report_and_no_process(tmp_path: Path, rule: str) -> None:
    sizes = ["--clients", "6", "--slots", "5"]
    command = [sys.executable, "-m", "fedelect", "peers", "demo", *sizes, "--rule", rule, "--out", "d"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240.0)
    code, out, err = done.returncode, done.stdout, done.stderr
    assert code == 0, err
    assert "open the report" in out and (tmp_path / "d" / "report.html").stat().st_size > 10_000
    assert "from the peers' folders after the end" in (tmp_path / "d" / "README.md").read_text()
    run = read_run(tmp_path / "d" / "run")
    assert run.header.source == "peers"
    config = resize(load_scenario("digits"), 6, None)
    plan = Plan(config=config, framework="da", selectors=specify_selectors([rule]), slots=5, trials=1, seed=1)
    simulate(plan, load_dataset("digits"), tmp_path / "simulated", workers=1)
    simulated = sorted_records(read_run(tmp_path / "simulated"))
    for real, dense in zip(sorted_records(run), simulated, strict=True):
        assert (real.cohort, real.opinions, real.arrivals) == (dense.cohort, dense.opinions, dense.arrivals)
        assert (real.beliefs, real.indices) == (dense.beliefs, dense.indices)
    assert not left_running(tmp_path)


@pytest.mark.integration
def test_an_interrupted_demo_leaves_no_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fedelect", "peers", "demo", "--clients", "4", "--slots", "500", "--out", "d"]
    demo = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    models = tmp_path / "d" / "models"
    try:
        until = time.monotonic() + 600.0
        while not (models.is_dir() and any(models.iterdir())):  # the first slot's model
            assert demo.poll() is None and time.monotonic() < until
            time.sleep(0.05)
        demo.send_signal(signal.SIGINT)
        said, _ = demo.communicate(timeout=240.0)
        assert demo.returncode == 130 and "no peer is left running" in said
    finally:
        demo.kill()
        demo.wait(10.0)
    assert not left_running(tmp_path)


def left_running(folder: Path) -> list[int]:
    """Process numbers of peers that were started from this folder; Linux only."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_bytes().split(b"\0")
                where = os.readlink(entry / "cwd")
            except OSError:
                continue
            if str(folder) in where and any(b"fedelect.runtime.process" in word for word in command):
                found.append(int(entry.name))
    return found
