"""Linear algebra by exactly rounded operations in a fixed order: the same bits on all machines."""

import decimal
import math

import numpy as np

from fedelect.vocabulary import Floats, Ints

_LN_2 = 0.6931471805599453


def membership(cohorts: Ints, pool: Ints) -> Floats:
    """(n, P) 1 where a cohort of `cohorts` (n, K) contains the client of `pool` (P,), sorted; else 0."""
    places = np.minimum(np.searchsorted(pool, cohorts), pool.size - 1)
    rows = np.zeros((len(cohorts), pool.size))
    inside = pool[places] == cohorts
    row, column = np.nonzero(inside)
    rows[row, places[row, column]] = 1.0
    return rows


def members(rows: Floats, columns: Ints, budget: int) -> Ints:
    """(m, K) client numbers of sets (m, P) of `budget` members, given by membership over the clients `columns` (P,)."""
    numbers: Ints = columns[np.nonzero(rows)[1]].reshape(len(rows), budget)
    return numbers


class Factor:
    """Factorisation A = L D L' of a symmetric positive definite matrix (n, n), L unit lower triangular.

    Attributes:
        pivots: (n,) the diagonal of D.
        inverse: (n, n) the inverse of L.
    """

    def __init__(self, matrix: Floats) -> None:
        work, self.inverse = matrix.copy(), np.eye(len(matrix))
        for pivot in range(len(work)):
            ratio = work[pivot + 1 :, pivot] / work[pivot, pivot]
            work[pivot + 1 :, pivot + 1 :] -= ratio[:, None] * work[pivot, pivot + 1 :]
            self.inverse[pivot + 1 :, : pivot + 1] -= ratio[:, None] * self.inverse[pivot, : pivot + 1]
        self.pivots: Floats = np.diag(work).copy()

    def solve_lower(self, columns: Floats) -> Floats:
        """L^-1 C for columns C (n, m); C' A^-1 C is the sum of its squared rows over the pivots."""
        result = np.zeros_like(columns)
        for place, row in enumerate(columns):
            result[place:] += self.inverse[place:, place][:, None] * row
        return result

    def solve(self, columns: Floats) -> Floats:
        """A^-1 C for columns C (n, m)."""
        result = np.zeros_like(columns)
        for place, row in enumerate(self.solve_lower(columns)):
            result[: place + 1] += (self.inverse[place, : place + 1] / self.pivots[place])[:, None] * row
        return result

    def ln_determinant(self) -> float:
        """Natural logarithm of the determinant of A."""
        mantissa, exponent = 1.0, 0
        for pivot in self.pivots.tolist():
            mantissa, moved = math.frexp(mantissa * pivot)
            exponent += moved
        return ln(mantissa) + exponent * _LN_2


def ln(number: float) -> float:
    """Natural logarithm, correctly rounded on every platform."""
    return float(decimal.Context(prec=25).ln(decimal.Decimal(number)))


def weighted_rows(matrix: Floats, weights: Floats) -> Floats:
    """(m,) sum of the rows of `matrix` (n, m) times their weights (n,), added in order."""
    total = np.zeros(matrix.shape[1])
    for row, weight in zip(matrix, weights, strict=True):
        total += row * weight
    return total
