"""[validation]: training samples that the server holds and no client does, to score models with.

Drawn from the stream ("data", draw, "validation") of the scenario's seed, class by class, before anything is dealt to
the clients. Of data that belongs to clients already, each client keeps at least one sample.
"""

import dataclasses
from typing import Annotated, Literal, NamedTuple

import numpy as np
from msgspec import Struct

from fedelect.errors import DataError
from fedelect.scenario.dataset import Dataset, Inputs
from fedelect.scenario.keys import describe_key
from fedelect.seeds import stream
from fedelect.vocabulary import Ints


class ValidationConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[validation]: samples held at the server, which score what members contribute; leave the table out for none."""

    share: Annotated[
        float,
        describe_key("share of each class of the training data", "a number > 0 and < 1", gt=0.0, lt=1.0),
    ] = 0.1
    score: Annotated[
        Literal["accuracy", "loss"],
        describe_key("what a model is scored by: its accuracy, or minus its mean loss", '"accuracy" or "loss"'),
    ] = "accuracy"


class HeldOut(NamedTuple):
    """A data set in two parts.

    Attributes:
        rest: The data without the validation samples.
        inputs: (V, F) of the validation samples, as the data came.
        labels: (V,).
    """

    rest: Dataset
    inputs: Inputs
    labels: Ints


def hold_out(config: ValidationConfig, dataset: Dataset, *, seed: int, draw: int = 0) -> HeldOut:
    """Take the validation samples out of a data set: of each class the share, rounded, and never all.

    Args:
        config: The table.
        dataset: The data.
        seed: The scenario's seed.
        draw: Number of the redraw.

    Raises:
        DataError: The share is less than one sample.
    """
    order = stream(seed, "data", draw, "validation").permutation(len(dataset.labels))
    if dataset.owners is not None:  # the first of each client stays with it
        _, firsts = np.unique(dataset.owners[order], return_index=True)
        order = np.delete(order, firsts)
    taken: list[Ints] = []
    for label, count in enumerate(np.bincount(dataset.labels).tolist()):
        own = order[dataset.labels[order] == label]
        taken.append(own[: min(round(config.share * count), count - 1)])
    held = np.sort(np.concatenate(taken))
    if not held.size:
        raise DataError(
            f"validation.share: got {config.share}, which is no sample of any class of {dataset.name}, with "
            f"{len(dataset.labels)} training samples in {dataset.classes} classes; raise it"
        )
    kept = np.setdiff1d(np.arange(len(dataset.labels)), held)
    rest = dataclasses.replace(
        dataset,
        inputs=dataset.inputs[kept],
        labels=dataset.labels[kept],
        owners=None if dataset.owners is None else dataset.owners[kept],
    )
    return HeldOut(rest, dataset.inputs[held], dataset.labels[held])
