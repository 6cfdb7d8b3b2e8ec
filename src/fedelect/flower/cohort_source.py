"""Cohort sources of a run on Flower: their interface, and a selector at the server (FL&FA).

Elections among the clients (FL&DA) are in `fedelect.flower.certificate_source`.
"""

import itertools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from flwr.app import ArrayRecord, Message
from flwr.serverapp.strategy import Strategy

from fedelect.analytics import SurveyAverage
from fedelect.errors import ConfigurationError
from fedelect.flower.exchange import LOG, EarlyStop
from fedelect.flower.opinions import Opinion, Survey, find_opinion, list_metrics, make_feedback, read_survey
from fedelect.flower.rounds import Rounds, SlotTraining, setting
from fedelect.flower.settings import OpinionSettings, RunDescription, selector_label
from fedelect.loop import conclude_slot
from fedelect.records import from_array
from fedelect.seeds import stream
from fedelect.selectors import AbstractSelector
from fedelect.vocabulary import ClientId, Feedback, Selection


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotOutcome:
    """Outcome of a slot, as far as the server may know it.

    Attributes:
        note: Why the slot is abandoned; None if it is not.
        opinions: (N,) opinions, None where a client has none; None if not recorded.
        reward: Average opinion that the selector was told.
        reward_noise: Standard deviation of the noise on it.
        said: Text for the log.
    """

    note: str | None = None
    opinions: tuple[float | None, ...] | None = None
    reward: float | None = None
    reward_noise: float = 0.0
    said: str = ""


class CohortSource(Protocol):
    """Chooses the cohort of each slot and learns from the result."""

    @property
    def description(self) -> RunDescription:
        """Description for the run's header."""

    @property
    def needed(self) -> int:
        """Fewest connected clients for a slot."""

    @property
    def used(self) -> bool:
        """Whether it has chosen a cohort before."""

    @property
    def reuse_error(self) -> str:
        """Message of the error if it has been used before a new run."""

    def decide(
        self, slot: int, there: Collection[ClientId], model: ArrayRecord, rounds: Rounds, strategy: Strategy
    ) -> Selection:
        """Choose the cohort of `slot` from the current model. Raises NoElection if nobody trains."""

    def learn(self, selection: Selection, trained: SlotTraining, rounds: Rounds, strategy: Strategy) -> SlotOutcome:
        """Learn from a training, or from its failure."""

    def close(self, slot: int, model: ArrayRecord, rounds: Rounds, strategy: Strategy) -> None:
        """Finish the run after its last slot, with its last model; may be called again after a restart."""

    def state(self) -> dict[str, Any]:
        """Return the state for `restore`, plain values."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state."""


CLAIMED = "examples"
"""Key in `SelectorSource.state` for the number of examples behind each client's noisy opinions."""

LEVELS = "survey"
"""Key in `SelectorSource.state` for the clients' levels, by which the average of a sample is corrected."""

ENOUGH, GRACE_S = 0.8, 10.0
"""A survey ends this many seconds after this share of the clients asked has answered."""

FOUND = "opinion"
"""Key in `SelectorSource.state` for the metric that turned out to be the opinion."""

_UNKNOWN = "accuracy"  # with no reply at all, nothing is read from it


class SelectorSource:
    """A selector at the server, which is told the average of the clients' opinions.

    Args:
        selector: The selector.
        opinion_settings: How opinions are read and averaged.
    """

    def __init__(self, selector: AbstractSelector, opinion_settings: OpinionSettings) -> None:
        self.selector = selector
        self._opinion_settings = opinion_settings
        self._opinion = opinion_settings.opinion  # None until the first replies show which metric it is
        self._judged = False  # whether any opinion has counted yet
        self._average: SurveyAverage | None = None  # once a survey was of a sample
        self._examples: dict[ClientId, int] = {}  # number of examples behind each client's noisy opinions

    @property
    def description(self) -> RunDescription:
        """The selector's class and parameters."""
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
        """The budget."""
        return self.selector.budget

    @property
    def used(self) -> bool:
        """Whether the selector has been asked before."""
        return bool(self.selector.state()["slot"] != 0)

    @property
    def reuse_error(self) -> str:
        """A selector cannot be used twice."""
        return "the selector has been used before; a new run takes a new selector"

    def decide(
        self, slot: int, there: Collection[ClientId], model: ArrayRecord, rounds: Rounds, strategy: Strategy
    ) -> Selection:
        """Ask the selector for a cohort of connected clients."""
        return self.selector.ask(None if len(there) == self.selector.clients else list(there))

    def learn(self, selection: Selection, trained: SlotTraining, rounds: Rounds, strategy: Strategy) -> SlotOutcome:
        """Survey connected clients and tell the selector, or abandon the slot."""
        if trained.abandoned is not None:
            self.selector.abandon(selection)
            return SlotOutcome(note=trained.abandoned)
        survey, asked, sampled = self._survey(selection, trained.model, rounds, strategy)
        if not asked and not self.selector.needs:  # no evaluation at all, and nobody needs one
            return SlotOutcome(note=conclude_slot(self.selector, selection, Feedback()), said="; not evaluated")
        sample = survey.restrict(asked)
        feedback = self._feedback(survey, sample, sampled=sampled)
        note = self._tell(selection, sample, len(asked), feedback)
        private = self._opinion_settings.privacy is not None
        reward = None if note is not None else feedback.reward
        average = "" if reward is None else f", average {reward:.4f}"
        return SlotOutcome(
            note=note,
            opinions=None if private else from_array(survey.opinions),
            reward=reward,
            reward_noise=0.0 if reward is None else feedback.reward_noise,
            said=f"; opinions of {sample.given} of {len(asked)} asked{average}",
        )

    def close(self, slot: int, model: ArrayRecord, rounds: Rounds, strategy: Strategy) -> None:
        """Do nothing: every model has been judged in its own slot."""

    def state(self) -> dict[str, Any]:
        """Return the selector's state, and the number of examples that each client first claimed."""
        found = self._opinion if isinstance(self._opinion, str) else None
        levels = None if self._average is None else self._average.state()
        return self.selector.state() | {CLAIMED: dict(self._examples), FOUND: found, LEVELS: levels}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state."""
        own = dict(state)
        self._examples = dict(own.pop(CLAIMED, {}))
        self._opinion = self._opinion or own.pop(FOUND, None)
        own.pop(FOUND, None)
        levels = own.pop(LEVELS, None)
        if levels is not None:
            self._average = SurveyAverage(self.selector.clients)
            self._average.restore(levels)
        self._judged = True
        self.selector = type(self.selector).restore(own)

    def _survey(
        self, selection: Selection, model: ArrayRecord, rounds: Rounds, strategy: Strategy
    ) -> tuple[Survey, list[ClientId], bool]:
        """Ask a sample of the connected clients, and the elected beside it.

        Returns:
            The opinions of both, the sample, and whether it is less than all connected clients.
        """
        slot, clients = selection.slot, rounds.clients
        there = clients.locate()
        size = self._opinion_settings.sample_size(
            len(there),
            fraction=float(setting(strategy, "fraction_evaluate", 1.0)),
            at_least=int(setting(strategy, "min_evaluate_nodes", 0)),
        )
        drawn = stream(self.selector.seed, "survey", slot).permutation(len(there))[:size]
        sample = sorted(list(there)[index] for index in drawn.tolist())
        beside = [] if size in (0, len(there)) else [client for client in selection.cohort if client in there]
        asked = {client: there[client] for client in sorted({*sample, *beside})}
        answered = itertools.count(1)
        enough = EarlyStop(lambda reply: next(answered) >= ENOUGH * len(asked), GRACE_S)
        answers = rounds.survey(strategy, slot, model, asked=asked, sample=sample, enough=enough)
        survey = read_survey(
            answers.replies,
            clients=clients.count,
            opinion=self._find_opinion(answers.replies.values()),
            privacy=self._opinion_settings.privacy,
            examples=self._examples,
        )
        for client, reason in sorted((answers.failures | survey.rejected).items()):
            LOG.warning("slot %d: no opinion of %s: %s", slot, clients.list_names([client]), reason)
        if len(there) < len(clients.names):
            LOG.info("slot %d: not there to give an opinion: %s", slot, clients.missing(there))
        return survey, sample, size < len(there)

    def _find_opinion(self, replies: Iterable[Message]) -> Opinion:
        """Return where replies hold the opinion; while none has counted yet, a wrong name stops the run.

        Raises:
            ConfigurationError: The metric is in no reply, or cannot be told from others.
        """
        replies = list(replies)
        if self._opinion is None and replies:
            self._opinion = find_opinion(replies, noisy=self._opinion_settings.privacy is not None)
            LOG.info("the clients' opinion is their metric %r; name another with opinion=...", self._opinion)
        opinion = self._opinion or _UNKNOWN
        metrics = list_metrics(replies)
        if isinstance(opinion, str) and replies and not self._judged and opinion not in metrics:
            raise ConfigurationError(
                f"no evaluation reply holds the metric {opinion!r}, which is to be the opinion; "
                f"the replies hold {', '.join(sorted(metrics)) or 'no metrics'}. Name one of them with opinion=..."
            )
        return opinion

    def _tell(self, selection: Selection, sample: Survey, asked: int, feedback: Feedback) -> str | None:
        """Tell the selector, or abandon the slot and return why."""
        needed = self._opinion_settings.opinions_needed(asked)
        self._judged = self._judged or sample.given > 0
        if sample.given < needed:
            self.selector.abandon(selection)
            return f"{sample.given} opinions count and {needed} are needed"
        return conclude_slot(self.selector, selection, feedback)

    def _feedback(self, survey: Survey, sample: Survey, *, sampled: bool) -> Feedback:
        """Return the feedback. Only the sample enters the average, which is corrected for who was asked."""
        settings = self._opinion_settings
        if not sampled or not settings.corrects:
            private = settings.privacy is not None
            return make_feedback(sample, average=settings.average, trim=settings.trim, private=private)
        self._average = self._average or SurveyAverage(survey.opinions.size)
        reward = self._average.average(sample.opinions)
        self._average.learn(sample.opinions)
        return Feedback(opinions=survey.opinions, reward=reward)
