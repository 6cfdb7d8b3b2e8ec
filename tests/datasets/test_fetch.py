import gzip
import hashlib
import http.server
import os
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fedelect.datasets import PUBLISHED, fetch_dataset, load_dataset
from fedelect.datasets.fetch import parse_idx
from fedelect.errors import ConfigurationError, DataError
from fedelect.seeds import stream

NAMES = list(PUBLISHED["mnist"].files)


def small_files() -> dict[str, bytes]:
    """Four files like MNIST's with 20 training and 10 test images of 2 x 2."""
    rng = stream(0, "small mnist")
    files = {}
    for part, count in (("train", 20), ("t10k", 10)):
        images = rng.integers(0, 256, (count, 2, 2)).astype(np.uint8)
        files[f"{part}-images-idx3-ubyte"] = struct.pack(">4I", 0x803, count, 2, 2) + images.tobytes()
        labels = (np.arange(count) % 10).astype(np.uint8)
        files[f"{part}-labels-idx1-ubyte"] = struct.pack(">2I", 0x801, count) + labels.tobytes()
    return files


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The small files, passing for the original ones."""
    small = small_files()
    facts = {name: (len(small[name]), hashlib.sha256(small[name]).hexdigest()) for name in NAMES}
    for name, published in PUBLISHED.items():
        monkeypatch.setitem(PUBLISHED, name, published._replace(files=facts))
    return small


@pytest.fixture
def folder(files: dict[str, bytes], tmp_path: Path) -> Path:
    """A folder with the four files, one of them gzipped."""
    folder = tmp_path / "files"
    folder.mkdir()
    for name in NAMES[1:]:
        (folder / name).write_bytes(files[name])
    (folder / f"{NAMES[0]}.gz").write_bytes(gzip.compress(files[NAMES[0]]))
    return folder


def test_the_files_of_a_folder_are_verified_and_loaded(tmp_path: Path, folder: Path, files: dict[str, bytes]) -> None:
    lines: list[str] = []
    stored = fetch_dataset("mnist", tmp_path, folder=folder, progress=lines.append)
    assert stored == tmp_path / "mnist" and lines[-1] == f"MNIST verified and stored in {stored}"
    assert sorted(path.name for path in stored.iterdir()) == sorted(NAMES)
    data = load_dataset("mnist", cache=tmp_path)
    assert (data.inputs.shape, data.test_inputs.shape, data.classes) == ((20, 4), (10, 4), 10)
    assert data.inputs.tobytes() == files["train-images-idx3-ubyte"][16:]
    assert data.test_labels.tolist() == list(range(10))


@pytest.mark.parametrize("name", PUBLISHED)
def test_each_data_set_has_a_folder_of_its_own_and_names_itself(tmp_path: Path, folder: Path, name: str) -> None:
    with pytest.raises(DataError, match=f"run: fedelect data fetch {name}$"):
        load_dataset(name, cache=tmp_path)
    lines: list[str] = []
    assert fetch_dataset(name, tmp_path, folder=folder, progress=lines.append) == tmp_path / name
    assert lines[-1].startswith(PUBLISHED[name].title)
    assert load_dataset(name, cache=tmp_path).name == name
    assert [path.name for path in tmp_path.iterdir() if path != folder] == [name]


def test_the_published_files_have_ten_classes_of_the_sizes_that_their_headers_promise() -> None:
    for published in PUBLISHED.values():
        sizes = {name: size for name, (size, _) in published.files.items()}
        assert list(sizes.values()) == [16 + 60_000 * 784, 8 + 60_000, 16 + 10_000 * 784, 8 + 10_000]
        assert all(len(digest) == 64 for _, digest in published.files.values()) and len(published.mirrors) == 2
    hashes = [digest for published in PUBLISHED.values() for _, digest in published.files.values()]
    assert len(set(hashes)) == 8


def test_an_unknown_data_set_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="'cifar'; mnist and fashion-mnist can be fetched"):
        fetch_dataset("cifar", tmp_path)


def test_what_is_in_the_cache_already_is_not_fetched_again(tmp_path: Path, folder: Path) -> None:
    fetch_dataset("mnist", tmp_path, folder=folder)
    lines: list[str] = []
    fetch_dataset("mnist", tmp_path, folder=tmp_path / "nowhere", progress=lines.append)
    assert lines == [f"MNIST is already in {tmp_path / 'mnist'}"]


def test_a_damaged_cache_is_refused_on_loading_and_repaired_by_fetching(tmp_path: Path, folder: Path) -> None:
    stored = fetch_dataset("mnist", tmp_path, folder=folder)
    (stored / NAMES[1]).write_bytes(b"half")
    with pytest.raises(DataError, match=r"train-labels.*checksum differs.*run: fedelect data fetch mnist"):
        load_dataset("mnist", cache=tmp_path)
    fetch_dataset("mnist", tmp_path, folder=folder)
    assert load_dataset("mnist", cache=tmp_path).classes == 10


def test_a_set_that_was_never_fetched_is_an_error_that_says_how(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="run: fedelect data fetch mnist"):
        load_dataset("mnist", cache=tmp_path)


def test_a_folder_without_the_original_files_gives_its_reason(
    tmp_path: Path, folder: Path, files: dict[str, bytes]
) -> None:
    name = NAMES[3]
    for content, reason in ((files[name][:-1] + b"!", "checksum differs"), (b"x", "less than"), (None, "No such file")):
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_bytes(content)
        with pytest.raises(DataError, match=f"--from FOLDER\n- .*{reason}"):
            fetch_dataset("mnist", tmp_path, folder=folder)
    assert not (tmp_path / "mnist").exists()


def test_a_cache_that_cannot_be_written_is_a_data_error_and_leaves_no_scraps(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="FEDELECT_CACHE"):
        fetch_dataset("mnist", tmp_path / "file", folder=folder)

    def refuse(source: object, target: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(DataError, match="disk full"):
        fetch_dataset("mnist", tmp_path, folder=folder)
    assert list((tmp_path / "mnist").iterdir()) == []


@pytest.fixture
def server(files: dict[str, bytes]) -> Iterator[str]:
    """A web server on this machine with the four files, gzipped, and three bad folders."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            folder, name = self.path[1:].split("/")
            content = files[name.removesuffix(".gz")]
            packed = gzip.compress(content + b"more" if folder == "long" else content)
            self.send_response(404 if folder == "gone" else 200)
            self.end_headers()
            self.wfile.write(packed[: len(packed) // 2] if folder == "half" else packed)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join(10)


def test_the_first_mirror_whose_files_verify_is_taken(tmp_path: Path, server: str) -> None:
    mirrors = [f"{server}/{folder}" for folder in ("gone", "half", "long", "good")]
    lines: list[str] = []
    fetch_dataset("mnist", tmp_path, mirrors=mirrors, progress=lines.append)
    failures = [line for line in lines if line.startswith("failed")]
    assert [mirror in line for mirror, line in zip(mirrors[:3], failures, strict=True)] == [True] * 3
    assert "404" in failures[0] and "more than" in failures[2]
    assert load_dataset("mnist", cache=tmp_path).classes == 10


def test_when_all_mirrors_fail_each_is_named_with_its_reason(tmp_path: Path, server: str) -> None:
    with pytest.raises(DataError) as failed:
        fetch_dataset("mnist", tmp_path, mirrors=[f"{server}/gone", f"{server}/long"])
    first, second = str(failed.value).splitlines()[1:]
    assert first.startswith(f"- {server}/gone: HTTP Error 404") and second.startswith(f"- {server}/long: ")
    assert not (tmp_path / "mnist").exists()


@given(hnp.arrays(np.uint8, hnp.array_shapes(min_dims=1, max_dims=4, max_side=5)))
def test_an_array_survives_being_written_as_idx(array: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> None:
    content = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
    assert np.array_equal(parse_idx(content, "file"), array)


@given(st.binary(max_size=40))
def test_any_bytes_are_an_array_or_a_data_error(content: bytes) -> None:
    try:
        parse_idx(content, "file")
    except DataError as error:
        assert str(error).startswith("file")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "labels is not an IDX file: it starts with nothing"),
        (b"\x1f\x8b\x08\x00", "it starts with 1f8b0800"),
        (b"\0\0\x0d\x01" + bytes(4), "element type 0x0d"),
        (b"\0\0\x08\x02\0\0\0\x01", "cut off: 8 bytes, but its header alone has 12"),
        (b"\0\0\x08\x01\0\0\0\x03ab", r"promises \(3,\) and so 11 bytes, it has 10"),
        (b"\0\0\x08\x01\0\0\0\x01ab", "damaged"),
    ],
)
def test_a_damaged_file_is_refused_with_the_reason(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_idx(content, "labels")
