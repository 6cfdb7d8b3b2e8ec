"""`fedelect scenario`: the presets, as TOML to start from."""

from typing import Annotated

import typer

from fedelect._front import read_config
from fedelect.scenario import PRESETS, scenario_toml

app = typer.Typer(help="Look at scenarios.", no_args_is_help=True)


@app.command("list")
def list_presets() -> None:
    """List the presets."""
    for name in PRESETS:
        config = read_config(name)
        typer.echo(f"{name}: {config.clients} clients, budget {config.budget}, data {config.data.source}")


@app.command("show")
def show(name: Annotated[str, typer.Argument(help="A preset, or the path of a scenario file to check.")]) -> None:
    """Print a scenario as TOML, with every key, its meaning and its allowed values."""
    typer.echo(scenario_toml(read_config(name)), nl=False)
