"""Damage to a run's files is found, or does no harm; never is it believed."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sample_runs import sample_header, sample_records

from fedelect.atlas import load_atlas, shipped_atlases
from fedelect.errors import RunError
from fedelect.records import SlotRecord, follow_run, open_run, read_run, read_table, sorted_records
from fedelect.records.codec import decode_header
from fedelect.simulator import Plan, simulate, specify_selectors

HEADER = sample_header(clients=2, budget=1, slots=2, trials=1, groups={})
RECORDS = sample_records(HEADER)


def write(folder: Path, records: tuple[SlotRecord, ...] = RECORDS) -> bytes:
    """Write a run; return the content of slots.jsonl."""
    with open_run(folder, HEADER) as writer:
        writer.append(records)
    return (folder / "slots.jsonl").read_bytes()


def flips(text: bytes) -> list[bytes]:
    """`text` with one byte changed, for every byte: its lowest bit, its case, or a line feed in its place."""
    changed = [(place, byte ^ mask) for place, byte in enumerate(text) for mask in (0x01, 0x20)]
    changed += [(place, 0x0A) for place, byte in enumerate(text) if byte != 0x0A]
    return [text[:place] + bytes([byte]) + text[place + 1 :] for place, byte in changed]


def test_every_changed_byte_of_the_slots_is_found_but_for_the_last_line_feed(tmp_path: Path) -> None:
    whole = write(tmp_path, RECORDS[:2])
    file = tmp_path / "slots.jsonl"
    for number, damaged in enumerate(flips(whole)):
        file.write_bytes(damaged)
        if damaged[:-1] == whole[:-1]:  # a last line without its line feed is one that is still being written
            assert read_run(tmp_path).records == RECORDS[:1]
            continue
        with pytest.raises(RunError, match=r"line \d of .*slots\.jsonl is damaged: "):
            read_run(tmp_path)
        if number % 10 == 0:
            with pytest.raises(RunError, match=r"line \d of .*slots\.jsonl is damaged: "):
                open_run(tmp_path, HEADER)
            assert file.read_bytes() == damaged  # what is left is not touched


def test_every_changed_byte_of_the_header_is_found(tmp_path: Path) -> None:
    write(tmp_path)
    file = tmp_path / "run.json"
    for number, damaged in enumerate(flips(file.read_bytes())):
        with pytest.raises(RunError, match=r"run\.json (is damaged: |has schema version )"):
            decode_header(damaged, str(file))
        if number % 50 == 0:
            file.write_bytes(damaged)
            for attempt in (read_run, read_table, lambda folder: open_run(folder, HEADER)):
                with pytest.raises(RunError, match=r"run\.json (is damaged: |has schema version )"):
                    attempt(tmp_path)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda lines: lines[:1] + lines[2:], 2),  # missing
        (lambda lines: lines[1:], 1),
        (lambda lines: [lines[0], lines[2], lines[1], lines[3]], 2),  # swapped
        (lambda lines: [*lines[:2], lines[1], *lines[2:]], 3),  # repeated
        (lambda lines: [*lines, lines[-1]], 5),
        (lambda lines: [*lines[:2], b"\n", *lines[2:]], 3),  # empty
        (lambda lines: [*lines[:2], bytes(len(lines[2]) - 1) + b"\n", *lines[3:]], 3),  # zeros
    ],
)
def test_missing_moved_repeated_and_zeroed_lines_are_found(
    tmp_path: Path, change: Callable[[list[bytes]], list[bytes]], line: int
) -> None:
    lines = write(tmp_path).splitlines(keepends=True)
    (tmp_path / "slots.jsonl").write_bytes(b"".join(change(lines)))
    with pytest.raises(RunError, match=rf"line {line} of .*its checksum does not fit its content and the lines before"):
        read_run(tmp_path)


def test_lines_of_another_run_do_not_fit(tmp_path: Path) -> None:
    write(tmp_path / "one")
    other = msgspec.structs.replace(HEADER, seed=HEADER.seed + 1)
    with open_run(tmp_path / "two", other) as writer:
        writer.append(RECORDS)
    shutil.copy(tmp_path / "two" / "slots.jsonl", tmp_path / "one" / "slots.jsonl")
    with pytest.raises(RunError, match=r"line 1 of .*slots\.jsonl is damaged"):
        read_run(tmp_path / "one")


def test_lines_missing_at_the_end_are_a_run_that_has_not_got_further(tmp_path: Path) -> None:
    lines = write(tmp_path).splitlines(keepends=True)
    (tmp_path / "slots.jsonl").write_bytes(b"".join(lines[:3]))
    assert read_run(tmp_path).records == RECORDS[:3]
    with open_run(tmp_path, HEADER) as writer:
        assert writer.append(RECORDS) == 1
    assert (tmp_path / "slots.jsonl").read_bytes() == b"".join(lines)


def test_a_missing_file_of_slots_is_an_error_and_an_empty_one_is_a_run_that_begins(tmp_path: Path) -> None:
    open_run(tmp_path, HEADER).close()
    assert read_run(tmp_path).records == ()
    (tmp_path / "slots.jsonl").unlink()
    for attempt in (read_run, read_table, lambda folder: open_run(folder, HEADER)):
        with pytest.raises(RunError, match=r"slots\.jsonl is missing, and with it the records of the run; restore"):
            attempt(tmp_path)


def test_a_folder_left_between_its_two_files_is_started_afresh(tmp_path: Path) -> None:
    (tmp_path / "slots.jsonl").write_bytes(b"")
    write(tmp_path)
    assert read_run(tmp_path).records == RECORDS


def test_slots_without_a_header_are_not_taken_for_an_empty_folder(tmp_path: Path) -> None:
    whole = write(tmp_path)
    (tmp_path / "run.json").unlink()
    with pytest.raises(RunError, match=r"holds other files \(slots\.jsonl\) and no run\.json"):
        open_run(tmp_path, HEADER)
    assert (tmp_path / "slots.jsonl").read_bytes() == whole


def test_the_chain_goes_on_over_several_writers_and_a_longer_run(tmp_path: Path) -> None:
    longer = msgspec.structs.replace(HEADER, slots=4)
    records = sample_records(longer)
    write(tmp_path)
    follower = follow_run(tmp_path)
    assert tuple(follower.fresh()) == records[:4]
    identity = json.loads((tmp_path / "run.json").read_text())["run_id"]
    for part in (records[:6], records[:7], records):
        with open_run(tmp_path, longer, extend=True) as writer:
            writer.append(part)
    run = read_run(tmp_path)
    assert run.records == records and run.header.slots == 4
    assert json.loads((tmp_path / "run.json").read_text())["run_id"] == identity == follower.run_id
    with open_run(tmp_path / "once", longer) as writer:
        writer.append(records)
    once = (tmp_path / "once" / "slots.jsonl").read_text().splitlines()
    assert [json.loads(line)["checksum"] for line in once] != [
        json.loads(line)["checksum"] for line in (tmp_path / "slots.jsonl").read_text().splitlines()
    ]  # another header at its start, so another run


def test_a_record_compared_after_a_crash_is_verified_anew(tmp_path: Path) -> None:
    with open_run(tmp_path, HEADER) as writer:
        writer.append(RECORDS[:3])
        file = tmp_path / "slots.jsonl"
        text = file.read_bytes()
        for number in range(3):
            assert writer.append([RECORDS[number]]) == 0
        place = text.index(b'"reward":') + len(b'"reward":0.')
        file.write_bytes(text[:place] + (b"1" if text[place : place + 1] != b"1" else b"2") + text[place + 1 :])
        with pytest.raises(RunError, match=r"line 1 of .*slots\.jsonl is damaged"):
            writer.append([RECORDS[0]])
        file.write_bytes(text)
        assert writer.append(RECORDS) == 1
    assert read_run(tmp_path).records == RECORDS


def test_after_a_failed_batch_the_chain_goes_on_from_what_is_on_disk(tmp_path: Path) -> None:
    with open_run(tmp_path, HEADER) as writer:
        with pytest.raises(RunError, match="other values"):
            writer.append([RECORDS[0], RECORDS[1], msgspec.structs.replace(RECORDS[1], reward=0.75)])
        writer.append(RECORDS)
    assert read_run(tmp_path).records == RECORDS


class Stop(Exception):
    pass


PLAN = Plan(
    config=(ATLAS := load_atlas(shipped_atlases()["digits"])).config,
    framework="fa",
    selectors=specify_selectors(["quick-init-ucb", "random"]),
    slots=5,
    trials=2,
    seed=3,
)


def resume(folder: Path, *, stop_after: int | None = None) -> list[SlotRecord]:
    """Simulate in this process, with a checkpoint after each slot; the records at the end."""

    def progress(finished: int, total: int) -> None:
        if stop_after is not None and finished >= stop_after:
            raise Stop

    simulate(PLAN, ATLAS, folder, progress=progress, checkpoint_every_s=0.0, workers=1)
    run = read_run(folder)
    assert run.complete
    return sorted_records(run)


@pytest.fixture(scope="module")
def partial(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[SlotRecord]]:
    """A run stopped in its middle, and the records of one that was not."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.raises(Stop):
        resume(folder / "partial", stop_after=12)
    return folder, resume(folder / "whole")


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_damaged_partial_run_is_refused_or_ends_as_an_undamaged_one(
    partial: tuple[Path, list[SlotRecord]], data: st.DataObject
) -> None:
    folder, whole = partial
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder / "partial", copy)
    names = sorted(str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file() and path.name != "lock")
    assert len(names) == 4  # header, slots, two checkpoints
    file = copy / data.draw(st.sampled_from(names))
    text = bytearray(file.read_bytes())
    place = data.draw(st.integers(0, len(text) - 1))
    text[place] ^= data.draw(st.integers(1, 255))
    file.write_bytes(text)
    try:
        records = resume(copy)
    except RunError as error:
        assert re.search(r"damaged|schema version", str(error)) and str(file.name) in str(error)
        return
    assert records == whole
    assert file.name != "run.json"


def test_a_simulation_goes_on_when_the_damaged_line_and_all_after_it_are_deleted(
    partial: tuple[Path, list[SlotRecord]],
) -> None:
    folder, whole = partial
    copy = folder / "cut"
    shutil.copytree(folder / "partial", copy)
    file = copy / "slots.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:6], lines[6].replace(b"0", b"1"), *lines[7:]]))
    with pytest.raises(RunError, match=r"line 7 of .*delete this line and all after it and give the same command"):
        resume(copy)
    file.write_bytes(b"".join(lines[:6]))
    assert resume(copy) == whole
