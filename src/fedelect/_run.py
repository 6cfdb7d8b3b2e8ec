"""A run as a user holds it: its figures, arrays, table, page and drawings, read from its folder when asked for."""

import difflib
import os
import shutil
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from fedelect.errors import ConfigurationError, MissingExtraError, RunError
from fedelect.records import (
    Measures,
    RunHeader,
    SlotRecord,
    SummaryTable,
    follow_run,
    mean_opinion,
    read_header,
    summary_table,
)
from fedelect.vocabulary import Floats, Ints

if TYPE_CHECKING:
    import pandas

_NOT_MEASURED = Measures()


class Run:
    """A simulated, Flower or peer run, finished or not. Made by `fedelect.simulate` and `fedelect.load_run`.

    N is the number of clients, K the cohort's size. Everything is read from the folder when it is asked for.

    Attributes:
        path: The run folder. A temporary one is deleted with this object; `save` keeps it.
        header: What was run: scenario, selectors, sizes, seed, versions.
    """

    def __init__(self, path: str | os.PathLike[str], *, temporary: bool = False) -> None:
        self.path = Path(path)
        self.header: RunHeader = read_header(self.path)
        self._temporary = temporary
        if temporary:
            weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    @property
    def selectors(self) -> tuple[str, ...]:
        """Labels of the selectors, in the order of the run."""
        return self.header.labels

    @property
    def complete(self) -> bool:
        """Whether every slot of every trial of every selector is on record."""
        return sum(1 for _ in self.records()) == self.header.planned

    def summary(self) -> SummaryTable:
        """Summarise each selector over all trials: the rows of `fedelect show`; a table in a notebook and in print."""
        return summary_table(self.path)

    def records(self, selector: str | None = None) -> Iterator[SlotRecord]:
        """Iterate over the recorded slots, in the order in which they were written.

        Args:
            selector: Label of one selector; None for all.
        """
        label = None if selector is None else self._label(selector)
        run = follow_run(self.path)
        if run.header != self.header:
            raise RunError(f"{self.path} was extended or replaced since it was loaded; load it again")
        for record in run.fresh():
            if label is None or record.selector == label:
                yield record

    def opinions(self, selector: str) -> Floats:
        """Return the clients' opinions of each slot's model, shape (trials, slots, N).

        nan where a client gave none, and in slots that are not on record or trained nobody.
        """
        opinions = np.full((self.header.trials, self.header.slots, self.header.clients), np.nan)
        for record in self.records(selector):
            if record.opinions is not None:
                opinions[record.trial, record.slot - 1] = np.array(record.opinions, dtype=np.float64)
        return opinions

    def rewards(self, selector: str) -> Floats:
        """Return the rewards that the selector was told, shape (trials, slots); nan where it was told none."""
        rewards = np.full((self.header.trials, self.header.slots), np.nan)
        for record in self.records(selector):
            if record.reward is not None:
                rewards[record.trial, record.slot - 1] = record.reward
        return rewards

    def accuracy(self, selector: str) -> Floats:
        """Return the accuracy of each slot's model on the clean test set of all clients, shape (trials, slots).

        nan where it was not measured: in slots that are not on record, and in all of a cold run.
        """
        accuracy = np.full((self.header.trials, self.header.slots), np.nan)
        for record in self.records(selector):
            if record.measures is not None and record.measures.accuracy is not None:
                accuracy[record.trial, record.slot - 1] = record.measures.accuracy
        return accuracy

    def cohorts(self, selector: str) -> Ints:
        """Return the elected clients, sorted, shape (trials, slots, K); -1 where nobody was elected.

        If the size of cohorts changes, K is that of the largest, and smaller ones end in -1.
        """
        records = list(self.records(selector))
        width = max([self.header.budget, *(len(record.cohort) for record in records)])
        cohorts = np.full((self.header.trials, self.header.slots, width), -1, dtype=np.int64)
        for record in records:
            cohorts[record.trial, record.slot - 1, : len(record.cohort)] = record.cohort
        return cohorts

    def rows(self) -> Iterator[dict[str, Any]]:
        """Iterate over one row for each selector, trial and slot, as `to_dataframe` has them."""
        for record in self.records():
            yield {
                "selector": record.selector,
                "trial": record.trial,
                "slot": record.slot,
                "status": record.status,
                "cohort": record.cohort,
                "reward": record.reward,
                "mean_opinion": mean_opinion(record),
                "reward_noise": record.reward_noise,
                "arrivals": record.arrivals,
                "rounds": record.rounds,
                "empty_rounds": record.empty_rounds,
                "indices": record.indices,
                "opinions": record.opinions,
                "beliefs": record.beliefs,
                "available": record.available,
                "failed": record.failed,
                "left_out": record.left_out,
                "joined": record.joined,
                **msgspec.structs.asdict(record.measures or _NOT_MEASURED),
                "note": record.note,
                "seconds": record.seconds,
            }

    def to_dataframe(self) -> "pandas.DataFrame":
        """Return a pandas DataFrame with one row for each selector, trial and slot, sorted by these.

        Columns: selector, trial, slot, status ("done", "abandoned" or "skipped"), cohort (tuple), reward and
        mean_opinion (None where there is none), reward_noise, arrivals, rounds, empty_rounds, indices, opinions,
        beliefs, available (None for all), failed, left_out, joined, the measures accuracy, low_accuracy, flawed_share,
        evaluations, bytes_down and bytes_up (None where not measured), note, seconds. docs/RECORDS.md describes them.

        Raises:
            MissingExtraError: pandas is not installed; `rows` gives the same without it.
        """
        try:
            import pandas
        except ImportError as error:
            raise MissingExtraError("to_dataframe()", "pandas", is_package=True) from error
        rows = sorted(self.rows(), key=lambda row: (self.selectors.index(row["selector"]), row["trial"], row["slot"]))
        return pandas.DataFrame(rows)

    def report(self, path: str | os.PathLike[str], *, targets: Sequence[float] | None = None) -> Path:
        """Write the run as one self-contained HTML page and return its path.

        Args:
            path: The file to write.
            targets: Opinions whose time to be reached is tabulated; chosen from the run if None.
        """
        from fedelect.report import write_report

        return write_report(self.path, path, targets=targets)

    def figures(self, folder: str | os.PathLike[str], *, format: str = "pdf") -> list[Path]:
        """Draw the run's figures for a paper and return their paths. Needs the extra `lab`.

        Args:
            folder: Where the files go; made if it is not there.
            format: "pdf", "svg" or "png".
        """
        from fedelect.report import write_figures

        return write_figures(self.path, folder, format=format)

    def save(self, folder: str | os.PathLike[str]) -> "Run":
        """Copy the run to a folder that is not there yet, and return the run there."""
        target = Path(folder)
        if target.exists():
            raise RunError(f"{target} exists; name a new folder")
        try:
            shutil.copytree(self.path, target)
        except OSError as error:
            raise RunError(f"cannot copy the run to {target}: {error}; check free space and permissions") from error
        return Run(target)

    def _label(self, selector: str) -> str:
        if selector in self.selectors:
            return selector
        close = difflib.get_close_matches(selector, self.selectors, n=1, cutoff=0.3)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ConfigurationError(f"no selector {selector!r} in this run: it has {', '.join(self.selectors)}{hint}")

    def __repr__(self) -> str:
        kept = "a temporary folder" if self._temporary else str(self.path)
        return f"<fedelect.Run of {self.summary().title}; {', '.join(self.selectors)}; in {kept}>"

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()
