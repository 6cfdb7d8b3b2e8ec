"""The first part of the page: who won, in a sentence and a ranked table."""

import math
from collections.abc import Callable, Sequence

from fedelect.equations.intervals import Interval
from fedelect.records import ORACLE, RANDOM, RankedSelector
from fedelect.records.ranking import FIRST
from fedelect.report.html_parts import (
    NOTHING,
    STRIP_HEAD,
    escape,
    for_each_world,
    interval_cell,
    join_words,
    render_figures,
    render_key,
)
from fedelect.report.worlds import Series, World

_SCORES = {"accuracy": "accuracy at the end", "opinion": "mean opinion"}
_STRIP = 132, 14


def render_won(worlds: Sequence[World]) -> str:
    """Who won in each world."""
    return for_each_world(worlds, _render_world)


def _render_world(world: World, suffix: str) -> str:
    ranking = world.ranking
    names = {row: one.name for one, row in world.iterate_ranked()}
    if ranking.first is None:
        return ""
    sentence = ranking.sentence(lambda row: names[ranking.rows.index(row)])
    first = names[ranking.rows.index(ranking.first)]
    text = escape(sentence).replace(escape(first), f"<strong>{escape(first)}</strong>", 1)
    so_far = "So far, " if any(one.run.table.recorded < one.run.header.planned for one in world.analyses) else ""
    return f'<p class="verdict">{so_far}{text}</p>{_table(world, suffix)}<p class="small">{_explain(world)}</p>'


def _table(world: World, suffix: str) -> str:
    ranking = world.ranking
    scores = [row.score for row in ranking.rows]
    rows = {
        f'<span class="place">{ranking.rows[row].place or ""}</span>{render_key(one)}': (one, ranking.rows[row])
        for one, row in world.iterate_ranked()
    }
    columns: dict[str, Callable[[tuple[Series, RankedSelector]], str]] = {
        _SCORES[ranking.by]: lambda pair: interval_cell(pair[1].score),
        STRIP_HEAD: lambda pair: _strip(pair[1].score, scores, pair[0].look.colour),
        f"against {RANDOM}": lambda pair: interval_cell(pair[1].minus_random, signed=True),
        f"against {ranking.best_known}": lambda pair: interval_cell(pair[1].minus_best, signed=True),
        "10th percentile of clients": lambda pair: _measured_cell(pair[0], "final_low_accuracy"),
        "flawed among the elected": lambda pair: _measured_cell(pair[0], "flawed_share", percent=True),
        "loop": lambda pair: _loop_cell(world, pair[0]),
    }
    return render_figures(f"won{suffix}", rows, columns)


def _measured_cell(one: Series, figure: str, *, percent: bool = False) -> str:
    measured = one.summary.measured
    return interval_cell(None if measured is None else getattr(measured, figure), percent=percent)


def _loop_cell(world: World, one: Series) -> str:
    """Under which loop the selector ran, where there are several: FL&FA, FL&DA or both."""
    if len(world.analyses) == 1:
        return NOTHING
    alike = [other for other in world.series if other.summary.label == one.summary.label and _same(other, one)]
    loops = [f"FL&{other.analysis.run.header.framework.upper()}" for other in alike]
    return f"<td>{escape(join_words(loops))}</td>"


def _same(other: Series, one: Series) -> bool:
    """Whether the two are one row: the same, or one of a later run that repeats it."""
    return other is one or (other.repeated and not one.again)


def _strip(score: Interval, scores: Sequence[Interval], colour: int) -> str:
    """The interval as a drawing: a dot for the mean, a line for the interval, all rows on one scale."""
    if all(one.half_width is None for one in scores):
        return NOTHING
    ends = [end for one in scores for end in (one.mean, one.low, one.high) if end is not None and math.isfinite(end)]
    width, height = _STRIP
    least, span = min(ends), max(max(ends) - min(ends), 1e-9)

    def at(value: float) -> str:
        return f"{4 + (width - 8) * (value - least) / span:.1f}"

    middle = height / 2
    bar = ""
    if score.low is not None and score.high is not None:
        bar = f'<line x1="{at(score.low)}" x2="{at(score.high)}" y1="{middle:g}" y2="{middle:g}"/>'
    dot = f'<circle cx="{at(score.mean)}" cy="{middle:g}" r="4"/>'
    return (
        f'<td class="strip"><svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'style="--ink: var(--series-{colour})" aria-hidden="true">{bar}{dot}</svg></td>'
    )


def _explain(world: World) -> str:
    """What the columns are."""
    ranking = world.ranking
    if ranking.by == "accuracy":
        texts = ["Accuracy of the global model on the clean test data of all clients, mean of the last ten slots."]
    else:
        texts = ["Mean over all slots of the clients' average score of the trained model."]
    if world.header.trials > 1:
        texts.append("\u00b1 is the 95 % interval over trials; differences are taken trial by trial.")
    if ranking.best_known == FIRST:
        texts.append("No better reference is known than the first.")
    elif ranking.best_known == ORACLE:
        texts.append(f"{ORACLE} draws among the unflawed clients, which no selector is told.")
    elif world.header.optimum is not None:
        optimum = world.header.optimum
        texts.append(f"The optimum is the best of all cohorts, {{{_members(optimum.cohort)}}}: {optimum.value:.4f}.")
    else:
        texts.append("A fixed cohort was told in advance whom to take, so it has no place.")
    return escape(" ".join(texts))


def _members(cohort: Sequence[int]) -> str:
    return ", ".join(map(str, cohort[:12])) + (", \u2026" if len(cohort) > 12 else "")
