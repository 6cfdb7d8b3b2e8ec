import os
import shutil
import sys
from pathlib import Path

import msgspec
import pytest
from tests.sample_runs import sample_header

from fedelect.errors import RunError
from fedelect.records import open_run

HEADER = sample_header()


def states(folder: Path) -> list[Path]:
    return sorted((folder / "checkpoint").glob("*.state"))


def test_a_new_run_has_no_checkpoint(tmp_path: Path) -> None:
    with open_run(tmp_path, HEADER) as writer:
        assert writer.load_checkpoint() is None


def test_the_newest_checkpoint_is_loaded_byte_for_byte(tmp_path: Path) -> None:
    payload = bytes(range(256)) * 100 + b"\n\n"
    with open_run(tmp_path, HEADER) as writer:
        for slot in range(1, 6):
            writer.save_checkpoint(slot, b"older")
        writer.save_checkpoint(6, payload)
        assert len(states(tmp_path)) == 2
    with open_run(tmp_path, HEADER) as writer:
        assert writer.load_checkpoint() == (6, payload)
        writer.save_checkpoint(7, b"")
        assert writer.load_checkpoint() == (7, b"")


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "label"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path: Path, damage: str) -> None:
    with open_run(tmp_path, HEADER) as writer:
        writer.save_checkpoint(1, b"one" * 50)
        writer.save_checkpoint(2, b"two" * 50)
    damage_file(states(tmp_path)[-1], damage)
    with open_run(tmp_path, HEADER) as writer:
        assert writer.load_checkpoint() == (1, b"one" * 50)
        # The sound generation outlives the damaged one.
        writer.save_checkpoint(2, b"two again")
    damage_file(states(tmp_path)[-1], damage)
    with open_run(tmp_path, HEADER) as writer:
        assert writer.load_checkpoint() == (1, b"one" * 50)


def test_two_damaged_checkpoints_are_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with open_run(tmp_path, HEADER) as writer:
        writer.save_checkpoint(1, b"one")
        writer.save_checkpoint(2, b"two")
    for state in states(tmp_path):
        damage_file(state, "cut")
    with open_run(tmp_path, HEADER) as writer, pytest.raises(RunError, match="delete that folder and start"):
        writer.load_checkpoint()


def test_on_flower_nobody_is_told_to_repeat_what_real_clients_did(tmp_path: Path) -> None:
    with open_run(tmp_path, msgspec.structs.replace(HEADER, source="flower")) as writer:
        writer.save_checkpoint(1, b"one")
        damage_file(states(tmp_path)[0], "cut")
        with pytest.raises(RunError, match="is damaged or of another run; restore it from a copy, or run again in a"):
            writer.load_checkpoint()


def test_a_checkpoint_of_another_run_is_not_taken_for_this_ones(tmp_path: Path) -> None:
    other = msgspec.structs.replace(HEADER, seed=HEADER.seed + 1)
    with open_run(tmp_path / "here", HEADER) as here, open_run(tmp_path / "there", other) as there:
        here.save_checkpoint(1, b"one")
        there.save_checkpoint(1, b"of another run")
        there.save_checkpoint(2, b"of another run")
        newest = states(tmp_path / "there")[-1]
        shutil.copy(newest, tmp_path / "here" / "checkpoint")
        assert here.load_checkpoint() == (1, b"one")
        states(tmp_path / "here")[0].unlink()
        with pytest.raises(RunError, match="is damaged or of another run; delete that folder and start"):
            here.load_checkpoint()


def test_a_checkpoint_that_was_being_written_is_ignored(tmp_path: Path) -> None:
    with open_run(tmp_path, HEADER) as writer:
        writer.save_checkpoint(1, b"one")
        (tmp_path / "checkpoint" / "00000002.state.new").write_bytes(b'{"slot":2,')
        (tmp_path / "checkpoint" / "notes.state").write_bytes(b"not a generation")
        assert writer.load_checkpoint() == (1, b"one")


def test_a_failed_save_keeps_what_was_saved_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with open_run(tmp_path, HEADER) as writer:
        writer.save_checkpoint(1, b"one")
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(RunError, match=r"cannot write .*: No space left on device"):
                writer.save_checkpoint(2, b"two")
        assert writer.load_checkpoint() == (1, b"one")


@pytest.mark.skipif(sys.platform != "linux", reason="looks up open files by number")
def test_records_reach_the_disk_before_the_checkpoint_that_counts_on_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def watch(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").resolve().name)
        real(descriptor)

    with open_run(tmp_path, HEADER) as writer:
        monkeypatch.setattr(os, "fsync", watch)
        writer.save_checkpoint(1, b"one")
        monkeypatch.undo()
    files = [name for name in synced if name not in (tmp_path.name, "checkpoint")]
    assert files == ["slots.jsonl", "00000001.state.new"]


def damage_file(path: Path, how: str) -> None:
    content = path.read_bytes()
    line, _, payload = content.partition(b"\n")
    damaged = {
        "cut": content[:-1],
        "flip": line + b"\n" + bytes([payload[0] ^ 1]) + payload[1:],
        "empty": b"",
        "label": b"\xff" + content,
    }
    path.write_bytes(damaged[how])
