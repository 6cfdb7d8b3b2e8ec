"""`fedelect reproduce`: the paper's figures and tables, one by one or all."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from fedelect.cli.progress import Bar
from fedelect.datasets import load_dataset
from fedelect.errors import ConfigurationError
from fedelect.processes import usable_cores
from fedelect.reproduce import (
    EXPERIMENTS,
    PRESETS,
    BlockTask,
    Context,
    Experiment,
    Library,
    Preset,
    calibrate,
    committed_library,
    draw,
    estimated_seconds,
    experiment,
    hours,
    measure,
    measurement_path,
    play,
    seconds_for_a_slot,
    write_document,
)
from fedelect.scenario import preset as scenario_preset

CALIBRATION = Path("reproduction/calibration.json")


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="The label of a figure or table (`list` names them), `all`, `calibration` to try the settings that "
            "the paper leaves open, or `document` to write docs/REPRODUCTION.md from the results on file."
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
            help="The atlas of the paper's world (`fedelect atlas build paper`), for `regret`, `sensitivity`."
        ),
    ] = None,
) -> None:
    """Reproduce the paper: run what is missing, then draw. Stopped or killed, the same command goes on."""
    console = Console()
    cores = workers or usable_cores()
    if name == "list":
        _print_list(console)
        return
    if name == "document":
        page = write_document(committed_library(Path(), results), Path("docs"))
        console.print(f"written: {page}", highlight=False, soft_wrap=True)
        return
    if name == "calibration":
        _calibrate(console, cores)
        return
    wanted = EXPERIMENTS if name == "all" else (experiment(name),)
    library = _library(preset, results)
    try:
        _play(wanted, PRESETS[preset], library, cores, console)
        _measure(wanted, Context(library=library, preset=PRESETS[preset], workers=cores, atlas=atlas), console)
    except KeyboardInterrupt:
        console.print("stopped; give the same command again to go on", highlight=False)
        raise typer.Exit(130) from None
    for one in wanted:
        for path in draw(one, library, PRESETS[preset], figures or library.folder / "figures"):
            console.print(f"{one.name}: {path}", highlight=False, soft_wrap=True)


def _library(name: str, results: Path | None) -> Library:
    if name not in PRESETS:
        raise ConfigurationError(f"unknown preset {name!r}; use {' or '.join(PRESETS)}")
    chosen = PRESETS[name]
    base = scenario_preset("paper")
    return Library(
        folder=results or Path(chosen.folder), base=base, dataset=load_dataset(base.data.source), block=chosen.block
    )


def _play(wanted: Sequence[Experiment], preset: Preset, library: Library, workers: int, console: Console) -> None:
    """Play the blocks that are missing, and say first how long that will take."""
    demands = [demand for one in wanted for demand in one.at(preset)]
    tasks = library.missing(demands, also=[demand for one in EXPERIMENTS for demand in one.at(preset)])
    if tasks:
        slot_s = seconds_for_a_slot(library)
        left = estimated_seconds(tasks, slot_s, base=library.base, workers=workers)
        console.print(
            f"{len(tasks)} blocks to play, about {hours(left)} on {workers} processes "
            f"({1e3 * slot_s:.0f} ms a replica-slot)",
            highlight=False,
        )
        total, played = sum(task.replica_slots for task in tasks), 0
        bar = Bar(preset.name, "replica-slots", console)

        def show(more: int) -> None:
            nonlocal played
            played += more
            bar.show(played, total)

        def tell(task: BlockTask) -> None:
            console.print(f"finished: {task.path}", highlight=False, soft_wrap=True)

        try:
            play(tasks, library.dataset, workers=workers, progress=show, finished=tell)
        finally:
            bar.stop()


def _measure(wanted: Sequence[Experiment], context: Context, console: Console) -> None:
    """Make the measurements that are not on file; among many, those that lack their atlas are named and left out."""
    for one in wanted:
        for measurement in one.measurements:
            there = measurement_path(context.library.folder, measurement).exists()
            if one.atlas and context.atlas is None and not there and len(wanted) > 1:
                console.print(f"not measured: {measurement}, which needs --atlas", highlight=False)
                continue
            console.print(f"measuring: {measurement}", highlight=False)
            measure(measurement, context)


def _calibrate(console: Console, workers: int) -> None:
    dataset = load_dataset(scenario_preset("paper").data.source)
    bar = Bar("calibration", "candidates", console)
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
        trials = sorted({str(demand.trials) for demand in one.demands})
        slots = sorted({str(demand.slots) for demand in one.demands})
        table.add_row(one.name, one.part, one.title, ", ".join(trials), ", ".join(slots))
    console.print(table)
