"""Who won: the selectors of one world ranked, with paired differences to random and to the best known.

Selectors are ranked by the clean accuracy of the last ten slots where slots were measured, else by the mean opinion of
all slots. All differences are taken trial by trial, with 95 % Student t intervals.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedelect.equations import metrics
from fedelect.equations.intervals import Interval, mean_interval
from fedelect.records.measures import ORACLE, RANDOM
from fedelect.records.table import FIXED_KIND, RunTable, SelectorTable
from fedelect.vocabulary import Floats

OPTIMUM, BEST_FIXED, FIRST = "the optimum", "the best fixed cohort", "the first"
"""What selectors are compared with, if it is not the oracle: the best of all cohorts, of those run, or the winner."""

_Key = tuple[int, str]


@dataclass(frozen=True, kw_only=True)
class RankedSelector:
    """One selector of a ranking.

    Attributes:
        run: Position of its run among those ranked together.
        label: Its name in that run.
        place: 1 for the best; None for a reference, which was told in advance what selectors have to find out.
        score: Clean accuracy over the last ten slots, or mean opinion over all slots.
        minus_random: Score minus that of random; None without random, and for random itself.
        minus_best: Score minus that of the best known (`WorldRanking.best_known`); None for the best known itself.
        level: Whether the trials cannot tell it from the first; True for the first.
    """

    run: int
    label: str
    place: int | None
    score: Interval
    minus_random: Interval | None
    minus_best: Interval | None
    level: bool


@dataclass(frozen=True, kw_only=True)
class WorldRanking:
    """The selectors of one world, the best score first.

    Attributes:
        by: What is ranked: "accuracy" of the global model at the end, or "opinion", the mean of all slots.
        best_known: What `minus_best` refers to: `OPTIMUM`, `BEST_FIXED`, `ORACLE` or `FIRST`.
        rows: One for each selector that has a score; a selector that repeats one of an earlier run is left out.
    """

    by: Literal["accuracy", "opinion"]
    best_known: str
    rows: tuple[RankedSelector, ...]

    @property
    def first(self) -> RankedSelector | None:
        """The best selector that is no reference; None if there is none."""
        return next((row for row in self.rows if row.place == 1), None)

    def sentence(self, name: Callable[[RankedSelector], str] = lambda row: row.label) -> str:
        """Say in words who won and by how much, and what the trials cannot tell."""
        first = self.first
        if first is None:
            return "No selector has a result so far."
        what = "accuracy" if self.by == "accuracy" else "mean opinion"
        text = f"{name(first)} is first: {what} {_format(first.score)}"
        if first.minus_random is not None:
            text += f", {_format(first.minus_random, signed=True)} against {RANDOM}"
            if first.minus_random.low is not None and first.minus_random.low <= 0.0:
                text += ", so not clearly better"
        rivals = [row for row in self.rows if row.level and row.place not in (None, 1) and row.label != RANDOM]
        if first.score.half_width is None:
            return f"{text}. One trial cannot tell skill from luck; play more."
        if rivals:
            text += f". The trials cannot tell it from {', '.join(map(name, rivals))}"
        return f"{text}."


def _format(interval: Interval, *, signed: bool = False) -> str:
    spread = "" if interval.half_width is None else f" \u00b1 {interval.half_width:.3f}"
    return f"{interval.mean:{'+' if signed else ''}.3f}{spread}"


def repeats(one: SelectorTable, other: SelectorTable) -> bool:
    """Whether two runs of one world hold the same selector with the same results: a baseline that was run twice."""
    pairs = [(one.opinion, other.opinion), (one.selections, other.selections)]
    if one.measures is not None and other.measures is not None:
        pairs.append((one.measures.accuracy, other.measures.accuracy))
    alike = one.entry == other.entry and (one.measures is None) == (other.measures is None)
    return alike and all(np.array_equal(ours, theirs, equal_nan=True) for ours, theirs in pairs)


def rank_world(tables: Sequence[RunTable]) -> WorldRanking:
    """Rank the selectors of one or several runs in the same world, with the same trials and slots."""
    comparison = _Comparison(tables)
    contenders = [key for key in comparison.order if not comparison.is_reference(key)]
    random = next((key for key in comparison.order if key[1] == RANDOM), None)
    best_known, minus_best = comparison.with_best(contenders)
    rows = []
    for key in comparison.order:
        behind_first = comparison.difference(key, contenders[0]) if contenders else None
        rows.append(
            RankedSelector(
                run=key[0],
                label=key[1],
                place=contenders.index(key) + 1 if key in contenders else None,
                score=mean_interval(comparison.scores[key]),
                minus_random=None if random is None or key[1] == RANDOM else comparison.difference(key, random),
                minus_best=minus_best.get(key),
                level=behind_first is not None and (behind_first.high is None or behind_first.high >= 0.0),
            )
        )
    return WorldRanking(by="accuracy" if comparison.measured else "opinion", best_known=best_known, rows=tuple(rows))


class _Comparison:
    """The selectors of a world without repetitions, by (run, label).

    Attributes:
        entries: Their tables.
        measured: Whether they are compared by accuracy.
        scores: (trials,) of each that has a score.
        order: Their keys, the best first.
    """

    def __init__(self, tables: Sequence[RunTable]) -> None:
        self._tables = tables
        self.entries: dict[_Key, SelectorTable] = {}
        for run, table in enumerate(tables):
            for label, one in table.selectors.items():
                if not any(repeats(one, known) for known in self.entries.values()):
                    self.entries[run, label] = one
        curves = [one.measures for one in self.entries.values()]
        self.measured = all(one is not None and not np.isnan(one.accuracy).all() for one in curves)
        scores = {key: self._score(key) for key in self.entries}
        self.scores = {key: score for key, score in scores.items() if not np.isnan(score).all()}
        self.order = sorted(self.scores, key=lambda key: -mean_interval(self.scores[key]).mean)

    def _score(self, key: _Key) -> Floats:
        if self.measured:
            return self._tables[key[0]].measured.final_accuracy(key[1])
        return metrics.mean_present_slots(self.entries[key].opinion)

    def is_reference(self, key: _Key) -> bool:
        """Whether it was told what selectors have to find out: who is unflawed, or one cohort for all slots."""
        return self.entries[key].entry.kind == FIXED_KIND or (self.measured and key[1] == ORACLE)

    def difference(self, key: _Key, other: _Key) -> Interval:
        """A selector minus another, trial by trial; opinions also slot by slot."""
        if self.measured:
            return mean_interval(self.scores[key] - self.scores[other])
        return mean_interval(-metrics.gap_to(self.entries[other].opinion, self.entries[key].opinion))

    def with_best(self, contenders: Sequence[_Key]) -> tuple[str, dict[_Key, Interval]]:
        """The best known, in words, and each selector minus it; the best known itself is left out."""
        optimum = next((table.header.optimum for table in self._tables if table.header.optimum is not None), None)
        if optimum is not None and not self.measured:
            return OPTIMUM, {key: mean_interval(score - optimum.value) for key, score in self.scores.items()}
        references = [key for key in self.order if self.is_reference(key)]
        best = next(iter(references or contenders), None)
        others = {key: self.difference(key, best) for key in self.order if best is not None and key != best}
        if best is None or not references:
            return FIRST, others
        return BEST_FIXED if self.entries[best].entry.kind == FIXED_KIND else best[1], others
