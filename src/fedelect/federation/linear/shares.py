"""Clients' data in the forms that the stacked engine uses, cached for each scenario within a memory budget.

A `Share` makes its Gram matrix and sparse forms on first use. `ShareCache` holds scenarios weakly, and drops those
unused for longest when all of them together exceed its budget.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from fedelect.federation.linear.layout import (
    LANES,
    Numbers,
    Sparse,
    Words,
    aligned_zeros,
    as_sparse,
    member_bits,
    strips,
    with_bias,
)
from fedelect.federation.linear.model import LOSSES, LinearLoss
from fedelect.scenario import ModelConfig, Scenario
from fedelect.vocabulary import Ints

CACHE_BYTES = 3 * 2**28
"""Memory for Gram matrices and sparse forms of all scenarios together: 768 MiB."""

Multiply = Callable[..., None]


class Share:
    """Training share of one client.

    Attributes:
        inputs: (D, F).
        labels: (D,).
        classes: C.
        settings: [model] of the scenario.
    """

    def __init__(self, inputs: Numbers, labels: Ints, classes: int, settings: ModelConfig) -> None:
        self.inputs, self.labels, self.classes, self.settings = inputs, labels, classes, settings

    @property
    def samples(self) -> int:
        """D."""
        return len(self.labels)

    @property
    def loss(self) -> LinearLoss:
        """Loss that the client minimises."""
        return LOSSES[self.settings.kind]

    @cached_property
    def rates(self) -> Numbers:
        """(batches,) step / samples in the batch."""
        starts = np.arange(0, self.samples, self.settings.batch)
        lengths = np.minimum(self.settings.batch, self.samples - starts)
        return np.asarray(self.settings.step / lengths, dtype=self.inputs.dtype)

    @cached_property
    def by_sample(self) -> Sparse:
        """(D, F+1) the inputs with the bias feature."""
        return as_sparse(with_bias(self.inputs))

    @cached_property
    def by_feature(self) -> Sparse:
        """(F+1, D) the transpose of `by_sample`."""
        return as_sparse(np.ascontiguousarray(with_bias(self.inputs).T))

    @cached_property
    def positive(self) -> Words:
        """(C, S) the samples of each class."""
        members: NDArray[np.bool_] = np.arange(self.classes)[:, None] == self.labels
        return member_bits(members)

    @cached_property
    def gram(self) -> Numbers:
        """(D, D) inner products of the samples plus 1, by BLAS."""
        extended = with_bias(self.inputs)
        product: Numbers = extended @ extended.T
        return product

    def gram_strips(self, multiply: Multiply) -> Numbers:
        """(S, D, 64) inner products plus 1, padded with zeros; the same to the bit on any number of BLAS threads."""
        if self._strips is None:
            samples, features = self.samples, self.inputs.shape[1] + 1
            columns = np.arange(samples)
            grams = aligned_zeros((strips(samples), samples, LANES), self.inputs.dtype)
            put = columns // LANES * samples * LANES + columns % LANES
            take = columns * features
            multiply(
                *self.by_sample, with_bias(self.inputs).reshape(-1), take, 1, features, grams.reshape(-1), put, LANES
            )
            self._strips = grams
        return self._strips

    _strips: Numbers | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all forms made so far."""
        made: list[Any] = [value for name, value in vars(self).items() if name not in ("inputs", "labels")]
        return sum(value.nbytes for value in made if isinstance(value, (np.ndarray, Sparse)))


class Shares:
    """All clients' shares of one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self.clients = tuple(
            Share(inputs, labels, scenario.classes, scenario.config.model)
            for inputs, labels in zip(scenario.train_inputs, scenario.train_labels, strict=True)
        )
        self.tests = scenario.test_inputs
        self.global_tests = scenario.global_test_inputs

    @cached_property
    def test_by_sample(self) -> Sparse:
        """All clients' test shares, one after the other, with the bias feature."""
        return as_sparse(with_bias(np.concatenate(self.tests)))

    @cached_property
    def test_starts(self) -> Ints:
        """(N+1,) where each client's test share starts in `test_by_sample`."""
        return np.cumsum([0, *(len(inputs) for inputs in self.tests)])

    @cached_property
    def global_test_by_sample(self) -> Sparse:
        """The clean test set of all clients with the bias feature."""
        return as_sparse(with_bias(self.global_tests))

    @property
    def nbytes(self) -> int:
        """Bytes of all forms made so far."""
        tests = [value for value in vars(self).values() if isinstance(value, Sparse)]
        return sum(made.nbytes for made in tests) + sum(share.nbytes for share in self.clients)


class ShareCache:
    """Shares of the scenarios in use, within a memory budget."""

    def __init__(self, budget_bytes: int = CACHE_BYTES) -> None:
        self._budget = budget_bytes
        self._shares: WeakKeyDictionary[Scenario, Shares] = WeakKeyDictionary()  # the one used last is the last
        self._counted: WeakKeyDictionary[Scenario, int] = WeakKeyDictionary()  # bytes of each when it was used last

    def of(self, scenario: Scenario) -> Shares:
        """Return the shares of `scenario`; drop older scenarios' while all together exceed the budget."""
        for latest in list(self._shares)[-1:]:  # the only one that has grown since it was counted
            self._counted[latest] = self._shares[latest].nbytes
        found = self._shares.pop(scenario, None) or Shares(scenario)
        held = self._counted.setdefault(scenario, 0) + sum(self._counted[other] for other in self._shares)
        for other in list(self._shares):
            if held <= self._budget:
                break
            held -= self._counted.pop(other)
            del self._shares[other]
        self._shares[scenario] = found
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of all forms made so far."""
        return sum(shares.nbytes for shares in list(self._shares.values()))

    def __len__(self) -> int:
        return len(self._shares)
