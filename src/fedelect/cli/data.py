"""`fedelect data`: get data sets."""

from typing import Annotated

import typer
from rich.console import Console

from fedelect.datasets import cache_folder, fetch_mnist
from fedelect.errors import ConfigurationError

app = typer.Typer(help="Get data sets.", no_args_is_help=True)


@app.callback()
def _data() -> None:
    pass


@app.command("fetch")
def fetch(name: Annotated[str, typer.Argument(help="The data set: mnist.")]) -> None:
    """Download a data set into the cache, verified by checksum, from the first source that answers."""
    if name != "mnist":
        raise ConfigurationError(f"unknown data set {name!r}; mnist can be fetched, digits comes with scikit-learn")
    console = Console()
    path = fetch_mnist(cache_folder(), progress=lambda line: console.print(line, highlight=False, soft_wrap=True))
    console.print(f"mnist: {path}", highlight=False, soft_wrap=True)
