"""A run of Flower's older API that has begun: its four hooks, passed on to the loop of the Message API."""

import weakref
from typing import Any

from flwr.app import ConfigRecord
from flwr.common import EvaluateIns, EvaluateRes, FitIns, FitRes, Parameters, Scalar
from flwr.server.client_proxy import ClientProxy
from flwr.server.strategy import Strategy

from fedelect.errors import RunError
from fedelect.flower.client_numbers import Clients
from fedelect.flower.cohort_source import SelectorSource
from fedelect.flower.inner import InnerStrategy
from fedelect.flower.legacy_adapter import Exchange, LegacyAdapter
from fedelect.flower.legacy_clients import ProxyDirectory, ProxySlotGrid
from fedelect.flower.rounds import Rounds
from fedelect.flower.run_loop import RunLoop
from fedelect.flower.settings import SlotSettings
from fedelect.records import RunWriter


class OpenRun:
    """A run that has begun: Flower's older loop on one side, `RunLoop` on the other.

    Args:
        strategy: What aggregates.
        settings: Settings of the slots.
        source: Chooses the cohorts.
        clients: The clients' numbers.
        directory: Their names and proxies.
        writer: Writer of the run folder.
    """

    def __init__(
        self,
        strategy: Strategy,
        settings: SlotSettings,
        source: SelectorSource,
        clients: Clients,
        directory: ProxyDirectory,
        writer: RunWriter,
    ) -> None:
        self._writer = writer
        weakref.finalize(self, writer.close)  # nobody tells a strategy when the run ends
        self._exchange = Exchange(directory)
        self._grid = ProxySlotGrid(directory)
        rounds = Rounds(
            grid=self._grid,
            clients=clients,
            inner=InnerStrategy(LegacyAdapter(strategy, self._exchange)),
            per_slot=1,
            timeout_s=_TIMEOUT_S,
            quorum=settings.train_quorum,
            sketch_seed=source.sketch_seed,
            evaluate_config=ConfigRecord(),
        )
        self._loop = RunLoop(settings, source, rounds, writer, saves=False)
        self._trained = True  # whether the round's updates have been taken
        self._round = 0

    def configure_fit(self, server_round: int, parameters: Parameters) -> list[tuple[ClientProxy, FitIns]]:
        """Begin a slot; return the instructions for the elected."""
        if server_round <= self._round:
            raise RunError(
                f"round {server_round} comes after round {self._round}: the run was started again, and Flower's older "
                f"API has no resume; make a new GoalDirected, with another run="
            )
        self._round, self._trained = server_round, False
        self._writer.extend(self._loop.slot + 1)
        model = self._exchange.hold(parameters)
        return self._exchange.send(self._loop.configure_train(server_round, model, ConfigRecord(), self._grid))

    def aggregate_fit(
        self, server_round: int, results: list[tuple[ClientProxy, FitRes]], failures: list[Any]
    ) -> tuple[Parameters | None, dict[str, Scalar]]:
        """Return the model that the inner strategy makes of the updates, and its metrics."""
        self._trained, self._exchange.metrics = True, {}
        arrays, _ = self._loop.aggregate_train(server_round, self._exchange.receive(results, failures))
        return (None if arrays is None else self._exchange.release(arrays)), self._exchange.metrics

    def configure_evaluate(self, server_round: int, parameters: Parameters) -> list[tuple[ClientProxy, EvaluateIns]]:
        """Return the instructions for the clients that are asked; if there are none, the slot ends."""
        if not self._trained:  # nobody was sent anything, or secure aggregation was broken off
            self.aggregate_fit(server_round, [], [])
        model = self._exchange.hold(parameters)
        asked = self._exchange.send(self._loop.configure_evaluate(server_round, model, ConfigRecord(), self._grid))
        if not asked:
            self.aggregate_evaluate(server_round, [], [])
        return asked

    def aggregate_evaluate(
        self, server_round: int, results: list[tuple[ClientProxy, EvaluateRes]], failures: list[Any]
    ) -> tuple[float | None, dict[str, Scalar]]:
        """End the slot; return the inner strategy's loss and metrics."""
        self._exchange.evaluated = None, {}
        self._loop.aggregate_evaluate(server_round, self._exchange.receive(results, failures))
        return self._exchange.evaluated


_TIMEOUT_S = 3600.0  # of messages that are never sent
