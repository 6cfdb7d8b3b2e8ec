"""The loop of a run on Flower, as hooks of the inner strategy while its own `start` runs.

`start` calls four hooks in each round. Here they make rounds into slots: ask -> train -> survey -> tell -> save ->
record. The first round of a slot elects, each round trains the elected, the last one surveys. After a resume `start`
runs from round 1 again, and the rounds that are finished are replayed from the save, without messages.
"""

import time
from collections.abc import Callable, Iterable

import msgspec
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result

from fedelect.backoff import FailureBackoff
from fedelect.errors import ConfigurationError, NoElection, RunError
from fedelect.flower.cohort_source import CohortSource, SlotOutcome
from fedelect.flower.exchange import LOG
from fedelect.flower.inner import remember_state
from fedelect.flower.open_slot import OpenSlot, make_record, sort_members
from fedelect.flower.properties import PropertyFilter
from fedelect.flower.rounds import BLAMELESS, Rounds, SlotTraining
from fedelect.flower.saves import (
    History,
    Save,
    decode_save,
    encode_save,
    note_metrics,
    pack_arrays,
    recall_config,
    recall_metrics,
    restore_strategy,
    strategy_state,
    unpack_arrays,
)
from fedelect.flower.settings import SlotSettings
from fedelect.loop import skipped_record
from fedelect.records import RunWriter, SlotRecord
from fedelect.vocabulary import Selection

EvaluateFunction = Callable[[int, ArrayRecord], MetricRecord | None]
"""Flower's central evaluation: (round, model) -> metrics."""


class RunLoop:
    """A run on Flower, from its last save to its end. Its methods stand in the place of the inner strategy's hooks.

    Args:
        settings: Settings of its slots.
        source: Who decides who trains; it is given the state of the last save.
        rounds: Trains and surveys.
        writer: Writer of the run folder; the run continues from its last save.
        evaluate_fn: Central evaluation, or None.
        saves: Whether a checkpoint is written after each slot, from which the run can be resumed.
    """

    def __init__(
        self,
        settings: SlotSettings,
        source: CohortSource,
        rounds: Rounds,
        writer: RunWriter,
        evaluate_fn: EvaluateFunction | None = None,
        *,
        saves: bool = True,
    ) -> None:
        self._settings = settings
        self._cold = settings.start == "cold"
        available = settings.available
        self._filter = None if available is None else PropertyFilter(rounds.grid, rounds.clients, available)
        self._source = source
        self._rounds = rounds
        self._writer = writer
        self._saves = saves
        self._evaluate_fn = evaluate_fn
        self._label = writer.header.labels[0]
        self._fresh = remember_state(rounds.inner.strategy) if self._cold else None
        self._model: ArrayRecord | None = None
        self._initial: ArrayRecord | None = None
        self._save: Save | None = None
        self._history = History()
        self._backoff = FailureBackoff()
        self._best: tuple[int, float, ArrayRecord] | None = None  # slot, average and model; in a cold start
        self._recorded_names = 0  # names that the header or a record holds
        self._open: OpenSlot | None = None
        self._configs: tuple[ConfigRecord, ConfigRecord] = ConfigRecord(), ConfigRecord()
        self._round = 0  # rounds that `start` has begun, replayed ones included
        self._in_a_row = 0  # slots in a row that came to nothing
        self._unsaved: list[str] | None = None
        self.slot = 0
        self._resume()
        self._replayed = self.slot * settings.rounds_per_slot

    def play(self, initial: ArrayRecord, begin: Callable[[EvaluateFunction | None], Result]) -> Result:
        """Play the rest of the run.

        Args:
            initial: The initial model.
            begin: Calls the inner strategy's `start` with this central evaluation.
        """
        self._initial = initial
        if self._replayed:
            LOG.info("rounds 1 to %d are finished: they are replayed from the save, without messages", self._replayed)
        with self._rounds.inner.replace_hooks(self):
            result = begin(self.evaluate if self._evaluate_fn is not None else None)
            self._close_slot()
        self._finish_source(self._model or initial)
        if self.slot < self._writer.header.slots:
            LOG.warning("%s ended after %d of %d slots", self._rounds.inner.name, self.slot, self._writer.header.slots)
        if self._best is not None and isinstance(result, Result):
            LOG.info("the result is the model of slot %d, whose average opinion %.4f was the highest", *self._best[:2])
            result.arrays = self._best[2]
        return result

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Elect, in the first round of a slot, and return the messages to the elected."""
        self._round += 1
        if self._round <= self._replayed:
            recall_config(config, self._history.train_config)
            return self._rounds.grid.expect({})
        self._configs = config, self._configs[1]
        slot, round_ = self._place()
        if round_ == 0:
            self._close_slot()  # of a `start` that never evaluates
            self._open_slot(slot, arrays)
        opened = self._open
        if opened is None or (trained := opened.training) is None:
            return self._rounds.grid.expect({})
        if round_ > 0 and not self._cold:
            trained.model = arrays
        return self._rounds.ask_to_train(self._number(server_round), slot, round_, config, trained)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Let the inner strategy combine the updates of the elected."""
        if self._round <= self._replayed:
            return self._model, recall_metrics(self._history.train, self._round)  # models of earlier rounds are gone
        slot, round_ = self._place()
        opened = self._open
        if opened is None or (trained := opened.training) is None:
            return None, None
        combined, metrics = self._rounds.take_updates(self._number(server_round), slot, round_, replies, trained)
        if trained.abandoned is not None:
            opened.take_back()
            return (opened.before if round_ > 0 else None), None
        note_metrics(self._history.train, self._round, metrics)
        return combined, metrics

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return the messages of the survey, in the last round of a slot."""
        if self._round <= self._replayed:
            recall_config(config, self._history.evaluate_config)
            return self._rounds.grid.expect({})
        self._configs = self._configs[0], config
        slot, round_ = self._place()
        opened = self._open
        last = round_ == self._settings.rounds_per_slot - 1
        if not last or opened is None or opened.selection is None or (trained := opened.training) is None:
            return self._rounds.grid.expect({})
        if not self._cold:
            trained.model = arrays
        opened.plan = self._source.plan_survey(opened.selection, self._rounds)
        if opened.plan is None:
            return self._rounds.grid.expect({})
        return self._rounds.ask_to_evaluate(
            self._number(server_round),
            slot,
            trained.model,
            config,
            asked=opened.plan.asked,
            enough=opened.plan.enough,
        )

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Let the inner strategy combine the metrics of those asked, tell the selector, and end the slot."""
        if self._round <= self._replayed:
            return recall_metrics(self._history.evaluate, self._round)
        _, round_ = self._place()
        opened = self._open
        sample = () if opened is None or opened.plan is None else opened.plan.sample
        answers, metrics = self._rounds.take_evaluations(self._number(server_round), replies, sample)
        note_metrics(self._history.evaluate, self._round, metrics)
        if opened is not None and round_ == self._settings.rounds_per_slot - 1:
            opened.answers = answers
            self._close_slot()
        return metrics

    def evaluate(self, server_round: int, arrays: ArrayRecord) -> MetricRecord | None:
        """Evaluate centrally, or return what was found when the round was played."""
        if self._round <= self._replayed and server_round in self._history.central:
            return recall_metrics(self._history.central, server_round)
        assert self._evaluate_fn is not None
        metrics = self._evaluate_fn(server_round, arrays)
        note_metrics(self._history.central, server_round, metrics)
        return metrics

    def _place(self) -> tuple[int, int]:
        """Return the slot (from 1) and the round in it (from 0) that is being played."""
        slot, round_ = divmod(self._round - 1, self._settings.rounds_per_slot)
        return slot + 1, round_

    def _number(self, server_round: int) -> int:
        """Return the round's number for the inner strategy: in a cold start it counts anew in each slot."""
        return self._place()[1] + 1 if self._cold else server_round

    def _open_slot(self, slot: int, arrays: ArrayRecord) -> None:
        clients, needed, begun = self._rounds.clients, self._source.needed(slot), time.monotonic()
        choose = self._filter.filter if self._filter is not None else dict
        there = clients.wait(wanted=needed, needed=needed, wait_s=self._settings.wait_s, choose=choose)
        usable = self._backoff.filter(list(there), slot, needed=needed)
        if self._writer.header.framework == "da":
            usable = list(there)  # peers elect whom they like
        left_out = tuple(sorted(there.keys() - set(usable)))
        if left_out:
            named = clients.list_names(left_out)
            LOG.info("slot %d: left out after failures or an abandoned slot: %s", slot, named)
        opened = OpenSlot(slot=slot, begun=begun, before=arrays, left_out=left_out, available=len(usable))
        self._open = opened
        try:
            selection = self._source.decide(slot, usable, arrays, self._rounds)
        except NoElection as reason:
            LOG.warning("slot %d: nobody trains: %s", slot, reason)
            opened.skipped = str(reason)
            return
        of = f" of {self._writer.header.slots}" if self._saves else ""  # without saves nobody knows the last slot
        who = clients.list_names(selection.cohort)
        LOG.info("slot %d%s: elected %s%s", selection.slot, of, who, _list_indices(selection))
        if self._fresh is not None:
            self._fresh()
        else:
            opened.take_back = self._remember()
        model = self._initial if self._cold and self._initial is not None else arrays
        opened.selection, opened.trained = selection, SlotTraining.begin(selection.cohort, model)

    def _remember(self) -> Callable[[], None]:
        inner = self._rounds.inner
        try:
            return remember_state(inner.strategy)
        except Exception as error:  # whatever its attributes raise
            reason = str(error)
        said = "%s goes on with what it made of the abandoned slot, for its state cannot be copied: %s"
        return lambda: LOG.warning(said, inner.name, reason)

    def _close_slot(self) -> None:
        """Conclude the open slot, if there is one: tell the selector, save and record."""
        opened, self._open = self._open, None
        if opened is None:
            return
        if opened.selection is None or opened.trained is None:
            seconds = time.monotonic() - opened.begun
            skipped = skipped_record(self._label, opened.slot, opened.skipped, seconds=seconds)
            self._finish_slot(skipped, opened.before)
            self._count_in_a_row(skipped.note)
            return
        selection, trained = opened.selection, opened.trained
        outcome = self._source.learn(selection, trained, opened.plan, opened.answers, self._rounds)
        self._log(selection, trained, outcome)
        record = make_record(self._label, opened, selection, trained, outcome)
        failed, succeeded = sort_members(trained, outcome)
        self._backoff.record(opened.slot, failed=failed, succeeded=succeeded)
        average = outcome.mean_opinion
        if self._cold and average is not None and (self._best is None or average > self._best[1]):
            self._best = selection.slot, average, trained.model
        # A failed survey never undoes training.
        self._finish_slot(record, opened.before if trained.abandoned is not None else trained.model)
        self._count_in_a_row(None if outcome.planned else outcome.note)

    def _count_in_a_row(self, reason: str | None) -> None:
        self._in_a_row = 0 if reason is None else self._in_a_row + 1
        if self._in_a_row > self._settings.abandoned_allowed:
            raise RunError(
                f"{self._in_a_row} slots in a row came to nothing, the last one because {reason}; "
                f"see to it, then start the same run again: what is recorded is kept"
            )

    def _finish_slot(self, record: SlotRecord, model: ArrayRecord) -> None:
        """Write the save, then the record."""
        names = self._rounds.clients.names
        joined = tuple(enumerate(names))[self._recorded_names :]
        record = msgspec.structs.replace(record, joined=joined)
        self._recorded_names = len(names)
        self.slot, self._model = record.slot, model
        if self._saves:
            self._write_save(record, model)
        self._writer.append([record])

    def _write_save(self, record: SlotRecord, model: ArrayRecord) -> None:
        self._history.train_config, self._history.evaluate_config = (dict(config) for config in self._configs)
        self._save = Save(
            slot=record.slot,
            selector=self._source.state(),
            names=list(self._rounds.clients.names),
            registered=self._rounds.clients.registered,
            model=pack_arrays(model),
            strategy=None if self._cold else self._strategy_state(),
            history=self._history,
            record=record,
            backoff=self._backoff.state(),
            best_slot=0 if self._best is None else self._best[0],
            best_reward=0.0 if self._best is None else self._best[1],
            best_model=None if self._best is None else pack_arrays(self._best[2]),
        )
        self._writer.save_checkpoint(record.slot, encode_save(self._save))

    def _strategy_state(self) -> dict[str, object]:
        state, unsaved = strategy_state(self._rounds.inner.strategy)
        if self._unsaved is None and unsaved:
            LOG.warning("not saved with the run, so after a resume as the app makes it: %s", ", ".join(unsaved))
        self._unsaved = unsaved
        return state

    def _finish_source(self, model: ArrayRecord) -> None:
        """Finish the cohort source, and save its state and the last metrics."""
        self._source.close(self.slot, model, self._rounds)
        if self._save is None:
            return
        last = msgspec.structs.replace(self._save, selector=self._source.state(), history=self._history)
        payload = encode_save(last)
        checkpoint = self._writer.load_checkpoint()
        if checkpoint is None or checkpoint.payload != payload:
            self._writer.save_checkpoint(self.slot, payload)

    def _resume(self) -> None:
        checkpoint = self._writer.load_checkpoint()
        recorded = self._writer.recorded(self._label, 0)
        header = self._writer.header
        self._recorded_names = 0 if header.client_names is None else len(header.client_names)
        if checkpoint is not None:
            save = decode_save(checkpoint.payload)
            self.slot = save.slot
            self._source.restore(save.selector)
            self._model = unpack_arrays(save.model)
            self._history = save.history
            if save.backoff:
                self._backoff.restore(save.backoff)
            if save.best_model is not None:
                self._best = save.best_slot, save.best_reward, unpack_arrays(save.best_model)
            self._save = save
            self._recorded_names = len(save.names)
            self._rounds.clients.recall(save.names, save.registered)
            if save.strategy is not None:
                restore_strategy(self._rounds.inner.strategy, save.strategy)
            self._writer.append([save.record])
            LOG.info("going on after slot %d of the run in %s", self.slot, self._writer.path)
            self._refuse_lost_records()
        elif self._source.used:
            raise ConfigurationError(self._source.reuse_error)
        if max(recorded, default=0) > self.slot:
            raise RunError(
                f"{self._writer.path} has records up to slot {max(recorded)} but its last sound save is of slot "
                f"{self.slot}, and what real clients did cannot be repeated; begin a new folder"
            )

    def _refuse_lost_records(self) -> None:
        lost = sorted(set(range(1, self.slot)) - self._writer.recorded(self._label, 0))
        if lost:
            raise RunError(
                f"the run in {self._writer.path} was saved after slot {self.slot}, but the records of {len(lost)} "
                f"slots before it are missing, the first of slot {lost[0]}; restore its slots.jsonl from a copy, or "
                f"begin a new folder"
            )

    def _log(self, selection: Selection, trained: SlotTraining, outcome: SlotOutcome) -> None:
        clients, why = self._rounds.clients, trained.failures
        blameless = sorted(client for client in why if why[client] in BLAMELESS)
        LOG.info(
            "slot %d: trained by %s; failed: %s%s%s%s",
            selection.slot,
            clients.list_names(client for client, rounds in trained.arrivals.items() if rounds),
            clients.list_names(sorted(why.keys() - set(blameless))),
            f"; away or not waited for: {clients.list_names(blameless)}" if blameless else "",
            outcome.said,
            "" if outcome.note is None else f"; abandoned: {outcome.note}",
        )


def _list_indices(selection: Selection) -> str:
    return f" (index {', '.join(f'{value:.4f}' for value in selection.indices)})" if selection.indices else ""
