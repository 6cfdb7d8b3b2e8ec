"""Put the flaws of data into the clients' shares. Shares without a flaw stay the same arrays."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from msgspec import UNSET

from fedelect.errors import ConfigurationError
from fedelect.scenario.dataset import Inputs
from fedelect.scenario.flaws import Flaws, FlawsConfig
from fedelect.seeds import stream
from fedelect.vocabulary import Floats, Ints

_ROWS_AT_ONCE = 4096


class ClientData(NamedTuple):
    """Training and test shares, one array for each client."""

    train_inputs: tuple[Inputs, ...]
    train_labels: tuple[Ints, ...]
    test_inputs: tuple[Inputs, ...]
    test_labels: tuple[Ints, ...]


def spoil_data(
    data: ClientData,
    config: FlawsConfig,
    flaws: Flaws,
    *,
    classes: int,
    deviations: Callable[[], Floats],
    seed: int,
    draw: int = 0,
) -> ClientData:
    """Return the shares with their flaws.

    Copies are made first, of the share as it was. What is wrong with client n's data comes from the streams
    ("flaws", draw, kind, n, "train") and (..., "test").

    Args:
        data: The shares without flaws.
        config: The [flaws] table.
        flaws: Who has which.
        classes: C.
        deviations: Returns (F,) the standard deviation of each feature; called only if it is needed.
        seed: The scenario's seed.
        draw: Number of the redraw.
    """
    train = _Part("train", list(data.train_inputs), list(data.train_labels))
    test = _Part("test", list(data.test_inputs), list(data.test_labels))
    clients = len(data.train_labels)
    for copier, original in _draw_originals(flaws, clients, seed=seed, draw=draw).items():
        train.inputs[copier], train.labels[copier] = data.train_inputs[original], data.train_labels[original]
    if config.random_labels is not UNSET:
        for part, client in _places(train, test, flaws["random_labels"], config.random_labels.clean_test):
            rng = stream(seed, "flaws", draw, "random_labels", client, part.name)
            labels = part.labels[client]
            replaced = rng.random(labels.size) < config.random_labels.rate
            part.labels[client] = np.where(replaced, rng.integers(0, classes, labels.size), labels)
    if config.swapped_labels is not UNSET:
        partner = draw_swaps(classes, stream(seed, "flaws", draw, "swapped_labels", "pairs"))
        for part, client in _places(train, test, flaws["swapped_labels"], config.swapped_labels.clean_test):
            rng = stream(seed, "flaws", draw, "swapped_labels", client, part.name)
            labels = part.labels[client]
            swapped = rng.random(labels.size) < config.swapped_labels.rate
            part.labels[client] = np.where(swapped, partner[labels], labels)
    if config.noisy_features is not UNSET:
        scale = config.noisy_features.noise * deviations()
        for part, client in _places(train, test, flaws["noisy_features"], config.noisy_features.clean_test):
            rng = stream(seed, "flaws", draw, "noisy_features", client, part.name)
            inputs = part.inputs[client]
            part.inputs[client] = (inputs + scale * rng.standard_normal(inputs.shape)).astype(inputs.dtype)
    return ClientData(tuple(train.inputs), tuple(train.labels), tuple(test.inputs), tuple(test.labels))


def draw_swaps(classes: int, rng: np.random.Generator, count: int | None = None) -> Ints:
    """(C,) the class that each is swapped with: `count` classes, drawn, in pairs; the others are their own partners.

    Args:
        classes: C.
        rng: Where the pairs come from.
        count: How many classes change; all if None. Of an odd number one stays.
    """
    order = rng.permutation(classes)[:count]
    one, other = order[0 : order.size // 2 * 2 : 2], order[1::2]
    partner = np.arange(classes)
    partner[one], partner[other] = other, one
    return partner


def feature_deviations(inputs: Inputs) -> Floats:
    """(F,) standard deviation of each feature over (n, F) inputs, without a copy of them in floats."""
    blocks = range(0, len(inputs), _ROWS_AT_ONCE)
    mean = sum(inputs[at : at + _ROWS_AT_ONCE].sum(axis=0, dtype=np.float64) for at in blocks) / len(inputs)
    squares = sum(((inputs[at : at + _ROWS_AT_ONCE] - mean) ** 2).sum(axis=0) for at in blocks)
    deviations: Floats = np.sqrt(squares / len(inputs))
    return deviations


class _Part(NamedTuple):
    name: str
    inputs: list[Inputs]
    labels: list[Ints]


def _places(train: _Part, test: _Part, clients: tuple[int, ...], clean_test: bool) -> list[tuple[_Part, int]]:
    parts = (train,) if clean_test else (train, test)
    return [(part, client) for client in clients for part in parts]


def _draw_originals(flaws: Flaws, clients: int, *, seed: int, draw: int) -> dict[int, int]:
    """For each client with a copied share, the unflawed client whose share it is; any may be copied twice."""
    copiers = flaws.get("copies", ())
    flawed = {client for members in flaws.values() for client in members}
    honest = [client for client in range(clients) if client not in flawed]
    if copiers and not honest:
        raise ConfigurationError(
            "flaws.copies: got a world in which every client has a flaw; allowed: one or more without, to copy from"
        )
    picks = {client: stream(seed, "flaws", draw, "copies", client) for client in copiers}
    return {client: honest[int(rng.integers(len(honest)))] for client, rng in picks.items()}
