"""Choose nodes by what they report of themselves: region, hardware, tags.

Flower shows a ServerApp no node config, so nodes are asked, once each, by a query that `fedelect.flower.introduce`
answers. A user's function of the answer says who may be elected.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.serverapp import Grid

from fedelect.errors import ConfigurationError
from fedelect.flower.client_numbers import Clients
from fedelect.flower.exchange import LOG, exchange
from fedelect.vocabulary import ClientId

PROPERTIES = f"{MessageType.QUERY}.fedelect_properties"
"""Type of the message by which a node is asked for its properties."""

PROPERTIES_RECORD = "properties"
"""Name of the ConfigRecord that holds the answer."""

Properties = Mapping[str, Any]
"""What a node reports of itself: values of a ConfigRecord (numbers, texts, truth values, lists of them)."""

PropertySource = Sequence[str] | Callable[[Context], Properties]
"""What to report: keys of the node config, or a function of the app's context."""

AvailableFunction = Callable[[Properties], bool]
"""Whether a node with these properties may be elected."""

_QUERY_S = 60.0
_QUERIES = 2  # how often a node is asked that does not answer; each time costs everybody a minute
_APP_FAILED = 2  # Flower's code for "the client app failed"; it has no such query, or its function raised

_REMEDY = (
    "name the keys of the node config in the client app, fedelect.flower.introduce(app, properties=['region']), and "
    "start the SuperNodes with them, --node-config 'region=\"eu\"'"
)


def check_available(available: AvailableFunction | None) -> None:
    """Raise ConfigurationError unless `available` is a function, or None."""
    if available is not None and not callable(available):
        raise ConfigurationError(
            f"available: got {available!r}; allowed: a function of a node's properties, such as "
            f"lambda node: node.get('region') == 'eu', or None"
        )


def report_properties(source: PropertySource, context: Context) -> ConfigRecord:
    """Return the record that a node answers with; keys that its node config lacks are left out."""
    if callable(source):
        return ConfigRecord(dict(source(context)))
    return ConfigRecord({key: context.node_config[key] for key in source if key in context.node_config})


class PropertyFilter:
    """Who may be elected, by the properties that nodes report. A node is asked when it is first seen.

    Args:
        grid: Flower's.
        clients: The clients of the run, for their names.
        available: The user's function.
    """

    def __init__(self, grid: Grid, clients: Clients, available: AvailableFunction) -> None:
        self._grid = grid
        self._clients = clients
        self._available = available
        self._reported: dict[int, Properties] = {}  # by node id, empty if it reports none; an id never changes hands
        self._silent: dict[int, int] = {}  # by node id, how often it was asked in vain
        self._said: tuple[ClientId, ...] = ()  # those not available, when they were last logged

    def filter(self, there: Mapping[ClientId, int]) -> dict[ClientId, int]:
        """Return those of the connected clients (client -> node id) that may be elected now.

        Raises:
            ConfigurationError: No node reports properties, or the user's function raises or returns no truth value.
        """
        self._ask({client: node for client, node in there.items() if node not in self._reported})
        if there and all(node in self._reported for node in there.values()) and not any(self._reported.values()):
            raise ConfigurationError(f"available= is given, but no client reports properties; {_REMEDY}")
        found = {client: node for client, node in there.items() if self._is_available(client, node)}
        away = tuple(sorted(there.keys() - found.keys()))
        if away != self._said:
            LOG.info("not available by their properties: %s", self._clients.list_names(away))
            self._said = away
        return found

    def _is_available(self, client: ClientId, node: int) -> bool:
        properties = self._reported.get(node)
        if not properties:
            return False
        name = self._clients.list_names([client])
        try:
            answer: object = self._available(dict(properties))
        except Exception as error:  # whatever a user's function raises
            raise ConfigurationError(
                f"available= raised {type(error).__name__}: {error}, for {name} with the properties "
                f"{dict(properties)}; mend it, then start the same run again: what is recorded is kept"
            ) from error
        if not isinstance(answer, bool | np.bool_):
            raise ConfigurationError(
                f"available= returned {answer!r} for {name} with the properties {dict(properties)}; it must return "
                f"True or False"
            )
        return bool(answer)

    def _ask(self, nodes: Mapping[ClientId, int]) -> None:
        """Ask these nodes for their properties; who has not answered twice is taken to report none."""
        asked = {
            client: Message(RecordDict({"config": ConfigRecord()}), dst_node_id=node, message_type=PROPERTIES)
            for client, node in nodes.items()
        }
        answers = exchange(self._grid, asked, timeout_s=_QUERY_S)
        for client, reply in answers.replies.items():
            record = reply.content.get(PROPERTIES_RECORD)
            self._note(client, nodes[client], dict(record) if isinstance(record, ConfigRecord) else {}, "it sent none")
        for client, why in answers.failures.items():
            node, error = nodes[client], answers.errors.get(client)
            self._silent[node] = self._silent.get(node, 0) + 1
            if (error is not None and error.error.code == _APP_FAILED) or self._silent[node] >= _QUERIES:
                self._note(client, node, {}, why)

    def _note(self, client: ClientId, node: int, properties: Properties, why: str) -> None:
        self._reported[node] = properties
        if not properties:
            LOG.warning(
                "%s reports no properties and is not elected: %s; %s", self._clients.list_names([client]), why, _REMEDY
            )
