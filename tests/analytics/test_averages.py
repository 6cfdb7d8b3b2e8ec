"""One number out of many opinions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedelect.analytics import average_opinion
from fedelect.errors import ConfigurationError
from fedelect.vocabulary import mean_present

opinions = st.lists(st.one_of(st.floats(0, 1), st.just(float("nan"))), min_size=1, max_size=40)


@given(opinions)
def test_the_mean_is_that_of_the_opinions_present(values: list[float]) -> None:
    array = np.array(values)
    assert average_opinion(array) == mean_present(array)


@given(opinions)
def test_the_median_is_numpys_and_the_order_does_not_matter(values: list[float]) -> None:
    array = np.array(values)
    median = average_opinion(array, "median")
    if np.isnan(array).all():
        assert median is None
    else:
        assert median == pytest.approx(np.nanmedian(array), abs=1e-12)
        for kind in ("mean", "median", "trimmed"):
            assert average_opinion(array, kind) == average_opinion(array[::-1], kind)


@given(
    st.lists(st.floats(0, 1), min_size=3, max_size=40),
    st.lists(st.sampled_from([0.0, 1.0]), max_size=30),
    st.floats(0, 0.49),
)
def test_no_minority_moves_a_robust_average_out_of_the_honest_range(
    honest: list[float], false: list[float], trim: float
) -> None:
    together = np.array(honest + false)
    if 2 * len(false) < len(together):
        median = average_opinion(together, "median")
        assert median is not None and min(honest) - 1e-12 <= median <= max(honest) + 1e-12
    if len(false) <= trim * len(together):
        trimmed = average_opinion(together, "trimmed", trim=trim)
        assert trimmed is not None and min(honest) - 1e-12 <= trimmed <= max(honest) + 1e-12


def test_the_trimmed_mean_cuts_the_stated_share_at_each_end() -> None:
    values = np.array([0.0, 0.1, 0.2, 0.6, 1.0])
    assert average_opinion(values, "trimmed", trim=0.2) == pytest.approx(0.3)
    assert average_opinion(values, "trimmed", trim=0.21) == pytest.approx(0.2)
    assert average_opinion(values, "trimmed", trim=0.0) == pytest.approx(0.38)


def test_an_unknown_average_or_share_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="average"):
        average_opinion(np.array([0.5]), "mode")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="trim"):
        average_opinion(np.array([0.5]), "trimmed", trim=-0.1)
