"""The only code that reads or fetches data files; it returns checked arrays."""

from fedelect.datasets.cache import cache_folder
from fedelect.datasets.load import load_dataset
from fedelect.datasets.mnist import fetch_mnist
from fedelect.datasets.sources import SOURCES, Source

__all__ = ["SOURCES", "Source", "cache_folder", "fetch_mnist", "load_dataset"]
