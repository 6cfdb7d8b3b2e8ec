"""A whole run with real peers on this machine: train, let the peers judge and elect, record.

The calling process plays the FL server: it trains with an engine of the simulator, gives the model to all peers as a
file, and learns each cohort only from certificates that it verifies. Its records are written as slots end. Opinions,
means and beliefs stay in the peers' folders; they are added after the end, in a second run folder, for the report.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from fedelect.errors import ConfigurationError, RunError
from fedelect.federation import DEFAULT_ENGINE, Engine, Job, Model, make_engine
from fedelect.loop import count_arrivals, skipped_record, slot_record
from fedelect.records import RunHeader, RunWriter, open_run, read_run, sorted_records
from fedelect.runtime.identity import create_federation, member_names
from fedelect.runtime.launch import OnNotice, PeerProcesses, reserve_addresses
from fedelect.runtime.process import SHARE_NAME
from fedelect.runtime.roster import Roster, couplings_for, settings_for
from fedelect.runtime.server import DirectElections, ElectionResult, ElectionServer
from fedelect.runtime.signing import Ed25519Verifier
from fedelect.runtime.slot_logs import LABEL, add_slot_logs, build_header
from fedelect.scenario import Dataset, Scenario, ScenarioConfig, build_scenario
from fedelect.vocabulary import Selection

START_S = 120.0
"""Longest time until every link is up; a loaded machine starts peers slowly."""

STOP_S = 120.0
"""Longest time for peers to write the log of their last slot and end."""

README = """# A federation of real peers

Made by `fedelect peers demo`.

- `fed/peerNN`: all that a peer has. Its keys, roster and certificate, its own test share, its journal (what it signed,
  and the certificates), and its own notes (`slots.jsonl`: opinion, mean, belief).
- `fed/server`: all that the FL server has of the election, the roster. It holds no key.
- `fed/ca`: the certificate authority. In a real federation lock it away, far from the FL server.
- `models`: what the server trained, slot by slot, broadcast to all peers as files.
- `server`: the server's own records, written as slots ended.
- `run`: the same with opinions and beliefs, for `fedelect show` and `fedelect report`.

While the run went on, the server learnt of each election nothing but its certificate. The opinions and beliefs in `run`
were collected from the peers' folders after the end, for the report: on one machine that is a matter of reading files;
in a real federation every client would have to hand them over.
"""


@dataclass(frozen=True, kw_only=True)
class Demo:
    """What to play.

    Attributes:
        config: The world; its model must be linear and its opinion accuracy.
        slots: T.
        seed: The run's seed.
        rule: How they elect, "bp-ucb" or "bp-gp".
        max_faulty: Largest number of peers that may fail in a slot; the graph must stay connected without them.
        slot_s: Seconds after which peers give a slot up.
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


def play_demo(
    demo: Demo,
    dataset: Dataset,
    out: Path,
    *,
    command: str = "",
    on_result: Callable[[ElectionResult], None] = lambda result: None,
    on_notice: OnNotice = lambda client, notice: None,
) -> Path:
    """Play, and return the run folder, `out`/run. The peers' folders are in `out`/fed; no process is left behind.

    Args:
        demo: What to play.
        dataset: The data that the scenario deals to the clients.
        out: A folder that does not exist, or is empty.
        command: The command line to note in the records.
        on_result: Called after each slot with the result of its election.
        on_notice: Called with (client, notice) for every notice of a peer, at once, from other threads.

    Raises:
        RunError: The peers did not get as far as slot 1; or some did not stop, and the records may lack their logs.
    """
    scenario = build_scenario(demo.config, dataset)
    engine = make_engine(demo.engine, demo.config)
    if out.exists() and any(out.iterdir()):
        raise ConfigurationError(f"{out} is not empty; name a new folder for the demo")
    with reserve_addresses(scenario.clients) as addresses, threadpool_limits(limits=1, user_api="blas"):
        roster = _create(demo, scenario, out, addresses)
        header = _header(demo, scenario, engine, dataset.digest, roster, command)
        folders = {client: out / "fed" / name for client, name in enumerate(member_names(scenario.clients))}
        with PeerProcesses(folders, on_notice=on_notice) as peers, open_run(out / "server", header) as writer:
            peers.start_all(START_S)
            elections = DirectElections(peers, ElectionServer(roster.config(), Ed25519Verifier()))
            _play(demo, scenario, engine, elections, out / "models", writer, on_result)
            killed = peers.stop_all(STOP_S)
        with open_run(out / "run", header) as writer:
            writer.append(add_slot_logs(sorted_records(read_run(out / "server")), out / "fed", roster))
    if killed:
        raise RunError(
            f"these peers did not stop within {STOP_S:g} s and were killed: {', '.join(map(str, sorted(killed)))}; "
            f"{out / 'run'} may lack what they noted of the last slot"
        )
    return out / "run"


def _create(demo: Demo, scenario: Scenario, out: Path, addresses: tuple[str, ...]) -> Roster:
    """Write all folders; every peer gets its own test share and no other."""
    edges, couplings = couplings_for(scenario)
    settings = settings_for(demo.config, seed=demo.seed, rule=demo.rule, max_faulty=demo.max_faulty, slot_s=demo.slot_s)
    roster = create_federation(out / "fed", addresses=addresses, edges=edges, couplings=couplings, settings=settings)
    (out / "models").mkdir()
    (out / "README.md").write_text(README, encoding="utf-8")
    for client, member in enumerate(roster.members):
        share = out / "fed" / member.name / SHARE_NAME
        np.savez(share, inputs=scenario.test_inputs[client], labels=scenario.test_labels[client])
    return roster


def _header(demo: Demo, scenario: Scenario, engine: Engine, digest: str, roster: Roster, command: str) -> RunHeader:
    return build_header(
        scenario,
        slots=demo.slots,
        seed=demo.seed,
        engine=engine,
        digest=digest,
        roster=roster,
        command=command,
    )


def _play(
    demo: Demo,
    scenario: Scenario,
    engine: Engine,
    elections: DirectElections,
    models: Path,
    writer: RunWriter,
    on_result: Callable[[ElectionResult], None],
) -> None:
    start: Model | None = None
    judged, path = 0, None
    for slot in range(1, demo.slots + 1):
        began = time.monotonic()
        elections.begin(slot, judged=judged, model=path)
        result = elections.hold(slot, within_s=demo.slot_s + 10.0)
        if result.certificate is None:
            reason = result.reason or "no certificate"
            record = skipped_record(LABEL, slot, reason, seconds=time.monotonic() - began)
        else:
            selection = Selection(slot, result.certificate.cohort)
            job = Job(cohort=selection.cohort, start=start, seed=demo.seed, trial=0, slot=slot)
            (training,) = engine.train(scenario, [job])
            start = training.model if demo.config.start == "warm" else None
            judged, path = slot, models / f"slot{slot:04d}.npy"
            np.save(path, training.model)
            record = slot_record(LABEL, selection, **count_arrivals(training), seconds=time.monotonic() - began)
        writer.append([record])
        on_result(result)
    last = demo.slots + 1  # in this election the last model is judged; nobody trains
    elections.begin(last, judged=judged, model=path)
    everybody = frozenset(range(scenario.clients))
    on_result(elections.hold(last, within_s=demo.slot_s + 10.0, all_of=everybody))
