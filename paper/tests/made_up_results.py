"""Results that nobody ran: blocks with given opinions and cohorts, written as real ones are."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from paper import AbstractResultStore, Curves, ResultStoreOnFile, RunRequest, Series
from paper.blocks import Block, write_block
from paper.player import block_key
from paper.published import Baselines
from paper.registered.drawings import CompleteDrawing, Drawings, DrawnWorld, data_digest
from paper.registered.run import Part


def put(
    store: AbstractResultStore,
    series: Series,
    opinions: ArrayLike,
    *,
    cohorts: ArrayLike | None = None,
    untrained: float = 0.1,
    **beliefs: Any,
) -> None:
    """Keep (trials, T) opinions as the results of a series, in blocks of the store's size.

    Args:
        store: Where to keep them.
        series: The series.
        opinions: (trials, T).
        cohorts: (trials, T, K), or (K,) for all slots; the first K clients if None.
        untrained: Mean opinion of the untrained model.
        beliefs: `belief_sums` and the like, of every block.
    """
    values = np.asarray(opinions, dtype=np.float64)
    budget = series.world.budget
    shape = (*values.shape, budget)
    elected = np.broadcast_to(np.arange(budget) if cohorts is None else np.asarray(cohorts), shape).astype(np.uint8)
    for task in store.tasks([RunRequest(series=series, trials=len(values), slots=values.shape[1])]):
        members = slice(task.first_trial, task.first_trial + store.block)
        block = Block(
            key=block_key(task, store.data_digest, "made-up"),
            first_trial=task.first_trial,
            untrained=untrained,
            cohorts=elected[members],
            opinions=values[members],
            **beliefs,
        )
        write_block(task.path, block)


def put_part(root: Path, part: Part, opinions: ArrayLike, *, cohorts: ArrayLike | None = None) -> None:
    """Keep opinions as the results of a part of the pre-registered run, whose calibration, if any, is there.

    Args:
        root: Folder of the run.
        part: One series in one drawing.
        opinions: (trials, T), or what can be broadcast to it.
        cohorts: As for `put`.
    """
    store = ResultStoreOnFile(
        folder=part.folder(root),
        base=part.config,
        seed=part.drawing,
        block=part.series.trials,
        known_digest=data_digest(root),
    )
    put(store, part.request.series, np.broadcast_to(opinions, (part.series.trials, part.slots)), cohorts=cohorts)


def made_up_drawings(levels: Sequence[float], *, random: Sequence[float] | None = None) -> Drawings:
    """Drawings on the paper's scale, of 500 slots and two trials; the clients elected are always 1 to 5.

    Args:
        levels: Of each drawing, the opinion in every slot of both algorithms.
        random: Of each drawing, that of random selection; 0.75 in all if None. Clients 1 to 5 have 0.9.
    """
    aim = Baselines(0.9, 0.75)
    drawn = tuple(
        CompleteDrawing(
            drawing=101 + place,
            fixed=_flat(aim.fixed),
            random=_flat(aim.random if random is None else random[place]),
            reading=_flat(level),
            as_printed=_flat(level),
        )
        for place, level in enumerate(levels)
    )
    return {name: DrawnWorld(aim=aim, drawings=drawn) for name in ("fa", "da")}


def _flat(level: float) -> Curves:
    return Curves(
        series=Series(selector="any"),
        trials=np.arange(2),
        untrained=0.1,
        cohorts=np.broadcast_to(np.arange(5, dtype=np.uint8), (2, 500, 5)),
        opinions=np.full((2, 500), level),
        beliefs=None,
        belief_half_width=None,
        belief_blocks=None,
        residuals=None,
        engine="made-up",
        made_with=("made-up",),
    )
