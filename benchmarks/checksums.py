"""What the checksums of a run's records cost: writing and reading a run with them and without, in turn.

    python -m benchmarks.checksums

Both ways run the same code on the same records; without checksums `zlib.crc32` and the comparison are left out, the
key `checksum` stays. Times are CPU seconds of this process; the ratio is the median over pairs of neighbours.
"""

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

from fedelect.records import Provenance, RunHeader, SelectorEntry, SlotRecord, from_array, open_run, read_run, read_table
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


def _open_nothing(line: bytearray, before: int) -> int:
    del line[-TAIL_BYTES:]
    line += b"}"
    return before


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


def compare(header: RunHeader, repeats: int, scratch: Path) -> dict[str, tuple[float, float]]:
    """What is done -> (microseconds a record with checksums, ratio of with to without)."""
    records = make_records(header)
    times: dict[str, list[tuple[float, float]]] = {"write": [], "read_run": [], "read_table": []}
    for number in range(repeats):
        sealed, bare = scratch / f"sealed-{number}", scratch / f"bare-{number}"
        pairs = {
            "write": (lambda: write(sealed, header, records), lambda: write(bare, header, records)),
            "read_run": (lambda: read_run(sealed), lambda: read_run(bare)),
            "read_table": (lambda: read_table(sealed), lambda: read_table(bare)),
        }
        for name, (with_sums, without) in pairs.items():
            order = ("with", "without") if number % 2 else ("without", "with")
            found = {}
            for which in order:
                with contextlib.nullcontext() if which == "with" else without_checksums():
                    found[which] = seconds(with_sums if which == "with" else without)
            times[name].append((found["with"], found["without"]))
    return {
        name: (
            1e6 * min(one for one, _ in pairs) / len(records),
            statistics.median(one / other for one, other in pairs),
        )
        for name, pairs in times.items()
    }


def main() -> None:
    """Print a line for each number of clients and each thing that is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slots", type=int, default=200, help="slots of the run; it has ten records for each")
    parser.add_argument("--repeats", type=int, default=21)
    given = parser.parse_args()
    for clients in (20, 100, 1000):
        header = make_header(clients, max(1, given.slots * 20 // max(clients, 20)))
        with tempfile.TemporaryDirectory() as scratch:
            for name, (micro, ratio) in compare(header, given.repeats, Path(scratch)).items():
                print(f"N = {clients:5d}  {name:10s}  {micro:7.2f} us a record  {100 * (ratio - 1):+5.1f} %", flush=True)


if __name__ == "__main__":
    main()
