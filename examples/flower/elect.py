"""FL&DA on Flower, on this machine: a SuperLink, six SuperNodes and six peers beside them, TLS everywhere, offline.

python elect.py [--out FOLDER] [--clients N] [--slots T] [--seed SEED] [--pace S] [--witness]

Ends with a report and leaves no process behind. The cohorts are those of
`fedelect run FOLDER/scenario.toml --framework da --selector bp-gp --engine plain --trials 1 --seed SEED --slots T`.

Flower starts a process for every message, and gives up one that is not up within half a minute. On a machine that is
busy they must not all start at once: messages are sent one by one, `--pace` seconds apart.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

import msgspec
import numpy as np
from loopback import Loopback

from fedelect.datasets import load_dataset
from fedelect.federation import make_engine
from fedelect.records import open_run, read_run, sorted_records
from fedelect.report import write_report
from fedelect.runtime.identity import create_federation
from fedelect.runtime.launch import PeerProcesses, reserve_addresses
from fedelect.runtime.roster import Roster, couplings_for, settings_for
from fedelect.runtime.slot_logs import add_slot_logs, build_header
from fedelect.scenario import Scenario, ScenarioConfig, build_scenario, parse_scenario, scenario_toml

APP = Path(__file__).parent / "elections"
ENGINE = "plain"
SILENT_INTERVALS = 600  # half seconds: SuperNodes begin an election as far apart as their processes start
SLOT_S = 600.0
START_S = 300.0


def main() -> int:
    """Found a federation, run it, write the report; 0 if Flower says that the run was completed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/elections"), help="a folder that does not exist yet")
    parser.add_argument("--clients", type=int, help="as many as elections/scenario.toml says, if left out")
    parser.add_argument("--slots", type=int, help="likewise")
    parser.add_argument("--seed", type=int, default=1, help="the one seed")
    parser.add_argument("--pace", type=float, help="by default, the busier the machine is, the longer")
    parser.add_argument("--witness", action="store_true", help="keep all that reaches the server in OUT/witness")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended then, too
    out = given.out.resolve()
    config = sized(parse_scenario((APP / "scenario.toml").read_text(encoding="utf-8")), given.clients, given.slots)
    dataset = load_dataset(config.data.source)
    world = build_scenario(config, dataset)
    with reserve_addresses(world.clients) as addresses:
        roster = write_federation(out, world, addresses, seed=given.seed)
        (out / "scenario.toml").write_text(scenario_toml(config), encoding="utf-8")
        pace = min(15.0, os.getloadavg()[0] / 2) if given.pace is None else given.pace
        status = deploy(out, world, roster, seed=given.seed, pace=pace, witness=given.witness)
    if not (out / "server" / "run.json").exists():
        print(f"{status}; nothing was recorded")
        return 1
    page = write_down(out, world, roster, dataset.digest, seed=given.seed)
    print(f"{status}; what the server knew: {out / 'server'}; with what the peers noted: {out / 'run'}")
    print(f"open the report: {page}")
    return 0 if status == "finished:completed" else 1


def sized(config: ScenarioConfig, clients: int | None, slots: int | None) -> ScenarioConfig:
    """The scenario with other numbers of clients and slots."""
    number = clients or config.clients
    data = msgspec.structs.replace(config.data, iid_clients=min(config.data.iid_clients, number))
    budget = min(config.budget, max(1, number - 1))
    return msgspec.structs.replace(config, clients=number, budget=budget, slots=slots or config.slots, data=data)


def write_federation(out: Path, world: Scenario, addresses: tuple[str, ...], *, seed: int) -> Roster:
    """Keys, certificates and roster in OUT/fed, and every client's own data, and nobody else's, in OUT/data."""
    edges, couplings = couplings_for(world)
    settings = settings_for(world.config, seed=seed, max_faulty=1, slot_s=SLOT_S, silent_intervals=SILENT_INTERVALS)
    roster = create_federation(out / "fed", addresses=addresses, edges=edges, couplings=couplings, settings=settings)
    (out / "data").mkdir()
    for client, member in enumerate(roster.members):
        np.savez(
            out / "data" / f"{member.name}.npz",
            train_inputs=world.train_inputs[client],
            train_labels=world.train_labels[client],
            test_inputs=world.test_inputs[client],
            test_labels=world.test_labels[client],
        )
    return roster


def deploy(out: Path, world: Scenario, roster: Roster, *, seed: int, pace: float, witness: bool) -> str:
    """Start peers, SuperLink and SuperNodes, run the app, end them all; what Flower says of the run."""
    model, folders = world.config.model, {n: out / "fed" / member.name for n, member in enumerate(roster.members)}
    settings = {
        "roster": str(out / "fed" / "server"),
        "run-folder": str(out / "server"),
        "witness": str(out / "witness") if witness else "",
        "pace": float(pace),
        "slots": world.config.slots,
        "rounds-per-slot": world.config.rounds_per_slot,
        "start": world.config.start,
        "rows": world.features + 1,
        "columns": world.classes,
        "seed": seed,
        "loss": model.kind,
        "step": model.step,
        "epochs": model.epochs,
        "batch": model.batch,
    }
    with PeerProcesses(folders, control=True) as peers, Loopback(out / "flower", simulation=False, tls=True) as link:
        peers.start_all(START_S)
        for client, member in enumerate(roster.members):
            beside = {"peer": str(folders[client]), "data": str(out / "data" / f"{member.name}.npz")}
            link.start_node(client, world.clients, name=member.name, config=beside)
        run = link.run(APP, settings)
        status = link.wait(run, deadline_s=7200, every_s=30.0)
        print(link.log(run))
        peers.stop_all(START_S)  # their notes are read next
    return status


def write_down(out: Path, world: Scenario, roster: Roster, digest: str, *, seed: int) -> Path:
    """OUT/run: the server's records with what every peer noted in its own folder, which here can all be read."""
    known = read_run(out / "server")
    header = build_header(
        world,
        slots=known.header.slots,
        seed=seed,
        engine=make_engine(ENGINE, world.config),
        digest=digest,
        roster=roster,
        command=f"python elect.py --clients {world.clients} --seed {seed} --slots {known.header.slots}",
    )
    with open_run(out / "run", header) as writer:
        writer.append(add_slot_logs(sorted_records(known), out / "fed", roster))
    return write_report(out / "run", out / "report.html")


if __name__ == "__main__":
    sys.exit(main())
