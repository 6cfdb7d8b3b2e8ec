"""`fedelect bench`: rank selectors where the truth is known."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fedelect._progress import TerminalBar
from fedelect._text import count, suggest
from fedelect._version import __version__
from fedelect.atlas import load_atlas, shipped_atlases
from fedelect.bench import REFERENCE, Ranked, Ranking, name_missing_signals, rank_selectors, shipped_worlds
from fedelect.cli.bench_users import users
from fedelect.cli.console import make_console
from fedelect.cli.figures_file import make_room, plain, write_figures
from fedelect.cli.tables import LONGEST_NAME
from fedelect.equations.intervals import Interval
from fedelect.errors import ConfigurationError
from fedelect.vocabulary import Cohort

app = typer.Typer(help="Rank what fedelect offers.", no_args_is_help=True)

QUICK = ("r-lossy-N12-K4", "paper")
"""The worlds of the bare command: a small and noisy one, and the paper's."""


def _list_shipped() -> dict[str, Path]:
    """Every world that comes with fedelect: name -> its atlas."""
    return shipped_worlds() | {"paper": shipped_atlases()["paper"]}


@app.callback()
def _bench() -> None:
    pass


app.command("users")(users)


@app.command("selectors")
def selectors(
    atlases: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[ATLAS]...", help="Atlases of your own; those of --world if left out."),
    ] = None,
    world: Annotated[
        list[str] | None,
        typer.Option(
            help=f"A world that comes with fedelect: {', '.join(_list_shipped())}; may be given several times. "
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
        list[str] | None,
        typer.Option(
            help=f"Rank this one, for example your own: module:Class, beside {REFERENCE} and random; several times for "
            "more. Every selector if left out."
        ),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; one for each core if left out.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the figures as JSON, too.")] = None,
) -> None:
    """Rank every selector in worlds in which what each cohort is worth is known.

    None of these worlds was used to choose a selector's parameters; every selector had at most
    12 settings, but the design of our own had more attention (docs/results/selectors.md).
    """
    console = make_console()
    chosen = _choose_atlases(atlases or [], world or [], full)
    if out is not None:
        make_room(out)
    rankings = []
    for path in chosen:
        atlas = load_atlas(path)
        bar = TerminalBar(atlas.config.name, "selectors", console)
        try:
            ranking = rank_selectors(
                atlas,
                slots=slots,
                trials=trials,
                seed=seed,
                full=full,
                only=selector or (),
                workers=workers,
                progress=bar.show,
            )
        finally:
            bar.stop()
        print_ranking(ranking, console)
        for name, signals in {} if selector else name_missing_signals(losses=atlas.losses is not None).items():
            console.print(f"not ranked: {name}, for it needs {signals}, which this atlas lacks", highlight=False)
        rankings.append(ranking)
    if out is not None:
        figures = {"fedelect": __version__, "rankings": [ranking_json(ranking) for ranking in rankings]}
        write_figures(out, figures, console)


def _choose_atlases(atlases: list[Path], worlds: list[str], full: bool) -> list[Path]:
    shipped = _list_shipped()
    for name in worlds:
        if name not in shipped:
            raise ConfigurationError(
                f"there is no world {name!r} with fedelect{suggest(name, shipped)}; there are {', '.join(shipped)}"
            )
    if atlases or worlds:
        return [*atlases, *(shipped[name] for name in worlds)]
    return [shipped[name] for name in (shipped if full else QUICK)]


def print_ranking(ranking: Ranking, console: Console) -> None:
    """The ranking as a table; columns that a narrow console has no room for are left out and named."""
    columns, labels = _columns(ranking), [_label(row, ranking) for row in ranking.rows]
    names = min(LONGEST_NAME, max(len(label.partition("\n")[0]) for label in labels))
    missing = []
    for name in _LEAST_FIRST:
        if _width(columns, names) <= console.width:
            break
        del columns[name]
        missing.append(name)
    table = Table(
        title=_title(ranking),
        title_justify="left",
        caption=_caption(ranking, missing),
        caption_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    table.add_column("selector", overflow="fold", min_width=names)
    for name, cells in columns.items():
        table.add_column(_wrap_head(name), justify="right", no_wrap=True, min_width=_widest(name, cells))
    for place, (row, label) in enumerate(zip(ranking.rows, labels, strict=True)):
        dim = "dim" if row.role != "selector" else None
        table.add_row(label, *(cells[place] for cells in columns.values()), style=dim)
    console.print(table, crop=False)  # what is still too wide goes beyond the edge, and no digit is lost


_LEAST_FIRST = ("regret", "ms an_ask", "Jain's_index", "FL&", "got_there", "slots_to 2 %", "final_gap %")
"""The columns that can be left out, in this order; regret first, for it is the running gap in another unit."""


def _columns(ranking: Ranking) -> dict[str, list[str]]:
    """Head -> cells; an underscore is where a head is broken in two lines."""
    rows = ranking.rows
    return {
        "FL&": [row.framework.upper() for row in rows],
        "final_gap %": [_figure(row.final_gap, 2) for row in rows],
        "running_gap %": [_figure(row.running_gap, 2) for row in rows],
        "slots_to 2 %": [_figure(row.slots_to_close, 0) for row in rows],
        "got_there": [f"{row.trials_close}/{ranking.trials}" for row in rows],
        "regret": [_figure(row.regret, 2) for row in rows],
        "Jain's_index": [_figure(row.jain_index, 2) for row in rows],
        "ms an_ask": [_figure(row.ask_ms, 2) for row in rows],
        f"minus_{ranking.reference}": [
            "" if row.label == ranking.reference else _figure(row.running_difference, 2) for row in rows
        ],
    }


def _wrap_head(name: str) -> str:
    return name.replace("_", "\n", 1)


def _widest(name: str, cells: list[str]) -> int:
    return max(len(line) for text in (_wrap_head(name), *cells) for line in text.split("\n"))


def _width(columns: dict[str, list[str]], names: int) -> int:
    """Of a table with these columns and one for names: each has a space on either side."""
    return names + sum(_widest(name, cells) for name, cells in columns.items()) + 2 * (1 + len(columns))


def _label(row: Ranked, ranking: Ranking) -> str:
    label = row.label.replace(":", ":\n", 1)
    if row.role == "optimum":
        return f"{label}\n{'best in the table' if ranking.optimum_exact else 'optimum'}"
    return label if row.role == "selector" else f"{label}\n{row.role}"


def _title(ranking: Ranking) -> str:
    if ranking.optimum_exact:
        best = f"best in the table: {_members(ranking.best)} {ranking.optimum.mean:.4f}, exact"
    else:
        best = f"optimum: {_members(ranking.best)} {_figure(ranking.optimum, 4, ' ')}"
    return (
        f"{ranking.scenario}: {ranking.budget} of {ranking.clients} clients, {count(ranking.slots, 'slot')}, "
        f"{count(ranking.trials, 'trial')}\n{best}; gaps are to this\n"
        f"optimum of the scenario, by fresh seeds: {_members(ranking.scenario_best)} "
        f"{_figure(ranking.scenario_optimum, 4, ' ')}"
    )


def _caption(ranking: Ranking, missing: list[str]) -> str:
    best = "the best in the table" if ranking.optimum_exact else "the optimum"
    narrow = ", ".join(_wrap_head(name).replace("\n", " ") for name in missing)
    return (
        f"± 95 % interval over trials. Gaps: how far what is elected is worth less than {best}, in the last tenth "
        f"of the slots and in all. Slots to 2 %: {ranking.slots} in trials that never got there; beside it, how many "
        f"did. Last column: running gap minus that of {ranking.reference} in the same trials. ms: CPU time. "
        "Dimmed: fixed cohorts, to compare with."
    ) + (f" Left out, for the console is narrow: {narrow}; --out writes all." if missing else "")


def ranking_json(ranking: Ranking) -> dict[str, Any]:
    """The ranking as JSON-able values; nan is null."""
    return {key: plain(value) for key, value in dataclasses.asdict(ranking).items()}


def _members(cohort: Cohort) -> str:
    return "{" + ", ".join(map(str, cohort)) + "}"


def _figure(interval: Interval, digits: int, separator: str = "\n") -> str:
    spread = "" if interval.half_width is None else f"{separator}±{interval.half_width:.{digits}f}"
    return f"{interval.mean:.{digits}f}{spread}"
