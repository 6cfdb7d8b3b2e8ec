"""`fedelect peers init`: the folders of a new federation of real peers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from fedelect._front import read_config
from fedelect._text import count
from fedelect.cli.console import make_console
from fedelect.errors import ConfigurationError
from fedelect.scenario import ScenarioConfig
from fedelect.scenario.topology import draw_topology
from fedelect.vocabulary import Floats, Ints

FIRST_PORT = 7447
LAST_PORT = 65535

BELIEVED = (
    "the rule bp-ucb believes what clients claim of themselves: one that always claims the highest mean is elected in "
    "nearly every slot, and nobody can prove it wrong; use it among clients that trust each other, else bp-gp"
)
"""Said when a federation is founded with the paper's rule."""


@dataclass(frozen=True)
class _Linked:
    """The part of a scenario that the exchange of beliefs depends on, without data."""

    config: ScenarioConfig
    clients: int
    edges: Ints
    edge_lengths_km: Floats


def init(
    out: Annotated[Path, typer.Option(help="Folder to make; it must not hold anything.")],
    clients: Annotated[int | None, typer.Option(help="How many peers; the scenario's number if left out.")] = None,
    budget: Annotated[int | None, typer.Option(help="How many of them train in a slot.")] = None,
    scenario: Annotated[str, typer.Option(help="Preset or TOML file that gives graph and beliefs.")] = "digits",
    hosts: Annotated[
        Path | None,
        typer.Option(
            help="Text file with HOST:PORT of each peer, one in a line, in client order. "
            f"If left out, all on this machine, ports from {FIRST_PORT}."
        ),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(
            help="Text file with the public key of each peer (`fedelect peers key`), one in a line, in client order. "
            "If left out, all secrets are made here."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Fixes cold-start groups and ties.")] = 1,
    rule: Annotated[
        str, typer.Option(help="How they elect: bp-gp, or bp-ucb, which believes what clients claim of themselves.")
    ] = "bp-gp",
    max_faulty: Annotated[int, typer.Option(help="Peers that may fail in a slot while the others still decide.")] = 0,
    byzantine: Annotated[
        bool, typer.Option("--byzantine", help="Those may also send anything; takes more signatures.")
    ] = False,
    slot_s: Annotated[float, typer.Option(help="Seconds after which peers give a slot up.")] = 60.0,
    silent_intervals: Annotated[
        int,
        typer.Option(help="Half seconds of silence after which a neighbour is not waited for; on Flower 120 or more."),
    ] = 8,
) -> None:
    """Write roster, graph, CA and one folder for each peer; bring each folder to its machine.

    Without --keys this machine holds all secrets for a moment: it must not be the FL server's.
    """
    from fedelect.runtime.identity import create_federation
    from fedelect.runtime.roster import couplings_for, settings_for

    config = resize(read_config(scenario), clients, budget)
    topology = draw_topology(config.topology, config.clients, seed=config.seed)
    edges, couplings = couplings_for(_Linked(config, config.clients, topology.edges, topology.edge_lengths_km))
    roster = create_federation(
        out,
        addresses=_addresses(hosts, config.clients),
        edges=edges,
        couplings=couplings,
        settings=settings_for(
            config,
            seed=seed,
            rule=rule,
            max_faulty=max_faulty,
            byzantine=byzantine,
            slot_s=slot_s,
            silent_intervals=silent_intervals,
        ),
        keys=None if keys is None else _keys(keys),
    )
    election = roster.config()
    console = make_console()
    lines = (
        *([BELIEVED] if rule == "bp-ucb" else []),
        f"{config.clients} peers, {count(len(edges), 'link')}, {election.quorum} signatures make a certificate",
        f"configuration {election.digest.hex()}: the same on every machine, or they do not talk",
        f"bring each {out}/peerNN to its machine and there run: fedelect peer peerNN",
        *([] if keys is None else ["every client puts its peerNN beside its own signing.key, which is not in it"]),
        f"{out}/server (the roster, no key) is for the FL server; lock {out}/ca away",
    )
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def resize(config: ScenarioConfig, clients: int | None, budget: int | None) -> ScenarioConfig:
    """Return the scenario with another number of clients and budget."""
    number = config.clients if clients is None else clients
    iid = min(config.data.iid_clients, number)
    return msgspec.structs.replace(
        config,
        clients=number,
        budget=min(config.budget, number) if budget is None else budget,
        data=msgspec.structs.replace(config.data, iid_clients=iid),
    )


def _addresses(hosts: Path | None, clients: int) -> tuple[str, ...]:
    if hosts is None:
        if FIRST_PORT + clients > LAST_PORT + 1:
            most = LAST_PORT + 1 - FIRST_PORT
            raise ConfigurationError(f"{clients} peers on one machine: ports suffice for {most}; give --hosts")
        return tuple(f"127.0.0.1:{FIRST_PORT + client}" for client in range(clients))
    lines = _lines(hosts, "HOST:PORT")
    wrong = [line for line in lines if not _is_address(line)]
    if wrong or len(lines) != clients:
        what = f"{wrong[0]!r}" if wrong else f"{len(lines)} lines"
        raise ConfigurationError(f"{hosts} must hold HOST:PORT for each of {clients} clients, got {what}")
    return lines


def _is_address(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host) and port.isdecimal() and len(port) <= 5 and 0 < int(port) <= LAST_PORT


def _keys(path: Path) -> list[bytes]:
    from fedelect.runtime.identity import PUBLIC_PREFIX

    lines = _lines(path, "public keys")
    for number, line in enumerate(lines, 1):
        if not line.startswith(PUBLIC_PREFIX):  # what stands there may be a secret: it is not shown
            raise ConfigurationError(
                f"key {number} in {path} does not begin with {PUBLIC_PREFIX!r}; it must be what `fedelect peers key` "
                f"printed, never what is in signing.key: if it is that, the client makes a new one"
            )
    try:
        return [bytes.fromhex(line.removeprefix(PUBLIC_PREFIX)) for line in lines]
    except ValueError as error:
        raise ConfigurationError(f"{path} must hold public keys in hexadecimal, a line each: {error}") from error


def _lines(path: Path, what: str) -> tuple[str, ...]:
    try:
        return tuple(line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read {path}: {error}; give a text file with {what}, a line each") from error
