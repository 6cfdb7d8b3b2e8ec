"""Who decides who trains: what a run on Flower asks of it, and the selector that sits at the server (FL&FA).

The other one, the clients' own peers (FL&DA), is in `fedelect.flower.elections`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from flwr.app import ArrayRecord
from flwr.serverapp.strategy import Strategy

from fedelect.flower.exchange import LOG
from fedelect.flower.opinions import Survey, make_feedback, read_survey
from fedelect.flower.rounds import Rounds, SlotTraining
from fedelect.flower.settings import OpinionSettings, RunDescription, selector_label
from fedelect.loop import conclude_slot
from fedelect.records import from_array
from fedelect.selectors import AbstractSelector
from fedelect.vocabulary import ClientId, Feedback, Selection


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotOutcome:
    """What was learnt from a slot, as far as the server may know it.

    Attributes:
        note: Why nothing was, so that the slot is abandoned; None if it is not.
        opinions: (N,) for the record, None where there is none; None if not on record.
        reward: The average that the selector was told.
        reward_noise: Standard deviation of the noise on it.
        said: The same in words, for the log.
    """

    note: str | None = None
    opinions: tuple[float | None, ...] | None = None
    reward: float | None = None
    reward_noise: float = 0.0
    said: str = ""


class CohortSource(Protocol):
    """Decides who trains, slot by slot, and learns from what came of it."""

    @property
    def description(self) -> RunDescription:
        """What the run's header says of it."""

    @property
    def needed(self) -> int:
        """How many clients must be there for a slot to be worth playing."""

    @property
    def used(self) -> bool:
        """Whether it has decided anything yet."""

    @property
    def reuse_error(self) -> str:
        """What to say if it has, and should not have."""

    def decide(
        self, slot: int, there: Collection[ClientId], model: ArrayRecord, rounds: Rounds, strategy: Strategy
    ) -> Selection:
        """Who trains in `slot`; `model` is what came of the slots before. Raises NoElection if nobody does."""

    def learn(self, selection: Selection, trained: SlotTraining, rounds: Rounds, strategy: Strategy) -> SlotOutcome:
        """Take in what came of the training, or that nothing did."""

    def close(self, slot: int, model: ArrayRecord, rounds: Rounds, strategy: Strategy) -> None:
        """The last slot, number `slot`, has been played, now or before a restart, and this is the last model."""

    def state(self) -> dict[str, Any]:
        """What `restore` needs to go on, plain values."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""


CLAIMED = "examples"
"""Key of `SelectorSource.state` beside the selector's own: over how many examples clients give noisy opinions."""


class SelectorSource:
    """A selector at the server, told the average of the clients' opinions.

    Args:
        selector: It.
        opinion_settings: What is made of the opinions.
    """

    def __init__(self, selector: AbstractSelector, opinion_settings: OpinionSettings) -> None:
        self.selector = selector
        self._opinion_settings = opinion_settings
        self._examples: dict[ClientId, int] = {}  # over how many examples clients give noisy opinions

    @property
    def description(self) -> RunDescription:
        """The selector's class and what it was made with."""
        elsewhere = ("clients", "budget", "seed")
        given = self.selector.parameters
        return RunDescription(
            label=selector_label(self.selector),
            kind=type(self.selector).__name__,
            parameters={name: value for name, value in given.items() if name not in elsewhere},
            framework="fa",
            seed=int(given.get("seed", 0)),
            clients=self.selector.clients,
            budget=self.selector.budget,
            scenario=self._opinion_settings.describe(),
        )

    @property
    def needed(self) -> int:
        """A cohort, and enough for the quorum of opinions."""
        return max(self.selector.budget, self._opinion_settings.opinions_needed(self.selector.clients))

    @property
    def used(self) -> bool:
        """Whether the selector has been asked before."""
        return bool(self.selector.state()["slot"] != 0)

    @property
    def reuse_error(self) -> str:
        """A selector cannot begin again."""
        return "the selector has been used before; a new run takes a new selector"

    def decide(
        self, slot: int, there: Collection[ClientId], model: ArrayRecord, rounds: Rounds, strategy: Strategy
    ) -> Selection:
        """Ask the selector, among those that are there."""
        return self.selector.ask(None if len(there) == self.selector.clients else list(there))

    def learn(self, selection: Selection, trained: SlotTraining, rounds: Rounds, strategy: Strategy) -> SlotOutcome:
        """Survey all clients that are there, and tell the selector; or let it abandon the slot."""
        if trained.abandoned is not None:
            self.selector.abandon(selection)
            return SlotOutcome(note=trained.abandoned)
        survey = self._survey(selection.slot, trained.model, rounds, strategy)
        note = self._tell(selection, survey)
        private = self._opinion_settings.privacy is not None
        feedback = Feedback() if note is not None else self._feedback(survey)
        average = "" if note is not None else f", average {feedback.reward:.4f}"
        return SlotOutcome(
            note=note,
            opinions=None if private else from_array(survey.opinions),
            reward=feedback.reward,
            reward_noise=feedback.reward_noise,
            said=f"; opinions of {survey.given} of {rounds.clients.count}{average}",
        )

    def close(self, slot: int, model: ArrayRecord, rounds: Rounds, strategy: Strategy) -> None:
        """Nothing is left to do: every model has been judged in its own slot."""

    def state(self) -> dict[str, Any]:
        """The selector's, and how many examples clients first claimed."""
        return self.selector.state() | {CLAIMED: dict(self._examples)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        own = dict(state)
        self._examples = dict(own.pop(CLAIMED, {}))
        self.selector = type(self.selector).restore(own)

    def _survey(self, slot: int, model: ArrayRecord, rounds: Rounds, strategy: Strategy) -> Survey:
        answers, asked = rounds.survey(strategy, slot, model)
        survey = read_survey(
            answers.replies,
            clients=rounds.clients.count,
            opinion=self._opinion_settings.opinion,
            privacy=self._opinion_settings.privacy,
            examples=self._examples,
        )
        clients = rounds.clients
        for client, reason in sorted((answers.failures | survey.rejected).items()):
            LOG.warning("slot %d: no opinion of %s: %s", slot, clients.list_names([client]), reason)
        if len(asked) < clients.count:
            LOG.warning("slot %d: not there to give an opinion: %s", slot, clients.missing(asked))
        return survey

    def _tell(self, selection: Selection, survey: Survey) -> str | None:
        """Tell the selector, or abandon the slot and return why."""
        needed = self._opinion_settings.opinions_needed(self.selector.clients)
        if survey.given < needed:
            self.selector.abandon(selection)
            return f"{survey.given} opinions count and {needed} are needed"
        return conclude_slot(self.selector, selection, self._feedback(survey))

    def _feedback(self, survey: Survey) -> Feedback:
        return make_feedback(
            survey,
            average=self._opinion_settings.average,
            trim=self._opinion_settings.trim,
            private=self._opinion_settings.privacy is not None,
        )
