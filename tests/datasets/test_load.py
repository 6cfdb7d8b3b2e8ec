import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedelect.analytics import survey
from fedelect.datasets import cache_folder, load_dataset
from fedelect.errors import DataError, MissingExtraError
from fedelect.federation import Job, train
from fedelect.scenario import build_scenario, preset


def save(path: Path, **changes: Any) -> str:
    arrays = {
        "X": np.zeros((6, 2, 3), dtype=np.uint8),
        "y": np.arange(6) % 2,
        "X_test": np.ones((4, 2, 3)),
        "y_test": np.arange(4) % 2,
        **changes,
    }
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
    return str(path)


def test_digits_are_split_the_same_way_every_time_and_keep_their_raw_values() -> None:
    data = load_dataset("digits")
    assert (data.inputs.shape, data.test_inputs.shape, data.classes) == ((1300, 64), (497, 64), 10)
    assert (data.inputs.min(), data.inputs.max()) == (0, 16)
    assert np.array_equal(data.test_labels, load_dataset("digits").test_labels)
    assert np.bincount(data.labels).min() > 100


def test_without_scikit_learn_the_digits_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fedelect\[lab\]'"):
        load_dataset("digits")


def test_an_npz_file_of_images_is_flattened(tmp_path: Path) -> None:
    data = load_dataset(save(tmp_path / "mine.npz"))
    assert (data.inputs.shape, data.test_inputs.shape, data.name) == ((6, 6), (4, 6), "mine.npz")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": None, "X_test": None}, "lacks y, X_test; it holds X, y_test"),
        ({"X": np.zeros(6)}, r"X must have shape \(samples, ...\), got \(6,\)"),
        ({"X": np.zeros((0, 6))}, "inputs must have shape"),
        ({"y": np.arange(5) % 2}, "6 inputs but 5 labels"),
        ({"y": np.array([0, 1, None] * 2)}, "pickled objects"),
        ({"X_test": np.full((4, 6), np.inf)}, "test_inputs must be finite"),
    ],
)
def test_an_npz_file_that_holds_something_else_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        load_dataset(save(tmp_path / "bad.npz", **changes))


def test_files_that_are_no_npz_archive_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no file"):
        load_dataset(str(tmp_path / "none.npz"))
    for content in (b"", b"text", b"PK\x03\x04 broken", b"\x80\x04N."):
        (tmp_path / "bad.npz").write_bytes(content)
        with pytest.raises(DataError, match=r"bad\.npz"):
            load_dataset(str(tmp_path / "bad.npz"))
    whole = Path(save(tmp_path / "whole.npz")).read_bytes()
    (tmp_path / "bad.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"bad\.npz"):
        load_dataset(str(tmp_path / "bad.npz"))
    with open(tmp_path / "bad.npz", "wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(
        DataError, match=r"is not an .npz file but something else .text, one array., or is cut off; numpy.savez writes"
    ):
        load_dataset(str(tmp_path / "bad.npz"))
    with pytest.raises(DataError, match=r"holds no \.npz file; expected one for each client"):
        (tmp_path / "folder.npz").mkdir()
        load_dataset(str(tmp_path / "folder.npz"))


def test_an_unknown_source_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(
        DataError, match=r"data\.source: got 'cifar'; allowed: \"mnist\", \"fashion-mnist\", \"digits\""
    ):
        load_dataset("cifar")
    with pytest.raises(DataError, match=r"data\.source: got 'n{300}'; allowed"):
        load_dataset("n" * 300)  # longer than a file's name may be


def test_the_cache_folder_is_the_one_named_or_the_platforms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FEDELECT_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("FEDELECT_CACHE")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "fedelect"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == Path.home() / ".cache" / "fedelect"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == Path.home() / "Library" / "Caches" / "fedelect"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert cache_folder() == tmp_path / "fedelect" / "Cache"


def test_in_the_digits_preset_the_iid_clients_make_a_much_better_model_than_skewed_ones() -> None:
    scenario = build_scenario(preset("digits"), load_dataset("digits"))
    cohorts = [scenario.groups["iid"], (5, 6, 7, 8, 9), (10, 11, 12, 13, 14), (15, 16, 17, 18, 19)]
    trained = train(scenario, [Job(cohort=cohort, seed=1) for cohort in cohorts])
    iid, *skewed = [float(survey(scenario, result.model).mean()) for result in trained]
    assert 0.84 < iid < 0.93
    assert 0.35 < np.mean(skewed) < 0.65
