"""`fedelect data`: get data sets."""

from pathlib import Path
from typing import Annotated

import typer

from fedelect.cli.console import make_console
from fedelect.datasets import fetch_dataset

app = typer.Typer(help="Get data sets.", no_args_is_help=True)


@app.callback()
def _data() -> None:
    pass


@app.command("fetch")
def fetch(
    name: Annotated[str, typer.Argument(help="The data set: mnist or fashion-mnist.")],
    folder: Annotated[
        Path | None,
        typer.Option("--from", help="Folder with the four original files, gzipped or not; the web if left out."),
    ] = None,
) -> None:
    """Bring a data set into the cache, verified by checksum."""
    console = make_console()
    path = fetch_dataset(
        name, folder=folder, progress=lambda line: console.print(line, highlight=False, soft_wrap=True)
    )
    console.print(f"{name}: {path}", highlight=False, soft_wrap=True)
