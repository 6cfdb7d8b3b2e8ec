"""A store of the whole catalogue at a tiny size, filled once for all tests that only read it."""

import pytest

from paper import ResultStore
from paper.tests.small_store import fill, small_store


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> ResultStore:
    store = small_store(tmp_path_factory.mktemp("small") / "results")
    fill(store)
    return store
