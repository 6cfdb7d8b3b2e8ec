"""One seed, many independent streams."""

import numpy as np

from fedelect.seeds import derive, rank_key, stream


def test_a_stream_depends_on_its_name_only() -> None:
    stream(1, "other").random(100)
    assert stream(1, "training", 3).random() == stream(1, "training", 3).random()


def test_names_that_look_alike_are_different_streams() -> None:
    names: list[tuple[str | int, ...]] = [("a", 1), ("a1",), ("a", "1"), ("a", 11), ("a", 1, 1), ()]
    draws = {stream(1, *name).random() for name in names} | {stream(2, "a", 1).random()}
    assert len(draws) == len(names) + 1


def test_numpy_integers_name_the_same_stream_as_plain_ones() -> None:
    assert stream(np.int64(4), "a", np.int64(2)).random() == stream(4, "a", 2).random()  # type: ignore[arg-type]


def test_the_streams_are_fixed_for_all_time() -> None:
    """A change here would silently change every recorded run."""
    assert derive(1, "selection", 0) == 1695922719897505187
    assert rank_key(7, 3, 2).hex() == "ff283ef98af28cdc8efba0fd65a2abe3"


def test_streams_of_neighbouring_names_are_uncorrelated() -> None:
    draws = np.array([stream(0, "slot", slot).random(50) for slot in range(200)])
    correlation = np.corrcoef(draws)
    off_diagonal = correlation[~np.eye(200, dtype=bool)]
    assert abs(off_diagonal.mean()) < 0.005
    assert np.abs(off_diagonal).max() < 0.75
