"""Settings of a run on Flower, checked, and the header of its records."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from fedelect.analytics import Average, check_average
from fedelect.errors import ConfigurationError
from fedelect.flower.contributions import Score
from fedelect.flower.nodes import IdentitySource
from fedelect.flower.opinions import Opinion, check_opinion
from fedelect.flower.privacy import OpinionPrivacy
from fedelect.flower.properties import AvailableFunction, check_available
from fedelect.records import RunHeader, SelectorEntry, create_provenance, library_versions
from fedelect.records.reader import read_header
from fedelect.records.run_folder import HEADER_NAME
from fedelect.selectors import AbstractSelector, selector_classes
from fedelect.vocabulary import as_int

Start = Literal["cold", "warm"]
"""Whether each slot trains from the initial model, or from the last slot's."""


MOST_ASKED = 50
"""Most clients that are asked for their opinion in a slot, unless a survey is asked for."""

COLD_ROUNDS = 5
"""Fewest rounds in a slot of a cold start."""


@dataclass(frozen=True, kw_only=True)
class SlotSettings:
    """Settings of a run's slots, for any cohort source; described in `fedelect.flower.GoalDirected`."""

    rounds_per_slot: int
    start: Start
    train_quorum: int
    wait_s: float
    abandoned_allowed: int
    identity: IdentitySource
    names: tuple[str, ...] | None
    enough_updates: int | None = None
    available: AvailableFunction | None = None

    def __post_init__(self) -> None:
        check_available(self.available)
        if self.start not in get_args(Start):
            raise ConfigurationError(f'start: got {self.start!r}; allowed: "cold" or "warm"')
        if self.start == "cold" and as_int("rounds_per_slot", self.rounds_per_slot) < COLD_ROUNDS:
            raise ConfigurationError(
                f"rounds_per_slot: got {self.rounds_per_slot} with start='cold', in which every slot trains from the "
                f"initial model again and fewer than {COLD_ROUNDS} rounds get nowhere; use start='warm', or more rounds"
            )
        for name in ("rounds_per_slot", "train_quorum"):
            if as_int(name, getattr(self, name)) < 1:
                raise ConfigurationError(f"{name}: got {getattr(self, name)}; allowed: a whole number from 1")
        if self.enough_updates is not None and as_int("enough_updates", self.enough_updates) < self.train_quorum:
            raise ConfigurationError(
                f"enough_updates: got {self.enough_updates}; allowed: a number of updates from train_quorum "
                f"({self.train_quorum}), or None to wait for all"
            )
        if as_int("abandoned_allowed", self.abandoned_allowed) < 0:
            raise ConfigurationError(f"abandoned_allowed: got {self.abandoned_allowed}; allowed: 0 or more")
        if not 0.0 <= self.wait_s < math.inf:
            raise ConfigurationError(f"wait_s: got {self.wait_s!r}; allowed: seconds, 0 or more")
        if not callable(self.identity) and self.identity not in ("auto", "key", "node-id"):
            raise ConfigurationError(
                f'identity: got {self.identity!r}; allowed: "auto", "key", "node-id" or a function of a node'
            )

    def check_fits(self, clients: int, budget: int) -> None:
        """Raise ConfigurationError if the settings do not fit this number of clients and budget."""
        self.check_size(budget)
        if self.names is not None and len(self.names) != clients:
            raise ConfigurationError(f"names: got {len(self.names)} names for {clients} clients")

    def check_size(self, size: int) -> None:
        """Raise ConfigurationError if the settings do not fit a cohort of this size."""
        if self.train_quorum > size:
            raise ConfigurationError(f"train_quorum: got {self.train_quorum}; a cohort has {size} members")
        if self.enough_updates is not None and self.enough_updates > size:
            raise ConfigurationError(f"enough_updates: got {self.enough_updates}; a cohort has {size} members")

    def slots(self, num_rounds: int) -> int:
        """Return the number of slots in `num_rounds` rounds."""
        rounds = as_int("num_rounds", num_rounds)
        if rounds < 1 or rounds % self.rounds_per_slot:
            raise ConfigurationError(
                f"num_rounds: got {rounds}; allowed: a multiple of rounds_per_slot ({self.rounds_per_slot}), "
                f"for a slot takes that many rounds"
            )
        return rounds // self.rounds_per_slot


@dataclass(frozen=True, kw_only=True)
class OpinionSettings:
    """How opinions are read and averaged; described in `fedelect.flower.GoalDirected`."""

    opinion: Opinion | None
    average: Average
    trim: float
    quorum: float
    privacy: OpinionPrivacy | None
    survey: int | float | None = None
    survey_every: int = 1
    loss: str | None = None
    score: Score | None = None

    def __post_init__(self) -> None:
        if as_int("survey_every", self.survey_every) < 1:
            raise ConfigurationError(f"survey_every: got {self.survey_every}; allowed: a whole number of slots from 1")
        if self.loss == "" or not isinstance(self.loss, str | None):
            raise ConfigurationError(f"loss: got {self.loss!r}; allowed: a metric's name, or None to find it")
        if self.score is not None and not callable(self.score):
            raise ConfigurationError(
                f"score: got {self.score!r}; allowed: a function of a model (an ArrayRecord), or None"
            )
        share = isinstance(self.survey, float) and 0.0 < self.survey <= 1.0
        number = isinstance(self.survey, int) and not isinstance(self.survey, bool) and self.survey >= 1
        if self.survey is not None and not share and not number:
            raise ConfigurationError(
                f"survey: got {self.survey!r}; allowed: a number of clients from 1, or a share such as 0.2"
            )
        check_average(self.average, self.trim)
        check_opinion(self.opinion)
        if not 0.0 < self.quorum <= 1.0:
            raise ConfigurationError(f"quorum: got {self.quorum!r}; allowed: a share of the clients above 0, up to 1")
        if self.privacy is not None and self.average != "mean":
            raise ConfigurationError(
                f'average: got {self.average!r} with `privacy`; allowed: "mean", the only one whose noise is known'
            )

    def sample_size(self, connected: int, *, fraction: float, at_least: int) -> int:
        """Return how many of the connected clients to ask.

        Args:
            connected: Connected clients.
            fraction: The inner strategy's `fraction_evaluate`; counts if `survey` is not given.
            at_least: Its `min_evaluate_nodes`; likewise.
        """
        if isinstance(self.survey, float):
            return min(connected, max(1, math.ceil(self.survey * connected - 1e-9)))
        if self.survey is not None:
            return min(connected, self.survey)
        if fraction == 0.0:
            return 0
        if fraction < 1.0:
            return min(connected, max(1, at_least, int(connected * fraction)))
        return min(connected, MOST_ASKED)

    @property
    def corrects(self) -> bool:
        """Whether the average of a sample is corrected for who was asked; see `fedelect.analytics.SurveyAverage`."""
        return self.privacy is None and self.average == "mean"

    def opinions_needed(self, clients: int) -> int:
        """Return the number of opinions that a slot needs."""
        return max(1, math.ceil(self.quorum * clients - 1e-9))

    def check_slots(self, slots: int) -> None:
        """Raise ConfigurationError if the clients release fewer opinions than there are slots."""
        if self.privacy is not None and slots > self.privacy.releases:
            raise ConfigurationError(
                f"num_rounds: got as many as are {slots} slots, but the clients give only "
                f"{self.privacy.releases} opinions (`releases` of the privacy); run fewer slots or promise for more"
            )

    def describe(self) -> dict[str, Any]:
        """Return the description for the run's header."""
        opinion, privacy = self.opinion, self.privacy
        named = "auto" if opinion is None else opinion if isinstance(opinion, str) else name_function(opinion)
        return {
            "opinion": named,
            "average": self.average,
            "trim": self.trim if self.average == "trimmed" else None,
            "quorum": self.quorum,
            "survey": self.survey,
            "survey_every": self.survey_every,
            "loss": self.loss,
            "privacy": None
            if privacy is None
            else {"epsilon": privacy.epsilon, "delta": privacy.delta, "releases": privacy.releases},
            **({} if self.score is None else {"score": name_function(self.score)}),
        }


def name_function(function: object) -> str:
    """Return the name of a user's function, for the run's header."""
    return str(getattr(function, "__qualname__", type(function).__name__))


@dataclass(frozen=True, kw_only=True)
class RunDescription:
    """Description of a run's cohort source in its header.

    Attributes:
        label: Its label in the records.
        kind: Its class.
        parameters: Its parameters, plain values.
        framework: "fa" or "da".
        seed: Its seed.
        clients: N.
        budget: K, of the first slot if it changes.
        scenario: Other values that identify the run, plain.
        edges: The clients' links, if they elect along them.
    """

    label: str
    kind: str
    parameters: dict[str, Any]
    framework: Literal["fa", "da"]
    seed: int
    clients: int
    budget: int
    scenario: dict[str, Any]
    edges: tuple[tuple[int, int], ...] | None = None


def selector_label(selector: AbstractSelector) -> str:
    """Return a selector's label in the records: its name in the catalogue, or its class."""
    known = {kind: name for name, kind in selector_classes().items()}
    return known.get(type(selector), type(selector).__name__)


def read_stored_header(folder: Path) -> RunHeader | None:
    """Read the header of the run in `folder`; None if there is no run yet."""
    return read_header(folder) if (folder / HEADER_NAME).exists() else None


def build_run_header(
    settings: SlotSettings, description: RunDescription, strategy: object, *, slots: int, names: tuple[str, ...] | None
) -> RunHeader:
    """Build the header of a run, with the class of the inner strategy; its parameters are not known."""
    return RunHeader(
        source="flower",
        engine="flower",
        framework=description.framework,
        seed=description.seed,
        clients=description.clients,
        budget=description.budget,
        slots=slots,
        trials=1,
        selectors=(SelectorEntry(label=description.label, kind=description.kind, parameters=description.parameters),),
        scenario={
            "name": "Flower",
            "strategy": type(strategy).__name__,
            "start": settings.start,
            "rounds_per_slot": settings.rounds_per_slot,
            "train_quorum": settings.train_quorum,
            **({} if settings.enough_updates is None else {"enough_updates": settings.enough_updates}),
            **({} if settings.available is None else {"available": name_function(settings.available)}),
            **description.scenario,
        },
        client_names=names,
        edges=description.edges,
        provenance=create_provenance(
            "start the same Flower app again, with another folder as run=... of its strategy", library_versions("flwr")
        ),
    )
