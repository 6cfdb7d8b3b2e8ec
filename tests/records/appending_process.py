"""A driver in a process of its own, for tests that kill it; its arguments are what to do and the run folder.

run     go on from the checkpoint to the last slot
stop    the same, but say so and wait for the end of the input once a slot, the third argument, is recorded
hold    open the run, say so, and wait for the end of the input
fork    the same, with a forked worker that outlives its parent
full    run with a limit on the size of files, lift it when the disk is "full", and go on
"""

import hashlib
import os
import sys
import time
from pathlib import Path

from tests.sample_runs import sample_header, sample_record

from fedelect.errors import RunError
from fedelect.records import RunHeader, RunWriter, SlotRecord, open_run

HEADER: RunHeader = sample_header(clients=20, slots=120, trials=4)
CHECKPOINT_EVERY = 7


def records_of(slot: int, state: bytes) -> list[SlotRecord]:
    """The slot's records; they depend on the state that only the checkpoint carries."""
    reward = int.from_bytes(state[:4], "big") / 2**32
    return [
        sample_record(HEADER, label, trial, slot, reward=reward, seconds=time.perf_counter())
        for label in HEADER.labels
        for trial in range(HEADER.trials)
    ]


def step(state: bytes) -> bytes:
    """The state after one more slot."""
    return hashlib.blake2b(state, digest_size=32).digest()


def undisturbed() -> list[SlotRecord]:
    """The records of a run that nobody kills."""
    state, records = b"start", []
    for slot in range(1, HEADER.slots + 1):
        state = step(state)
        records += records_of(slot, state)
    return records


def run(writer: RunWriter, stop_at: int | None = None) -> None:
    """Go on from the checkpoint to the last slot; wait for the end of the input after slot `stop_at`."""
    last, state = writer.load_checkpoint() or (0, b"start")
    for slot in range(last + 1, HEADER.slots + 1):
        state = step(state)
        writer.append(records_of(slot, state))
        if slot == stop_at:
            print(slot, flush=True)
            sys.stdin.buffer.read()
        if slot % CHECKPOINT_EVERY == 0:
            writer.save_checkpoint(slot, state)


def run_on_a_full_disk(folder: Path) -> None:
    """Run until files may not grow any more, then lift the limit and go on with the same writer."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, most))
    with open_run(folder, HEADER) as writer:
        try:
            run(writer)
        except RunError as error:
            print(error, flush=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        run(writer)


def fork_a_worker() -> None:
    """Fork a process that waits for the end of the input; return when it is under way."""
    ready, begun = os.pipe()
    if os.fork() == 0:
        os.write(begun, b"!")
        sys.stdin.buffer.read()
        os._exit(0)
    os.read(ready, 1)


def main(what: str, folder: Path, slot: str = "") -> None:
    """Do what the module says."""
    if what == "full":
        run_on_a_full_disk(folder)
        return
    with open_run(folder, HEADER) as writer:
        if what in ("run", "stop"):
            run(writer, int(slot) if slot else None)
            return
        if what == "fork":
            fork_a_worker()
        print(os.getpid(), flush=True)
        sys.stdin.buffer.read()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
