"""Rounds of a slot on Flower: the messages to the chosen clients, and what to make of their replies.

The inner strategy makes the messages and combines the replies; the receivers are chosen here. Replies reach it in
order of client number, so that their order of arrival cannot change a float.
"""

import itertools
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict

from fedelect.equations.sketch import make_sketch
from fedelect.errors import ConfigurationError
from fedelect.flower.client_numbers import Clients
from fedelect.flower.contributions import ContributionEstimator
from fedelect.flower.exchange import (
    LOG,
    Answers,
    EarlyStop,
    address_messages,
    all_finite,
    exchange,
    select_sound_updates,
    share_metrics,
)
from fedelect.flower.inner import InnerStrategy
from fedelect.flower.slot_grid import ChosenNodes, SlotGrid
from fedelect.vocabulary import ClientId, Cohort, Floats

SLOT_RECORD = "fedelect-slot"
"""Name of the record that tells clients which slot and round it is; see `read_slot`.

A MetricRecord, for Flower's clipping mods refuse messages with more than one ConfigRecord.
"""

NOT_CONNECTED = "not connected"
"""Why there is no update of a member that is away; no failure of its own."""

NOT_WAITED_FOR = "enough others had replied"
"""Why there is no update of a member that was not waited for; no failure of its own."""

BLAMELESS = frozenset({NOT_CONNECTED, NOT_WAITED_FOR})
"""Reasons that are no failures of a member's own."""


def read_slot(message: Message) -> tuple[int, int]:
    """Return the slot (from 1) and the round in it (from 0) of a message to train or evaluate, in a ClientApp."""
    record = message.content.metric_records[SLOT_RECORD]
    return int(str(record["slot"])), int(str(record["round"]))


@dataclass(slots=True)
class SlotTraining:
    """Training of a slot as far as it has come.

    Attributes:
        model: The model after the last round.
        arrivals: For each member of the cohort, in how many rounds its update arrived.
        rounds: Rounds that were run.
        combined: Rounds of which the inner strategy made a model or metrics.
        empty_rounds: Rounds in which no update arrived.
        failures: Member -> why its update did not arrive, the last time it did not.
        seconds: Member -> seconds from sending the model to its reply, for each of its updates.
        sizes: Member -> the weight that it gave for its update, usually its number of training samples.
        updates: Member -> (64,) projection of the changes that it uploaded, summed over rounds; if asked for.
        contributions: Member -> what it contributed, summed over rounds; None if not asked for.
        bytes_down: Bytes of models sent to members.
        bytes_up: Bytes of their updates.
        abandoned: Why the slot was given up; None if it was not.
    """

    model: ArrayRecord
    arrivals: dict[ClientId, int]
    rounds: int = 0
    combined: int = 0
    empty_rounds: int = 0
    failures: dict[ClientId, str] = field(default_factory=dict)
    seconds: dict[ClientId, list[float]] = field(default_factory=dict)
    sizes: dict[ClientId, float] = field(default_factory=dict)
    updates: dict[ClientId, Floats] = field(default_factory=dict)
    contributions: dict[ClientId, float] | None = None
    bytes_down: int = 0
    bytes_up: int = 0
    abandoned: str | None = None

    @classmethod
    def begin(cls, cohort: Cohort, model: ArrayRecord) -> "SlotTraining":
        """Return the training of `cohort` from `model` before its first round."""
        return cls(model, dict.fromkeys(cohort, 0))


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """Rounds of a run; the same for all its slots.

    Attributes:
        grid: The grid that the inner strategy's `start` runs on.
        clients: Who they are, and where.
        inner: The inner strategy.
        per_slot: L.
        timeout_s: How long to wait for replies.
        quorum: Fewest members whose update must arrive in a round; below it the slot is given up.
        enough: Updates after which a round goes on without the rest; None to wait for all.
        sketch_seed: Seed of the projection of updates; None if nobody asks for them.
        estimator: Estimates contributions; None if nobody asks for them.
        evaluate_config: The config that elections among the clients are configured with; other evaluations get
            theirs from `start`.
    """

    grid: SlotGrid
    clients: Clients
    inner: InnerStrategy
    per_slot: int
    timeout_s: float
    quorum: int
    enough: int | None = None
    sketch_seed: int | None = None
    estimator: ContributionEstimator | None = None
    evaluate_config: ConfigRecord

    def ask_to_train(
        self, server_round: int, slot: int, round_: int, config: ConfigRecord, trained: SlotTraining
    ) -> list[Message]:
        """Return the messages by which the connected members train `trained.model` in a round."""
        here = self.clients.locate()
        there = {client: here[client] for client in trained.arrivals if client in here}
        trained.failures |= {client: NOT_CONNECTED for client in trained.arrivals if client not in there}
        if not there:
            return self.grid.expect({})
        with self.inner.choose_all():
            view = ChosenNodes(self.grid, list(there.values()))
            wanted = list(self.inner.configure_train(server_round, trained.model, config, view))
        if not wanted:
            raise ConfigurationError(f"{self.inner.name}.configure_train returns no messages, so nobody can train")
        asked = address_messages(_mark(wanted, slot, round_), there, timeout_s=self.timeout_s)
        trained.bytes_down += count_bytes(trained.model) * len(asked)
        return self.grid.expect(asked, enough=self._stop_early())

    def _stop_early(self) -> EarlyStop | None:
        if self.enough is None:
            return None
        arrived, wanted = itertools.count(1), self.enough
        return EarlyStop(lambda reply: not reply.has_error() and next(arrived) >= wanted, 0.0)

    def take_updates(
        self, server_round: int, slot: int, round_: int, replies: Iterable[Message], trained: SlotTraining
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Let the inner strategy combine the updates of a round into `trained`; with too few the slot is abandoned.

        Returns:
            What the inner strategy made of them: a model, or None if it stays as it is, and metrics.
        """
        answers = self.grid.collect(replies)
        if self.enough is not None and len(answers.replies) >= self.enough:
            silent = answers.failures.keys() - answers.errors.keys()
            answers.failures.update(dict.fromkeys(sorted(silent), NOT_WAITED_FOR))
        updates, odd = select_sound_updates(
            answers.replies, trained.model, weight=self.inner.setting("weighted_by_key", None)
        )
        self._note_round(slot, round_, answers, updates, odd, trained)
        if len(updates) < self.quorum:
            trained.abandoned = (
                f"in round {round_ + 1} the updates of {len(updates)} members arrived and {self.quorum} are needed"
                f"{_name_failure(self.clients, trained)}"
            )
            return None, None
        self._add_contributions(slot, round_, updates, trained)
        sound = dict(zip(updates, share_metrics(list(updates.values())), strict=True))
        refused = {client: self.grid.make_error(client, why) for client, why in odd.items()}
        shown = sound | answers.errors | refused
        arrays, metrics = self.inner.aggregate_train(server_round, [shown[client] for client in sorted(shown)])
        if arrays is not None and not all_finite(arrays):
            trained.abandoned = f"in round {round_ + 1} the updates were combined to values that are not finite"
            return None, None
        if arrays is not None:
            trained.model = arrays
        trained.combined += arrays is not None or metrics is not None
        if trained.combined == 0 and round_ == self.per_slot - 1:
            trained.abandoned = (
                f"{self.inner.name} made nothing of the {len(updates)} updates of {len(trained.arrivals)} members"
                f"{_name_failure(self.clients, trained)}; Flower's log says why"
            )
        return arrays, metrics

    def _add_contributions(
        self, slot: int, round_: int, updates: Mapping[ClientId, Message], trained: SlotTraining
    ) -> None:
        """Add what each member contributed in the round, if that is asked for; before the updates are combined."""
        if self.estimator is None:
            return
        found = self.estimator.estimate(trained.model, updates, trained.sizes, slot=slot, round_=round_)
        before = trained.contributions or {}
        trained.contributions = before | {client: before.get(client, 0.0) + gain for client, gain in found.items()}

    def _note_round(
        self,
        slot: int,
        round_: int,
        answers: Answers,
        updates: Mapping[ClientId, Message],
        odd: Mapping[ClientId, str],
        trained: SlotTraining,
    ) -> None:
        trained.rounds += 1
        trained.empty_rounds += not updates
        weight = self.inner.setting("weighted_by_key", None)
        for client, update in updates.items():
            trained.arrivals[client] += 1
            trained.bytes_up += sum(map(count_bytes, update.content.array_records.values()))
            if self.sketch_seed is not None:
                self._project(client, update, trained)
            if client in answers.seconds:
                trained.seconds.setdefault(client, []).append(answers.seconds[client])
            for record in update.content.metric_records.values():
                if isinstance(size := record.get(weight), int | float):
                    trained.sizes[client] = float(size)
        for client, reason in ({**answers.failures, **odd}).items():
            trained.failures[client] = reason
            LOG.log(
                logging.INFO if reason == NOT_WAITED_FOR else logging.WARNING,
                "slot %d, round %d: no update of %s: %s",
                *(slot, round_ + 1, self.clients.list_names([client]), reason),
            )

    def _project(self, client: ClientId, update: Message, trained: SlotTraining) -> None:
        """Add the projection of what a member changed in the model; of models that are no numbers there is none."""
        sent = {name: array for name, array in trained.model.items() if array.dtype.startswith("float")}
        own = next(iter(update.content.array_records.values()), ArrayRecord())
        if not sent or any(name not in own for name in sent):
            return
        parts = [np.ravel(own[name].numpy() - array.numpy()) for name, array in sent.items()]
        change = np.concatenate(parts)
        assert self.sketch_seed is not None
        projected = make_sketch(change.size, self.sketch_seed).project(change)
        trained.updates[client] = trained.updates.get(client, 0.0) + projected

    def ask_candidates(self, slot: int, model: ArrayRecord, clients: Collection[ClientId]) -> Answers:
        """Ask connected clients to evaluate the model that `slot` begins with, before anybody is elected for it."""
        there = {client: node for client, node in self.clients.locate().items() if client in clients}
        if not there:
            return Answers()
        config = ConfigRecord(dict(self.evaluate_config))  # plain Flower has no such evaluation: the strategy's stays
        messages = self._evaluate_messages((slot - 1) * self.per_slot + 1, slot, model, config, there)
        return exchange(self.grid, messages, timeout_s=self.timeout_s)

    def ask_to_evaluate(
        self,
        server_round: int,
        slot: int,
        model: ArrayRecord,
        config: ConfigRecord,
        *,
        asked: Mapping[ClientId, int],
        enough: EarlyStop | None = None,
    ) -> list[Message]:
        """Return the messages by which clients evaluate `model`.

        Args:
            server_round: The round's number for the inner strategy.
            slot: The slot.
            model: The model.
            config: The config, which the inner strategy may change.
            asked: Client -> node id of those to ask.
            enough: Early stop.
        """
        if not asked:
            return self.grid.expect({})
        messages = self._evaluate_messages(server_round, slot, model, config, asked)
        return self.grid.expect(messages, enough=enough)

    def take_evaluations(
        self, server_round: int, replies: Iterable[Message], sample: Collection[ClientId]
    ) -> tuple[Answers, MetricRecord | None]:
        """Return the answers, and the metrics that the inner strategy makes of those in the sample."""
        answers = self.grid.collect(replies)
        shown = {client: reply for client, reply in (answers.replies | answers.errors).items() if client in sample}
        try:
            metrics = self.inner.aggregate_evaluate(server_round, [shown[client] for client in sorted(shown)])
        except Exception as error:  # replies that do not go together; the opinions are read one by one
            LOG.warning("%s could not combine the evaluation metrics: %s", self.inner.name, error)
            metrics = None
        return answers, metrics

    def ask_all(
        self,
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
            judged: The slot and model that they are to evaluate; None if there is none.
            message_type: The type.
            record: Name of the record that is added to what an evaluation holds.
            fill: That record, for each client.
            only: Clients to ask, if connected; None for all.
            enough: Early stop.
        """
        there = {client: node for client, node in self.clients.locate().items() if only is None or client in only}
        plain: dict[ClientId, Message] = {}
        if judged is not None and there:
            slot, model = judged
            plain = self._evaluate_messages(slot * self.per_slot, slot, model, self.evaluate_config, there)
        asked = {}
        for client, node in there.items():
            content = RecordDict(dict(plain[client].content) if client in plain else {})
            content[record] = fill(client)
            asked[client] = Message(content, dst_node_id=node, message_type=message_type, ttl=self.timeout_s)
        return exchange(self.grid, asked, timeout_s=self.timeout_s, enough=enough), list(there)

    def _evaluate_messages(
        self, server_round: int, slot: int, model: ArrayRecord, config: ConfigRecord, there: Mapping[ClientId, int]
    ) -> dict[ClientId, Message]:
        """Return the inner strategy's messages to evaluate the model that was trained in `slot`."""
        with self.inner.choose_all():
            view = ChosenNodes(self.grid, list(there.values()))
            wanted = list(self.inner.configure_evaluate(server_round, model, config, view))
        if not wanted:  # a strategy without federated evaluation; who decides needs it all the same
            arrays = self.inner.setting("arrayrecord_key", "arrays")
            settings = self.inner.setting("configrecord_key", "config")
            content = RecordDict({arrays: model, settings: config})
            wanted = [Message(content, dst_node_id=0, message_type=MessageType.EVALUATE)]
        return address_messages(_mark(wanted, slot, self.per_slot - 1), there, timeout_s=self.timeout_s)


def _name_failure(clients: Clients, trained: SlotTraining) -> str:
    """Return the failure of one member, in words, if there was one."""
    for client, why in sorted(trained.failures.items()):
        return f" (no update of {clients.list_names([client])}: {why})"
    return ""


def count_bytes(arrays: ArrayRecord) -> int:
    """Return the size of a model as it is sent, without names and types."""
    return sum(len(array.data) for array in arrays.values())


def _mark(messages: list[Message], slot: int, round_: int) -> list[Message]:
    """Write slot and round into a record of their own, beside the strategy's; its config stays as it is."""
    for content in {id(message.content): message.content for message in messages}.values():
        content[SLOT_RECORD] = MetricRecord({"slot": slot, "round": round_})
    return messages
