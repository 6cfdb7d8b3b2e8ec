"""A world without its data, and checks of an atlas that was read from a file."""

import math
from typing import Any

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from fedelect.atlas.table import Atlas, opinions_from
from fedelect.scenario import Scenario, ScenarioConfig
from fedelect.scenario.proximity import distances_km
from fedelect.scenario.scenario import draw_pace, draw_special
from fedelect.vocabulary import Ints

FACTS = ("sizes", "positions_km", "server_km", "edges", "edge_lengths_km", "upload_probability")
"""The arrays of a scenario that are not data."""

_WHOLE = ("sizes", "edges")


def world_of_facts(
    config: ScenarioConfig,
    *,
    classes: int,
    features: int,
    groups: dict[str, tuple[int, ...]],
    facts: dict[str, NDArray[Any]],
) -> Scenario:
    """The scenario with empty training and test shares; `facts` are its other arrays, by name."""
    no_inputs = tuple(np.empty((0, features), dtype=config.model.precision) for _ in range(config.clients))
    no_labels: tuple[Ints, ...] = tuple(np.empty(0, dtype=np.int64) for _ in range(config.clients))
    arrays = {name: copy_typed(name, facts[name], np.int64 if name in _WHOLE else np.float64) for name in FACTS}
    pace = draw_pace(config, distances_km(arrays["positions_km"], arrays["server_km"]))
    return Scenario(
        config=config,
        classes=classes,
        features=features,
        train_inputs=no_inputs,
        train_labels=no_labels,
        test_inputs=no_inputs,
        test_labels=no_labels,
        clean_test_inputs=no_inputs,
        clean_test_labels=no_labels,
        global_test_inputs=np.empty((0, features), dtype=config.model.precision),
        global_test_labels=np.empty(0, dtype=np.int64),
        validation_inputs=np.empty((0, features), dtype=config.model.precision),
        validation_labels=np.empty(0, dtype=np.int64),
        groups=groups,
        flaws={kind: members for kind, members in draw_special(config).items() if kind != "hard"},
        mean_snr=pace.mean_snr,
        speeds=pace.speeds,
        system=pace.system,
        sizes=arrays["sizes"],
        positions_km=arrays["positions_km"],
        server_km=arrays["server_km"],
        edges=arrays["edges"],
        edge_lengths_km=arrays["edge_lengths_km"],
        upload_probability=arrays["upload_probability"],
    )


def strip_data(scenario: Scenario) -> Scenario:
    """The same scenario with empty training and test shares."""
    return world_of_facts(
        scenario.config,
        classes=scenario.classes,
        features=scenario.features,
        groups=scenario.groups,
        facts={name: getattr(scenario, name) for name in FACTS},
    )


def copy_typed(name: str, array: NDArray[Any], dtype: type[Any]) -> NDArray[Any]:
    """Return a read-only copy of the array. ValueError if it is not of that type."""
    if array.dtype != np.dtype(dtype):
        raise ValueError(f"{name} has type {array.dtype}, expected {np.dtype(dtype)}")
    copy = np.array(array)
    copy.flags.writeable = False
    return copy


def check(atlas: Atlas) -> None:
    """Raise ValueError, with the reason, unless all parts of the atlas are consistent."""
    world, config = atlas.world, atlas.config
    clients, links = config.clients, len(world.edges)
    if config.start != "cold" or config.redraw_every or config.drift is not UNSET:
        raise ValueError("an atlas is of one world with a cold start")
    shapes = {
        "sizes": (clients,),
        "positions_km": (clients, 2),
        "server_km": (2,),
        "edges": (links, 2),
        "edge_lengths_km": (links,),
        "upload_probability": (clients,),
    }
    for name, shape in shapes.items():
        _expect(name, getattr(world, name), shape)
    _expect("test_sizes", atlas.test_sizes, (clients,))
    _expect("untrained", atlas.untrained, (clients,))
    _expect("table", atlas.table, (len(atlas.table), clients, math.comb(clients, config.budget)))
    _expect("fresh", atlas.fresh, (len(atlas.fresh), clients, len(atlas.contenders)))
    if not len(atlas.table):
        raise ValueError("the table has no training seeds")
    if atlas.losses is not None:
        kept = atlas.losses.shape[1] if atlas.losses.ndim > 1 else 0
        _expect("losses", atlas.losses, (2, kept, clients, math.comb(clients, config.budget)))
        _within("losses", atlas.losses, 0, None)
        if not 1 <= kept <= atlas.seeds:
            raise ValueError(f"losses of {kept} training seeds are kept, the table has {atlas.seeds}")
    members = [client for group in world.groups.values() for client in group]
    _within("groups", np.array(members, dtype=np.int64), 0, clients - 1)
    _within("sizes", world.sizes, 0, None)
    _within("edges", world.edges, 0, clients - 1)
    _within("positions_km", world.positions_km, None, None)
    _within("edge_lengths_km", world.edge_lengths_km, 0, None)
    _within("upload_probability", world.upload_probability, 0, 1)
    _within("test_sizes", atlas.test_sizes, 0, None)
    _within("contenders", atlas.contenders, 0, atlas.cohorts - 1)
    if not len(atlas.contenders) or (np.diff(atlas.contenders) <= 0).any():
        raise ValueError("contenders must be one or more different cohorts in ascending order")
    for name in ("untrained", "table", "fresh"):
        entries = getattr(atlas, name)
        opinions = entries if name == "untrained" else opinions_from(np.moveaxis(entries, 1, -1), atlas.test_sizes)
        _within(name, opinions[~np.isnan(opinions)], 0, 1)
        if name != "untrained" and np.isnan(opinions).all(axis=-1).any():
            raise ValueError(f"{name} has a model on which nobody has an opinion")


def _expect(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, expected {shape}")


def _within(name: str, values: NDArray[Any], low: float | None, high: float | None) -> None:
    """Raise ValueError unless all values are finite and within the bounds."""
    sound = np.isfinite(values)
    if low is not None:
        sound &= values >= low
    if high is not None:
        sound &= values <= high
    if not sound.all():
        raise ValueError(f"{name} holds {values[~sound][0]}, which is out of range")
