"""The loop of a run on Flower: ask -> train -> survey -> tell -> save -> record, slot by slot."""

import copy
import time

import msgspec
from flwr.app import ArrayRecord
from flwr.serverapp.strategy import Result, Strategy

from fedelect.backoff import FailureBackoff
from fedelect.errors import ConfigurationError, NoElection, RunError
from fedelect.flower.cohort_source import CohortSource, SlotOutcome
from fedelect.flower.exchange import LOG
from fedelect.flower.rounds import NOT_CONNECTED, Rounds, SlotTraining
from fedelect.flower.saves import (
    Save,
    UnsavableError,
    decode_save,
    encode_save,
    pack_arrays,
    remember_state,
    restore_strategy,
    strategy_state,
    unpack_arrays,
)
from fedelect.flower.settings import SlotSettings
from fedelect.loop import skipped_record, slot_record
from fedelect.records import RunWriter, SlotRecord
from fedelect.vocabulary import Selection


class RunLoop:
    """A run on Flower, from its last save to its end.

    Args:
        settings: Settings of its slots.
        strategy: The inner strategy, unused.
        source: Who decides who trains; it is given the state of the last save.
        rounds: Trains and surveys.
        writer: Writer of the run folder; the run continues from its last save.
    """

    def __init__(
        self, settings: SlotSettings, strategy: Strategy, source: CohortSource, rounds: Rounds, writer: RunWriter
    ) -> None:
        self._settings = settings
        self._fresh = strategy
        self._strategy = copy.deepcopy(strategy) if settings.start == "cold" else strategy
        self._source = source
        self._rounds = rounds
        self._writer = writer
        self._label = writer.header.labels[0]
        self._model: ArrayRecord | None = None
        self._save: Save | None = None
        self._backoff = FailureBackoff()
        self._best: tuple[int, float, ArrayRecord] | None = None  # slot, reward and model; in a cold start
        self.slot = 0
        self._resume()

    def play(self, initial: ArrayRecord) -> Result:
        """Play the rest of the run; `initial` is the initial model."""
        in_a_row = 0
        if self._rounds.evaluate_fn is not None and self.slot == 0:
            central = self._rounds.evaluate_fn(0, initial)
            self._rounds.central_metrics.update({} if central is None else {0: central})
        while self.slot < self._writer.header.slots:
            record = self._play_slot(initial)
            in_a_row = 0 if record.status == "done" else in_a_row + 1
            if in_a_row > self._settings.abandoned_allowed:
                raise RunError(
                    f"{in_a_row} slots in a row came to nothing, the last one because {record.note}; "
                    f"see to it, then start the same run again: what is recorded is kept"
                )
        self._close(self._model or initial)
        if self._best is not None:
            LOG.info("the result is the model of slot %d, whose average opinion %.4f was the highest", *self._best[:2])
        return Result(
            arrays=self._best[2] if self._best is not None else self._model or initial,
            train_metrics_clientapp=self._rounds.train_metrics,
            evaluate_metrics_clientapp=self._rounds.evaluate_metrics,
            evaluate_metrics_serverapp=self._rounds.central_metrics,
        )

    def _close(self, model: ArrayRecord) -> None:
        """Finish the cohort source, and save its state if that changed."""
        before = self._source.state()
        self._source.close(self.slot, model, self._rounds, self._strategy)
        if self._save is not None and (state := self._source.state()) != before:
            self._save = msgspec.structs.replace(self._save, selector=state)
            self._writer.save_checkpoint(self.slot, encode_save(self._save))

    def _resume(self) -> None:
        checkpoint = self._writer.load_checkpoint()
        recorded = self._writer.recorded(self._label, 0)
        if checkpoint is not None:
            save = decode_save(checkpoint.payload)
            if save.unsaved is not None:
                raise RunError(f"the run in {self._writer.path} cannot be resumed: {save.unsaved}; begin a new folder")
            self.slot = save.slot
            self._source.restore(save.selector)
            self._model = unpack_arrays(save.model)
            if save.backoff:
                self._backoff.restore(save.backoff)
            if save.best_model is not None:
                self._best = save.best_slot, save.best_reward, unpack_arrays(save.best_model)
            self._save = save
            self._rounds.clients.recall(save.names, save.registered)
            if save.strategy is not None:
                restore_strategy(self._strategy, save.strategy)
            self._writer.append([save.record])
            LOG.info("going on after slot %d of the run in %s", self.slot, self._writer.path)
        elif self._source.used:
            raise ConfigurationError(self._source.reuse_error)
        if max(recorded, default=0) > self.slot:
            raise RunError(
                f"{self._writer.path} has records up to slot {max(recorded)} but its last sound save is of slot "
                f"{self.slot}, and what real clients did cannot be repeated; begin a new folder"
            )

    def _play_slot(self, initial: ArrayRecord) -> SlotRecord:
        begun = time.monotonic()
        clients, needed, last = self._rounds.clients, self._source.needed, self._model or initial
        there = clients.wait(wanted=needed, needed=needed, wait_s=self._settings.wait_s)
        usable = self._backoff.filter(list(there), self.slot + 1, needed=self._writer.header.budget)
        left_out = [client for client in there if client not in usable]
        if left_out and self._writer.header.framework == "fa":  # peers elect whom they like
            LOG.info("slot %d: left out after failures: %s", self.slot + 1, clients.list_names(left_out))
        try:
            selection = self._source.decide(self.slot + 1, usable, last, self._rounds, self._strategy)
        except NoElection as reason:
            LOG.warning("slot %d: nobody trains: %s", self.slot + 1, reason)
            seconds = time.monotonic() - begun
            return self._finish(skipped_record(self._label, self.slot + 1, str(reason), seconds=seconds), last)
        LOG.info(
            "slot %d of %d: elected %s%s",
            selection.slot,
            self._writer.header.slots,
            clients.list_names(selection.cohort),
            _index(selection),
        )
        cold = self._settings.start == "cold"
        if cold:
            self._strategy = copy.deepcopy(self._fresh)
        take_back = None if cold else remember_state(self._strategy)
        trained = self._rounds.train(self._strategy, selection.slot, selection.cohort, initial if cold else last)
        outcome = self._source.learn(selection, trained, self._rounds, self._strategy)
        self._log(selection, trained, outcome)
        record = self._record(selection, trained, outcome, time.monotonic() - begun)
        self._count_failures(trained, outcome)
        if cold and outcome.reward is not None and (self._best is None or outcome.reward > self._best[1]):
            self._best = selection.slot, outcome.reward, trained.model
        if trained.abandoned is None:  # a failed survey never undoes training
            return self._finish(record, trained.model)
        if take_back is not None:
            take_back()
        return self._finish(record, last)

    def _record(self, selection: Selection, trained: SlotTraining, outcome: SlotOutcome, seconds: float) -> SlotRecord:
        return slot_record(
            self._label,
            selection,
            arrivals=[trained.arrivals[client] for client in selection.cohort],
            rounds=trained.rounds,
            empty_rounds=trained.empty_rounds,
            note=outcome.note,
            opinions=outcome.opinions,
            reward=outcome.reward,
            reward_noise=outcome.reward_noise,
            seconds=seconds,
        )

    def _count_failures(self, trained: SlotTraining, outcome: SlotOutcome) -> None:
        """Leave failing members out of the next slots.

        If nobody failed and the slot was abandoned, the whole cohort is left out of the next one, so that another is
        elected. A member that is not connected is no failure, and changes the next choice by itself.
        """
        slot = self.slot + 1
        failed = [client for client, arrived in trained.arrivals.items() if not arrived and client in trained.failures]
        failed = [client for client in failed if trained.failures[client] != NOT_CONNECTED]
        if not failed and outcome.note is not None and NOT_CONNECTED not in trained.failures.values():
            failed = list(trained.arrivals)
        succeeded = [client for client, arrived in trained.arrivals.items() if arrived and client not in failed]
        self._backoff.record(slot, failed=failed, succeeded=succeeded)

    def _finish(self, record: SlotRecord, model: ArrayRecord) -> SlotRecord:
        """Write the save, then the record."""
        state, unsaved = None, None
        if self._settings.start == "warm":
            try:
                state = strategy_state(self._strategy)
            except UnsavableError as reason:
                unsaved = f"the state of the inner strategy cannot be saved, for {reason}"
                if self._model is None:
                    LOG.warning("this run cannot be resumed: %s", unsaved)
        self.slot, self._model = record.slot, model
        self._save = Save(
            slot=record.slot,
            selector=self._source.state(),
            names=list(self._rounds.clients.names),
            registered=self._rounds.clients.registered,
            model=pack_arrays(model),
            strategy=state,
            unsaved=unsaved,
            record=record,
            backoff=self._backoff.state(),
            best_slot=0 if self._best is None else self._best[0],
            best_reward=0.0 if self._best is None else self._best[1],
            best_model=None if self._best is None else pack_arrays(self._best[2]),
        )
        self._writer.save_checkpoint(record.slot, encode_save(self._save))
        self._writer.append([record])
        return record

    def _log(self, selection: Selection, trained: SlotTraining, outcome: SlotOutcome) -> None:
        clients = self._rounds.clients
        LOG.info(
            "slot %d: trained by %s; failed: %s%s%s",
            selection.slot,
            clients.list_names(client for client, rounds in trained.arrivals.items() if rounds),
            clients.list_names(sorted(trained.failures)),
            outcome.said,
            "" if outcome.note is None else f"; abandoned: {outcome.note}",
        )


def _index(selection: Selection) -> str:
    return f" (index {', '.join(f'{value:.4f}' for value in selection.indices)})" if selection.indices else ""
