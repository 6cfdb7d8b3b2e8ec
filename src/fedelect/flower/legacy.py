"""GoalDirected for Flower's older API (`flwr.server.strategy`, `ClientManager`). See docs/FLOWER.md."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import final

from flwr.common import EvaluateIns, EvaluateRes, FitIns, FitRes, Parameters, Scalar
from flwr.server import ClientManager
from flwr.server.client_proxy import ClientProxy
from flwr.server.strategy import Strategy

from fedelect.analytics import Average
from fedelect.errors import AvailabilityError, ConfigurationError, RunError
from fedelect.flower.checks import ASKED, check_numbers, check_selector, new_run_folder
from fedelect.flower.client_numbers import Clients, count_nodes
from fedelect.flower.cohort_source import SelectorSource
from fedelect.flower.exchange import LOG
from fedelect.flower.fits import check_legacy_fits
from fedelect.flower.inner import read_setting
from fedelect.flower.legacy_clients import ProxyDirectory, ProxyIdentity
from fedelect.flower.legacy_run import OpenRun
from fedelect.flower.opinions import Opinion
from fedelect.flower.settings import OpinionSettings, SlotSettings, build_run_header, selector_label
from fedelect.records import OnSlot, check_on_slot, open_run
from fedelect.selectors import AbstractSelector, recommended
from fedelect.vocabulary import Signal, as_int

_UNKNOWN: frozenset[Signal] = frozenset({"seconds", "training_s", "upload_s"})  # the older loop does not tell times


@final
class GoalDirected(Strategy):
    """Lets a selector decide who trains; any other strategy of Flower's older API aggregates.

    For `start_server`, `start_simulation`, `ServerApp(server_fn=...)` and `SecAggPlusWorkflow`. A slot is one round, in
    a warm start. It cannot be resumed: Flower's older loop begins with round 1 of a new model whenever it is started.
    For resumable runs, slots of several rounds, cold starts and noise on opinions take the Message API and
    `fedelect.flower.GoalDirected`.

    Args:
        strategy: What aggregates, and says what is sent: FedAvg, FedAdam, Krum, your own. It is shown the elected
            clients only, whatever its fractions and minimums say.
        selector: The selector, made for the number of clients and the budget. None takes the recommended one; it needs
            `budget`.
        budget: K, the clients that train in a round; with `selector=None` only.
        clients: N, the most clients that may ever take part; with `selector=None` only. By default twice those that
            are there at the start, so that others may join.
        seed: Seed of the recommended selector.
        opinion: Name of the metric in the clients' evaluation results that is their opinion, in [0, 1], or a function
            of `{"metrics": {...}}` (a RecordDict; with "loss" and "num-examples") into [0, 1]. None takes the one
            metric that is plainly it.
        run: Folder for the records, which must not hold a run yet. None makes a new one under `fedelect-runs/`.
        average: "mean", or against clients that lie together "median" or "trimmed".
        trim: Share of the opinions that "trimmed" cuts off at each end.
        quorum: Share of the clients asked whose opinion is needed.
        loss: Name of the loss, for selectors that need losses; None takes the loss of the evaluation results.
        survey: How many of the connected clients are asked for their opinion, a number or a share; by default the
            inner strategy's `fraction_evaluate` if it is below 1, else all, but at most 50.
        survey_every: Ask only in every round whose number is a multiple of this.
        train_quorum: Updates that are needed in a round; with fewer it comes to nothing, and the model stays.
        wait_s: How long to wait for clients: at the start for as many as the inner strategy's `min_available_clients`
            and the budget, before a round for as many as the budget.
        abandoned_allowed: How many rounds in a row may come to nothing before the run is stopped.
        identity: Where clients' names come from: "auto" (see `ProxyDirectory`), "cid", or a function of a ClientProxy.
        on_slot: Called with the record of each slot, in order, once it is recorded; see docs/TRACKERS.md.
    """

    def __init__(
        self,
        strategy: Strategy,
        *,
        selector: AbstractSelector | None = None,
        budget: int | None = None,
        clients: int | None = None,
        seed: int = 1,
        opinion: Opinion | None = None,
        run: str | os.PathLike[str] | None = None,
        average: Average = "mean",
        trim: float = 0.2,
        quorum: float = 0.5,
        loss: str | None = None,
        survey: int | float | None = None,
        survey_every: int = 1,
        train_quorum: int = 1,
        wait_s: float = 300.0,
        abandoned_allowed: int = 3,
        identity: ProxyIdentity = "auto",
        on_slot: OnSlot | None = None,
    ) -> None:
        _check_strategy(strategy)
        check_on_slot(on_slot)
        if not callable(identity) and identity not in ("auto", "cid"):
            raise ConfigurationError(f'identity: got {identity!r}; allowed: "auto", "cid" or a function of a client')
        self._strategy = strategy
        self._settings = SlotSettings(
            rounds_per_slot=1,
            start="warm",
            train_quorum=train_quorum,
            wait_s=wait_s,
            abandoned_allowed=abandoned_allowed,
            identity="auto",
            names=None,
        )
        self._opinion_settings = OpinionSettings(
            opinion=opinion,
            average=average,
            trim=trim,
            quorum=quorum,
            privacy=None,
            survey=survey,
            survey_every=survey_every,
            loss=loss,
        )
        self._selector = selector
        self._asked = survey is not None or read_setting(strategy, "fraction_evaluate", 1.0) > 0.0
        self._auto = None if selector is not None else (budget, clients, as_int("seed", seed))
        self._check_choice(budget, clients)
        self._run = None if run is None else Path(run).absolute()
        _check_new(self._run)
        self._identity = identity
        self._on_slot = on_slot
        self._opened: OpenRun | None = None

    @property
    def selector(self) -> AbstractSelector:
        """The selector; the recommended one is made when the first round begins."""
        if self._selector is None:
            raise ConfigurationError("the selector is made when the run starts, for the clients that are there")
        return self._selector

    @property
    def run(self) -> Path | None:
        """The folder with the records; None before the first round if none was given."""
        return self._run

    def initialize_parameters(self, client_manager: ClientManager) -> Parameters | None:
        """Return the inner strategy's."""
        return self._strategy.initialize_parameters(client_manager)

    def evaluate(self, server_round: int, parameters: Parameters) -> tuple[float, dict[str, Scalar]] | None:
        """Evaluate centrally, as the inner strategy does."""
        return self._strategy.evaluate(server_round, parameters)

    def configure_fit(
        self, server_round: int, parameters: Parameters, client_manager: ClientManager
    ) -> list[tuple[ClientProxy, FitIns]]:
        """Let the selector choose, and return the inner strategy's instructions for the elected."""
        with _say_no_resume():
            if self._opened is None:
                self._opened = self._open(client_manager)
            return self._opened.configure_fit(server_round, parameters)

    def aggregate_fit(
        self,
        server_round: int,
        results: list[tuple[ClientProxy, FitRes]],
        failures: list[tuple[ClientProxy, FitRes] | BaseException],
    ) -> tuple[Parameters | None, dict[str, Scalar]]:
        """Let the inner strategy combine the updates of the elected that can be used."""
        return self._playing().aggregate_fit(server_round, results, failures)

    def configure_evaluate(
        self, server_round: int, parameters: Parameters, client_manager: ClientManager
    ) -> list[tuple[ClientProxy, EvaluateIns]]:
        """Return the inner strategy's instructions for the clients that are asked for their opinion."""
        with _say_no_resume():
            return self._playing().configure_evaluate(server_round, parameters)

    def aggregate_evaluate(
        self,
        server_round: int,
        results: list[tuple[ClientProxy, EvaluateRes]],
        failures: list[tuple[ClientProxy, EvaluateRes] | BaseException],
    ) -> tuple[float | None, dict[str, Scalar]]:
        """Let the inner strategy combine the metrics, tell the selector, and record the slot."""
        with _say_no_resume():
            return self._playing().aggregate_evaluate(server_round, results, failures)

    def _playing(self) -> OpenRun:
        if self._opened is None:
            raise ConfigurationError("a round begins with configure_fit, which has not been called")
        return self._opened

    def _check_choice(self, budget: int | None, clients: int | None) -> None:
        selector = self._selector
        if selector is None:
            if budget is None:
                raise ConfigurationError("give a selector, or `budget`, the number of clients that train in a round")
            check_numbers(as_int("budget", budget), clients)
            check_legacy_fits(self._strategy, budget)
            return
        if budget is not None or clients is not None:
            raise ConfigurationError("`budget` and `clients` are the selector's own; leave them out, or the selector")
        check_selector(selector, None)
        unknown = sorted((selector.needs & _UNKNOWN) | selector.asks)
        if unknown:
            raise ConfigurationError(
                f"{type(selector).__name__} needs {' and '.join(map(repr, unknown))}, which Flower's older API does "
                f"not tell; take an app of the Message API and fedelect.flower.GoalDirected, or choose another selector"
            )
        if selector.needs & ASKED and not self._asked:
            raise ConfigurationError(
                f"{type(selector).__name__} needs the clients' opinions, and the strategy's fraction_evaluate is 0; "
                f"give survey=, the number of clients to ask, or a fraction_evaluate above 0"
            )
        if selector.state()["slot"] != 0:
            raise ConfigurationError("the selector has been used before; a new run takes a new selector")
        check_legacy_fits(self._strategy, selector.budget)

    def _open(self, manager: ClientManager) -> OpenRun:
        """Wait for the clients, make the selector if none was given, and open the run folder."""
        directory = ProxyDirectory(manager, self._identity)
        wait_s, minimum = self._settings.wait_s, int(read_setting(self._strategy, "min_available_clients", 0))
        if self._auto is not None:
            budget, most, seed = self._auto
            assert budget is not None
            there = count_nodes(directory, needed=max(budget, minimum), wait_s=wait_s)
            self._selector = recommended(
                clients=most or 2 * there,
                budget=budget,
                seed=seed,
                start="warm",
                signals=("opinions",) if self._asked else (),
            )
        selector = self.selector
        LOG.info("%s elects %d of up to %d clients", selector_label(selector), selector.budget, selector.clients)
        self._settings.check_fits(selector.clients, selector.budget)
        source = SelectorSource(selector, self._opinion_settings, "warm")
        clients = Clients(directory, selector.clients)
        wanted = min(max(selector.budget, minimum), selector.clients)
        clients.wait(wanted=wanted, needed=selector.budget, wait_s=wait_s)
        self._run = self._run or new_run_folder()
        _check_new(self._run)
        about = replace(source.description, scenario={**source.description.scenario, "api": "flwr.server.strategy"})
        header = build_run_header(self._settings, about, self._strategy, slots=1, names=None)
        writer = open_run(self._run, header, on_slot=self._on_slot)
        LOG.info("records: %s", self._run)
        return OpenRun(self._strategy, self._settings, source, clients, directory, writer)


@contextlib.contextmanager
def _say_no_resume() -> Iterator[None]:
    """Add to errors that end a run what starting again means here."""
    try:
        yield
    except (AvailabilityError, RunError) as error:
        raise type(error)(f"{error}. (Flower's older API has no resume: another start is a new run)") from error


def _check_strategy(strategy: object) -> None:
    if isinstance(strategy, GoalDirected) or not isinstance(strategy, Strategy):
        raise ConfigurationError(
            f"strategy: got {type(strategy).__name__}; allowed: another strategy of the older flwr.server.strategy; "
            f"for those of flwr.serverapp.strategy there is fedelect.flower.GoalDirected"
        )


def _check_new(run: Path | None) -> None:
    if run is not None and run.exists() and (not run.is_dir() or any(run.iterdir())):
        raise ConfigurationError(
            f"run: got {str(run)!r}, which is there already, and Flower's older API has no resume; name a new folder, "
            f"or take an app of the Message API and fedelect.flower.GoalDirected"
        )
