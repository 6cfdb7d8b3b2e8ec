"""The front door: run a comparison of selectors, load a scenario, open a run."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedelect._progress import make_bar
from fedelect._run import Run
from fedelect._text import printable, suggest
from fedelect.atlas import Atlas, load_atlas
from fedelect.datasets import NAMED, as_dataset, load_dataset
from fedelect.errors import ConfigurationError
from fedelect.federation import DEFAULT_ENGINE, Engine
from fedelect.loop import SUPPLIES, FrameworkName
from fedelect.records import OnSlot
from fedelect.scenario import LARGEST_TEXT, PRESETS, Dataset, ScenarioConfig, change_scenario, parse_scenario, preset
from fedelect.selectors.catalogue import AUTO
from fedelect.simulator import Plan, TrainingSource, specify_selectors
from fedelect.simulator import simulate as simulate_plan
from fedelect.vocabulary import Progress

if TYPE_CHECKING:
    from fedelect.selectors import AbstractSelector

DEFAULT_SELECTORS: dict[FrameworkName, tuple[str, ...]] = {
    "fa": (AUTO, "random"),
    "da": ("bp-ucb", "random"),
}
"""The selectors that are compared when none is named."""

DEFAULT_TRIALS = 8
"""Trials if no number is given: enough for intervals, seconds in small worlds."""

ARRAYS = "arrays"
"""`data.source` in the record of a run over arrays that were given in Python."""

Scenario = str | os.PathLike[str] | ScenarioConfig | Atlas


def simulate(
    scenario: Scenario = "digits",
    *,
    selectors: "Sequence[str | Callable[..., AbstractSelector]] | str | Callable[..., AbstractSelector] | None" = None,
    framework: str = "fa",
    slots: int | None = None,
    trials: int = DEFAULT_TRIALS,
    seed: int = 1,
    data: Any = None,
    out: str | os.PathLike[str] | None = None,
    engine: Engine | str | None = None,
    workers: int | None = None,
    ray: str | None = None,
    progress: bool | Progress = True,
    command: str | None = None,
    allow_large: bool = False,
    on_slot: OnSlot | None = None,
) -> Run:
    """Simulate a federation once for each selector and trial, and return the recorded run.

    In each slot a selector elects K of the N clients, they train, all clients score the model, and the selector
    learns from the scores. Within a trial all selectors share data, batch orders and upload luck.

    Args:
        scenario: A preset ("digits", "users-small", "paper", ...), the path of a scenario .toml or of an atlas .npz, a
            `ScenarioConfig` (see `load_scenario`), or an `Atlas`.
        selectors: Selectors to compare: names with parameters ("bp-ucb:exploration=0.01", see `fedelect selectors`),
            subclasses of `AbstractSelector`, or functions `(clients, budget, seed) -> selector`. None: the recommended
            one and random.
        framework: "fa": the average opinion reaches the server. "da": the clients elect among themselves.
        slots: Slots in each trial; the scenario's own number if None.
        trials: Monte Carlo trials.
        seed: The one seed of the run.
        data: Your own data in place of the scenario's: (X, y, X_test, y_test) or a mapping of these; X has shape
            (samples, ...), y holds classes 0 .. C-1. If it belongs to clients already: a list of them, each (X, y) or
            (X, y, X_test, y_test), or a mapping of their names to these; there are as many clients then.
        out: The run folder; the same call on it resumes. None: a temporary folder, deleted with the returned object.
        engine: Name of the engine that trains, or an engine object, which stays in this process.
        workers: Processes to spread the trials over; None for one per core. Results do not depend on it.
        ray: A Ray cluster to use instead: HOST:PORT of its head, "auto", or "local". Needs the extra `ray`.
        progress: Show a progress bar (terminal or notebook), or call a function with (finished, total).
        command: What to note in the record as the command that repeats the run.
        allow_large: Do not refuse numbers that would take more than half of the memory or 30 days of one core.
        on_slot: Called in this process with the record of each slot, once it is recorded; see docs/TRACKERS.md.

    Raises:
        ConfigurationError: A selector, scenario or number that cannot be used; nothing has been written.
        RunMismatchError: `out` holds a run of another configuration.
    """
    config, source = load_source(scenario, data)
    chosen = _check_framework(framework)
    plan = Plan(
        config=config,
        framework=chosen,
        selectors=specify_selectors(DEFAULT_SELECTORS[chosen] if selectors is None else selectors),
        slots=config.slots if slots is None else slots,
        trials=trials,
        seed=seed,
        engine=engine if isinstance(engine, str) else DEFAULT_ENGINE,
    )
    path = Path(tempfile.mkdtemp(prefix="fedelect-") if out is None else out)
    bound = plan.bound_to_this_process
    if bound is not None and workers is None and trials > 1 and progress is not False:
        note = f"all trials run in this process, for other processes cannot import {bound}; put it into a module"
        print(printable(note), file=sys.stderr)
    bar = make_bar(f"{config.name}, FL&{chosen.upper()}", "replica-slots") if progress is True else None
    try:
        simulate_plan(
            plan,
            source,
            path,
            command=_describe_call(plan) if command is None else command,
            engine=None if isinstance(engine, str) else engine,
            progress=bar.show if bar is not None else progress if callable(progress) else _no_progress,
            workers=workers,
            ray_address=ray,
            allow_large=allow_large,
            on_slot=on_slot,
        )
    except BaseException:
        if out is None:
            shutil.rmtree(path, ignore_errors=True)
        raise
    finally:
        if bar is not None:
            bar.stop()
    return Run(path, temporary=out is None)


def load_run(path: str | os.PathLike[str]) -> Run:
    """Open a run folder that `fedelect.simulate`, the command line, Flower or peers wrote, finished or not.

    Raises:
        RunError: There is no run, or its header is damaged.
    """
    return Run(path)


def load_scenario(scenario: str | os.PathLike[str] | ScenarioConfig = "digits", **changes: Any) -> ScenarioConfig:
    """Load a scenario by the name of a preset or the path of a TOML file, and change some of its keys.

    >>> import fedelect
    >>> fedelect.load_scenario("digits", clients=50, start="warm", data={"skew": "dirichlet"}).data.skew
    'dirichlet'

    Args:
        scenario: A preset ("digits", "users-small", "paper", ...), a path, or a configuration to change.
        changes: New values by key; those of a table such as `[data]` as a mapping, in which keys left out stay.

    Raises:
        ConfigurationError: There is no such scenario or key, or a value is not allowed.
    """
    if isinstance(scenario, ScenarioConfig):
        return change_scenario(scenario, changes)
    if not isinstance(scenario, str | os.PathLike):
        raise ConfigurationError(f"a scenario is a preset's name, a path or a ScenarioConfig, got {scenario!r}")
    config = read_config(scenario)
    located = _locate(config.data.source, Path(scenario).parent)
    if scenario not in PRESETS and located != config.data.source:
        changes["data"] = {"source": str(Path(located).absolute())} | dict(changes.get("data", {}))
    return change_scenario(config, changes)


def load_source(scenario: Scenario, data: Any = None) -> tuple[ScenarioConfig, TrainingSource]:
    """Load a scenario and what it is trained on: an atlas, a data set, or the arrays in `data`.

    A relative path in a TOML file starts at that file's folder. Where the data belongs to clients, the scenario has as
    many of them; in a TOML file `clients` must be that number or be left out.
    """
    if isinstance(scenario, str | os.PathLike) and str(scenario).endswith(".npz"):
        scenario = load_atlas(Path(scenario))
    if isinstance(scenario, Atlas):
        if data is not None:
            raise ConfigurationError("an atlas holds the results of training, so `data` is not used; leave it out")
        return scenario.config, scenario
    if isinstance(scenario, ScenarioConfig):
        config, base = scenario, Path()
    elif isinstance(scenario, str | os.PathLike):
        config, base = read_config(scenario), Path() if scenario in PRESETS else Path(scenario).parent
    else:
        raise ConfigurationError(
            f"a scenario is a preset's name, a path, a ScenarioConfig or an Atlas, got {scenario!r}"
        )
    if data is not None:
        dataset = as_dataset(data)
        return _follow_clients(change_scenario(config, {"data": {"source": ARRAYS}}), dataset), dataset
    dataset = load_dataset(_locate(config.data.source, base))
    if dataset.clients is not None and config.clients not in (dataset.clients, ScenarioConfig().clients):
        raise ConfigurationError(
            f"clients: got {config.clients}, but the data in {dataset.name} belongs to {dataset.clients} clients; "
            f"allowed: that number, or no such key"
        )
    return _follow_clients(config, dataset), dataset


def _follow_clients(config: ScenarioConfig, dataset: Dataset) -> ScenarioConfig:
    """Return the scenario with as many clients as the data belongs to; unchanged if it belongs to nobody yet."""
    if dataset.clients is None:
        return config
    return change_scenario(config, {"clients": dataset.clients, "data": {"iid_clients": 0}})


def _locate(source: str, base: Path) -> str:
    """Return `data.source` with a path as seen from here; it starts at the folder `base`."""
    there = source.endswith(".npz") or os.path.exists(base / source)
    return str(base / source) if source not in NAMED and there else source


def read_config(scenario: str | os.PathLike[str]) -> ScenarioConfig:
    """Read the scenario of a preset or a TOML file, as it is written there."""
    if isinstance(scenario, str) and scenario in PRESETS:
        return preset(scenario)
    path = Path(scenario)
    if not os.path.exists(path):  # False also where the text is no possible path, such as a very long one
        raise ConfigurationError(
            f"{str(scenario)!r} is neither a preset nor a file{suggest(str(scenario), PRESETS)}; presets are "
            f"{', '.join(PRESETS)}, and `fedelect scenario show digits > my_scenario.toml` writes a file to start from"
        )
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(LARGEST_TEXT + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the scenario {str(scenario)!r} cannot be read: {error}; give a TOML file") from error
    try:
        return parse_scenario(text)
    except ConfigurationError as error:
        raise ConfigurationError(f"{scenario}: {error}") from error


def _check_framework(text: str) -> FrameworkName:
    for name in SUPPLIES:
        if name == text:
            return name
    raise ConfigurationError(f"unknown framework {text!r}; use {' or '.join(SUPPLIES)}")


def _describe_call(plan: Plan) -> str:
    """Return the call of `simulate` for the record; what was given as an object is named."""
    selectors = ", ".join(repr(spec.text) for spec in plan.selectors)
    numbers = f"slots={plan.slots}, trials={plan.trials}, seed={plan.seed}"
    return f"fedelect.simulate({plan.config.name!r}, selectors=[{selectors}], framework={plan.framework!r}, {numbers})"


def _no_progress(finished: int, total: int) -> None:
    pass
