"""The clients' last updates, for selectors that compare them."""

from typing import Any

import numpy as np

from fedelect.rules import pack, unpack
from fedelect.vocabulary import UPDATE_SIZE, Floats, Ints


class LastUpdates:
    """The last update of each client.

    Args:
        clients: N.

    Attributes:
        rows: (N, 64), nan where a client has never uploaded.
    """

    def __init__(self, clients: int) -> None:
        self.rows: Floats = np.full((clients, UPDATE_SIZE), np.nan)

    @property
    def known(self) -> Ints:
        """Numbers of the clients that have uploaded."""
        return np.flatnonzero(~np.isnan(self.rows[:, 0]))

    def add(self, updates: Floats) -> None:
        """Replace the rows of the clients that uploaded; (N, 64) with rows of nan for the others."""
        self.rows = np.where(np.isnan(updates), self.rows, updates)

    def state(self) -> Any:
        """Return the rows as a JSON-able value."""
        return pack(self.rows.ravel(), "<f8")

    def restore(self, state: Any) -> None:
        """Replace the rows by those that `state` returned."""
        self.rows = unpack(state, "<f8", size=self.rows.size, what="updates").reshape(self.rows.shape)


def squared_distances(rows: Floats, others: Floats) -> Floats:
    """(n, m) squared Euclidean distances of rows (n, d) to others (m, d); 0 where they differ by rounding only."""
    norms = (rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)
    squares: Floats = norms - 2.0 * (rows @ others.T)
    squares[squares <= 1e-12 * norms] = 0.0
    return squares
