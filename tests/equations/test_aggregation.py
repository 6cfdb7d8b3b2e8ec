import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fedelect.equations.aggregation import aggregate
from fedelect.vocabulary import Floats

_models = st.integers(1, 6).flatmap(lambda k: hnp.arrays(np.float64, (k, 3, 2), elements=st.floats(-1e3, 1e3)))


def test_the_new_model_is_the_mean_of_arrived_models_weighted_by_data_size() -> None:
    models = np.array([[1.0, 0.0], [3.0, 8.0], [100.0, 100.0]])
    new = aggregate(models, np.array([10, 30, 500]), np.array([True, True, False]), np.zeros(2))
    assert new.tolist() == [0.25 * 1 + 0.75 * 3, 0.75 * 8]


def test_without_any_arrival_the_previous_model_stays() -> None:
    previous = np.array([1.0, 2.0], dtype=np.float32)
    new = aggregate(np.full((2, 2), np.nan, dtype=np.float32), np.array([1, 2]), np.zeros(2, dtype=bool), previous)
    assert new is previous


def test_an_upload_that_did_not_arrive_is_ignored_even_if_it_is_nan() -> None:
    models = np.array([[np.nan, np.inf], [1.5, -2.5]])
    assert aggregate(models, np.array([7, 3]), np.array([False, True]), np.zeros(2)).tolist() == [1.5, -2.5]


@given(models=_models, data=st.data())
def test_aggregation_stays_in_the_convex_hull(models: Floats, data: st.DataObject) -> None:
    k = len(models)
    sizes = np.array(data.draw(st.lists(st.integers(1, 10_000), min_size=k, max_size=k)))
    arrivals = np.array(data.draw(st.lists(st.booleans(), min_size=k, max_size=k).filter(any)))
    new = aggregate(models, sizes, arrivals, np.zeros((3, 2)))
    slack = 1e-12 * (1 + np.abs(models).max())
    assert (new >= models[arrivals].min(axis=0) - slack).all()
    assert (new <= models[arrivals].max(axis=0) + slack).all()


@given(models=_models, data=st.data(), single=st.booleans())
def test_one_arrival_is_handed_on_unchanged(models: Floats, data: st.DataObject, single: bool) -> None:
    kept = models.astype(np.float32) if single else models
    client = data.draw(st.integers(0, len(kept) - 1))
    arrivals = np.arange(len(kept)) == client
    new = aggregate(kept, np.arange(len(kept)) + 1, arrivals, np.zeros((3, 2)))
    assert new.dtype == kept.dtype
    assert np.array_equal(new, kept[client])
