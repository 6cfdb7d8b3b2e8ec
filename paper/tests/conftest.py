"""A library of the whole catalogue at a tiny size, filled once for all tests that only read it."""

import pytest

from paper import Library
from paper.tests.small_library import fill, small_library


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Library:
    library = small_library(tmp_path_factory.mktemp("small") / "results")
    fill(library)
    return library
