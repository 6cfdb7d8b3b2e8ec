"""`fedelect atlas`: build a table of what every cohort is worth, and look at it."""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fedelect._front import load_source
from fedelect._text import count
from fedelect.atlas import (
    LIMIT,
    Atlas,
    AtlasPlan,
    Truth,
    build_atlas,
    level_contenders,
    load_atlas,
    scenario_truth,
    seed_sets_apart,
    table_truth,
)
from fedelect.cli.console import make_console
from fedelect.cli.long_jobs import AllowLarge, show_progress
from fedelect.errors import ConfigurationError
from fedelect.federation import DEFAULT_ENGINE
from fedelect.scenario import Dataset

app = typer.Typer(help="Know what every cohort is worth.", no_args_is_help=True)

AtlasFile = Annotated[Path, typer.Argument(help="An atlas, made by `fedelect atlas build`.")]


@app.command("build")
def build(
    scenario: Annotated[
        str, typer.Argument(help="A preset (`fedelect scenario list`) or the path of a scenario .toml file.")
    ],
    out: Annotated[Path, typer.Option(help="The .npz file to write; the same command on it resumes.")] = Path(
        "atlas.npz"
    ),
    seeds: Annotated[int, typer.Option(help="Trainings of every cohort.")] = 3,
    contenders: Annotated[int, typer.Option(help="How many of the cohorts that look best are trained again.")] = 100,
    fresh: Annotated[int, typer.Option(help="How often: one half chooses the optimum, the other half values it.")] = 20,
    losses: Annotated[
        int, typer.Option(help="Keep the clients' losses, too, of this many training seeds, for selectors that look.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="The one seed of all trainings.")] = 1,
    engine: Annotated[str, typer.Option(help="What trains; see `fedelect run --help`.")] = DEFAULT_ENGINE,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes that train; one for each core if left out. The atlas is the same for any number."),
    ] = None,
    limit: Annotated[int, typer.Option(help="Most cohorts to train.")] = LIMIT,
    allow_large: AllowLarge = False,
) -> None:
    """Train every cohort of a scenario with a cold start, and the best of them again.

    A build that was stopped or killed goes on when the same command is given again.
    """
    console = make_console()
    config, source = load_source(scenario)
    if not isinstance(source, Dataset):
        raise ConfigurationError(
            f"{scenario!r} is an atlas already; give a preset or the path of a scenario .toml file"
        )
    plan = AtlasPlan(config=config, seed=seed, seeds=seeds, contenders=contenders, fresh=fresh, losses=losses)
    command = shlex.join(["fedelect", *sys.argv[1:]])
    options: dict[str, Any] = {"engine": engine, "workers": workers, "limit": limit, "allow_large": allow_large}
    with show_progress(f"atlas of {config.name}", "trainings", console) as progress:
        atlas = build_atlas(plan, source, out, command=command, progress=progress, **options)
    _print(atlas, out, console)


@app.command("show")
def show(
    atlas: AtlasFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print every figure as JSON, for programs.")] = False,
) -> None:
    """Print what an atlas knows: the optimum with its interval, the gaps, where a few cohorts stand."""
    loaded = load_atlas(atlas)
    if as_json:
        typer.echo(json.dumps(atlas_json(loaded), indent=2, allow_nan=False))
    else:
        _print(loaded, atlas, make_console())


def atlas_json(atlas: Atlas) -> dict[str, Any]:
    """The figures of an atlas as JSON-able values."""
    scenario, table = scenario_truth(atlas), table_truth(atlas)
    rank = int(atlas.rank(tuple(range(atlas.config.budget))))
    noise = float(atlas.seed_means().std(axis=0, ddof=1).mean()) if atlas.seeds > 1 else None
    return {
        "scenario": atlas.config.name,
        "clients": atlas.config.clients,
        "budget": atlas.config.budget,
        "cohorts": atlas.cohorts,
        "seeds": atlas.seeds,
        "contenders": len(atlas.contenders),
        "fresh": len(atlas.fresh),
        "losses": 0 if atlas.losses is None else atlas.losses.shape[1],
        "opinions": "counts" if atlas.counted else "float32",
        "engine": atlas.engine,
        "digest": atlas.digest,
        "data_digest": atlas.data_digest,
        "built": {"with": atlas.provenance.versions, "at": atlas.provenance.created, "by": atlas.provenance.command},
        "optimum": {
            **_describe_cohort(atlas, scenario, table, scenario.best),
            "value": scenario.optimum.mean,
            "half_width": scenario.optimum.half_width,
            "seeds": scenario.optimum.count,
            "level": [list(atlas.cohort(rank)) for rank in level_contenders(atlas).tolist()],
            "table_less_fresh": seed_sets_apart(atlas),
        },
        "table": {
            **_describe_cohort(atlas, scenario, table, table.best),
            "value": table.optimum.mean,
            "smallest_gap": None if table.smallest_gap != table.smallest_gap else table.smallest_gap,
            "largest_gap": None if table.largest_gap != table.largest_gap else table.largest_gap,
            "mean": float(table.values.mean()),
            "seed_noise": noise,
        },
        "first_clients": {
            **_describe_cohort(atlas, scenario, table, rank),
            "place": int((table.values > table.values[rank]).sum()) + 1,  # in the table
        },
    }


def _describe_cohort(atlas: Atlas, scenario: Truth, table: Truth, rank: int) -> dict[str, Any]:
    """A cohort with its value by the valuing half of the fresh seeds (contenders only) and in the table."""
    return {
        "cohort": list(atlas.cohort(rank)),
        "fresh_value": float(scenario.values[rank]) if rank in atlas.contenders else None,
        "table_value": float(table.values[rank]),
    }


def _print(atlas: Atlas, path: Path, console: Console) -> None:
    facts = atlas_json(atlas)
    best, table, first = facts["optimum"], facts["table"], facts["first_clients"]
    kept = "" if atlas.counted else "; opinions are rounded to 32-bit floats"
    console.print(
        f"{facts['scenario']}: all {atlas.cohorts:,} cohorts of {facts['budget']} out of {facts['clients']} clients, "
        f"{count(atlas.seeds, 'seed')} each, engine {atlas.engine}, {path.stat().st_size / 1000:,.0f} kB{kept}",
        highlight=False,
        soft_wrap=True,
    )
    rows = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("", "cohort", f"{best['seeds']} fresh seeds", "in the table"):
        rows.add_column(name)
    spread = f" ± {best['half_width']:.4f}"
    for name, one, note in (
        ("optimum", best, spread),
        ("best of the table", table, ""),
        (f"first clients, place {first['place']}", first, ""),
    ):
        fresh = "-" if one["fresh_value"] is None else f"{one['fresh_value']:.4f}{note}"
        rows.add_row(name, _members(one["cohort"]), fresh, f"{one['table_value']:.4f}")
    rows.add_row("random cohort", "", "-", f"{table['mean']:.4f}")
    console.print(rows)
    for line in _notes(facts):
        console.print(line, highlight=False, soft_wrap=True)


def _notes(facts: dict[str, Any]) -> list[str]:
    """What the values leave open: which contenders are level with the optimum, how far the seed sets are apart."""
    best, table = facts["optimum"], facts["table"]
    level = (
        f"mean opinions; other fresh seeds chose the optimum. "
        f"{len(best['level'])} of the other {facts['contenders'] - 1} contenders cannot be told from the optimum by "
        f"these {best['seeds']} seeds (95 %, each by itself); in the table contenders are worth "
        f"{best['table_less_fresh']:+.4f} against these"
    )
    above = [one for one in (table, facts["first_clients"]) if (one["fresh_value"] or 0.0) > best["value"]]
    notes = [
        f"{_members(one['cohort'])} is {one['fresh_value'] - best['value']:.4f} above the optimum by the same seeds: "
        f"{'they cannot tell the two apart' if one['cohort'] in best['level'] else 'the choice was unlucky'}"
        for one in above
    ]
    if table["largest_gap"] is not None:
        noise = "" if table["seed_noise"] is None else f"; standard deviation between seeds {table['seed_noise']:.4f}"
        gaps = f"gaps in the table: R_min = {table['smallest_gap']:.2g}, R_max = {table['largest_gap']:.4f}{noise}"
        notes.append(gaps)
    return [level, *notes]


def _members(cohort: list[int]) -> str:
    return "{" + ", ".join(map(str, cohort)) + "}"
