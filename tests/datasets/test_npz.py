"""Files of arrays that lie about their size, or are something else, ask for no memory and get a sentence of ours."""

import io
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedelect import _npz
from fedelect._npz import read_npz
from fedelect.atlas import load_atlas
from fedelect.datasets import load_dataset
from fedelect.errors import DataError

ARRAYS = {
    "X": np.arange(12.0).reshape(4, 3),
    "y": np.array([0, 1, 0, 1]),
    "X_test": np.ones((2, 3)),
    "y_test": np.eye(2),
}


def array_file(shape: str, content: bytes = b"") -> bytes:
    """A member of an .npz file whose header claims `shape`."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


@pytest.mark.parametrize(
    "array",
    [
        *ARRAYS.values(),
        np.float32(3.5),
        np.zeros((0, 4)),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.array("ab"),
    ],
)
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_are_read_as_numpy_reads_them(tmp_path: Path, array: np.ndarray, save: object) -> None:
    save(tmp_path / "a.npz", a=array)  # type: ignore[operator]
    found = read_npz(tmp_path / "a.npz", lambda names: names)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as expected:
        np.testing.assert_array_equal(found["a"], expected["a"])
        assert found["a"].dtype == expected["a"].dtype and found["a"].flags.writeable


@pytest.mark.parametrize(
    "shape", ["(16000000000,)", "(4, 4000000000)", "(-1, -2)", "(10000000000000000000000,)", "(3,)"]
)
def test_a_header_that_claims_more_than_the_file_holds_is_refused_without_asking_for_memory(
    tmp_path: Path, shape: str
) -> None:
    path = archive(
        tmp_path / "liar.npz", dict.fromkeys(("X", "y", "X_test", "y_test", "about"), array_file(shape, bytes(16)))
    )
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"liar\.npz is damaged: its array X\.npy claims .* but has 16 bytes"):
            load_dataset(str(path))
        with pytest.raises(DataError, match=r"cannot be read as an atlas: .* claims"):
            load_atlas(path)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_an_archive_that_claims_more_than_deflate_can_make_of_it_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "liar.npz", {"a": array_file("(2,)", bytes(16))})
    text = bytearray(path.read_bytes())
    entry = text.index(b"PK\x01\x02")
    text[entry + 24 : entry + 28] = (2**32 - 2).to_bytes(4, "little")  # uncompressed size in the central directory
    path.write_bytes(text)
    with pytest.raises(
        DataError, match=r"is damaged: its array a\.npy claims 4 GiB, but has only .* bytes in the file"
    ):
        read_npz(path, lambda names: names)


def test_arrays_larger_than_the_memory_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(tmp_path / "a.npz", a=np.zeros(1000))
    monkeypatch.setattr(_npz, "memory_bytes", lambda: 5000)
    with pytest.raises(DataError, match=r"take 7\.94 KiB, more than this machine's memory of 4\.88 KiB"):
        read_npz(tmp_path / "a.npz", lambda names: names)


def test_a_text_file_called_npz_gets_no_advice_to_load_it_unsafely(tmp_path: Path) -> None:
    path = tmp_path / "notes.npz"
    path.write_text("these are my notes\n")
    for load in (lambda: load_dataset(str(path)), lambda: load_atlas(path)):
        with pytest.raises(DataError, match=r"notes\.npz is not an \.npz file but something else") as caught:
            load()
        assert "allow_pickle" not in str(caught.value) and "pickle" not in str(caught.value)


@settings(max_examples=150, deadline=None)
@given(place=st.integers(0, 10**6), byte=st.integers(0, 255), cut=st.booleans())
def test_a_damaged_archive_is_an_error_of_ours_or_reads_as_before(
    tmp_path_factory: pytest.TempPathFactory, place: int, byte: int, cut: bool
) -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **ARRAYS)  # type: ignore[arg-type]
    text = bytearray(buffer.getvalue())
    place %= len(text)
    text[place] = byte
    path = tmp_path_factory.mktemp("npz") / "damaged.npz"
    path.write_bytes(text[:place] if cut else text)
    try:
        found = read_npz(path, lambda names: names)
    except DataError:
        return
    for name in ARRAYS.keys() & found.keys():
        np.testing.assert_array_equal(found[name], ARRAYS[name])
