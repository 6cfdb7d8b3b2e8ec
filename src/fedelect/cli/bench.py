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
from fedelect.bench import Ranking, left_out, rank_selectors, shipped_worlds
from fedelect.cli.progress import Bar
from fedelect.equations.intervals import Interval
from fedelect.errors import ConfigurationError
from fedelect.records.run_folder import replace_file

app = typer.Typer(help="Rank what fedelect offers.", no_args_is_help=True)

QUICK = ("r-lossy-N12-K4", "paper")
"""The worlds of the bare command: a small and noisy one, and the paper's."""


def _shipped() -> dict[str, Path]:
    """Every world that comes with fedelect: name -> its atlas."""
    return shipped_worlds() | {"paper": shipped_atlases()["paper"]}


@app.callback()
def _bench() -> None:
    pass


@app.command("selectors")
def selectors(
    atlases: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[ATLAS]...", help="Atlases of your own; those of --world if left out."),
    ] = None,
    world: Annotated[
        list[str] | None,
        typer.Option(
            help=f"A world that comes with fedelect: {', '.join(_shipped())}; may be given several times. "
            f"{' and '.join(QUICK)} if left out."
        ),
    ] = None,
    slots: Annotated[int, typer.Option(help="Slots in each trial.")] = 200,
    trials: Annotated[int, typer.Option(help="Monte Carlo trials.")] = 3,
    full: Annotated[
        bool, typer.Option("--full", help="Every world that comes with fedelect, every selector also with its default.")
    ] = False,
    seed: Annotated[int, typer.Option(help="The one seed of the runs.")] = 1,
    selector: Annotated[
        list[str] | None, typer.Option(help="Rank this one too, for example your own: module:Class.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; one for each core if left out.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the figures as JSON, too.")] = None,
) -> None:
    """Rank every selector in worlds in which what each cohort is worth is known.

    None of these worlds was used to choose a selector's parameters; every selector had at most
    12 settings, but the design of our own had more attention (docs/SELECTORS.md).
    """
    console = Console()
    rankings = []
    for path in _chosen(atlases or [], world or [], full):
        atlas = load_atlas(path)
        bar = Bar(atlas.config.name, "selectors", console)
        try:
            ranking = rank_selectors(
                atlas,
                slots=slots,
                trials=trials,
                seed=seed,
                full=full,
                more=selector or (),
                workers=workers,
                progress=bar.show,
            )
        finally:
            bar.stop()
        print_ranking(ranking, console)
        for name, signals in left_out().items() if atlas.losses is None else ():
            console.print(f"not ranked: {name}, for it needs {signals}, which this atlas lacks", highlight=False)
        rankings.append(ranking)
    if out is not None:
        figures = {"fedelect": fedelect.__version__, "rankings": [ranking_json(ranking) for ranking in rankings]}
        replace_file(out, json.dumps(figures, indent=2, allow_nan=False).encode() + b"\n")
        console.print(f"figures: {out}", highlight=False, soft_wrap=True)


def _chosen(atlases: list[Path], worlds: list[str], full: bool) -> list[Path]:
    shipped = _shipped()
    for name in worlds:
        if name not in shipped:
            raise ConfigurationError(f"there is no world {name!r} with fedelect; there are {', '.join(shipped)}")
    if atlases or worlds:
        return [*atlases, *(shipped[name] for name in worlds)]
    return [shipped[name] for name in (shipped if full else QUICK)]


def print_ranking(ranking: Ranking, console: Console) -> None:
    """The ranking as a table."""
    best = ", ".join(map(str, ranking.best))
    title = (
        f"{ranking.scenario}: {ranking.budget} of {ranking.clients} clients, {ranking.slots} slots, {ranking.trials} "
        f"trials; optimum {{{best}}} {_figure(ranking.optimum, 4, ' ')}"
    )
    table = Table(
        title=title,
        title_justify="left",
        caption_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    table.add_column("selector", overflow="fold", min_width=17)
    names = ("FL&", "final\ngap %", "running\ngap %", "slots\nto 2 %", "regret", "Jain's\nindex", "ms an\nask")
    for name in (*names, f"minus\n{ranking.reference}"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in ranking.rows:
        figures = (
            _figure(row.final_gap, 2),
            _figure(row.running_gap, 2),
            _figure(row.slots_to_close, 0),
            _figure(row.regret, 2),
            _figure(row.jain_index, 2),
            _figure(row.ask_ms, 2),
            "" if row.label == ranking.reference else _figure(row.running_difference, 2),
        )
        bar = row.role != "selector"
        label = row.label.replace(":", ":\n", 1) + (f"\n{row.role}" if bar else "")
        table.add_row(label, row.framework.upper(), *figures, style="dim" if bar else None)
    table.caption = (
        "± 95 % interval over trials. Gaps: how far what is elected is worth less than the optimum, in the last tenth "
        f"of the slots and in all. Last column: running gap minus that of {ranking.reference} in the same trials. "
        "ms: CPU time. Dim: bars."
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
