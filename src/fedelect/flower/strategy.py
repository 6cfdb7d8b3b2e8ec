"""GoalDirected: a selector at the server decides who trains (FL&FA). See docs/FLOWER.md."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from flwr.serverapp.strategy import Strategy

from fedelect.analytics import Average
from fedelect.errors import ConfigurationError
from fedelect.flower.budgets import BudgetFunction, check_resizes, read_budget
from fedelect.flower.checks import ASKED, check_numbers, check_selector
from fedelect.flower.client_numbers import count_nodes
from fedelect.flower.cohort_source import SelectorSource
from fedelect.flower.contributions import Score
from fedelect.flower.exchange import LOG
from fedelect.flower.fits import check_cohort_fits
from fedelect.flower.inner import read_setting
from fedelect.flower.nodes import Directory, IdentitySource
from fedelect.flower.opinions import Opinion
from fedelect.flower.privacy import OpinionPrivacy
from fedelect.flower.properties import AvailableFunction
from fedelect.flower.settings import (
    OpinionSettings,
    SlotSettings,
    Start,
)
from fedelect.flower.slot_strategy import AbstractSlotStrategy
from fedelect.records import OnSlot, RunHeader
from fedelect.selectors import AbstractSelector, recommended
from fedelect.vocabulary import as_int


@final
class GoalDirected(AbstractSlotStrategy):
    """Lets a selector decide who trains; any other strategy of Flower's Message API aggregates.

    A slot is `rounds_per_slot` rounds by the elected clients, after which all clients that are there evaluate the
    model. Their opinions are averaged and told to the selector.

    Args:
        strategy: What aggregates, and says what is sent: FedAvg, FedProx, FedAdam, Krum, your own. It is shown the
            elected clients only. In a cold start each slot begins with a fresh copy of it, as of the model; in a warm
            start its state goes on and is saved with the run.
        selector: The selector, made for the number of clients and the budget. None takes the recommended one for the
            clients that are there at the start (`fedelect.selectors.recommended`); it needs `budget`.
        budget: K, the clients that train in a slot; with `selector=None` only. Or a function of the slot (from 1) into
            K, also with a selector that takes any size (its `resizes` is true) and was made for the K of slot 1.
        clients: N, the most clients that may ever take part; with `selector=None` only. By default twice those that
            are there at the start, so that others may join.
        seed: Seed of the recommended selector.
        rounds_per_slot: L, rounds of training in a slot.
        opinion: Name of the metric in the clients' evaluation replies that is their opinion, in [0, 1], or a
            function of a reply (a RecordDict) into [0, 1]. None takes the one metric that is plainly it (accuracy,
            acc, eval_acc, f1, auc and such) and logs which; if there is none, or more, the run stops and says so.
        run: The run folder, for records and state; an existing one is resumed. None makes a new folder under
            `fedelect-runs/`. Paths are relative to where the ServerApp runs; the log shows them absolute.
        start: "warm" (each slot trains on from the last slot's model) or "cold" (from the initial model; at least 5
            rounds a slot; the result is the best slot's model).
        average: "mean", or against clients that lie together "median" or "trimmed".
        trim: Share of the opinions that "trimmed" cuts off at each end.
        quorum: Share of the clients asked whose opinion is needed; with fewer the slot stays unjudged: the model is
            kept, the selector learns nothing.
        loss: Name of the metric in the evaluation replies that is the clients' loss, for selectors that need or use
            losses. None takes the one metric that is plainly it (loss, eval_loss and such).
        score: Score of a model, an ArrayRecord, at the server, such as its accuracy on validation data there; for
            selectors that need contributions. It is called for some sets of members in every round.
        survey: How many of the connected clients are asked for their opinion in a slot, drawn anew each time: a number,
            or a share such as 0.2. By default the inner strategy's `fraction_evaluate` if it is below 1, else all, but
            at most 50. The elected are asked too; only the sample enters the average, which is corrected for who was
            asked (not with `privacy`, "median" or "trimmed").
        survey_every: Ask only in every slot whose number is a multiple of this. In the others a selector that needs
            opinions learns nothing.
        train_quorum: Members whose update is needed in each round; with fewer the slot is abandoned.
        enough_updates: Updates after which a round goes on without those still missing, who do not count as failed;
            None waits for all members, up to the `timeout` of `start`.
        available: Who may be elected: a function of the properties that a node reports (see `introduce`), asked in
            every slot. Others that are connected are still asked for their opinion.
        wait_s: How long to wait for clients: for all of them at the start, for enough before a slot.
        abandoned_allowed: How many slots in a row may be abandoned before the run is stopped.
        identity: Where clients' names come from; see `fedelect.flower.nodes`.
        names: The clients' names in the order of their numbers, if they are known beforehand; else they are numbered
            by name as they come.
        privacy: What the clients' `PrivateOpinion` promises, if they add noise.
        on_slot: Called in the ServerApp with the record of each slot (`fedelect.records.SlotRecord`), in order, once it
            is recorded; see docs/TRACKERS.md.
    """

    def __init__(
        self,
        strategy: Strategy,
        *,
        selector: AbstractSelector | None = None,
        budget: int | BudgetFunction | None = None,
        clients: int | None = None,
        seed: int = 1,
        rounds_per_slot: int = 1,
        run: str | os.PathLike[str] | None = None,
        opinion: Opinion | None = None,
        start: Start = "warm",
        average: Average = "mean",
        trim: float = 0.2,
        quorum: float = 0.5,
        loss: str | None = None,
        score: Score | None = None,
        survey: int | float | None = None,
        survey_every: int = 1,
        train_quorum: int = 1,
        enough_updates: int | None = None,
        available: AvailableFunction | None = None,
        wait_s: float = 300.0,
        abandoned_allowed: int = 3,
        identity: IdentitySource = "auto",
        names: Sequence[str] | None = None,
        privacy: OpinionPrivacy | None = None,
        on_slot: OnSlot | None = None,
    ) -> None:
        settings = SlotSettings(
            rounds_per_slot=rounds_per_slot,
            start=start,
            train_quorum=train_quorum,
            enough_updates=enough_updates,
            available=available,
            wait_s=wait_s,
            abandoned_allowed=abandoned_allowed,
            identity=identity,
            names=None if names is None else tuple(names),
        )
        self._opinion_settings = OpinionSettings(
            opinion=opinion,
            average=average,
            trim=trim,
            quorum=quorum,
            privacy=privacy,
            survey=survey,
            survey_every=survey_every,
            loss=loss,
            score=score,
        )
        first, self._schedule = read_budget(budget)
        if selector is None:
            if first is None:
                raise ConfigurationError("give a selector, or `budget`, the number of clients that train in a slot")
            check_numbers(first, clients if names is None else len(settings.names or ()))
            settings.check_size(first)
            if self._schedule is not None and start == "cold":
                check_resizes(None)
            self._auto: _AutoSelector | None = _AutoSelector(first, clients, as_int("seed", seed))
            super().__init__(strategy, settings, None, run, on_slot)
            check_cohort_fits(strategy, [first], enough=enough_updates)
            return
        if clients is not None or (budget is not None and self._schedule is None):
            raise ConfigurationError("`budget` and `clients` are the selector's own; leave them out, or the selector")
        self._auto = None
        check_selector(selector, privacy, scored=score is not None)
        if self._schedule is not None:
            check_resizes(selector)
            if selector.budget != first:
                raise ConfigurationError(
                    f"budget= returned {first} for slot 1, and the selector was made for {selector.budget}; make it "
                    f"with budget={first}"
                )
        if selector.needs & ASKED and survey is None and read_setting(strategy, "fraction_evaluate", 1.0) == 0.0:
            raise ConfigurationError(
                f"{type(selector).__name__} needs the clients' opinions, and the strategy's fraction_evaluate is 0; "
                f"give survey=, the number of clients to ask, or a fraction_evaluate above 0"
            )
        source = SelectorSource(selector, self._opinion_settings, start, self._schedule)
        super().__init__(strategy, settings, source, run, on_slot)

    def _prepare(self, directory: Directory, stored: RunHeader | None, slots: int) -> None:
        if self._auto is not None:
            self._make_selector(self._auto, directory, stored)
        if self._schedule is not None:
            self._schedule.check_clients(slots, self._source.description.clients)

    def _make_selector(self, auto: "_AutoSelector", directory: Directory, stored: RunHeader | None) -> None:
        if stored is not None:
            clients, self._expected = stored.clients, auto.budget
        else:
            names = self._settings.names
            needed, wait_s = auto.budget, self._settings.wait_s
            self._expected = count_nodes(directory, needed=needed, wait_s=wait_s) if names is None else len(names)
            clients = auto.clients or (2 * self._expected if names is None else len(names))
        start = self._settings.start
        asked = self._opinion_settings.survey is not None or read_setting(self._strategy, "fraction_evaluate", 1.0) > 0
        signals = ("opinions",) if asked and self._opinion_settings.privacy is None else ()
        selector = recommended(clients=clients, budget=auto.budget, seed=auto.seed, start=start, signals=signals)
        self._settings.check_fits(clients, selector.budget)
        self._known_source = SelectorSource(selector, self._opinion_settings, start, self._schedule)

    @property
    def selector(self) -> AbstractSelector:
        """The selector as it stands; after a resume not the object that was given, but one in its state."""
        source = self._source
        assert isinstance(source, SelectorSource)
        return source.selector

    def _log_run(self, run: Path | None = None) -> None:
        super()._log_run(run)
        privacy = self._opinion_settings.privacy
        if privacy is not None:
            LOG.info(
                "\t├──> opinions with noise: epsilon %g, delta %g for one example over %d releases; a client with "
                "100 examples as a whole: epsilon %.3g",
                *(privacy.epsilon, privacy.delta, privacy.releases, privacy.client_level(100)),
            )

    def _check_slots(self, slots: int) -> None:
        self._opinion_settings.check_slots(slots)
        if self._schedule is not None:
            sizes = self._schedule.sizes(slots)
            self._settings.check_size(min(sizes))
            check_cohort_fits(self._strategy, sizes, enough=self._settings.enough_updates)
            LOG.info("from %d to %d clients train in a slot", min(sizes), max(sizes))


@dataclass(frozen=True, slots=True)
class _AutoSelector:
    """What the recommended selector is made with, beside the clients that are there."""

    budget: int
    clients: int | None
    seed: int
