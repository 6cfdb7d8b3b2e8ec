"""GoalDirected of Flower's older API with its real engines: simulation, ServerApp, SecAgg+, start_server over gRPC."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.flower.engine_kit import by_slot

APP = Path(__file__).parent / "apps/legacy_app/app.py"
QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "RAY_USAGE_STATS_ENABLED": "0"}


def begin(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    """Start the app; its output goes to a file, its Flower home is its own."""
    name = "-".join(arguments[:2]).replace("/", "_")
    environment = {**os.environ, **QUIET, "FLWR_HOME": str(folder / f"{name}.home"), "OMP_NUM_THREADS": "1"}
    with open(folder / f"{name}.log", "w") as log:
        return subprocess.Popen(
            [sys.executable, str(APP), *arguments],
            env=environment,
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )


def finish(folder: Path, process: "subprocess.Popen[str]", *others: "subprocess.Popen[str]") -> str:
    """Wait for the end of the first process; return what all wrote."""
    try:
        ended = process.wait(timeout=240)
    finally:
        for one in (process, *others):
            one.kill()
            one.wait()
    said = "\n".join(log.read_text() for log in sorted(folder.glob("*.log"), key=lambda log: log.name))
    assert ended == 0, said
    return said


def own_address() -> str:
    """A loopback address that only this process uses, so that nobody takes the port before the server binds it."""
    high, low = divmod(os.getpid() % 2**16, 2**8)
    with socket.socket() as free:
        free.bind((f"127.77.{high}.{max(low, 1)}", 0))
        host, port = free.getsockname()
    return f"{host}:{port}"


def check(run: Path, said: str, *, updates_seen: list[int] | None = None, leaves: bool = False) -> None:
    """Four slots by three of five clients; client 3 fails when it is first elected, and is left out of the next.

    Args:
        run: The run folder.
        said: Output of the app.
        updates_seen: How many different updates the inner strategy was given; None for one of each member.
        leaves: Whether the failure ended the client's process.
    """
    records = by_slot(run)
    assert [record.status for record in records] == ["done"] * 4, said
    assert re.findall(r"^slot (\d+)$", said, re.MULTILINE) == ["1", "2", "3", "4"]
    first = next(record for record in records if 3 in record.cohort)
    assert first.failed == (3,) and records[first.slot].left_out == (() if leaves else (3,))
    assert 3 not in records[first.slot].cohort
    gains = [
        sum(0.1 + 0.01 * client for client in members) / len(members)
        for members in ([client for client in record.cohort if client != 3] for record in records)
    ]
    found = [record.mean_opinion for record in records]
    assert found == pytest.approx([sum(gains[: slot + 1]) for slot in range(4)], abs=2e-3)  # SecAgg+ rounds
    expected = [len(record.cohort) - (3 in record.cohort) for record in records]
    seen = [int(number) for number in re.findall(r"^different updates: (\d+)$", said, re.MULTILINE)]
    assert seen == (expected if updates_seen is None else updates_seen)


@pytest.mark.integration
@pytest.mark.parametrize("engine", ["simulation", "app"])
def test_the_elected_train_in_simulation(tmp_path: Path, engine: str) -> None:
    said = finish(tmp_path, begin(tmp_path, engine, "run"))
    check(tmp_path / "run", said)


@pytest.mark.integration
def test_secure_aggregation_shows_the_server_sums_of_updates_but_weights_and_metrics_as_they_are(
    tmp_path: Path,
) -> None:
    said = finish(tmp_path, begin(tmp_path, "secure", "run", "0.6"))
    check(tmp_path / "run", said, updates_seen=[1, 1, 1, 1])
    trained = [[client for client in record.cohort if client != 3] for record in by_slot(tmp_path / "run")]
    assert re.findall(r"^seen: (.*)$", said, re.MULTILINE) == [str([(10, one) for one in own]) for own in trained]


@pytest.mark.integration
def test_a_slot_in_which_secure_aggregation_breaks_off_is_abandoned_and_the_next_goes_on(tmp_path: Path) -> None:
    said = finish(tmp_path, begin(tmp_path, "secure", "run", "1.0"))
    records = by_slot(tmp_path / "run")
    broken = [3 in record.cohort for record in records]
    assert any(broken) and not all(broken)
    assert [record.status for record in records] == ["abandoned" if one else "done" for one in broken], said
    assert all(record.failed == (record.cohort if one else ()) for record, one in zip(records, broken, strict=True))


@pytest.mark.integration
def test_the_elected_train_with_a_server_and_clients_over_grpc(tmp_path: Path) -> None:
    address = own_address()
    server = begin(tmp_path, "server", "run", address)
    clients = [begin(tmp_path, "client", str(number), address) for number in range(5)]
    said = finish(tmp_path, server, *clients)
    check(tmp_path / "run", said, leaves=True)
    names = {name for record in by_slot(tmp_path / "run") for _, name in record.joined}
    assert names == {f"site-{number}" for number in range(5)}
