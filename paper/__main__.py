"""`python -m paper NAME`: the paper's figures and tables, one by one or all."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from fedelect._processes import worker_count
from fedelect._progress import TerminalBar
from fedelect.atlas import load_atlas, shipped_atlases
from fedelect.cli.main import run_app
from fedelect.datasets import load_dataset
from fedelect.errors import ConfigurationError
from fedelect.scenario import Dataset
from fedelect.scenario import preset as scenario_preset
from paper import (
    EXPERIMENTS,
    MEASUREMENTS,
    PRESETS,
    BlockTask,
    Context,
    Experiment,
    Preset,
    ResultStore,
    calibrate,
    committed_results,
    committed_results_on_atlas,
    draw,
    estimate_seconds,
    experiment,
    format_duration,
    is_measured,
    measure,
    order_tasks,
    play,
    require_matplotlib,
    seconds_for_a_slot,
    write_page,
    write_record,
)
from paper.readings.command import print_readings
from paper.registered.command import print_verdicts, run_registered

CALIBRATION = Path("paper/results/calibration.json")

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="The label of a figure or table (`list` names them), `all`, `losses` or `optimum` for what is "
            "measured for 1_2 besides runs and nothing else, `calibration` to try the settings that the paper leaves "
            "open, `registered` to go on with the pre-registered run, `verdict` to judge it by what is on file, "
            "`readings` to play readings of the algorithms on the atlas, or `document` to write docs/REPRODUCTION.md "
            "and paper/RECORD.md from the results on file."
        ),
    ],
    preset: Annotated[
        str, typer.Option(help="quick: 8 trials of 60 slots, minutes. paper: 100 trials, full horizons, hours.")
    ] = "quick",
    results: Annotated[
        Path | None, typer.Option(help="Where results are kept, and gone on from; by default one folder a preset.")
    ] = None,
    figures: Annotated[Path | None, typer.Option(help="Where figures go; RESULTS/figures if left out.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; one for each core if left out.")] = None,
    atlas: Annotated[
        Path | None,
        typer.Option(
            help="The atlas of the paper's world (`fedelect atlas build paper`), for `1_2`, `regret`, `sensitivity` "
            "and --on-atlas; the one that comes with fedelect if left out."
        ),
    ] = None,
    on_atlas: Annotated[
        bool,
        typer.Option(
            "--on-atlas",
            help="Look opinions up in the atlas instead of training: the paper's main world only, minutes for 100 "
            "trials. Kept in a folder of its own.",
        ),
    ] = False,
    trials: Annotated[int, typer.Option(help="Trials of each of the `readings`; nothing else looks at it.")] = 20,
) -> None:
    """Reproduce the paper: run what is missing, then draw. After a stop, the same command resumes."""
    console = Console()
    cores = worker_count(workers)
    if name == "list":
        _print_list(console)
        return
    if name == "document":
        kept = committed_results(Path(), results)
        record = write_record(kept, Path("paper"), on_atlas=committed_results_on_atlas(Path()))
        for page in (write_page(kept, Path("docs")), record):
            console.print(f"written: {page}", highlight=False, soft_wrap=True)
        return
    if name == "calibration":
        _calibrate(console, cores)
        return
    if name == "registered":
        run_registered(console, workers=cores)
        return
    if name == "verdict":
        print_verdicts(console)
        return
    if name == "readings":
        print_readings(console, atlas or shipped_atlases()["paper"], trials=trials, workers=cores)
        return
    chosen = _preset(preset, on_atlas)
    wanted = _select_experiments(name, on_atlas)
    atlas = atlas or shipped_atlases()["paper"]
    store = _library(chosen, results, atlas if on_atlas else None)
    context = Context(store=store, preset=chosen, workers=cores, atlas=atlas)
    names = [] if on_atlas else _measurements(name, wanted)
    require_matplotlib()
    for each in names:  # what is wrong with the atlas or with what is on file is said now, not after hours of training
        is_measured(each, context)
    try:
        with store.writing():
            if name not in MEASUREMENTS:
                _play(wanted, chosen, store, cores, console)
            _measure(names, context, console)
    except KeyboardInterrupt:
        console.print("stopped; give the same command again to go on", highlight=False)
        raise typer.Exit(130) from None
    for one in wanted:
        for path in draw(one, store, chosen, figures or store.folder / "figures"):
            console.print(f"{one.name}: {path}", highlight=False, soft_wrap=True)


def _select_experiments(name: str, on_atlas: bool) -> Sequence[Experiment]:
    if not on_atlas:
        measured = tuple(one for one in EXPERIMENTS if name in one.measurements)
        return EXPERIMENTS if name == "all" else measured or (experiment(name),)
    possible = tuple(one for one in EXPERIMENTS if one.in_main_world)
    if name in MEASUREMENTS or (name != "all" and experiment(name) not in possible):
        names = ", ".join(one.name for one in possible)
        raise ConfigurationError(
            f"{name} needs other worlds than the atlas', or is no matter of runs in one; on it can be played {names}, "
            f"and all"
        )
    return possible if name == "all" else (experiment(name),)


def _measurements(name: str, wanted: Sequence[Experiment]) -> list[str]:
    """The measurements to make: the one that was asked for, or all of the experiments."""
    return [name] if name in MEASUREMENTS else [each for one in wanted for each in one.measurements]


def _preset(name: str, on_atlas: bool) -> Preset:
    if name not in PRESETS:
        raise ConfigurationError(f"unknown preset {name!r}; use {' or '.join(PRESETS)}")
    return PRESETS[name].on_atlas() if on_atlas else PRESETS[name]


def _library(preset: Preset, results: Path | None, atlas: Path | None) -> ResultStore:
    base = scenario_preset("paper")
    source = load_dataset(base.data.source) if atlas is None else load_atlas(atlas)
    return ResultStore(folder=results or Path(preset.folder), base=base, source=source, block=preset.block)


def _play(wanted: Sequence[Experiment], preset: Preset, store: ResultStore, workers: int, console: Console) -> None:
    """Play the blocks that are missing, and say first how long that will take."""
    requests = [request for one in wanted for request in one.at(preset)]
    possible = [one for one in EXPERIMENTS if isinstance(store.source, Dataset) or one.in_main_world]
    later = [request for one in possible for request in one.at(preset)]
    tasks = order_tasks(store.missing(requests, also=later), [one.at(preset) for one in wanted])
    if tasks:
        slot_s = seconds_for_a_slot(store)
        left = estimate_seconds(tasks, slot_s, base=store.base, workers=workers)
        console.print(
            f"{len(tasks)} blocks to play, about {format_duration(left)} on {workers} processes "
            f"({1e3 * slot_s:.0f} ms a replica-slot)",
            highlight=False,
        )
        total, played = sum(task.replica_slots for task in tasks), 0
        bar = TerminalBar(preset.name, "replica-slots", console)

        def show(more: int) -> None:
            nonlocal played
            played += more
            bar.show(played, total)

        def tell(task: BlockTask) -> None:
            console.print(f"finished: {task.path}", highlight=False, soft_wrap=True)

        try:
            play(tasks, store.source, workers=workers, progress=show, finished=tell)
        finally:
            bar.stop()


def _measure(names: Sequence[str], context: Context, console: Console) -> None:
    """Make the measurements that are not on file."""
    for name in names:
        bar = TerminalBar(f"measuring: {name}", "parts", console)

        def show(finished: int, total: int, *, bar: TerminalBar = bar, name: str = name) -> None:
            if console.is_terminal:
                bar.show(finished, total)
            else:  # a log has no bar to look at
                console.print(f"measuring: {name}, {finished} of {total} parts", highlight=False)

        try:
            measure(name, dataclasses.replace(context, progress=show))
        finally:
            if console.is_terminal:
                bar.stop()


def _calibrate(console: Console, workers: int) -> None:
    dataset = load_dataset(scenario_preset("paper").data.source)
    bar = TerminalBar("calibration", "candidates", console)
    try:
        calibration = calibrate(dataset, CALIBRATION, workers=workers, progress=bar.show)
    finally:
        bar.stop()
    table = Table()
    for column in ("candidate", "samples", "best-known cohort", "random", "distance"):
        table.add_column(column, justify="left" if column == "candidate" else "right")
    for outcome in sorted(calibration.outcomes, key=lambda one: one.distance):
        table.add_row(
            outcome.candidate.name,
            f"{outcome.total_samples}",
            f"{outcome.fixed:.4f} ± {outcome.fixed_half_width:.4f}",
            f"{outcome.random:.4f} ± {outcome.random_half_width:.4f}",
            f"{outcome.distance:.4f}",
            style="bold" if outcome is calibration.choice else None,
        )
    console.print(table)
    console.print(f"taken: {calibration.choice.candidate.name}", highlight=False, soft_wrap=True)


def _print_list(console: Console) -> None:
    table = Table()
    for column in ("name", "", "what it shows", "trials", "slots"):
        table.add_column(column)
    for one in EXPERIMENTS:
        trials = sorted({str(request.trials) for request in one.requests})
        slots = sorted({str(request.slots) for request in one.requests})
        table.add_row(one.name, one.part, one.title, ", ".join(trials), ", ".join(slots))
    console.print(table)


def main() -> None:
    """Run the command and exit, as `fedelect` does."""
    run_app(app)


if __name__ == "__main__":
    main()
