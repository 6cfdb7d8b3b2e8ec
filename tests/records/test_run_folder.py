import json
import re
from pathlib import Path

import msgspec
import pytest
from tests.sample_runs import sample_header, sample_record, sample_records

from fedelect.errors import RunError, RunLockedError, RunMismatchError, SchemaError
from fedelect.records import (
    Provenance,
    RunRecords,
    SelectorEntry,
    Signals,
    SlotRecord,
    open_run,
    read_run,
    sorted_records,
)
from fedelect.records.checksum import seal_line
from fedelect.records.codec import encode_record

HEADER = sample_header()
RECORDS = sample_records(HEADER)


def write(folder: Path, records: tuple[SlotRecord, ...] = RECORDS) -> None:
    with open_run(folder, HEADER) as writer:
        writer.append(records)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    write(tmp_path / "new" / "run")
    run = read_run(tmp_path / "new" / "run")
    assert run == RunRecords(HEADER, RECORDS)
    assert [record.seconds for record in run.records] == [0.25] * len(RECORDS)
    assert run.complete


def test_records_sort_by_selector_trial_and_slot() -> None:
    run = RunRecords(HEADER, RECORDS[::-1])
    keys = [(record.selector, record.trial, record.slot) for record in sorted_records(run)]
    assert keys == sorted(keys) and len(set(keys)) == HEADER.planned


def test_a_run_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    with open_run(tmp_path, HEADER) as writer:
        assert read_run(tmp_path).records == ()
        writer.append(RECORDS[:3])
        run = read_run(tmp_path)
        assert run.records == RECORDS[:3] and not run.complete


def test_an_interrupted_run_is_resumed(tmp_path: Path) -> None:
    write(tmp_path, RECORDS[:10])
    with open_run(tmp_path, HEADER) as writer:
        assert writer.recorded("best", 0) == {1, 2, 3}
        assert writer.recorded("random", 1) == {1, 2}
        assert writer.recorded("nobody", 0) == frozenset()
        assert writer.append(RECORDS[5:]) == len(RECORDS) - 10
        assert writer.recorded("random", 1) == set(range(1, 7))
    assert read_run(tmp_path).records == RECORDS


def test_the_provenance_of_the_first_start_is_kept(tmp_path: Path) -> None:
    write(tmp_path, ())
    later = Provenance(created="2026-01-01T00:00:00+00:00", command="other", versions={}, platform="other")
    with open_run(tmp_path, msgspec.structs.replace(HEADER, provenance=later)) as writer:
        assert writer.header.provenance == HEADER.provenance
        assert writer.path == tmp_path


def test_a_record_offered_again_must_be_equal_but_for_its_timing(tmp_path: Path) -> None:
    write(tmp_path, RECORDS[:4])
    with open_run(tmp_path, HEADER) as writer:
        assert writer.append([msgspec.structs.replace(RECORDS[1], seconds=9.0)]) == 0
        changed = msgspec.structs.replace(RECORDS[1], reward=0.75, cohort=(0, 1, 3))
        with pytest.raises(RunError, match=r"'best', trial 1, slot 1 .*: cohort\[2\]: 2 -> 3; reward: "):
            writer.append([RECORDS[5], changed])
        assert writer.append([RECORDS[5]]) == 1
    assert read_run(tmp_path).records == (*RECORDS[:4], RECORDS[5])


def test_one_batch_cannot_contradict_itself(tmp_path: Path) -> None:
    with open_run(tmp_path, HEADER) as writer:
        assert writer.append([RECORDS[0], RECORDS[0]]) == 1
        with pytest.raises(RunError, match="other values"):
            writer.append([RECORDS[1], msgspec.structs.replace(RECORDS[1], reward=0.75)])
    assert read_run(tmp_path).records == RECORDS[:1]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"selector": "nobody"}, "no such selector, only ['best', 'random']"),
        ({"trial": 2}, "trials 0..1 and slots 1..6"),
        ({"slot": 7}, "trials 0..1 and slots 1..6"),
        ({"cohort": (0, 2, 1)}, "not sorted, distinct clients"),
        ({"cohort": (0, 1, 1)}, "not sorted, distinct clients"),
        ({"cohort": (0, 1, 7)}, "clients out of 0..6"),
        ({"arrivals": (1, 2)}, "not one number <= 15 rounds"),
        ({"arrivals": (1, 2, 16)}, "not one number <= 15 rounds"),
        ({"empty_rounds": 16}, "16 empty rounds out of 15"),
        ({"opinions": (0.5,) * 6}, "opinions must have one value for each of the 7 clients, got 6"),
        ({"beliefs": ()}, "beliefs must have one value"),
        ({"status": "abandoned"}, "needs a note"),
    ],
)
def test_a_record_that_does_not_fit_the_run_is_refused(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    with open_run(tmp_path, HEADER) as writer:
        with pytest.raises(RunError, match=r"does not fit its run: .*" + re.escape(said)):
            writer.append([RECORDS[4], msgspec.structs.replace(RECORDS[0], **changes)])
        assert writer.recorded("best", 0) == frozenset()


def test_slots_that_were_abandoned_or_skipped_are_recorded_with_their_reason(tmp_path: Path) -> None:
    nothing = {"arrivals": (), "rounds": 0, "opinions": None, "reward": None, "indices": ()}
    records = (
        sample_record(HEADER, "best", 0, 1, status="abandoned", note="the engine failed"),
        sample_record(HEADER, "best", 0, 2, status="skipped", cohort=(), note="no agreement", **nothing),
    )
    write(tmp_path, records)
    assert read_run(tmp_path).records == records


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": 4}, "seed: 3 -> 4"),
        ({"slots": 7, "trials": 3}, "slots: 6 -> 7"),
        (
            {"scenario": {"name": "small", "model": {"kind": "svm", "step": 1e-6}}},
            "scenario.model.step: 1e-07 -> 1e-06",
        ),
        ({"scenario": {"name": "small"}}, "scenario.data: {'samples': [200, 900]} -> (absent)"),
        ({"selectors": (SelectorEntry(label="best", kind="BpUcb"),)}, "selectors: "),
        ({"untrained": (0.125, None)}, "untrained[1]: 0.125 -> None"),
        ({"edges": tuple((0, other) for other in range(1, 7))}, "edges: None -> [[0, 1]"),
    ],
)
def test_another_configuration_is_refused_and_the_difference_named(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    write(tmp_path)
    with pytest.raises(RunMismatchError, match=re.escape(said)):
        open_run(tmp_path, sample_header(**changes))
    assert read_run(tmp_path).records == RECORDS


def test_long_values_are_shown_where_they_differ(tmp_path: Path) -> None:
    write(tmp_path)
    long = "a" * 500
    before, after = ({"name": f"{long}{end}{long}"} for end in ("first", "other"))
    open_run(tmp_path / "long", sample_header(scenario=before)).close()
    with pytest.raises(RunMismatchError, match=r"scenario\.name: \.\.\.a+firsta+\.\.\. -> \.\.\.a+othera+\.\.\. "):
        open_run(tmp_path / "long", sample_header(scenario=after))
    with open_run(tmp_path, HEADER) as writer:
        opinions = (*RECORDS[0].opinions[:-1], 0.0625)  # type: ignore[index]
        with pytest.raises(RunError, match=r"\(there -> now\): opinions\[6\]: None -> 0\.0625; the run does not"):
            writer.append([msgspec.structs.replace(RECORDS[0], opinions=opinions)])
    with (
        open_run(tmp_path / "notes", HEADER) as writer,
        pytest.raises(RunError, match=r"a1' -> \.\.\.a+2' \(they diff"),
    ):
        writer.append([msgspec.structs.replace(RECORDS[1], note=f"{long}{end}") for end in ("1", "2")])


def test_many_differences_are_not_all_listed(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(RunMismatchError, match=r"and 10 more\n"):
        open_run(tmp_path, sample_header(scenario={f"key {number}": number for number in range(17)}))


def test_a_tuple_in_a_configuration_equals_the_list_it_is_read_back_as(tmp_path: Path) -> None:
    scenario = {"name": "small", "model": {"kind": "svm", "step": 1e-7}, "data": {"samples": (200, 900)}}
    write(tmp_path, ())
    open_run(tmp_path, sample_header(scenario=scenario)).close()


def test_a_number_that_json_cannot_hold_is_refused_in_the_header(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"scenario\.model\.steps\[1\] is nan"):
        open_run(tmp_path / "run", sample_header(scenario={"model": {"steps": [1.0, float("nan")]}}))
    with pytest.raises(RunError, match="header cannot be written"):
        open_run(tmp_path / "run", sample_header(scenario={"model": object()}))
    assert not (tmp_path / "run").exists()


def test_a_second_writer_in_the_same_process_is_refused(tmp_path: Path) -> None:
    with open_run(tmp_path, HEADER), pytest.raises(RunLockedError, match="is being written by process"):
        open_run(tmp_path, HEADER)
    open_run(tmp_path, HEADER).close()


def test_a_refused_run_leaves_the_folder_unlocked(tmp_path: Path) -> None:
    write(tmp_path, ())
    with pytest.raises(RunMismatchError):
        open_run(tmp_path, sample_header(seed=4))
    open_run(tmp_path, HEADER).close()


def test_a_folder_that_holds_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(RunError, match=r"holds other files \(thesis.tex\) and no run.json"):
        open_run(tmp_path, HEADER)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("precious")
    with pytest.raises(RunError, match="is a file"):
        open_run(file, HEADER)
    with pytest.raises(RunError, match=re.escape(str(file / "below"))):
        open_run(file / "below", HEADER)
    with pytest.raises(RunError, match=r"no run folder: it has no run\.json"):
        read_run(file)


def test_a_folder_left_before_its_header_was_complete_is_started_afresh(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("")
    (tmp_path / "run.json.new").write_text('{"schema":')
    write(tmp_path)
    assert read_run(tmp_path).records == RECORDS


def test_reading_where_there_is_no_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no run folder: it has no run\.json"):
        read_run(tmp_path / "nowhere")


@pytest.mark.parametrize("cut", range(1, 60, 3))
def test_a_line_cut_by_a_kill_is_never_parsed_and_is_written_again(tmp_path: Path, cut: int) -> None:
    write(tmp_path)
    file = tmp_path / "slots.jsonl"
    whole = file.read_bytes()
    last = len(whole) - whole[:-1].rindex(b"\n") - 1
    file.write_bytes(whole[: len(whole) - 1 - cut * (last - 1) // 60])
    assert read_run(tmp_path).records == RECORDS[:-1]
    with open_run(tmp_path, HEADER) as writer:
        assert file.read_bytes() == whole[: len(whole) - last]
        writer.append(RECORDS)
    assert file.read_bytes() == whole


def test_a_last_line_that_lacks_only_its_line_feed_is_cut_too(tmp_path: Path) -> None:
    write(tmp_path)
    file = tmp_path / "slots.jsonl"
    file.write_bytes(file.read_bytes()[:-1])
    assert read_run(tmp_path).records == RECORDS[:-1]


@pytest.mark.parametrize("damage", [b"", b"{}", b"\x00\x00", b'{"selector":"best"', b"\xff\xfe", b"null"])
def test_a_damaged_line_in_the_middle_is_an_error_that_names_it(tmp_path: Path, damage: bytes) -> None:
    write(tmp_path)
    file = tmp_path / "slots.jsonl"
    lines = file.read_bytes().split(b"\n")
    lines[4] = damage
    file.write_bytes(b"\n".join(lines))
    for attempt in (lambda: read_run(tmp_path), lambda: open_run(tmp_path, HEADER)):
        with pytest.raises(RunError, match=r"line 5 of .*slots\.jsonl is damaged"):
            attempt()


def test_a_slot_that_is_written_twice_is_an_error_that_names_it(tmp_path: Path) -> None:
    write(tmp_path)
    file = tmp_path / "slots.jsonl"
    last = int(file.read_bytes()[-11:-3], 16)
    file.write_bytes(file.read_bytes() + seal_line(encode_record(RECORDS[0]), last)[0])
    with pytest.raises(RunError, match=rf"line {len(RECORDS) + 1} of .* repeats selector 'best', trial 0, slot 1"):
        read_run(tmp_path)


@pytest.mark.parametrize("version", [1, 2, 3, 7])
def test_another_schema_is_refused_by_its_number(tmp_path: Path, version: int) -> None:
    write(tmp_path)
    file = tmp_path / "run.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "schema": version, "something_new": True}))
    for attempt in (lambda: read_run(tmp_path), lambda: open_run(tmp_path, HEADER)):
        with pytest.raises(SchemaError, match=f"schema version {version}, but this fedelect reads version 5; use"):
            attempt()


def test_signals_that_do_not_fit_the_run_are_refused(tmp_path: Path) -> None:
    short = msgspec.structs.replace(RECORDS[0], signals=Signals(loss=(0.5, None)))
    with open_run(tmp_path, HEADER) as writer, pytest.raises(RunError, match="loss must have one value for each"):
        writer.append([short])


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "one"}', '{"schema": 5}', "[" * 10**6])
def test_a_damaged_header_is_an_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    write(tmp_path)
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(RunError, match=r"run\.json is damaged"):
        read_run(tmp_path)


def test_no_nan_is_ever_in_the_files(tmp_path: Path) -> None:
    write(tmp_path)
    records = (tmp_path / "slots.jsonl").read_text()
    assert "null" in records
    for line in [(tmp_path / "run.json").read_text(), *records.splitlines()]:
        json.loads(line, parse_constant=lambda constant: pytest.fail(f"{constant} in the file"))


def test_a_closed_writer_refuses_to_write(tmp_path: Path) -> None:
    writer = open_run(tmp_path, HEADER)
    writer.close()
    writer.close()
    with pytest.raises(RunError, match="is closed"):
        writer.append(RECORDS)
    with pytest.raises(RunError, match="is closed"):
        writer.save_checkpoint(1, b"")


def test_a_run_is_given_more_slots_only_where_that_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path)
    longer = msgspec.structs.replace(HEADER, slots=HEADER.slots + 5)
    with pytest.raises(RunMismatchError, match=f"slots: {HEADER.slots} -> {HEADER.slots + 5}"):
        open_run(tmp_path, longer)
    other = msgspec.structs.replace(longer, seed=HEADER.seed + 1)
    before = (tmp_path / "run.json").read_bytes()
    with pytest.raises(RunMismatchError, match=f"seed: {HEADER.seed} -> {HEADER.seed + 1}"):
        open_run(tmp_path, other, extend=True)
    assert (tmp_path / "run.json").read_bytes() == before
    with open_run(tmp_path, longer, extend=True) as writer:
        assert writer.header.slots == HEADER.slots + 5 and writer.header.provenance == HEADER.provenance
    assert read_run(tmp_path).records == RECORDS and read_run(tmp_path).header.slots == HEADER.slots + 5
    with pytest.raises(RunMismatchError, match=f"slots: {HEADER.slots + 5} -> {HEADER.slots}"):
        open_run(tmp_path, HEADER, extend=True)
