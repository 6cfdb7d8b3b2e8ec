"""How a goal-directed run on Flower goes: its settings, checked, and the header under which it is recorded."""

import importlib.metadata
import math
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

import fedelect
from fedelect.analytics import Average, check_average
from fedelect.errors import ConfigurationError
from fedelect.flower.messages import Identity
from fedelect.flower.opinions import Opinion
from fedelect.flower.privacy import OpinionPrivacy
from fedelect.records import Provenance, RunHeader, SelectorEntry
from fedelect.records.reader import read_header
from fedelect.records.run_folder import HEADER_NAME
from fedelect.selectors import AbstractSelector, selector_classes
from fedelect.vocabulary import whole

Start = Literal["cold", "warm"]
"""Whether each slot trains from the initial model, or goes on from the last slot's."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a run; see `fedelect.flower.GoalDirected` for what they mean."""

    rounds_per_slot: int
    opinion: Opinion
    start: Start
    average: Average
    trim: float
    quorum: float
    train_quorum: int
    wait_s: float
    abandoned_allowed: int
    identity: Identity
    names: tuple[str, ...] | None
    privacy: OpinionPrivacy | None

    def __post_init__(self) -> None:
        check_average(self.average, self.trim)
        if self.start not in get_args(Start):
            raise ConfigurationError(f'start: got {self.start!r}; allowed: "cold" or "warm"')
        for name in ("rounds_per_slot", "train_quorum"):
            if whole(name, getattr(self, name)) < 1:
                raise ConfigurationError(f"{name}: got {getattr(self, name)}; allowed: a whole number from 1")
        if whole("abandoned_allowed", self.abandoned_allowed) < 0:
            raise ConfigurationError(f"abandoned_allowed: got {self.abandoned_allowed}; allowed: 0 or more")
        if not 0.0 < self.quorum <= 1.0:
            raise ConfigurationError(f"quorum: got {self.quorum!r}; allowed: a share of the clients above 0, up to 1")
        if not 0.0 <= self.wait_s < math.inf:
            raise ConfigurationError(f"wait_s: got {self.wait_s!r}; allowed: seconds, 0 or more")
        if not (isinstance(self.opinion, str) and self.opinion) and not callable(self.opinion):
            raise ConfigurationError(f"opinion: got {self.opinion!r}; allowed: a metric's name, or a function")
        if self.privacy is not None and self.average != "mean":
            raise ConfigurationError(
                f'average: got {self.average!r} with `privacy`; allowed: "mean", the only one whose noise is known'
            )
        if not callable(self.identity) and self.identity not in ("auto", "key", "node-id"):
            raise ConfigurationError(
                f'identity: got {self.identity!r}; allowed: "auto", "key", "node-id" or a function of a node'
            )

    def opinions_needed(self, clients: int) -> int:
        """How many opinions a slot needs to count."""
        return max(1, math.ceil(self.quorum * clients - 1e-9))

    def clients_needed(self, selector: AbstractSelector) -> int:
        """How many clients must be there for a slot to be worth playing."""
        return max(selector.budget, self.opinions_needed(selector.clients))

    def slots(self, num_rounds: int) -> int:
        """How many slots `num_rounds` rounds are."""
        rounds = whole("num_rounds", num_rounds)
        if rounds < 1 or rounds % self.rounds_per_slot:
            raise ConfigurationError(
                f"num_rounds: got {rounds}; allowed: a multiple of rounds_per_slot ({self.rounds_per_slot}), "
                f"for a slot takes that many rounds"
            )
        slots = rounds // self.rounds_per_slot
        if self.privacy is not None and slots > self.privacy.releases:
            raise ConfigurationError(
                f"num_rounds: got {rounds}, which are {slots} slots, but the clients give only "
                f"{self.privacy.releases} opinions (`releases` of the privacy); run fewer slots or promise for more"
            )
        return slots


def label_of(selector: AbstractSelector) -> str:
    """What the records call a selector: its name in the catalogue, or its class."""
    known = {kind: name for name, kind in selector_classes().items()}
    return known.get(type(selector), type(selector).__name__)


def stored_header(folder: Path) -> RunHeader | None:
    """The header of the run in `folder`; None if there is no run yet."""
    return read_header(folder) if (folder / HEADER_NAME).exists() else None


def run_header(
    settings: Settings, selector: AbstractSelector, strategy: object, *, slots: int, names: tuple[str, ...] | None
) -> RunHeader:
    """The header of a run. The inner strategy's class is part of it; what it was made with is not known."""
    elsewhere = ("clients", "budget", "seed")
    parameters = {name: value for name, value in selector.parameters.items() if name not in elsewhere}
    return RunHeader(
        source="flower",
        engine="flower",
        framework="fa",
        seed=int(selector.parameters.get("seed", 0)),
        clients=selector.clients,
        budget=selector.budget,
        slots=slots,
        trials=1,
        selectors=(SelectorEntry(label=label_of(selector), kind=type(selector).__name__, parameters=parameters),),
        scenario=_scenario(settings, strategy),
        client_names=names,
        provenance=Provenance(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            command="start the same Flower app again, with another folder as run=... of GoalDirected",
            versions={
                "fedelect": fedelect.__version__,
                "flwr": importlib.metadata.version("flwr"),
                "numpy": np.__version__,
                "python": platform.python_version(),
            },
            platform=f"{platform.system()} {platform.machine()}",
        ),
    )


def _scenario(settings: Settings, strategy: object) -> dict[str, Any]:
    opinion, privacy = settings.opinion, settings.privacy
    return {
        "name": "Flower",
        "strategy": type(strategy).__name__,
        "start": settings.start,
        "rounds_per_slot": settings.rounds_per_slot,
        "opinion": opinion if isinstance(opinion, str) else getattr(opinion, "__qualname__", type(opinion).__name__),
        "average": settings.average,
        "trim": settings.trim if settings.average == "trimmed" else None,
        "quorum": settings.quorum,
        "train_quorum": settings.train_quorum,
        "privacy": None
        if privacy is None
        else {"epsilon": privacy.epsilon, "delta": privacy.delta, "releases": privacy.releases},
    }
