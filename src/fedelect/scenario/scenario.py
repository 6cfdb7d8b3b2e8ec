"""Build a scenario: every array a run needs, made once from a configuration and a data set, read only."""

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from fedelect.equations.wireless import received_snr
from fedelect.errors import DataError
from fedelect.scenario.channel import draw_uploads, upload_probabilities
from fedelect.scenario.client_data import WorldData, build_data, rename_classes
from fedelect.scenario.config import ScenarioConfig
from fedelect.scenario.dataset import Dataset, Inputs
from fedelect.scenario.drift import draw_drift
from fedelect.scenario.flaws import Flaws, draw_members
from fedelect.scenario.partition import draw_partition, own_partition
from fedelect.scenario.proximity import distances_km
from fedelect.scenario.system import (
    SystemConfig,
    draw_jitter,
    draw_snr_db,
    draw_speeds,
    training_seconds,
    upload_seconds,
)
from fedelect.scenario.topology import draw_topology
from fedelect.scenario.validation import hold_out
from fedelect.seeds import stream
from fedelect.vocabulary import Cohort, Floats, Ints, Signal


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, eq=False)
class Scenario:
    """Clients with their data, positions, links and channels. Made by `build_scenario`; all arrays are read only.

    Attributes:
        config: Its configuration.
        classes: C, classes in the data.
        features: F, numbers in one input.
        train_inputs: For each client (D_n, F) in the model's precision.
        train_labels: For each client (D_n,).
        test_inputs: For each client (its test share, F).
        test_labels: For each client (its test share,).
        sizes: (N,) training samples of each client, |D_n|.
        positions_km: (N, 2).
        server_km: (2,) the centre of the square.
        edges: (M, 2) links i < j, sorted; the graph is connected.
        edge_lengths_km: (M,).
        upload_probability: (N,) theta.
        mean_snr: (N,) mean received SNR, power ratio.
        speeds: (N,) how fast each client computes; 1 is ordinary.
        system: How fast clients train and upload.
        groups: Clients by kind of data, "iid", "skewed" and "hard"; a kind without clients is left out.
        flaws: Kind of flaw -> the clients that have it, sorted; no selector sees it.
        clean_test_inputs: For each client its test share without flaws; where it has none, the array in `test_inputs`.
        clean_test_labels: The same for its labels.
        global_test_inputs: (M, F) clean test data of everybody, in the model's precision.
        global_test_labels: (M,).
        validation_inputs: (V, F) samples that the server holds and no client; V = 0 without [validation].
        validation_labels: (V,).
        client_names: N names, if the data has them.
        drifted: The world after the drift; None if the data never changes.
    """

    config: ScenarioConfig
    classes: int
    features: int
    train_inputs: tuple[Inputs, ...]
    train_labels: tuple[Ints, ...]
    test_inputs: tuple[Inputs, ...]
    test_labels: tuple[Ints, ...]
    sizes: Ints
    positions_km: Floats
    server_km: Floats
    edges: Ints
    edge_lengths_km: Floats
    upload_probability: Floats
    mean_snr: Floats
    speeds: Floats
    system: SystemConfig
    groups: dict[str, tuple[int, ...]]
    flaws: dict[str, tuple[int, ...]]
    clean_test_inputs: tuple[Inputs, ...]
    clean_test_labels: tuple[Ints, ...]
    global_test_inputs: Inputs
    global_test_labels: Ints
    validation_inputs: Inputs
    validation_labels: Ints
    client_names: tuple[str, ...] | None = None
    drifted: "Scenario | None" = None

    @property
    def clients(self) -> int:
        """N."""
        return self.config.clients

    @property
    def budget(self) -> int:
        """K."""
        return self.config.budget

    @property
    def flawed(self) -> NDArray[np.bool_]:
        """(N,) which clients have a flaw, of whatever kind."""
        marks = np.zeros(self.clients, dtype=np.bool_)
        for members in self.flaws.values():
            marks[list(members)] = True
        return marks

    def at(self, slot: int) -> "Scenario":
        """The world in a slot: this one, unless the data has drifted by then."""
        drift = self.config.drift
        return self if self.drifted is None or drift is UNSET or slot < drift.slot else self.drifted


def build_scenario(config: ScenarioConfig, dataset: Dataset, *, draw: int = 0) -> Scenario:
    """Build the scenario that `config` describes over `dataset`.

    Everything is drawn from streams of the scenario's seed named ("data", draw, ...), ("topology", draw),
    ("system", draw), ("flaws", draw, ...) and ("drift", draw).

    Args:
        config: The scenario.
        dataset: The data; its `name` is not compared with `config.data.source`. If it belongs to clients, each gets its
            own samples, and of [data] nothing else is used.
        draw: 0 for the scenario as such; other numbers are independent redraws (`redraw_every`).

    Raises:
        DataError: The data cannot supply what the scenario asks.
    """
    clients = config.clients
    topology = draw_topology(config.topology, clients, seed=config.seed, draw=draw)
    flaws = draw_special(config, draw=draw)
    hard = flaws.pop("hard", ())
    validation = None
    if config.validation is not UNSET:
        validation = hold_out(config.validation, dataset, seed=config.seed, draw=draw)
        dataset = validation.rest
    if dataset.owners is None:
        partition = draw_partition(config.data, dataset, clients, seed=config.seed, draw=draw, hard=hard)
    else:
        _check_own_shares(config, dataset)
        partition = own_partition(dataset)
    data = build_data(config, dataset, partition, flaws, validation, draw=draw)
    distances = distances_km(topology.positions_km, topology.server_km)
    theta = upload_probabilities(config.channel, distances)
    pace = draw_pace(config, distances, draw=draw)
    iid = clients if config.data.skew == "iid" else config.data.iid_clients
    scenario = Scenario(
        config=config,
        classes=dataset.classes,
        features=dataset.features,
        sizes=np.array([len(labels) for labels in data.held.train_labels], dtype=np.int64),
        positions_km=topology.positions_km,
        server_km=topology.server_km,
        edges=topology.edges,
        edge_lengths_km=topology.edge_lengths_km,
        upload_probability=theta,
        mean_snr=pace.mean_snr,
        speeds=pace.speeds,
        system=pace.system,
        groups={} if dataset.owners is not None else _group_clients(iid, clients, hard),
        flaws=flaws,
        client_names=dataset.client_names,
        **_as_fields(data),
    )
    _freeze(scenario)
    if config.drift is UNSET:
        return scenario
    names = draw_drift(config.drift, dataset.classes, seed=config.seed, draw=draw)
    later = rename_classes(data, names, config, dataset, flaws, draw=draw)
    drifted = dataclasses.replace(scenario, **_as_fields(later))
    _freeze(drifted)
    return dataclasses.replace(scenario, drifted=drifted)


def _check_own_shares(config: ScenarioConfig, dataset: Dataset) -> None:
    if dataset.clients != config.clients:
        raise DataError(
            f"clients: got {config.clients}, but the data in {dataset.name} belongs to {dataset.clients} clients; set "
            f"clients = {dataset.clients}"
        )
    if config.hard is not UNSET:
        raise DataError(
            f"hard: got a table, but the data in {dataset.name} belongs to its clients already; leave [hard] out"
        )


def draw_special(config: ScenarioConfig, *, draw: int = 0) -> Flaws:
    """Draw who has which flaw, and under "hard" whose honest data is hard."""
    return draw_members(config.special_clients, config.clients, seed=config.seed, draw=draw)


def _group_clients(iid: int, clients: int, hard: Collection[int]) -> dict[str, tuple[int, ...]]:
    groups = {"iid": set(range(iid)), "skewed": set(range(iid, clients))}
    parted = {kind: tuple(sorted(members.difference(hard))) for kind, members in groups.items()}
    return {kind: members for kind, members in {**parted, "hard": tuple(hard)}.items() if members}


def _as_fields(data: WorldData) -> dict[str, Any]:
    """The fields of a scenario that are data."""
    return {
        **data.held._asdict(),
        "clean_test_inputs": data.clean.test_inputs,
        "clean_test_labels": data.clean.test_labels,
        "global_test_inputs": data.test_inputs,
        "global_test_labels": data.test_labels,
        "validation_inputs": data.validation_inputs,
        "validation_labels": data.validation_labels,
    }


class Pace(NamedTuple):
    """How fast the clients of a scenario train and upload; see `Scenario`."""

    mean_snr: Floats
    speeds: Floats
    system: SystemConfig


def draw_pace(config: ScenarioConfig, server_distance_km: Floats, *, draw: int = 0) -> Pace:
    """Draw speeds and SNRs; they follow from the configuration and (N,) distances from the server alone."""
    channel = config.channel
    system = SystemConfig() if config.system is UNSET else config.system
    return Pace(
        received_snr(
            server_distance_km, transmit_power_dbm=channel.transmit_power_dbm, mean_snr_db=channel.mean_snr_db
        ),
        draw_speeds(system, config.clients, seed=config.seed, draw=draw),
        system,
    )


def draw_arrivals(scenario: Scenario, cohort: Cohort, *, seed: int, trial: int, slot: int) -> NDArray[np.bool_]:
    """Which of the cohort's uploads arrive in each round of a slot, X; none of a client whose training fails.

    The outcome of (trial, slot, round, client) does not depend on the other members of the cohort.

    Returns:
        (L, K), columns in cohort order.
    """
    arrivals = draw_uploads(
        scenario.upload_probability,
        cohort,
        rounds=scenario.config.rounds_per_slot,
        seed=seed,
        trial=trial,
        slot=slot,
    )
    return arrivals & ~draw_failures(scenario, cohort, seed=seed, trial=trial, slot=slot)


def draw_failures(scenario: Scenario, cohort: Cohort, *, seed: int, trial: int, slot: int) -> NDArray[np.bool_]:
    """Whose training fails in this slot; nothing of them arrives in any round. Lost uploads are no failures.

    The outcome of (trial, slot, client) does not depend on the other members of the cohort.

    Returns:
        (K,), in cohort order.
    """
    config = scenario.config.flaws
    failing = frozenset(scenario.flaws.get("failing", ()))
    if config is UNSET or config.failing is UNSET or failing.isdisjoint(cohort):
        return np.zeros(len(cohort), dtype=np.bool_)
    rate = config.failing.rate
    return np.array(
        [client in failing and stream(seed, "failures", trial, slot, client).random() < rate for client in cohort]
    )


def simulated_signals(
    scenario: Scenario, cohort: Cohort, *, model_bits: int | None, seed: int, trial: int, slot: int
) -> dict[Signal, Floats]:
    """Signals that the clients report after `slot`; see `fedelect.vocabulary.EXTRA_SIGNALS`.

    Args:
        scenario: The clients.
        cohort: The clients that trained; only they have `seconds`.
        model_bits: Size of an upload; None if not known.
        seed: Seed of the run.
        trial: Number of the trial.
        slot: The slot that is over; forecasts and channel are those of the next one.

    Returns:
        (N,) each: "sizes", "training_s", "channel_db" and, if the size of an upload is known, "seconds", "upload_s".
    """
    system, config, members = scenario.system, scenario.config, list(cohort)
    training = training_seconds(system, scenario.sizes, scenario.speeds, epochs=config.model.epochs)
    signals = {
        "sizes": scenario.sizes.astype(np.float64),
        "training_s": training,
        "channel_db": draw_snr_db(
            scenario.mean_snr, rounds=config.rounds_per_slot, seed=seed, trial=trial, slot=slot + 1
        ),
    }
    if model_bits is not None:
        upload = upload_seconds(system, scenario.mean_snr, model_bits=model_bits)
        jitter = draw_jitter(system, scenario.clients, seed=seed, trial=trial, slot=slot)
        seconds = np.full(scenario.clients, np.nan)
        seconds[members] = (training * jitter + upload)[members]
        signals |= {"seconds": seconds, "upload_s": upload}
    return signals


def _freeze(scenario: Scenario) -> None:
    per_client = (
        scenario.train_inputs,
        scenario.train_labels,
        scenario.test_inputs,
        scenario.test_labels,
        scenario.clean_test_inputs,
        scenario.clean_test_labels,
    )
    single = (
        scenario.sizes,
        scenario.positions_km,
        scenario.server_km,
        scenario.edges,
        scenario.edge_lengths_km,
        scenario.upload_probability,
        scenario.mean_snr,
        scenario.speeds,
        scenario.global_test_inputs,
        scenario.global_test_labels,
        scenario.validation_inputs,
        scenario.validation_labels,
    )
    for array in [*single, *(array for arrays in per_client for array in arrays)]:
        array.flags.writeable = False
