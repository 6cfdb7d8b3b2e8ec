"""`fedelect bench`: rank selectors where the truth is known."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import fedelect
from fedelect.atlas import load_atlas, shipped_atlases
from fedelect.bench import Ranking, left_out, rank_selectors
from fedelect.cli.progress import Bar
from fedelect.equations.intervals import Interval
from fedelect.records.run_folder import replace_file

app = typer.Typer(help="Rank what fedelect offers.", no_args_is_help=True)


@app.callback()
def _bench() -> None:
    pass


@app.command("selectors")
def selectors(
    atlases: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[ATLAS]...", help="Atlases; the paper's, which comes with fedelect, if left out."),
    ] = None,
    slots: Annotated[int, typer.Option(help="Slots in each trial.")] = 200,
    trials: Annotated[int, typer.Option(help="Monte Carlo trials.")] = 10,
    seed: Annotated[int, typer.Option(help="The one seed of the runs.")] = 1,
    selector: Annotated[
        list[str] | None, typer.Option(help="Rank this one too, for example your own: module:Class.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; one for each core if left out.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the figures as JSON, too.")] = None,
) -> None:
    """Rank every selector on atlases, in which what each cohort is worth is known."""
    console = Console()
    rankings = []
    for path in atlases or [shipped_atlases()["paper"]]:
        atlas = load_atlas(path)
        bar = Bar(atlas.config.name, "selectors", console)
        try:
            ranking = rank_selectors(
                atlas,
                slots=slots,
                trials=trials,
                seed=seed,
                more=selector or (),
                workers=workers,
                progress=bar.show,
            )
        finally:
            bar.stop()
        print_ranking(ranking, console)
        rankings.append(ranking)
    for name, signals in left_out().items():
        console.print(f"not ranked: {name}, for it needs {signals}, which an atlas does not know", highlight=False)
    if out is not None:
        figures = {"fedelect": fedelect.__version__, "rankings": [ranking_json(ranking) for ranking in rankings]}
        replace_file(out, json.dumps(figures, indent=2, allow_nan=False).encode() + b"\n")
        console.print(f"figures: {out}", highlight=False, soft_wrap=True)


def print_ranking(ranking: Ranking, console: Console) -> None:
    """The ranking as a table."""
    best = ", ".join(map(str, ranking.best))
    title = (
        f"{ranking.scenario}: {ranking.budget} of {ranking.clients} clients, {ranking.slots} slots, {ranking.trials} "
        f"trials; optimum {{{best}}} {_figure(ranking.optimum, 4, ' ')}"
    )
    table = Table(title=title, title_justify="left", caption_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("selector", overflow="fold", min_width=17)
    for name in ("FL&", "final\ngap %", "running\ngap %", "slots to\n2 %", "regret", "Jain's\nindex", "ms\nan ask"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in ranking.rows:
        figures = (
            _figure(row.final_gap, 2),
            _figure(row.running_gap, 2),
            _figure(row.slots_to_close, 0),
            _figure(row.regret, 2),
            _figure(row.jain_index, 2),
            _figure(row.ask_ms, 3),
        )
        bar = row.role != "selector"
        label = row.label.replace(":", ":\n", 1) + (f"\n{row.role}" if bar else "")
        table.add_row(label, row.framework.upper(), *figures, style="dim" if bar else None)
    table.caption = (
        "± 95 % interval over trials. Gaps: how far what is elected is worth less than the optimum, in the last tenth "
        "of the slots and in all; the best cohorts are valued by trainings that no selector saw. Dim: bars."
    )
    console.print(table)


def ranking_json(ranking: Ranking) -> dict[str, Any]:
    """The ranking as JSON-able values; nan is null."""
    return {key: _plain(value) for key, value in dataclasses.asdict(ranking).items()}


def _figure(interval: Interval, digits: int, separator: str = "\n") -> str:
    spread = "" if interval.half_width is None else f"{separator}±{interval.half_width:.{digits}f}"
    return f"{interval.mean:.{digits}f}{spread}"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value
