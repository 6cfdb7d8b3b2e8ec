"""Read and fetch data files; nothing else in fedelect does. Returns checked arrays."""

from fedelect.datasets.load import as_dataset, load_dataset
from fedelect.datasets.mnist import cache_folder, fetch_mnist

__all__ = ["as_dataset", "cache_folder", "fetch_mnist", "load_dataset"]
