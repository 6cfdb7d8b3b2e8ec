"""Read and fetch data files; nothing else in fedelect does. Returns checked arrays."""

from fedelect.datasets.fetch import PUBLISHED, cache_folder, fetch_dataset
from fedelect.datasets.load import NAMED, as_dataset, load_dataset

__all__ = ["NAMED", "PUBLISHED", "as_dataset", "cache_folder", "fetch_dataset", "load_dataset"]
