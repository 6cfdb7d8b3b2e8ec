"""Stored results: for each series, small files of a few trials each.

A block is one file of one series: cohort and mean opinion in each slot of some consecutive trials; under
FL&DA also the clients' beliefs, summed over the trials. It names the scenario, selector, seed, data and engine it was
made with, and is not read for anything else. A longer block serves a shorter request.
"""

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from fedelect.equations.intervals import student_t_quantile
from fedelect.errors import RunError, RunMismatchError
from fedelect.loop import FrameworkName
from fedelect.records.files import make_folder, replace_file
from fedelect.vocabulary import Floats
from paper.series import Series

FORMAT = 1


class BlockKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a block was made with.

    Attributes:
        format: `FORMAT` of the writer.
        scenario: The configuration, plain values.
        selector: Text of the selector.
        framework: "fa" or "da".
        seed: Seed of the run.
        data_digest: Hash of the data.
        engine: What trained.
        versions: Of all that the last bit depends on; not compared, but `Curves.made_with` says which were mixed.
    """

    format: int = FORMAT
    scenario: dict[str, Any]
    selector: str
    framework: FrameworkName
    seed: int
    data_digest: str
    engine: str
    versions: dict[str, str]

    @property
    def made_with(self) -> str:
        """Engine and versions in a line."""
        return ", ".join([f"engine {self.engine}", *(f"{name} {number}" for name, number in self.versions.items())])


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Consecutive trials of one series.

    Attributes:
        key: What it was made with.
        first_trial: The number of its first trial.
        untrained: Mean opinion of the untrained model.
        cohorts: (trials, T, K) clients elected; K zeros in a slot that was skipped.
        opinions: (trials, T) mean opinion; nan where nothing was learnt.
        belief_sums: (T, N) sum over trials of each client's belief, divided by the sum over clients; None under FA.
        belief_squares: (T, N) sum of their squares; None under FA.
        residuals: (T,) largest residual of a slot's belief propagation over trials; None under FA.
    """

    key: BlockKey
    first_trial: int
    untrained: float
    cohorts: NDArray[np.unsignedinteger[Any]]
    opinions: Floats
    belief_sums: Floats | None = None
    belief_squares: Floats | None = None
    residuals: Floats | None = None

    @property
    def trials(self) -> int:
        """How many trials it holds."""
        return len(self.opinions)

    @property
    def slots(self) -> int:
        """T."""
        return int(self.opinions.shape[1])


_OPTIONAL = ("belief_sums", "belief_squares", "residuals")


def write_block(path: Path, block: Block) -> None:
    """Write it atomically."""
    arrays: dict[str, Any] = {
        "about": np.frombuffer(msgspec.json.encode(block.key), dtype=np.uint8),
        "first_trial": np.array(block.first_trial),
        "untrained": np.array(block.untrained),
        "cohorts": block.cohorts,
        "opinions": block.opinions,
    }
    arrays |= {name: getattr(block, name) for name in _OPTIONAL if getattr(block, name) is not None}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    make_folder(path.parent)
    replace_file(path, buffer.getvalue())


def read_block(path: Path) -> Block:
    """Read and check it.

    Raises:
        RunError: It is no such file, or is damaged.
    """
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        key = msgspec.json.decode(arrays.pop("about").tobytes(), type=BlockKey)
        block = Block(
            key=key,
            first_trial=int(arrays.pop("first_trial")),
            untrained=float(arrays.pop("untrained")),
            **arrays,
        )
        _check(block)
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, msgspec.MsgspecError) as error:
        raise RunError(f"the results in {path} cannot be read: {error}; delete the file to make them anew") from error
    return block


def _check(block: Block) -> None:
    clients, budget = block.key.scenario["clients"], block.key.scenario["budget"]
    if block.key.format != FORMAT:
        raise ValueError(f"format {block.key.format}, not {FORMAT}")
    if block.cohorts.shape != (*block.opinions.shape, budget) or not block.opinions.size:
        raise ValueError(f"cohorts of shape {block.cohorts.shape} beside opinions of shape {block.opinions.shape}")
    if block.cohorts.max() >= clients or np.nanmin(block.opinions) < 0.0 or np.nanmax(block.opinions) > 1.0:
        raise ValueError("clients or opinions out of range")
    for name in _OPTIONAL:
        array = getattr(block, name)
        if array is not None and len(array) != block.slots:
            raise ValueError(f"{name} of shape {array.shape} beside {block.slots} slots")


@dataclass(frozen=True, kw_only=True, eq=False)
class Curves:
    """The results of a series: its blocks put together.

    Attributes:
        series: The series.
        trials: (R,) numbers of the trials, ascending.
        untrained: Mean opinion of the untrained model.
        cohorts: (R, T, K).
        opinions: (R, T).
        beliefs: (T, N) mean over trials of each client's share of all beliefs; None under FA.
        belief_half_width: (T, N) half of its 95 % interval over trials; nan where there is but one.
        belief_blocks: (B, T, N) the mean over the trials of each block, for what is compared within a trial.
        residuals: (T,) largest residual over trials.
        engine: What trained; "atlas" where nothing was trained and opinions were looked up.
        made_with: Engine and versions that made the blocks; several where blocks of different versions were put
            together.
    """

    series: Series
    trials: NDArray[np.int64]
    untrained: float
    cohorts: NDArray[np.unsignedinteger[Any]]
    opinions: Floats
    beliefs: Floats | None
    belief_half_width: Floats | None
    belief_blocks: Floats | None
    residuals: Floats | None
    engine: str
    made_with: tuple[str, ...]


def join_blocks(series: Series, blocks: list[Block], *, trials: int, slots: int) -> Curves:
    """Blocks of one series as curves, cut to the first `slots` slots and to trials below `trials`.

    Raises:
        RunMismatchError: They were made by different engines.
    """
    blocks = sorted(blocks, key=lambda block: block.first_trial)
    engines = {block.key.engine for block in blocks}
    if len(engines) > 1:
        raise RunMismatchError(
            f"the results of {series} come from different engines ({', '.join(sorted(engines))}), whose numbers differ "
            f"in the last bits; delete those of one"
        )
    numbers = np.concatenate([block.first_trial + np.arange(block.trials) for block in blocks])
    wanted = numbers < trials
    beliefs = half_width = by_block = residuals = None
    if blocks[0].belief_sums is not None:
        beliefs, half_width, residuals = _beliefs(blocks, slots)
        by_block = np.stack([np.asarray(one.belief_sums, dtype=np.float64)[:slots] / one.trials for one in blocks])
    return Curves(
        series=series,
        trials=numbers[wanted],
        untrained=blocks[0].untrained,
        cohorts=np.concatenate([block.cohorts[:, :slots] for block in blocks])[wanted],
        opinions=np.concatenate([block.opinions[:, :slots] for block in blocks])[wanted],
        beliefs=beliefs,
        belief_half_width=half_width,
        belief_blocks=by_block,
        residuals=residuals,
        engine=blocks[0].key.engine,
        made_with=tuple(sorted({block.key.made_with for block in blocks})),
    )


def _beliefs(blocks: list[Block], slots: int) -> tuple[Floats, Floats, Floats]:
    """Mean belief, half width and largest residual, over all trials of the blocks."""
    count = sum(block.trials for block in blocks)
    total: Floats = np.sum([np.asarray(block.belief_sums)[:slots] for block in blocks], axis=0, dtype=np.float64)
    squares: Floats = np.sum([np.asarray(block.belief_squares)[:slots] for block in blocks], axis=0, dtype=np.float64)
    mean: Floats = total / count
    variance = np.maximum(squares / count - mean**2, 0.0) * count / max(count - 1, 1)
    residuals = np.max([np.asarray(block.residuals)[:slots] for block in blocks], axis=0)
    critical = student_t_quantile(0.975, count - 1) if count > 1 else np.nan
    return mean, critical * np.sqrt(variance / count), residuals
