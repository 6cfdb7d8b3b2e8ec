"""An atlas as a file: exact, small, self-contained, and checked when it is read."""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.atlas.made_up import alike, built, made_up, plan, trained
from tests.worlds import digits, tiny

from fedelect.atlas import Atlas, load_atlas, save_atlas
from fedelect.atlas.file import digest_of
from fedelect.errors import DataError
from fedelect.scenario import build_scenario


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_atlas(trained(), tmp_path / "atlas.npz")
    return tmp_path / "atlas.npz"


def rewritten(path: Path, **members: Any) -> Path:
    """The file with some members replaced, left out if None."""
    with np.load(path) as file:
        content = {name: file[name] for name in file.files} | members
    np.savez_compressed(path, **{name: array for name, array in content.items() if array is not None})
    return path


def about(path: Path, **changes: Any) -> Any:
    with np.load(path) as file:
        fields = json.loads(file["about"].tobytes()) | changes
    return np.frombuffer(json.dumps(fields).encode(), dtype=np.uint8)


def test_what_is_written_is_read_to_the_bit(path: Path) -> None:
    first, second = trained(), load_atlas(path)
    assert second.digest == first.digest == digest_of(second)
    for name in ("table", "fresh", "contenders", "test_sizes", "untrained"):
        assert np.array_equal(getattr(first, name), getattr(second, name))
    assert second.config == tiny() and second.provenance == first.provenance
    assert (second.seed, second.engine, second.data_digest) == (7, "plain", digits().digest)


def test_the_world_is_the_scenarios_without_its_data(path: Path) -> None:
    world, whole = load_atlas(path).world, build_scenario(tiny(), digits())
    for name in ("sizes", "positions_km", "server_km", "edges", "edge_lengths_km", "upload_probability"):
        assert np.array_equal(getattr(world, name), getattr(whole, name))
    assert (world.groups, world.classes, world.features) == (whole.groups, whole.classes, whole.features)
    assert not any(inputs.size for inputs in (*world.train_inputs, *world.test_inputs))


@given(st.integers(0, 2**32), st.sampled_from([1, 2, 5]))
def test_any_counts_survive(seed: int, seeds: int) -> None:
    sizes = trained().test_sizes
    rng = np.random.Generator(np.random.PCG64(seed))
    table = rng.integers(0, sizes[:, np.newaxis] + 1, size=(seeds, 6, 15)).astype(np.uint16)
    fresh = rng.integers(0, sizes[:, np.newaxis] + 1, size=(4, 6, 3)).astype(np.uint16)
    again = through_a_file(made_up(table, fresh, [0, 3, 14]))
    assert np.array_equal(again.table, table) and np.array_equal(again.fresh, fresh)


def through_a_file(atlas: Atlas) -> Atlas:
    with tempfile.TemporaryDirectory() as folder:
        save_atlas(atlas, Path(folder) / "a.npz")
        return load_atlas(Path(folder) / "a.npz")


def test_floats_and_missing_opinions_survive(tmp_path: Path) -> None:
    table = alike(np.linspace(0, 1, 15)[np.newaxis])
    table[0, 2] = np.nan
    atlas = made_up(table, alike(np.full((4, 1), 0.25)), [14], opinion="m:f")
    save_atlas(atlas, tmp_path / "a.npz")
    again = load_atlas(tmp_path / "a.npz")
    assert np.array_equal(again.table, table, equal_nan=True)
    assert again.seed_means()[0, 14] == 1.0


def test_the_same_atlas_has_the_same_digest_whenever_it_was_built(tmp_path: Path) -> None:
    again = built(plan(), tmp_path / "a.npz", command="another command")
    assert again.digest == trained().digest
    assert built(plan(seed=8), tmp_path / "b.npz").digest != trained().digest


def test_a_large_table_of_counts_takes_less_than_a_byte_an_opinion(tmp_path: Path) -> None:
    """Counts that differ between seeds by a few right answers, as trained ones do."""
    rng = np.random.Generator(np.random.PCG64(1))
    level = rng.integers(10, 60, size=(1, 6, 15))
    entries = np.clip(level + rng.integers(-2, 3, size=(400, 6, 15)), 0, trained().test_sizes[:, np.newaxis])
    atlas = made_up(entries.astype(np.uint16), entries[:4, :, :1].astype(np.uint16), [0])
    save_atlas(atlas, tmp_path / "a.npz")
    assert (tmp_path / "a.npz").stat().st_size < 0.6 * entries.size + 6000


def test_files_that_are_not_atlases_are_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no file .*; `fedelect atlas build SCENARIO"):
        load_atlas(tmp_path / "missing.npz")
    other = tmp_path / "other.npz"
    np.savez(other, X=np.zeros(3))
    with pytest.raises(DataError, match="is not an atlas: it lacks the member `about`"):
        load_atlas(other)
    np.savez(other, about=np.frombuffer(b"{}", dtype=np.uint8))
    with pytest.raises(DataError, match="is not an atlas: Object missing"):
        load_atlas(other)
    other.write_text("hello")
    with pytest.raises(DataError, match="cannot be read as an atlas"):
        load_atlas(other)
    np.savez(other, about=np.array([{}], dtype=object))
    with pytest.raises(DataError, match="cannot be read as an atlas"):
        load_atlas(other)
    single = tmp_path / "single.npz"
    with open(single, "wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(DataError, match=r"cannot be read as an atlas: .*single\.npz is not an \.npz file but"):
        load_atlas(single)
    with pytest.raises(DataError, match="cannot be read"):
        load_atlas(tmp_path)


def test_a_broken_file_is_refused_wherever_it_is_broken(path: Path) -> None:
    whole = path.read_bytes()
    for cut in range(0, len(whole), len(whole) // 23):
        path.write_bytes(whole[:cut])
        with pytest.raises(DataError):
            load_atlas(path)
    refused = 0
    for place in range(40, len(whole), len(whole) // 41):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        try:
            assert load_atlas(path).digest == trained().digest  # a byte that carries nothing, such as a time
        except DataError:
            refused += 1
    assert refused > 20


def test_another_version_or_kind_is_named(path: Path) -> None:
    with pytest.raises(DataError, match=r"is of version 99, this fedelect reads version 1"):
        load_atlas(rewritten(path, about=about(path, version=99)))
    with pytest.raises(DataError, match="is not an atlas but 'photographs'"):
        load_atlas(rewritten(path, about=about(path, format="photographs")))


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("contenders", np.array([3, 2, 1, 0, 4]), "ascending"),
        ("contenders", np.array([0, 1, 2, 3, 15]), "contenders holds 15"),
        ("contenders", np.array([0, 1]), "fresh has shape"),
        ("contenders", np.array([0.5]), "has type float64"),
        ("sizes", None, "sizes"),
        ("sizes", np.array([1, 2]), "sizes has shape"),
        ("edges", np.array([[0, 6]]), "edge_lengths_km has shape"),
        ("upload_probability", np.full(6, 1.5), "upload_probability holds 1.5"),
        ("untrained", np.full(6, 2.0), "untrained holds 2.0"),
        ("test_sizes", np.ones(6, dtype=np.int64), "table holds"),
        ("test_sizes", np.full(6, 1000), "digest"),
        ("table_low", np.zeros((2, 6, 14), dtype=np.uint8), "damaged"),
        ("table_high", np.full((2, 6, 15), 200, dtype=np.uint8), "table holds"),
        ("fresh_low", None, "fresh_low"),
    ],
)
def test_members_that_do_not_fit_are_told(path: Path, member: str, value: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_atlas(rewritten(path, **{member: value}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 8}, "digest"),
        ({"seed": "x"}, "damaged"),
        ({"opinions": "runes"}, "runes"),
        ({"groups": {"iid": [9]}}, "groups holds 9"),
        ({"shapes": {}}, "damaged"),
        ({"config": {"clients": 0}}, "damaged"),
    ],
)
def test_a_changed_description_is_told(path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_atlas(rewritten(path, about=about(path, **changes)))


def test_the_page_names_every_member_of_the_file(path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "ATLAS.md").read_text()
    with np.load(path) as file:
        for name in file.files:
            assert f"`{name}`" in page
        for field in json.loads(file["about"].tobytes()):
            assert field in page
