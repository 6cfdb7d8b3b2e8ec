"""Cohort sources of a run on Flower: their interface, and a selector at the server (FL&FA).

Elections among the clients (FL&DA) are in `fedelect.flower.certificate_source`.
"""

import itertools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from flwr.app import ArrayRecord, Message

from fedelect.analytics import OpinionGain, SurveyAverage
from fedelect.errors import ConfigurationError
from fedelect.flower.budgets import BudgetSchedule
from fedelect.flower.contributions import ContributionEstimator
from fedelect.flower.exchange import LOG, Answers, EarlyStop
from fedelect.flower.opinions import (
    Opinion,
    Survey,
    average_survey,
    find_opinion,
    list_metrics,
    read_survey,
    refuse_broken_opinion,
)
from fedelect.flower.rounds import Rounds, SlotTraining
from fedelect.flower.settings import OpinionSettings, RunDescription, Start, name_function, selector_label
from fedelect.flower.signals import SignalTracker
from fedelect.loop import conclude_slot
from fedelect.records import Signals, from_array
from fedelect.seeds import stream
from fedelect.selectors import AbstractSelector
from fedelect.vocabulary import ClientId, Cohort, Feedback, Floats, Selection, Signal


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotOutcome:
    """Outcome of a slot, as far as the server may know it.

    Attributes:
        note: Why the slot is abandoned; None if it is not.
        opinions: (N,) opinions, None where a client has none; None if not recorded.
        mean_opinion: Their average, corrected for who was asked.
        reward: Reward that the selector was told.
        reward_noise: Standard deviation of the noise on it.
        signals: Other signals that the selector was told.
        evaluations: Number of clients asked to evaluate.
        candidates: Clients that reported before the election.
        planned: Whether nothing went wrong, though the slot is abandoned: no survey was due.
        said: Text for the log.
    """

    note: str | None = None
    opinions: tuple[float | None, ...] | None = None
    mean_opinion: float | None = None
    reward: float | None = None
    reward_noise: float = 0.0
    signals: Signals | None = None
    evaluations: int = 0
    candidates: Cohort = ()
    planned: bool = False
    said: str = ""


@dataclass(frozen=True, slots=True)
class SurveyPlan:
    """Whom to ask for an opinion.

    Attributes:
        asked: Client -> node id.
        sample: Those of them whose opinions enter the average.
        partial: Whether the sample is less than all connected clients.
        enough: Early stop.
    """

    asked: dict[ClientId, int]
    sample: tuple[ClientId, ...]
    partial: bool
    enough: EarlyStop


class CohortSource(Protocol):
    """Chooses the cohort of each slot and learns from the result."""

    @property
    def description(self) -> RunDescription:
        """Description for the run's header."""

    def needed(self, slot: int) -> int:
        """Return the fewest connected clients for a slot."""

    @property
    def sketch_seed(self) -> int | None:
        """Seed of the projection of updates; None if it takes none."""

    @property
    def estimator(self) -> ContributionEstimator | None:
        """What estimates contributions; None if it takes none."""

    @property
    def used(self) -> bool:
        """Whether it has chosen a cohort before."""

    @property
    def reuse_error(self) -> str:
        """Message of the error if it has been used before a new run."""

    def decide(self, slot: int, there: Collection[ClientId], model: ArrayRecord, rounds: Rounds) -> Selection:
        """Choose the cohort of `slot` from the current model. Raises NoElection if nobody trains."""

    def plan_survey(self, selection: Selection, rounds: Rounds) -> SurveyPlan | None:
        """Return whom to ask for an opinion of the slot's model; None for nobody."""

    def learn(
        self, selection: Selection, trained: SlotTraining, plan: SurveyPlan | None, answers: Answers, rounds: Rounds
    ) -> SlotOutcome:
        """Learn from a training and the answers to its survey, or from its failure."""

    def close(self, slot: int, model: ArrayRecord, rounds: Rounds) -> None:
        """Finish the run after its last slot, with its last model; may be called again after a restart."""

    def state(self) -> dict[str, Any]:
        """Return the state for `restore`, plain values."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state."""


ENOUGH, GRACE_S = 0.8, 10.0
"""A survey ends this many seconds after this share of the clients asked has answered."""

_MOD_REFUSES = 6  # Flower's code for a mod whose condition is not met

_UNKNOWN = "accuracy"  # with no reply at all, nothing is read from it


class SelectorSource:
    """A selector at the server, which is told the average of the clients' opinions.

    Args:
        selector: The selector.
        opinion_settings: How opinions are read and averaged.
        start: In a "warm" start the selector is told gains (`fedelect.analytics.OpinionGain`), else levels.
        schedule: Sizes of the cohorts; None for the selector's budget.
    """

    def __init__(
        self,
        selector: AbstractSelector,
        opinion_settings: OpinionSettings,
        start: Start,
        schedule: BudgetSchedule | None = None,
    ) -> None:
        self.selector = selector
        self._schedule = schedule
        self._settings = opinion_settings
        self._opinion = opinion_settings.opinion  # None until the first replies show which metric it is
        self._judged = False  # whether any opinion has counted yet
        self._candidates: Cohort = ()  # those of the slot that is open
        self._average: SurveyAverage | None = None  # once a survey was of a sample
        self._gain = OpinionGain() if start == "warm" else None
        self._examples: dict[ClientId, int] = {}  # number of examples behind each client's noisy opinions
        self._signals = SignalTracker(
            selector.clients,
            needed=selector.needs,
            used=selector.uses | selector.asks,
            loss=opinion_settings.loss,
        )

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
            scenario=self._settings.describe()
            | ({} if self._schedule is None else {"budget_function": name_function(self._schedule.function)}),
        )

    def needed(self, slot: int) -> int:
        """Return the size of the cohort."""
        return self.selector.budget if self._schedule is None else self._schedule.size(slot)

    @property
    def sketch_seed(self) -> int | None:
        """The selector's seed, if it needs or uses updates."""
        return self.selector.seed if "updates" in self.selector.needs | self.selector.uses else None

    @property
    def estimator(self) -> ContributionEstimator | None:
        """By the score that was given, if the selector needs or uses contributions."""
        score = self._settings.score
        wanted = "contributions" in self.selector.needs | self.selector.uses
        return ContributionEstimator(score, self.selector.seed) if wanted and score is not None else None

    @property
    def used(self) -> bool:
        """Whether the selector has been asked before."""
        return bool(self.selector.state()["slot"] != 0)

    @property
    def reuse_error(self) -> str:
        """A selector cannot be used twice."""
        return "the selector has been used before; a new run takes a new selector"

    def decide(self, slot: int, there: Collection[ClientId], model: ArrayRecord, rounds: Rounds) -> Selection:
        """Ask the selector for a cohort of connected clients; its candidates report first, in a warm start."""
        available = None if len(there) == self.selector.clients else list(there)
        self._candidates = () if self._gain is None else self.selector.candidates(available) or ()
        if not self._candidates:
            return self.selector.ask(available, size=self.needed(slot))
        LOG.info("slot %d: %d candidates are asked for their loss", slot, len(self._candidates))
        answers = rounds.ask_candidates(slot, model, self._candidates)
        reports: dict[str, Any] = dict(self._signals.read_reports(answers.replies))
        return self.selector.ask(available, reports=Feedback(**reports) if reports else None)

    def plan_survey(self, selection: Selection, rounds: Rounds) -> SurveyPlan | None:
        """Plan to ask a sample of the connected clients, and the elected beside it."""
        if selection.slot % self._settings.survey_every:
            return None
        slot, clients = selection.slot, rounds.clients
        there = clients.locate()
        size = self._settings.sample_size(
            len(there),
            fraction=float(rounds.inner.setting("fraction_evaluate", 1.0)),
            at_least=int(rounds.inner.setting("min_evaluate_nodes", 0)),
        )
        if size == 0:
            return None
        drawn = stream(self.selector.seed, "survey", slot).permutation(len(there))[:size]
        connected = list(there)
        sample = sorted(connected[index] for index in drawn.tolist())
        beside = [] if size == len(there) else [client for client in selection.cohort if client in there]
        asked = {client: there[client] for client in sorted({*sample, *beside})}
        answered = itertools.count(1)
        enough = EarlyStop(lambda reply: next(answered) >= ENOUGH * len(asked), GRACE_S)
        if len(there) < len(clients.names):
            LOG.info("slot %d: not there to give an opinion: %s", slot, clients.missing(there))
        trained = f", and {len(asked) - size} others that trained" if len(asked) > size else ""
        LOG.info("slot %d: %d clients are asked for their opinion%s", slot, size, trained)
        return SurveyPlan(asked, tuple(sample), size < len(there), enough)

    def learn(
        self, selection: Selection, trained: SlotTraining, plan: SurveyPlan | None, answers: Answers, rounds: Rounds
    ) -> SlotOutcome:
        """Tell the selector what the survey gave, or abandon the slot."""
        if trained.abandoned is not None:
            self.selector.abandon(selection)
            return SlotOutcome(note=trained.abandoned, candidates=self._candidates)
        private = self._settings.privacy is not None
        signals = self._signals.collect(trained, {} if private else answers.replies)
        if plan is None:
            return self._conclude_unasked(selection, signals)
        self._refuse_mods(answers)
        survey = self._read(selection.slot, answers, rounds)
        sample = survey.restrict(plan.sample)
        average, noise = self._take_average(sample, partial=plan.partial)
        asked, needed = len(plan.sample), self._settings.opinions_needed(len(plan.sample))
        self._judged = self._judged or sample.given > 0
        opinions = None if private else from_array(survey.opinions)
        said = f"; opinions of {sample.given} of {asked} asked"
        if average is None or sample.given < needed:
            self.selector.abandon(selection)
            silent = sorted((answers.failures | survey.rejected).keys() & set(plan.sample))
            too_few = f"{sample.given} opinions count and {needed} are needed"
            if silent and not private:
                why = (answers.failures | survey.rejected)[silent[0]]
                too_few += f" (no opinion of {rounds.clients.list_names(silent[:1])}: {why})"
            asked_all = len(plan.asked) + len(self._candidates)
            return SlotOutcome(
                note=too_few, opinions=opinions, evaluations=asked_all, candidates=self._candidates, said=said
            )
        reward = average if self._gain is None else self._gain.reward(average)
        extra: dict[str, Any] = dict(signals)
        feedback = Feedback(opinions=None if private else survey.opinions, reward=reward, reward_noise=noise, **extra)
        note = conclude_slot(self.selector, selection, feedback)
        return SlotOutcome(
            note=note,
            opinions=opinions,
            mean_opinion=average,
            reward=None if note is not None else reward,
            reward_noise=0.0 if note is not None else noise,
            signals=as_signals(signals),
            evaluations=len(plan.asked) + len(self._candidates),
            candidates=self._candidates,
            said=f"{said}, average {average:.4f}",
        )

    def _conclude_unasked(self, selection: Selection, signals: Mapping[Signal, Floats]) -> SlotOutcome:
        """Conclude a slot in which nobody was asked: a selector that needs no opinions learns all the same."""
        extra: dict[str, Any] = dict(signals)
        note = conclude_slot(self.selector, selection, Feedback(**extra))
        return SlotOutcome(
            note=note,
            signals=as_signals(signals),
            evaluations=len(self._candidates),
            candidates=self._candidates,
            planned=True,
            said="; not evaluated",
        )

    def close(self, slot: int, model: ArrayRecord, rounds: Rounds) -> None:
        """Do nothing: every model has been judged in its own slot."""

    def state(self) -> dict[str, Any]:
        """Return the selector's state, and what was learnt about the clients' replies."""
        return {
            "selector": self.selector.state(),
            "examples": dict(self._examples),
            "opinion": self._opinion if isinstance(self._opinion, str) else None,
            "levels": None if self._average is None else self._average.state(),
            "gain": None if self._gain is None else self._gain.state(),
            "signals": self._signals.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state."""
        self._examples = dict(state["examples"])
        self._opinion = self._opinion or state["opinion"]
        if state["levels"] is not None:
            self._average = SurveyAverage(self.selector.clients)
            self._average.restore(state["levels"])
        if self._gain is not None:
            self._gain.restore(state["gain"])
        self._signals.restore(state["signals"])
        self._judged = True
        self.selector = type(self.selector).restore(state["selector"])

    def _read(self, slot: int, answers: Answers, rounds: Rounds) -> Survey:
        """Read the opinions, and log who gave none."""
        survey = read_survey(
            answers.replies,
            clients=rounds.clients.count,
            opinion=self._find_opinion(answers.replies.values()),
            privacy=self._settings.privacy,
            examples=self._examples,
        )
        if callable(self._opinion) and not self._judged:
            refuse_broken_opinion(survey, answers.replies)
        for client, reason in sorted((answers.failures | survey.rejected).items()):
            LOG.warning("slot %d: no opinion of %s: %s", slot, rounds.clients.list_names([client]), reason)
        return survey

    def _refuse_mods(self, answers: Answers) -> None:
        """Raise ConfigurationError if, before any opinion counted, a mod of the client app refuses all evaluations."""
        refused = [reply for reply in answers.errors.values() if reply.error.code == _MOD_REFUSES]
        if self._judged or answers.replies or not refused:
            return
        raise ConfigurationError(
            f"no client can evaluate, for a mod of the client app refuses it: {refused[0].error.reason} Put a mod that "
            f"works on updates on training alone: @app.train(mods=[...]) instead of ClientApp(mods=[...])"
        )

    def _find_opinion(self, replies: Iterable[Message]) -> Opinion:
        """Return where replies hold the opinion; while none has counted yet, a wrong name stops the run.

        Raises:
            ConfigurationError: The metric is in no reply, or cannot be told from others.
        """
        replies = list(replies)
        if self._opinion is None and replies:
            self._opinion = find_opinion(replies, noisy=self._settings.privacy is not None)
            LOG.info("the clients' opinion is their metric %r; name another with opinion=...", self._opinion)
        opinion = self._opinion or _UNKNOWN
        metrics = list_metrics(replies)
        if isinstance(opinion, str) and replies and not self._judged and opinion not in metrics:
            raise ConfigurationError(
                f"no evaluation reply holds the metric {opinion!r}, which is to be the opinion; "
                f"the replies hold {', '.join(sorted(metrics)) or 'no metrics'}. Name one of them with opinion=..."
            )
        return opinion

    def _take_average(self, sample: Survey, *, partial: bool) -> tuple[float | None, float]:
        """Return the average of the sample's opinions and the standard deviation of its noise.

        The average of a part of the clients is corrected for who was asked, if it can be.
        """
        settings = self._settings
        if not partial or not settings.corrects:
            return average_survey(sample, average=settings.average, trim=settings.trim)
        self._average = self._average or SurveyAverage(sample.opinions.size)
        average = self._average.average(sample.opinions)
        self._average.learn(sample.opinions)
        return average, 0.0


def as_signals(signals: Mapping[Signal, Floats]) -> Signals | None:
    """Return signals (N,) as they are recorded, which projected updates are not; None if there are none."""
    told: dict[str, Any] = {name: from_array(values) for name, values in signals.items() if name != "updates"}
    return Signals(**told) if told else None
