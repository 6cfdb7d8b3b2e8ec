"""Small worlds like those that users have: warm training on the bundled digits, with flaws, absence and sparse surveys.

They are fixed. Their settings were chosen by `random` and `oracle` alone, never by results of another selector:
training converges within the slots, and where clients are flawed, the gap between the two is visible.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedelect.datasets import load_dataset
from fedelect.scenario import (
    DataConfig,
    Dataset,
    ModelConfig,
    ScenarioConfig,
    change_scenario,
)
from fedelect.seeds import stream
from fedelect.vocabulary import Ints

CLIENTS, BUDGET, SLOTS = 40, 5, 80

RARE_CLASSES = (8, 9)
RARE_HOLDERS = 4
"""In the world of rare classes only the clients 0 .. RARE_HOLDERS - 1 hold the RARE_CLASSES, and nothing else."""

_BASE = ScenarioConfig(
    name="users",
    clients=CLIENTS,
    budget=BUDGET,
    slots=SLOTS,
    rounds_per_slot=1,
    start="warm",
    redraw_every=1,  # each trial is another world, so that figures are not those of one draw
    data=DataConfig(source="digits", iid_clients=0, skew="dirichlet", alpha=0.3, samples=(20, 60), test_share="own"),
    model=ModelConfig(kind="softmax", step=2e-3, epochs=5, batch=10),
)


def _digits() -> Dataset:
    return load_dataset("digits")


@dataclass(frozen=True, kw_only=True)
class UserWorld:
    """A world of the benchmark.

    Attributes:
        name: Its name.
        what: What is special about it, in a few words.
        changes: Keys of the scenario that differ from the common ones.
        load: Loads its data.
    """

    name: str
    what: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    load: Callable[[], Dataset] = _digits

    @property
    def flawed(self) -> bool:
        """Whether some clients are flawed."""
        return "flaws" in self.changes

    def config(self, seed: int) -> ScenarioConfig:
        """Return the scenario; who is flawed and who holds what follows from `seed`."""
        return change_scenario(_BASE, {"name": self.name, "seed": seed, **self.changes})


def deal_rare_classes(dataset: Dataset) -> Dataset:
    """Return the data dealt to `CLIENTS` clients: few hold the rare classes, and the rest share the others evenly.

    The order in which samples are dealt comes from a stream of its own, the same everywhere.
    """

    def owners(labels: Ints, part: str) -> Ints:
        order = stream(0, "rare classes", part).permutation(labels.size)
        rare = np.isin(labels[order], RARE_CLASSES)
        dealt = np.empty(labels.size, dtype=np.int64)
        dealt[order[rare]] = np.arange(rare.sum()) % RARE_HOLDERS
        dealt[order[~rare]] = RARE_HOLDERS + np.arange((~rare).sum()) % (CLIENTS - RARE_HOLDERS)
        return dealt

    return Dataset(
        dataset.inputs,
        dataset.labels,
        dataset.test_inputs,
        dataset.test_labels,
        "digits, rare classes",
        owners(dataset.labels, "train"),
        owners(dataset.test_labels, "test"),
    )


def _rare_digits() -> Dataset:
    return deal_rare_classes(_digits())


_RANDOM_LABELS = {"random_labels": {"share": 0.3}}

_WORLDS = (
    UserWorld(name="random-labels", what="30 % of the clients have random labels", changes={"flaws": _RANDOM_LABELS}),
    UserWorld(
        name="swapped-labels",
        what="30 % have swapped labels, also in their own test data",
        changes={"flaws": {"swapped_labels": {"share": 0.3, "clean_test": False}}},
    ),
    UserWorld(
        name="noisy-features",
        what="30 % have noisy features",
        changes={"flaws": {"noisy_features": {"share": 0.3, "noise": 3.0}}},
    ),
    UserWorld(name="copies", what="50 % hold another's data", changes={"flaws": {"copies": {"share": 0.5}}}),
    UserWorld(
        name="free-riders",
        what="50 % send back what they got; slow training",
        changes={"flaws": {"free_riders": {"share": 0.5}}, "model": {"step": 1e-3, "epochs": 1}},
    ),
    UserWorld(
        name="flipped-updates",
        what="30 % send flipped updates",
        changes={"flaws": {"flipped_updates": {"share": 0.3}}},
    ),
    UserWorld(
        name="failing", what="50 % fail in 4 of 5 slots", changes={"flaws": {"failing": {"share": 0.5, "rate": 0.8}}}
    ),
    UserWorld(
        name="mixed",
        what="10 % each: random labels, swapped labels, noisy free riders, flipped updates",
        changes={
            "flaws": {
                "random_labels": {"share": 0.1},
                "swapped_labels": {"share": 0.1},
                "free_riders": {"share": 0.1, "noise": 1.0},
                "flipped_updates": {"share": 0.1},
            }
        },
    ),
    UserWorld(
        name="half-present",
        what="30 % have random labels; each client is there in half of the slots",
        changes={"flaws": _RANDOM_LABELS, "availability": {"kind": "random", "probability": 0.5}},
    ),
    UserWorld(
        name="fifth-asked",
        what="30 % have random labels; 20 % are asked in a slot",
        changes={"flaws": _RANDOM_LABELS, "survey": {"asked": 0.2}},
    ),
    UserWorld(name="unflawed", what="nobody is flawed; labels are skewed"),
    UserWorld(
        name="rare-classes",
        what="nobody is flawed; two classes are held by 4 clients alone",
        changes={"data": {"source": "arrays"}},
        load=_rare_digits,
    ),
    UserWorld(name="hard-clients", what="nobody is flawed; 20 % hold hard samples", changes={"hard": {"share": 0.2}}),
)

USER_WORLDS: dict[str, UserWorld] = {world.name: world for world in _WORLDS}
"""The worlds by name, those with flaws first."""
