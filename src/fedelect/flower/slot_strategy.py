"""A strategy that plays whole slots; its cohort source chooses who trains. See docs/FLOWER.md."""

import os
import shutil
from pathlib import Path
from typing import Any, NoReturn

from flwr.app import ArrayRecord, ConfigRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from fedelect._text import count
from fedelect.errors import ConfigurationError
from fedelect.flower.checks import check_strategy, new_run_folder
from fedelect.flower.client_numbers import Clients
from fedelect.flower.cohort_source import CohortSource
from fedelect.flower.exchange import LOG
from fedelect.flower.fits import check_cohort_fits
from fedelect.flower.inner import InnerStrategy
from fedelect.flower.nodes import Directory
from fedelect.flower.rounds import Rounds
from fedelect.flower.run_loop import EvaluateFunction, RunLoop
from fedelect.flower.saves import keep_initial_model
from fedelect.flower.settings import (
    SlotSettings,
    build_run_header,
    read_stored_header,
)
from fedelect.flower.slot_grid import SlotGrid
from fedelect.records import OnSlot, RunHeader, check_on_slot, open_run


class AbstractSlotStrategy(Strategy):
    """Plays slots: a cohort source chooses who trains, any strategy of Flower's Message API aggregates.

    Args:
        strategy: What aggregates.
        settings: Settings of the slots.
        source: Chooses the cohorts.
        run: The run folder.
        on_slot: Called with the record of each slot.
    """

    def __init__(
        self,
        strategy: Strategy,
        settings: SlotSettings,
        source: CohortSource | None,
        run: str | os.PathLike[str] | None,
        on_slot: OnSlot | None,
    ) -> None:
        check_strategy(strategy, settings.start)
        if isinstance(strategy, AbstractSlotStrategy):
            raise ConfigurationError(f"strategy: got {type(strategy).__name__}; allowed: the strategy that it wraps")
        check_on_slot(on_slot)
        self._on_slot = on_slot
        self._strategy = strategy
        self._settings = settings
        self._known_source = source
        if source is not None:
            settings.check_fits(source.description.clients, source.description.budget)
            check_cohort_fits(strategy, [source.description.budget], enough=settings.enough_updates)
        self._run = None if run is None else Path(run).absolute()
        if self._run is not None and self._run.exists() and not self._run.is_dir():
            raise ConfigurationError(f"run: got {str(run)!r}, which is a file; allowed: a folder, new or of a run")
        self._expected: int | None = None  # clients to wait for at the start; None for all

    @property
    def _source(self) -> CohortSource:
        if self._known_source is None:
            raise ConfigurationError("the selector is made when the strategy starts, for the clients that are there")
        return self._known_source

    def _prepare(self, directory: Directory, stored: RunHeader | None, slots: int) -> None:
        """Make what depends on the clients that are there.

        Args:
            directory: Their names.
            stored: The header of a run that is continued.
            slots: Number of slots, those that are played already included.
        """

    def summary(self) -> None:
        """Log what the run is, and the inner strategy's own summary."""
        self._log_run()
        self._strategy.summary()

    def _log_run(self, run: Path | None = None) -> None:
        description, settings = self._source.description, self._settings
        per_slot = count(settings.rounds_per_slot, "round")
        LOG.info("\t├──> %s elects %d of up to %d clients", description.label, description.budget, description.clients)
        LOG.info("\t│\t├── %s start, %s a slot", settings.start, per_slot)
        run = run or self._run
        if run is None:
            LOG.info("\t│\t└── run folder: a new one under fedelect-runs/")
        else:
            LOG.info("\t│\t└── to go on with this run after a stop, give the strategy run=%r", str(run))

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float | None = None,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: EvaluateFunction | None = None,
        **more: Any,
    ) -> Result:
        """Run, or go on with, `num_rounds / rounds_per_slot` slots, by the inner strategy's own `start`.

        Args:
            grid: Flower's.
            initial_arrays: The initial model; a run that is gone on with keeps the one it was begun with.
            num_rounds: Rounds in all, a multiple of `rounds_per_slot`. A finished run given more rounds is extended.
            timeout: Seconds to wait for the replies to one round of messages; None leaves it to the inner strategy,
                whose default on Flower is an hour.
            train_config: Sent to the clients with the model to train.
            evaluate_config: Likewise to evaluate.
            evaluate_fn: Central evaluation, after each round.
            more: Further arguments of the inner strategy's own `start`, if it has any.

        Returns:
            What the inner strategy's `start` returns: the final model and the metrics of all rounds, also of those that
            were played before a resume.

        Raises:
            AvailabilityError: Too few clients are there; start again when they are.
            RunError: The run folder cannot be used, or slots keep being abandoned.
        """
        slots = self._settings.slots(num_rounds)
        self._check_slots(slots)
        run = self._run or new_run_folder()
        stored = read_stored_header(run)
        directory = Directory(grid, self._settings.identity)
        self._prepare(directory, stored, slots)
        LOG.info("Starting %s:", type(self).__name__)
        self._log_run(run)
        description = self._source.description
        clients = Clients(
            directory,
            description.clients,
            self._settings.names or (stored and stored.client_names) or (),
        )
        if stored is None:
            self._wait_for_all(clients, 1)
            names = clients.names if len(clients.names) == clients.count else None
        else:
            names = self._settings.names or stored.client_names
        slot_grid = SlotGrid(grid)
        rounds = Rounds(
            grid=slot_grid,
            clients=clients,
            inner=InnerStrategy(self._strategy),
            per_slot=self._settings.rounds_per_slot,
            timeout_s=_TIMEOUT_S if timeout is None else timeout,
            quorum=self._settings.train_quorum,
            enough=self._settings.enough_updates,
            sketch_seed=self._source.sketch_seed,
            estimator=self._source.estimator,
            evaluate_config=evaluate_config or ConfigRecord(),
        )

        def begin(evaluate: EvaluateFunction | None) -> Result:
            given = {
                "timeout": timeout,
                "train_config": train_config,
                "evaluate_config": evaluate_config,
                "evaluate_fn": evaluate,
            }
            passed: dict[str, Any] = {name: value for name, value in given.items() if value is not None} | more
            return self._strategy.start(grid=slot_grid, initial_arrays=initial, num_rounds=num_rounds, **passed)

        header = build_run_header(self._settings, description, self._strategy, slots=slots, names=names)
        with open_run(run, header, extend=True, on_slot=self._on_slot) as writer:
            loop = RunLoop(self._settings, self._source, rounds, writer, evaluate_fn)
            if stored is not None and loop.slot < slots:
                self._wait_for_all(clients, loop.slot + 1)
            initial = keep_initial_model(run, initial_arrays, slot=loop.slot)
            try:
                result = loop.play(initial, begin)
            except ConfigurationError:
                if stored is None and loop.slot == 0:  # nothing is on record: the folder can be used for another try
                    writer.close()
                    shutil.rmtree(run, ignore_errors=True)
                raise
        LOG.info("records: %s", run)
        return result

    def _check_slots(self, slots: int) -> None:
        """Raise ConfigurationError if this number of slots cannot be played."""

    def _wait_for_all(self, clients: Clients, slot: int) -> None:
        needed = self._source.needed(slot)
        expected = max(needed, min(self._expected or clients.count, clients.count))
        clients.wait(wanted=expected, needed=needed, wait_s=self._settings.wait_s)

    def configure_train(self, *args: object, **kwargs: object) -> NoReturn:
        """Refused: whole slots are played, by `start`."""
        name = type(self).__name__
        raise ConfigurationError(
            f"{name} plays its own slots: call its start(); to combine it with a strategy that wraps another, "
            f"wrap the inner one, as in {name}(Wrapper(FedAvg()), ...)"
        )

    aggregate_train = configure_train
    configure_evaluate = configure_train
    aggregate_evaluate = configure_train


_TIMEOUT_S = 3600.0  # Flower's own default
