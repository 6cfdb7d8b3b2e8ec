"""The data of all clients as tensors, laid out for training."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from fedelect.federation.linear.model import Scores
from fedelect.federation.torch.network import Network
from fedelect.scenario import Scenario

ALIGNMENT = 64
"""Bytes: a line of the cache and the widest vector register. Torch's own memory starts at a multiple of it."""

PRODUCTS_LIMIT = 512 * 2**20
"""Bytes that the products of the clients' samples may take."""


def pad(rows: Tensor) -> Tensor:
    """Append columns of zeros to (D, F) until a row is a multiple of `ALIGNMENT` bytes; itself if there is no need."""
    width = padded_width(rows.shape[1], rows.dtype)
    return rows if width == rows.shape[1] else torch.nn.functional.pad(rows, (0, width - rows.shape[1]))


def padded_width(width: int, dtype: torch.dtype) -> int:
    """The least number of columns, at least `width`, that is a multiple of `ALIGNMENT` bytes."""
    lanes = ALIGNMENT // dtype.itemsize
    return -(-width // lanes) * lanes


def make_products(inputs: Tensor, sizes: Sequence[int], epochs: int) -> Tensor | None:
    """Return room for `Shares.products` where they save arithmetic and fit in memory; the rule looks at sizes only.

    Args:
        inputs: (sum of D, F).
        sizes: D of each client.
        epochs: E.
    """
    span = padded_width(max(sizes), inputs.dtype)
    fewer = 2 * inputs.shape[1] + epochs * span < 2 * epochs * inputs.shape[1]  # multiplications of a sample and output
    fits = len(sizes) * span * span * inputs.element_size() <= PRODUCTS_LIMIT
    return inputs.new_zeros((len(sizes), span, span)) if fewer and fits else None


class DataTensors:
    """The data of all clients of a scenario as tensors on the network's device, through its leading layers.

    It does not hold the scenario, so that it can be kept for as long as the scenario is in use.

    Attributes:
        inputs: (sum of D, ...) training inputs, client after client.
        labels: (sum of D,).
        starts: Where each client's share starts; one more than clients.
        test_inputs: (sum of test shares, ...).
        test_sizes: Length of each client's test share.
    """

    def __init__(self, scenario: Scenario, network: Network) -> None:
        self._network = network
        self._sizes, self._epochs = scenario.sizes.tolist(), scenario.config.model.epochs
        self._global_test_inputs, self._validation_inputs = scenario.global_test_inputs, scenario.validation_inputs
        self.inputs = self.as_inputs(np.concatenate(scenario.train_inputs))
        self.labels = torch.tensor(np.concatenate(scenario.train_labels), device=network.flat.device)
        self.starts = [0, *np.cumsum(self._sizes).tolist()]
        self.test_inputs = self.as_inputs(np.concatenate(scenario.test_inputs))
        self.test_sizes = [len(labels) for labels in scenario.test_labels]
        self._test_starts = np.cumsum([0, *self.test_sizes])

    def as_inputs(self, values: Scores) -> Tensor:
        """Inputs (D, F) as what the network's body takes."""
        return self._network.prepare(torch.tensor(values, device=self._network.flat.device))

    @cached_property
    def padded_inputs(self) -> Tensor:
        """(sum of D, F padded) training inputs for `DenseStack`; from then on `inputs` is a view of them."""
        padded = pad(self.inputs)
        self.inputs = padded[:, : self.inputs.shape[1]]
        return padded

    @cached_property
    def products(self) -> Tensor | None:
        """(N, S, S) room for G = X X' + 1 of each client's training samples, for `DenseStack`; see `make_products`."""
        return make_products(self.inputs, self._sizes, self._epochs)

    @property
    def products_bytes(self) -> int:
        """Bytes that the products take now."""
        products = self.__dict__.get("products")
        return 0 if products is None else products.nbytes

    def forget_products(self) -> None:
        """Free the products; they are computed again, to the same bits, when they are needed."""
        self.__dict__.pop("products", None)

    @cached_property
    def global_test_inputs(self) -> Tensor:
        """(M, ...) clean test inputs of all clients."""
        return self.as_inputs(self._global_test_inputs)

    @cached_property
    def validation_inputs(self) -> Tensor:
        """(V, ...) inputs that the server holds."""
        return self.as_inputs(self._validation_inputs)

    def train_shares(self, clients: Sequence[int] | None) -> tuple[Tensor, Tensor, list[int]]:
        """Training inputs and labels of some clients, one after the other, and how many each has; None for all."""
        if clients is None:
            return self.inputs, self.labels, self._sizes
        shares = [slice(self.starts[client], self.starts[client + 1]) for client in clients]
        inputs, labels = (
            torch.cat([kept[:0], *(kept[share] for share in shares)]) for kept in (self.inputs, self.labels)
        )
        return inputs, labels, [self._sizes[client] for client in clients]

    def test_shares(self, clients: Sequence[int] | None) -> tuple[Tensor, list[int]]:
        """Test inputs of some clients, one after the other, and how many each has; None for all clients."""
        if clients is None:
            return self.test_inputs, self.test_sizes
        shares = [self.test_inputs[self._test_starts[one] : self._test_starts[one + 1]] for one in clients]
        inputs = torch.cat(shares) if shares else self.test_inputs[:0]
        return inputs, [self.test_sizes[client] for client in clients]
