"""Runs in the same world belong together: they are ranked in one table and drawn in one chart.

A selector has one colour and one pattern on the whole page, whichever run it is in. One that a later run of the same
world only repeats, such as a baseline under FL&FA and FL&DA, is shown once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from fedelect.records import RunHeader, SelectorSummary, WorldRanking, rank_world, repeats
from fedelect.report.analysis import RunAnalysis, make_unique
from fedelect.report.style import LineStyle, deal_line_styles


@dataclass(frozen=True, eq=False, kw_only=True)
class Series:
    """One selector of one run.

    Attributes:
        analysis: The run.
        summary: The selector's figures.
        name: Its name among the selectors of its world.
        look: Its colour and pattern.
        again: Whether it has the label of another one of its world that was drawn before; then its line has marks.
        repeated: Whether an earlier run of the world has the same results; then it is not shown again.
    """

    analysis: RunAnalysis
    summary: SelectorSummary
    name: str
    look: LineStyle
    again: bool
    repeated: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class World:
    """The runs in one world.

    Attributes:
        name: Name of the world, unique on the page.
        analyses: Its runs.
        ranking: Its selectors, the best first; `RankedSelector.run` counts `analyses`.
        series: Every selector of every run, in order.
    """

    name: str
    analyses: tuple[RunAnalysis, ...]
    ranking: WorldRanking
    series: tuple[Series, ...]

    @property
    def header(self) -> RunHeader:
        """The header of its first run."""
        return self.analyses[0].run.header

    @property
    def shown(self) -> list[Series]:
        """The selectors without repetitions."""
        return [one for one in self.series if not one.repeated]

    def iterate_ranked(self) -> Iterator[tuple[Series, int]]:
        """The selectors that have a score, the best first, each with its row in the ranking."""
        for row, ranked in enumerate(self.ranking.rows):
            run = self.analyses[ranked.run]
            yield next(s for s in self.series if s.analysis is run and s.summary.label == ranked.label), row


def group_worlds(analyses: Sequence[RunAnalysis]) -> list[World]:
    """Group runs with equal scenario, data, seed, trials and slots, in the order of their first run."""
    groups: dict[bytes, list[RunAnalysis]] = {}
    for one in analyses:
        groups.setdefault(_identity(one.run.header), []).append(one)
    styles = deal_line_styles([label for one in analyses for label in one.run.header.labels])
    names = make_unique([_world_name(group[0]) for group in groups.values()])
    return [_make_world(name, group, styles) for name, group in zip(names, groups.values(), strict=True)]


def _identity(header: RunHeader) -> bytes:
    size = (header.clients, header.budget, header.slots, header.trials)
    return msgspec.json.encode((header.source, header.scenario, header.data_digest, header.seed, size), order="sorted")


def _world_name(analysis: RunAnalysis) -> str:
    name = analysis.run.header.scenario.get("name")
    return name if isinstance(name, str) and name else analysis.run.name


def _make_world(name: str, analyses: list[RunAnalysis], styles: dict[str, LineStyle]) -> World:
    found: list[Series] = []
    for analysis in analyses:
        for summary in analysis.summaries:
            table = analysis.run.table.selectors[summary.label]
            before = [one for one in found if one.summary.label == summary.label]
            earlier = [one.analysis.run.table.selectors[summary.label] for one in before]
            repeated = any(repeats(table, one) for one in earlier)
            title, taken = table.entry.title, {one.name for one in before}
            found.append(
                Series(
                    analysis=analysis,
                    summary=summary,
                    name=f"{analysis.run.name}: {title}" if title in taken and not repeated else title,
                    look=styles[summary.label],
                    again=bool(before) and not repeated,
                    repeated=repeated,
                )
            )
    ranking = rank_world([one.run.table for one in analyses])
    return World(name=name, analyses=tuple(analyses), ranking=ranking, series=tuple(found))
