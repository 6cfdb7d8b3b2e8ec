"""What the checksums of a run's records cost: writing and reading a run with them and without, in turn.

    python -m benchmarks.checksums

Both ways run the same code on the same records; without checksums `zlib.crc32` and the comparison are left out, the
key `checksum` stays. Times are CPU seconds of this process, of the fastest of several repeats. The last column is
what `zlib.crc32` alone takes of the work without checksums: no format and no code around it can cost less.
"""

import argparse
import contextlib
import functools
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

from fedelect.records import (
    Provenance,
    RunHeader,
    SelectorEntry,
    SlotRecord,
    from_array,
    open_run,
    read_run,
    read_table,
)
from fedelect.records.checksum import TAIL_BYTES
from fedelect.seeds import stream

BATCH = 10
"""Records of a slot that are appended at once: two selectors, five trials."""


def make_header(clients: int, slots: int) -> RunHeader:
    """A run of two selectors and five trials."""
    return RunHeader(
        source="simulator",
        framework="fa",
        seed=1,
        clients=clients,
        budget=5,
        slots=slots,
        trials=5,
        selectors=tuple(SelectorEntry(label=label, kind="RandomCohort") for label in ("one", "two")),
        scenario={},
        provenance=Provenance(created="2025-01-31T12:00:00Z", command="", versions={}, platform=""),
    )


def make_records(header: RunHeader) -> list[SlotRecord]:
    """All records, slot by slot, with random opinions of all clients."""
    rng = stream(1, "checksums", header.clients)
    cohort = tuple(range(header.budget))
    return [
        SlotRecord(
            selector=label,
            trial=trial,
            slot=slot,
            status="done",
            cohort=cohort,
            arrivals=(15,) * len(cohort),
            rounds=15,
            empty_rounds=0,
            opinions=from_array(rng.random(header.clients)),
            reward=float(rng.random()),
            seconds=0.25,
        )
        for slot in range(1, header.slots + 1)
        for label in header.labels
        for trial in range(header.trials)
    ]


_ZEROS = b',"checksum":"00000000"}'


def _seal_nothing(record: bytes, before: int) -> tuple[bytes, int]:
    return record[:-1] + _ZEROS + b"\n", before


def _open_nothing(line: bytes, before: int) -> tuple[bytes, int]:
    return line[:-TAIL_BYTES] + b"}", before


@contextlib.contextmanager
def without_checksums() -> Iterator[None]:
    """Leave the checksums out, in writing and in reading."""
    with (
        mock.patch("fedelect.records.writer.seal_line", _seal_nothing),
        mock.patch("fedelect.records.reader.open_line", _open_nothing),
    ):
        yield


def write(folder: Path, header: RunHeader, records: list[SlotRecord]) -> None:
    """Write the run as the simulator does, a slot at a time."""
    with open_run(folder, header) as writer:
        for first in range(0, len(records), BATCH):
            writer.append(records[first : first + BATCH])


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    before = time.process_time()
    work()
    return time.process_time() - before


def crc_seconds(folder: Path, repeats: int) -> float:
    """CPU seconds that `zlib.crc32` takes over all lines of a run, of the fastest repeat."""
    lines = (folder / "slots.jsonl").read_bytes().splitlines()
    return min(seconds(lambda: [zlib.crc32(line) for line in lines]) for _ in range(repeats))


def compare(header: RunHeader, repeats: int, scratch: Path) -> dict[str, tuple[float, float, float]]:
    """What is done -> (microseconds a record with checksums, ratio of with to without, ratio of the CRC to without)."""
    records = make_records(header)
    jobs: dict[str, Callable[[Path], object]] = {
        "write": lambda folder: write(folder, header, records),
        "read_run": read_run,
        "read_table": read_table,
    }
    fastest = dict.fromkeys(((name, which) for name in jobs for which in ("with", "without")), float("inf"))
    for number in range(repeats):
        for name, job in jobs.items():
            for which in ("with", "without") * (1 if name == "write" else 5):
                with contextlib.nullcontext() if which == "with" else without_checksums():
                    taken = seconds(functools.partial(job, scratch / f"{which}-{number}"))
                fastest[name, which] = min(fastest[name, which], taken)
    crc = crc_seconds(scratch / "with-0", 5 * repeats)
    plain = {name: fastest[name, "without"] for name in jobs}
    return {
        name: (1e6 * fastest[name, "with"] / len(records), fastest[name, "with"] / plain[name], crc / plain[name])
        for name in jobs
    }


def main() -> None:
    """Print a line for each number of clients and each thing that is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slots", type=int, default=20, help="slots of the run; it has ten records for each")
    parser.add_argument("--repeats", type=int, default=60, help="of writing; reading is repeated five times as often")
    given = parser.parse_args()
    for clients in (20, 100, 1000):
        header = make_header(clients, max(2, given.slots * 20 // clients))
        with tempfile.TemporaryDirectory() as scratch:
            for name, (micro, ratio, crc) in compare(header, given.repeats, Path(scratch)).items():
                print(
                    f"N = {clients:5d}  {name:10s}  {micro:7.2f} us a record  {100 * (ratio - 1):+5.1f} %  "
                    f"CRC-32 alone {100 * crc:4.1f} %",
                    flush=True,
                )


if __name__ == "__main__":
    main()
