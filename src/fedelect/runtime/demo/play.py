"""A whole run with real peers on this machine: train, let the peers judge and elect, record.

The calling process plays the FL server: it trains with an engine of the simulator, hands the model to everybody as a
file, and learns each cohort only from certificates that it verifies. Opinions, means and beliefs stay in the peers'
folders; they are read after the end, for the report.
"""

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from fedelect.errors import ConfigurationError, RunError
from fedelect.federation import DEFAULT_ENGINE, Engine, Job, Model, Training, make_engine, versions_of
from fedelect.records import open_run
from fedelect.runtime.demo.elections import ElectionResult, ElectionServer
from fedelect.runtime.demo.federation import couplings_for, settings_for
from fedelect.runtime.demo.written import LABEL, README, Played, header_of, records_of
from fedelect.runtime.identity import found, member_names
from fedelect.runtime.launch import Hears, PeerProcesses, reserve_addresses
from fedelect.runtime.process import SHARE_NAME
from fedelect.runtime.roster import Roster
from fedelect.runtime.signing import Ed25519Verifier
from fedelect.scenario import Dataset, Scenario, ScenarioConfig, build_scenario

START_S = 120.0
"""How long peers may take until every link is up; a loaded machine starts them slowly."""

STOP_S = 120.0
"""How long peers may take to note their last slot and go; the records are made of their notes."""


@dataclass(frozen=True, kw_only=True)
class Demo:
    """What to play.

    Attributes:
        config: The world; its model must be linear and its opinion accuracy.
        slots: T.
        seed: The run's seed.
        rule: How they elect, "bp-ucb" or "bp-gp".
        max_faulty: Peers that may fail in a slot; the graph must stay connected without them.
        slot_s: After how many seconds peers give a slot up.
        engine: What trains.
    """

    config: ScenarioConfig
    slots: int
    seed: int = 1
    rule: str = "bp-ucb"
    max_faulty: int = 0
    slot_s: float = 60.0
    engine: str = DEFAULT_ENGINE

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise ConfigurationError(f"slots must be at least 1, got {self.slots}")
        if not self.config.model.linear or self.config.opinion != "accuracy":
            raise ConfigurationError(
                f"peers of the demo judge linear models by accuracy, got model {self.config.model.kind!r} and opinion "
                f"{self.config.opinion!r}; use the preset digits"
            )


Progress = Callable[[ElectionResult, Training | None], None]
"""Told how each slot's election ended and what was trained."""


def play_demo(
    demo: Demo,
    dataset: Dataset,
    out: Path,
    *,
    command: str = "",
    progress: Progress = lambda held, training: None,
    hears: Hears = lambda client, notice: None,
) -> Path:
    """Play, and return the run folder, `out`/run. The peers' folders are `out`/fed; no process is left behind.

    Args:
        demo: What to play.
        dataset: The data that the scenario deals to the clients.
        out: A folder that does not exist, or is empty.
        command: The command line to note in the records.
        progress: Told after each slot.
        hears: Told (client, notice) of whatever the peers say, at once, from other threads.

    Raises:
        RunError: The peers did not get as far as slot 1; or some did not stop, and the records may lack their notes.
    """
    scenario = build_scenario(demo.config, dataset)
    engine = make_engine(demo.engine, demo.config)
    fed, models = out / "fed", out / "models"
    edges, couplings = couplings_for(scenario)
    settings = settings_for(demo.config, seed=demo.seed, rule=demo.rule, max_faulty=demo.max_faulty, slot_s=demo.slot_s)
    if out.exists() and any(out.iterdir()):
        raise ConfigurationError(f"{out} is not empty; name a new folder for the demo")
    with reserve_addresses(scenario.clients) as addresses, threadpool_limits(limits=1, user_api="blas"):
        roster = found(fed, addresses=addresses, edges=edges, couplings=couplings, settings=settings)
        models.mkdir()
        (out / "README.md").write_text(README, encoding="utf-8")
        folders = _deal(scenario, fed)
        with PeerProcesses(folders, hears=hears) as crew:
            crew.start_all(START_S)
            server = ElectionServer(crew, roster.config(), Ed25519Verifier())
            played = _play(demo, scenario, engine, server, models, progress)
            killed = crew.stop_all(STOP_S)
        run = _write(demo, scenario, engine, dataset.digest, roster, out, played, command)
    if killed:
        raise RunError(
            f"these peers did not stop within {STOP_S:g} s and were killed: {', '.join(map(str, sorted(killed)))}; "
            f"{run} may lack what they noted of the last slot"
        )
    return run


def _deal(scenario: Scenario, fed: Path) -> dict[int, Path]:
    """Give every peer its own test share and nobody else's; returns the folders by client."""
    folders = {client: fed / name for client, name in enumerate(member_names(scenario.clients))}
    for client, folder in folders.items():
        np.savez(folder / SHARE_NAME, inputs=scenario.test_inputs[client], labels=scenario.test_labels[client])
    return folders


def _play(
    demo: Demo, scenario: Scenario, engine: Engine, server: ElectionServer, models: Path, progress: Progress
) -> list[Played]:
    played: list[Played] = []
    start: Model | None = None
    judged, path = 0, None
    everybody = frozenset(range(scenario.clients))
    for slot in range(1, demo.slots + 2):  # one more election than slots: in it the last model is judged
        began = time.monotonic()
        server.begin(slot, judged=judged, model=path)
        last = slot > demo.slots
        held = server.hold(slot, within_s=demo.slot_s + 10.0, all_of=everybody if last else frozenset())
        training = None
        if held.certificate is not None and not last:
            job = Job(cohort=held.certificate.cohort, start=start, seed=demo.seed, trial=0, slot=slot)
            (training,) = engine.train(scenario, [job])
            start = training.model if demo.config.start == "warm" else None
            judged, path = slot, models / f"slot{slot:04d}.npy"
            np.save(path, training.model)
        if not last:
            played.append(Played(held, training, time.monotonic() - began))
        progress(held, training)
    return played


def _write(
    demo: Demo,
    scenario: Scenario,
    engine: Engine,
    digest: str,
    roster: Roster,
    out: Path,
    played: list[Played],
    command: str,
) -> Path:
    header = header_of(
        scenario,
        slots=demo.slots,
        seed=demo.seed,
        engine=engine,
        digest=digest,
        roster=roster,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=command,
        versions=versions_of(engine.name),
        platform=f"{platform.system()} {platform.machine()}",
    )
    records = records_of(out / "fed", roster, played)
    if not records:
        raise RunError(f"no slot of {LABEL} was played; look into {out / 'fed'}")
    with open_run(out / "run", header) as writer:
        writer.append(records)
    return out / "run"
