"""Partition a data set among clients.

A client gets a size, a requested number of samples of each class, and then samples. The samples of each class are
shuffled and given out in order of clients, so no two clients share a training sample while they last. When a class
runs out, all its samples are shuffled and given out again: then clients may share samples, but no client ever holds one
twice. A client that wants more of a class than there is gets the rest from the other classes it may hold; only when
those together are too few is that an error.
"""

from typing import NamedTuple

import numpy as np

from fedelect.errors import DataError
from fedelect.scenario.config import DataConfig
from fedelect.scenario.dataset import Dataset
from fedelect.scenario.hard import measure_difficulty
from fedelect.seeds import stream
from fedelect.vocabulary import Floats, Ints


class Partition(NamedTuple):
    """Sorted sample numbers of each client, in the training set and in the test set."""

    train: tuple[Ints, ...]
    test: tuple[Ints, ...]


def draw_partition(
    config: DataConfig, dataset: Dataset, clients: int, *, seed: int, draw: int = 0, hard: tuple[int, ...] = ()
) -> Partition:
    """Partition the data set among the clients.

    Training data: the first `iid_clients` clients (all under skew "iid") hold a random sample of the whole;
    under "labels" each other client holds `classes_per_client` classes in even parts, chosen so that about as many
    clients hold each class; under "dirichlet" its class shares are Dirichlet(alpha). Sizes are uniform in `samples`.

    Test shares: under "global" the test set is shuffled and cut evenly; under "own" each client gets a share of
    test size / clients (at least 1) whose classes are drawn like its own training labels.

    Hard clients: as many samples of each class as without this, but the hardest of them, in training and in test.

    Args:
        config: The [data] table.
        dataset: The data.
        clients: N.
        seed: The scenario's seed; all streams are named ("data", draw, ...).
        draw: Number of the redraw.
        hard: The clients with hard data; see `measure_difficulty`.

    Raises:
        DataError: The data cannot supply what is asked.
    """
    supply = np.bincount(dataset.labels, minlength=dataset.classes)
    low, high = config.samples
    sizes = stream(seed, "data", draw, "sizes").integers(low, high, size=clients, endpoint=True)
    if sizes.max() > supply.sum():
        raise DataError(
            f"data.samples: client {sizes.argmax()} is to hold {sizes.max()} samples, but {dataset.name} "
            f"has {supply.sum()}; lower `samples`"
        )
    requests = _train_requests(config, sizes, supply, dataset.name, seed=seed, draw=draw)
    train_hard = test_hard = None
    if hard:
        difficulty = measure_difficulty(dataset)
        train_hard, test_hard = _Hard(hard, difficulty.train), _Hard(hard, difficulty.test)
    train = _give_out(dataset.labels, requests, seed=seed, name=("data", draw, "train"), hard=train_hard)
    if config.test_share == "own":
        test = _own_test_shares(dataset, requests, seed=seed, draw=draw, hard=test_hard)
    else:
        test = _even_test_shares(dataset, clients, seed=seed, draw=draw, hard=test_hard)
    return Partition(train, test)


def own_partition(dataset: Dataset) -> Partition:
    """The partition of data that belongs to clients already: to each its own samples, in their order."""
    assert dataset.owners is not None and dataset.test_owners is not None
    return Partition(_samples_of_each(dataset.owners), _samples_of_each(dataset.test_owners))


def _samples_of_each(owners: Ints) -> tuple[Ints, ...]:
    return tuple(np.split(np.argsort(owners, kind="stable"), np.cumsum(np.bincount(owners))[:-1]))


class _Hard(NamedTuple):
    """The clients that get hard samples, and how hard each sample is."""

    clients: tuple[int, ...]
    difficulty: Floats


def _train_requests(config: DataConfig, sizes: Ints, supply: Ints, data_name: str, *, seed: int, draw: int) -> Ints:
    """(N, C) samples of each class for each client."""
    clients, classes = sizes.size, supply.size
    iid = clients if config.skew == "iid" else config.iid_clients
    if config.skew == "labels" and iid < clients and config.classes_per_client > classes:
        raise DataError(
            f"data.classes_per_client: got {config.classes_per_client}, but {data_name} has {classes} classes"
        )
    held_classes = _assign_classes(
        clients - iid, min(config.classes_per_client, classes), classes, stream(seed, "data", draw, "hands")
    )
    requests = np.zeros((clients, classes), dtype=np.int64)
    for client in range(clients):
        rng = stream(seed, "data", draw, "classes", client)
        size = int(sizes[client])
        if client < iid:
            requests[client] = rng.multivariate_hypergeometric(supply, size)
            continue
        if config.skew == "labels":
            share = np.zeros(classes)
            share[held_classes[client - iid]] = 1.0
            wish = _even_counts(size, held_classes[client - iid], classes)
        else:
            share = rng.dirichlet(np.full(classes, config.alpha))
            wish = rng.multinomial(size, share)
            share = np.ones(classes)
        if size > supply[share > 0].sum():
            raise DataError(
                f"data.samples: client {client} is to hold {size} samples of classes "
                f"{np.flatnonzero(share).tolist()}, but {data_name} has {supply[share > 0].sum()}; lower "
                f"`samples` or raise `classes_per_client`"
            )
        requests[client] = _within_supply(wish, supply, share, rng)
    return requests


def _assign_classes(sets: int, size: int, classes: int, rng: np.random.Generator) -> list[Ints]:
    """Draw `sets` sets of `size` different classes, in turn from shuffled lists of all classes."""
    drawn = []
    waiting: list[int] = []
    for _ in range(sets):
        chosen: list[int] = []
        passed: list[int] = []
        while len(chosen) < size:
            if not waiting:
                waiting = rng.permutation(classes).tolist()
            label = waiting.pop()
            (passed if label in chosen else chosen).append(label)
        # A class passed over because the client has it already goes to the next client.
        waiting += passed
        drawn.append(np.array(sorted(chosen), dtype=np.int64))
    return drawn


def _even_counts(size: int, held: Ints, classes: int) -> Ints:
    wish = np.zeros(classes, dtype=np.int64)
    wish[held] = size // held.size
    wish[held[: size % held.size]] += 1
    return wish


def _within_supply(wish: Ints, supply: Ints, share: Floats, rng: np.random.Generator) -> Ints:
    """`wish` with what exceeds the supply of a class moved at random to others with a share and some left."""
    granted = np.minimum(wish, supply)
    missing = int(wish.sum() - granted.sum())
    if missing:
        room = np.where(share > 0, supply - granted, 0)
        granted = granted + rng.multivariate_hypergeometric(room, missing)
    return granted


def _give_out(
    labels: Ints, requests: Ints, *, seed: int, name: tuple[str | int, ...], hard: _Hard | None = None
) -> tuple[Ints, ...]:
    by_class = [
        _ClassSamples(np.flatnonzero(labels == label), stream(seed, *name, label)) for label in range(requests.shape[1])
    ]
    clients = list(range(len(requests)))
    if hard is not None:
        for samples, count in zip(by_class, requests[list(hard.clients)].sum(axis=0), strict=True):
            samples.put_first(hard.difficulty, int(count))
        clients = [*hard.clients, *sorted(set(clients).difference(hard.clients))]
    held: dict[int, Ints] = {}
    for client in clients:
        wish = requests[client]
        wanted = np.flatnonzero(wish).tolist()
        held[client] = np.sort(np.concatenate([by_class[label].take(int(wish[label])) for label in wanted]))
    return tuple(held[client] for client in range(len(requests)))


class _ClassSamples:
    """Samples of one class in random order, taken from the front; shuffled anew when they run out."""

    def __init__(self, samples: Ints, rng: np.random.Generator) -> None:
        self._samples = samples
        self._rng = rng
        self._left = rng.permutation(samples)

    def put_first(self, difficulty: Floats, count: int) -> None:
        """Move the `count` hardest samples to the front; both parts stay shuffled."""
        hardest = self._left[np.argsort(-difficulty[self._left], kind="stable")[:count]]
        first = np.isin(self._left, hardest)
        self._left = np.concatenate([self._left[first], self._left[~first]])

    def take(self, count: int) -> Ints:
        taken, self._left = self._left[:count], self._left[count:]
        if taken.size < count:
            again = self._rng.permutation(self._samples)
            repeated = np.isin(again, taken)
            # What this client has just been given goes to the end, so that it gets nothing twice.
            again = np.concatenate([again[~repeated], again[repeated]])
            more = count - taken.size
            taken, self._left = np.concatenate([taken, again[:more]]), again[more:]
        return taken


def _even_test_shares(dataset: Dataset, clients: int, *, seed: int, draw: int, hard: _Hard | None) -> tuple[Ints, ...]:
    count = len(dataset.test_labels)
    if count < clients:
        raise DataError(
            f"{dataset.name} has {count} test samples for {clients} clients; take fewer clients or "
            f'set data.test_share = "own"'
        )
    order = stream(seed, "data", draw, "test").permutation(count)
    shares = tuple(np.sort(share) for share in np.array_split(order, clients))
    if hard is None:
        return shares
    requests = np.stack([np.bincount(dataset.test_labels[share], minlength=dataset.classes) for share in shares])
    return _give_out(dataset.test_labels, requests, seed=seed, name=("data", draw, "hard test"), hard=hard)


def _own_test_shares(dataset: Dataset, requests: Ints, *, seed: int, draw: int, hard: _Hard | None) -> tuple[Ints, ...]:
    clients, classes = requests.shape
    supply = np.bincount(dataset.test_labels, minlength=classes)
    size = max(1, len(dataset.test_labels) // clients)
    test_requests = np.zeros_like(requests)
    for client, held in enumerate(requests):
        rng = stream(seed, "data", draw, "own test", client)
        available = int(supply[held > 0].sum())
        if not available:
            raise DataError(
                f"{dataset.name} has no test sample of client {client}'s classes "
                f'{np.flatnonzero(held).tolist()}; set data.test_share = "global"'
            )
        wish = rng.multinomial(min(size, available), held / held.sum())
        test_requests[client] = _within_supply(wish, supply, held.astype(np.float64), rng)
    return _give_out(dataset.test_labels, test_requests, seed=seed, name=("data", draw, "own test"), hard=hard)
