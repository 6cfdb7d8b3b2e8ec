"""The grids that an inner strategy sees: one that its `start` runs on, one that shows the chosen nodes only."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flwr.app import Error, Message, RecordDict
from flwr.serverapp import Grid

from fedelect.errors import ConfigurationError
from fedelect.flower.exchange import Answers, EarlyStop, describe_error, exchange
from fedelect.vocabulary import ClientId


class _PassedGrid(Grid):
    """A grid that passes everything on to another."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def get_node_ids(self) -> Iterable[int]:
        """The real grid's."""
        return self._grid.get_node_ids()

    def get_nodes(self) -> Iterable[Any]:
        """The real grid's."""
        return self._grid.get_nodes()

    def set_run(self, run: Any) -> None:
        """Refused: the run is the outer strategy's."""
        raise ConfigurationError("an inner strategy may not change the run")

    @property
    def run(self) -> Any:
        """The real grid's."""
        return self._grid.run

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        """Make a message; it is not sent."""
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Pass on to the real grid."""
        return self._grid.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Pass on to the real grid."""
        return self._grid.pull_messages(message_ids)

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Pass on to the real grid."""
        return self._grid.send_and_receive(messages, timeout=timeout)


class SlotGrid(_PassedGrid):
    """The grid that the inner strategy's `start` runs on.

    The messages that a hook announces by `expect` are sent by `exchange`, which says of every client why it did not
    answer. Replies come back in order of client number. All other messages are passed on.

    Args:
        grid: The real one.
    """

    def __init__(self, grid: Grid) -> None:
        super().__init__(grid)
        self._expected: dict[ClientId, Message] = {}
        self._enough: EarlyStop | None = None
        self._answers = Answers()

    def expect(self, asked: Mapping[ClientId, Message], *, enough: EarlyStop | None = None) -> list[Message]:
        """Announce the messages that `start` is about to send, one for each client, and return them."""
        self._expected, self._enough, self._answers = dict(asked), enough, Answers()
        return list(asked.values())

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Send messages and wait for the replies, those that report an error among them."""
        batch = list(messages)
        clients = {id(message): client for client, message in self._expected.items()}
        if not batch:
            return []
        if not any(id(message) in clients for message in batch):
            return self._grid.send_and_receive(batch, timeout=timeout)
        others = -1 - len(batch)
        keyed = {clients.get(id(message), others + place): message for place, message in enumerate(batch)}
        limit_s = _LONGEST_WAIT_S if timeout is None else timeout
        answers = exchange(self._grid, keyed, timeout_s=limit_s, enough=self._enough)
        self._answers = answers
        arrived = answers.replies | answers.errors
        return [arrived[key] for key in sorted(arrived)]

    def collect(self, replies: Iterable[Message]) -> Answers:
        """Return who answered the expected messages, from the replies that `start` hands to a hook.

        A reply belongs to the client whose message it answers; a killed node's error comes from the SuperLink.
        """
        by_message = {
            message.metadata.message_id: client
            for client, message in self._expected.items()
            if message.metadata.message_id
        }
        by_node = {message.metadata.dst_node_id: client for client, message in self._expected.items()}
        arrived: dict[ClientId, Message] = {}
        for reply in replies:
            client = by_message.get(reply.metadata.reply_to_message_id)
            client = by_node.get(reply.metadata.src_node_id) if client is None else client
            if client is not None:
                arrived[client] = reply
        known = self._answers
        answers = Answers(seconds={client: known.seconds[client] for client in arrived if client in known.seconds})
        for client in sorted(self._expected):
            reply_of = arrived.get(client)
            if reply_of is not None and not reply_of.has_error():
                answers.replies[client] = reply_of
                continue
            said = "no answer" if reply_of is None else describe_error(reply_of)
            answers.failures[client] = known.failures.get(client, said)
            if reply_of is not None:
                answers.errors[client] = reply_of
        return answers

    def make_error(self, client: ClientId, reason: str) -> Message:
        """Return an error in the place of a reply of `client` that is not to be combined."""
        return Message(Error(REFUSED, reason), reply_to=self._expected[client])


REFUSED = 0
"""Flower's code for an error of no other kind."""

_LONGEST_WAIT_S = 10.0 * 365 * 24 * 3600  # Flower's "no time limit"


class ChosenNodes(_PassedGrid):
    """The grid as a hook of an inner strategy sees it: with the chosen nodes and no others.

    Args:
        grid: The real one.
        node_ids: The nodes that were chosen.
    """

    def __init__(self, grid: Grid, node_ids: Sequence[int]) -> None:
        super().__init__(grid)
        self._node_ids = list(node_ids)
        self._looks = 0

    def get_node_ids(self) -> Iterable[int]:
        """The chosen nodes.

        Raises:
            ConfigurationError: The strategy keeps asking, so it waits for more nodes than there will be.
        """
        self._looks += 1
        if self._looks > _LOOKS_ALLOWED:
            raise ConfigurationError(
                f"the inner strategy waits for more than the {len(self._node_ids)} nodes that were chosen; "
                f"make it go on with as many as the selector's budget"
            )
        return list(self._node_ids)

    def get_nodes(self) -> Iterable[Any]:
        """The chosen nodes, as the real grid describes them."""
        chosen = set(self._node_ids)
        return [node for node in self._grid.get_nodes() if node.node_id in chosen]


_LOOKS_ALLOWED = 8
