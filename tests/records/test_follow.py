"""Reading a run as it grows."""

from pathlib import Path

import numpy as np
import pytest
from tests.sample_runs import sample_run

from fedelect.errors import RunError
from fedelect.records import TableBuilder, follow_run, open_run, opinion_curves


def test_each_call_gives_the_records_that_are_new(tmp_path: Path) -> None:
    run = sample_run()
    with open_run(tmp_path, run.header) as writer:
        follower = follow_run(tmp_path)
        assert follower.header == run.header and list(follower.fresh()) == []
        writer.append(run.records[:3])
        assert tuple(follower.fresh()) == run.records[:3]
        assert list(follower.fresh()) == []
        writer.append(run.records[3:])
        assert tuple(follower.fresh()) == run.records[3:]


def test_a_line_that_is_still_being_written_waits_for_its_end(tmp_path: Path) -> None:
    run = sample_run()
    with open_run(tmp_path, run.header) as writer:
        writer.append(run.records[:2])
    file = tmp_path / "slots.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole[:-9])
    follower = follow_run(tmp_path)
    assert tuple(follower.fresh()) == run.records[:1]
    file.write_bytes(whole)
    assert tuple(follower.fresh()) == run.records[1:2]


def test_a_file_that_became_shorter_and_a_damaged_line_are_errors(tmp_path: Path) -> None:
    run = sample_run()
    with open_run(tmp_path, run.header) as writer:
        writer.append(run.records)
    follower = follow_run(tmp_path)
    assert len(list(follower.fresh())) == 24
    file = tmp_path / "slots.jsonl"
    file.write_bytes(file.read_bytes() + b"{}\n")
    with pytest.raises(RunError, match=r"line 25 of .* is damaged"):
        list(follower.fresh())
    file.write_bytes(b"")
    with pytest.raises(RunError, match="has become shorter"):
        list(follower.fresh())


def test_a_table_does_not_change_when_its_builder_goes_on() -> None:
    run = sample_run()
    builder = TableBuilder(run.header)
    for record in run.records[:4]:
        builder.add(record)
    early = builder.table()
    before = {label: curve.copy() for label, curve in opinion_curves(early).items()}
    for record in run.records[4:]:
        builder.add(record)
    for label, curve in opinion_curves(early).items():
        np.testing.assert_array_equal(curve, before[label])
    assert early.recorded == 4 and builder.table().recorded == 24
