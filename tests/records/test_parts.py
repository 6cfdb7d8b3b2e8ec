"""The store of finished parts: tied to a plan, checksummed, locked, and removed when the work is finished."""

from pathlib import Path

import pytest

from fedelect.errors import RunLockedError, RunMismatchError
from fedelect.records import PartStore, remove_leftovers


def open_store(folder: Path, *, start_over: bool = False, **plan: object) -> PartStore:
    return PartStore(folder, {"seed": 1, **plan}, what="a test", start_over=start_over)


def test_parts_are_read_back_under_an_equal_plan_and_damaged_ones_are_missing(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a" / "b.parts", pair=(1, 2))
    store.save("one", b"1")
    store.save("two", b"2")
    store.close()
    (tmp_path / "a/b.parts/two.part").write_bytes(b"torn")
    again = open_store(tmp_path / "a" / "b.parts", pair=(1, 2))
    assert (again.load("one"), again.load("two"), again.load("three")) == (b"1", None, None)
    again.save("one", b"another")
    assert again.load("one") == b"another"
    again.discard()
    assert not (tmp_path / "a/b.parts").exists()


def test_parts_of_another_plan_are_refused_by_what_differs_or_deleted_if_asked(tmp_path: Path) -> None:
    store = open_store(tmp_path / "parts")
    store.save("one", b"1")
    store.close()
    with pytest.raises(RunMismatchError, match=r"parts of a test with another plan \(engine, seed differ\)"):
        open_store(tmp_path / "parts", seed=2, engine="plain")
    again = open_store(tmp_path / "parts", seed=2, start_over=True)
    assert again.load("one") is None
    again.discard()


def test_one_process_works_in_a_folder_at_a_time(tmp_path: Path) -> None:
    store = open_store(tmp_path / "parts")
    with pytest.raises(RunLockedError, match="being written"):
        open_store(tmp_path / "parts")
    store.close()
    open_store(tmp_path / "parts").discard()


def test_leftovers_are_removed_under_other_versions_but_not_under_another_plan(tmp_path: Path) -> None:
    store = open_store(tmp_path / "parts", versions={"numpy": "1"})
    store.save("one", b"1")
    store.close()
    remove_leftovers(tmp_path / "parts", {"seed": 2, "versions": {"numpy": "1"}})
    assert (tmp_path / "parts/one.part").exists()
    remove_leftovers(tmp_path / "parts", {"seed": 1, "versions": {"numpy": "2"}})
    assert not (tmp_path / "parts").exists()
