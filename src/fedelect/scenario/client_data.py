"""The clients' shares as arrays: taken from a data set, and then with the flaws and the drift of the scenario."""

from typing import NamedTuple

import numpy as np
from msgspec import UNSET

from fedelect.scenario.config import ScenarioConfig
from fedelect.scenario.dataset import Dataset, Inputs
from fedelect.scenario.flawed_data import ClientData, feature_deviations, spoil_data
from fedelect.scenario.flaws import Flaws
from fedelect.scenario.partition import Partition
from fedelect.scenario.validation import HeldOut
from fedelect.vocabulary import Ints


class WorldData(NamedTuple):
    """All data of a world.

    Attributes:
        held: The shares as the clients hold them, with their flaws.
        clean: The shares without flaws; where there is none, the same arrays.
        test_inputs: (M, F) clean test data of everybody.
        test_labels: (M,).
        validation_inputs: (V, F) held at the server; none without [validation].
        validation_labels: (V,).
    """

    held: ClientData
    clean: ClientData
    test_inputs: Inputs
    test_labels: Ints
    validation_inputs: Inputs
    validation_labels: Ints


def build_data(
    config: ScenarioConfig,
    dataset: Dataset,
    partition: Partition,
    flaws: Flaws,
    validation: HeldOut | None = None,
    *,
    draw: int = 0,
) -> WorldData:
    """Take the clients' shares out of the data set, and put in their flaws. The server's samples have none.

    Test shares are views of one array where they make up the whole, so that it is held once.
    """
    precision = np.dtype(config.model.precision)
    if config.data.test_share == "own" and dataset.owners is None:
        all_inputs, all_labels = dataset.test_inputs.astype(precision), dataset.test_labels
        test_inputs = tuple(dataset.test_inputs[held].astype(precision) for held in partition.test)
        test_labels = tuple(dataset.test_labels[held] for held in partition.test)
    else:
        order = np.concatenate(partition.test)
        ends = np.cumsum([held.size for held in partition.test])[:-1]
        all_inputs, all_labels = dataset.test_inputs[order].astype(precision), dataset.test_labels[order]
        test_inputs, test_labels = tuple(np.split(all_inputs, ends)), tuple(np.split(all_labels, ends))
    clean = ClientData(
        tuple(dataset.inputs[held].astype(precision) for held in partition.train),
        tuple(dataset.labels[held] for held in partition.train),
        test_inputs,
        test_labels,
    )
    held = _put_flaws(config, dataset, clean, flaws, draw=draw)
    own = (dataset.inputs[:0], dataset.labels[:0]) if validation is None else (validation.inputs, validation.labels)
    return WorldData(held, clean, all_inputs, all_labels, own[0].astype(precision), own[1])


def rename_classes(
    data: WorldData, names: Ints, config: ScenarioConfig, dataset: Dataset, flaws: Flaws, *, draw: int = 0
) -> WorldData:
    """The same data under new names of the classes, (C,); the flaws are what they were. Inputs are the same arrays."""
    clean = data.clean._replace(
        train_labels=tuple(names[labels] for labels in data.clean.train_labels),
        test_labels=tuple(names[labels] for labels in data.clean.test_labels),
    )
    held = _put_flaws(config, dataset, clean, flaws, draw=draw)
    held = held._replace(train_inputs=data.held.train_inputs, test_inputs=data.held.test_inputs)
    return data._replace(
        held=held,
        clean=clean,
        test_labels=names[data.test_labels],
        validation_labels=names[data.validation_labels],
    )


def _put_flaws(config: ScenarioConfig, dataset: Dataset, clean: ClientData, flaws: Flaws, *, draw: int) -> ClientData:
    if config.flaws is UNSET:
        return clean
    return spoil_data(
        clean,
        config.flaws,
        flaws,
        classes=dataset.classes,
        deviations=lambda: feature_deviations(dataset.inputs),
        seed=config.seed,
        draw=draw,
    )
