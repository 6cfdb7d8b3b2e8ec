"""One slot on Flower: the cohort trains for L rounds, then all connected clients are surveyed.

The inner strategy makes the messages and combines the replies; the receivers are chosen here. Replies reach it in
order of client number, so that their order of arrival cannot change a float.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from fedelect.errors import ConfigurationError
from fedelect.flower.exchange import (
    LOG,
    Answers,
    ChosenNodes,
    EarlyStop,
    address_messages,
    all_finite,
    exchange,
    select_sound_updates,
    share_metrics,
)
from fedelect.flower.nodes import Clients
from fedelect.vocabulary import ClientId, Cohort

EvaluateFunction = Callable[[int, ArrayRecord], MetricRecord | None]
"""Flower's central evaluation: (round, model) -> metrics."""

SLOT_KEY, ROUND_KEY = "fedelect-slot", "fedelect-round"
"""Keys of the config that clients get: number of the slot from 1, and of the round in it from 0."""


NOT_CONNECTED = "not connected"
"""Why there is no update of a member that is away; no failure of its own."""


@dataclass(slots=True)
class SlotTraining:
    """Result of a slot's training.

    Attributes:
        model: The model after it.
        arrivals: For each member of the cohort, in how many rounds its update arrived.
        rounds: Rounds that were run.
        empty_rounds: Rounds in which no update arrived.
        failures: Member -> why its update did not arrive, the last time it did not.
        abandoned: Why the slot was given up; None if it was not.
    """

    model: ArrayRecord
    arrivals: dict[ClientId, int]
    rounds: int = 0
    empty_rounds: int = 0
    failures: dict[ClientId, str] = field(default_factory=dict)
    abandoned: str | None = None


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """Rounds of a run; the same for all its slots.

    Attributes:
        grid: Flower's.
        clients: Who they are, and where.
        per_slot: L.
        continued: Whether rounds are counted on from slot to slot (warm start), or from 1 in each.
        timeout_s: How long to wait for replies.
        quorum: Fewest members whose update must arrive in a round; below it the slot is given up.
        train_config: What the clients get to train.
        evaluate_config: What they get to evaluate.
        evaluate_fn: Central evaluation after each round, or None.
        train_metrics: The inner strategy's metrics by round of the whole run; filled here, as the next two.
        evaluate_metrics: Likewise, of the clients' evaluation.
        central_metrics: Likewise, of `evaluate_fn`.
    """

    grid: Grid
    clients: Clients
    per_slot: int
    continued: bool
    timeout_s: float
    quorum: int
    train_config: ConfigRecord
    evaluate_config: ConfigRecord
    evaluate_fn: EvaluateFunction | None
    train_metrics: dict[int, MetricRecord] = field(default_factory=dict)
    evaluate_metrics: dict[int, MetricRecord] = field(default_factory=dict)
    central_metrics: dict[int, MetricRecord] = field(default_factory=dict)

    def train(self, strategy: Strategy, slot: int, cohort: Cohort, model: ArrayRecord) -> SlotTraining:
        """Train for L rounds by `cohort` from `model`."""
        trained = SlotTraining(model, dict.fromkeys(cohort, 0))
        for round_ in range(self.per_slot):
            arrived = self._round(strategy, slot, round_, trained)
            trained.rounds += 1
            trained.empty_rounds += not arrived
            if trained.abandoned is not None:
                break
        return trained

    def survey(
        self,
        strategy: Strategy,
        slot: int,
        model: ArrayRecord,
        *,
        asked: Mapping[ClientId, int],
        sample: Collection[ClientId],
        enough: EarlyStop | None = None,
    ) -> Answers:
        """Ask clients to evaluate `model`.

        Args:
            strategy: The inner strategy.
            slot: The slot.
            model: The model.
            asked: Client -> node id of those to ask.
            sample: Those of them whose metrics the inner strategy aggregates.
            enough: Early stop.
        """
        if not asked:
            return Answers()
        messages = self._evaluate_messages(strategy, slot, model, asked)
        answers = exchange(self.grid, messages, timeout_s=self.timeout_s, enough=enough)
        replies = [reply for client, reply in answers.replies.items() if client in sample]
        try:
            metrics = strategy.aggregate_evaluate(self._round_number(slot, self.per_slot - 1), replies)
        except Exception as error:  # replies that do not go together; the opinions are read one by one
            LOG.warning("%s could not combine the evaluation metrics: %s", type(strategy).__name__, error)
            metrics = None
        if metrics is not None:
            self.evaluate_metrics[slot * self.per_slot] = metrics
        return answers

    def ask_all(
        self,
        strategy: Strategy,
        judged: tuple[int, ArrayRecord] | None,
        *,
        message_type: str,
        record: str,
        fill: Callable[[ClientId], ConfigRecord],
        only: Collection[ClientId] | None = None,
        enough: EarlyStop | None = None,
    ) -> tuple[Answers, list[ClientId]]:
        """Send clients a message of another type; return the answers and the clients asked.

        Args:
            strategy: The inner strategy.
            judged: The slot and model that they are to evaluate; None if there is none.
            message_type: The type.
            record: Name of the record that is added to what an evaluation holds.
            fill: That record, for each client.
            only: Clients to ask, if connected; None for all.
            enough: Early stop.
        """
        there = {client: node for client, node in self.clients.locate().items() if only is None or client in only}
        plain = {} if judged is None or not there else self._evaluate_messages(strategy, *judged, there)
        asked = {}
        for client, node in there.items():
            content = RecordDict(dict(plain[client].content) if client in plain else {})
            content[record] = fill(client)
            asked[client] = Message(content, dst_node_id=node, message_type=message_type, ttl=self.timeout_s)
        return exchange(self.grid, asked, timeout_s=self.timeout_s, enough=enough), list(there)

    def _evaluate_messages(
        self, strategy: Strategy, slot: int, model: ArrayRecord, there: Mapping[ClientId, int]
    ) -> dict[ClientId, Message]:
        """Return the inner strategy's messages to evaluate the model that was trained in `slot`."""
        config = _config(self.evaluate_config, slot, self.per_slot - 1)
        view = ChosenNodes(self.grid, list(there.values()), at_least=_required_nodes(strategy, "min_evaluate_nodes"))
        wanted = list(strategy.configure_evaluate(self._round_number(slot, self.per_slot - 1), model, config, view))
        if not wanted:  # a strategy without federated evaluation; who decides needs it all the same
            wanted = [Message(_content(strategy, model, config), dst_node_id=0, message_type=MessageType.EVALUATE)]
        return address_messages(wanted, there, timeout_s=self.timeout_s)

    def _round(self, strategy: Strategy, slot: int, round_: int, trained: SlotTraining) -> int:
        """Play one round; return the number of updates that arrived. With too few of them the slot is abandoned."""
        here = self.clients.locate()
        there = {client: here[client] for client in trained.arrivals if client in here}
        trained.failures |= {client: NOT_CONNECTED for client in trained.arrivals if client not in there}
        updates = self._updates(strategy, slot, round_, there, trained) if there else {}
        for client in updates:
            trained.arrivals[client] += 1
        if len(updates) < self.quorum:
            trained.abandoned = (
                f"in round {round_ + 1} the updates of {len(updates)} members arrived and {self.quorum} are needed"
            )
            return len(updates)
        overall = (slot - 1) * self.per_slot + round_ + 1
        replies = share_metrics(list(updates.values()))
        arrays, metrics = strategy.aggregate_train(self._round_number(slot, round_), replies)
        if arrays is not None and not all_finite(arrays):
            trained.abandoned = f"in round {round_ + 1} the updates were combined to values that are not finite"
            return len(updates)
        if arrays is not None:
            trained.model = arrays
        if metrics is not None:
            self.train_metrics[overall] = metrics
        if self.evaluate_fn is not None:
            central = self.evaluate_fn(overall, trained.model)
            if central is not None:
                self.central_metrics[overall] = central
        return len(updates)

    def _updates(
        self, strategy: Strategy, slot: int, round_: int, there: Mapping[ClientId, int], trained: SlotTraining
    ) -> dict[ClientId, Message]:
        view = ChosenNodes(self.grid, list(there.values()), at_least=_required_nodes(strategy, "min_train_nodes"))
        config = _config(self.train_config, slot, round_)
        wanted = list(strategy.configure_train(self._round_number(slot, round_), trained.model, config, view))
        if not wanted:
            raise ConfigurationError(
                f"{type(strategy).__name__} sends nobody anything to train; is its fraction_train 0?"
            )
        asked = address_messages(wanted, there, timeout_s=self.timeout_s)
        answers = exchange(self.grid, asked, timeout_s=self.timeout_s)
        updates, odd = select_sound_updates(
            answers.replies, trained.model, weight=setting(strategy, "weighted_by_key", None)
        )
        for client, reason in (answers.failures | odd).items():
            trained.failures[client] = reason
            LOG.warning(
                "slot %d, round %d: no update of %s: %s", slot, round_ + 1, self.clients.list_names([client]), reason
            )
        return updates

    def _round_number(self, slot: int, round_: int) -> int:
        """Return the round's number for the inner strategy and the clients."""
        return round_ + 1 + (slot - 1) * self.per_slot * self.continued


def _config(given: ConfigRecord, slot: int, round_: int) -> ConfigRecord:
    """A copy, for strategies write into it, and messages of the last round may still hold it."""
    config = ConfigRecord(dict(given))
    config[SLOT_KEY], config[ROUND_KEY] = slot, round_
    return config


def _content(strategy: Strategy, model: ArrayRecord, config: ConfigRecord) -> RecordDict:
    arrays, settings = setting(strategy, "arrayrecord_key", "arrays"), setting(strategy, "configrecord_key", "config")
    return RecordDict({arrays: model, settings: config})


def _required_nodes(strategy: Strategy, kind: str) -> int:
    """Return the number of nodes that a strategy of Flower's waits for."""
    return max(int(setting(strategy, name, 0)) for name in (kind, "min_available_nodes"))


def setting(strategy: Strategy, name: str, default: Any) -> Any:
    """A public setting of Flower's strategies, also of one that is wrapped (differential privacy does so)."""
    return getattr(strategy, name, getattr(getattr(strategy, "strategy", None), name, default))
