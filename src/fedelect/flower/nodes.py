"""Stable names for Flower's nodes.

A node id is no identity: a SuperNode without a registered key gets a new one each time it starts. Names come, in this
order, from the registration (`flwr supernode register --name`), from what the node says of itself when asked (see
`fedelect.flower.introduce`), and in the simulation engine, whose nodes come and go with the run, from the order in
which they were registered, which is that of their partition ids. A node without a name takes no part.

Versions of Flower whose grid has no `get_nodes` show node ids alone. There a node's name is what it says of itself,
else its node id.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.serverapp import Grid

from fedelect.errors import ConfigurationError
from fedelect.flower.exchange import LOG, exchange

INTRODUCTION = f"{MessageType.QUERY}.fedelect"
"""Type of the message by which a node is asked for its name."""

INTRODUCTION_RECORD, INTRODUCTION_KEY = "identity", "client"
"""Where the answer holds the name: a ConfigRecord and its key."""

_SIMULATED = 1e299  # the simulation engine's nodes have a heartbeat interval of 1e300 s: they cannot be lost
_INTRODUCTION_S = 60.0
_INTRODUCTIONS = 2  # how often a node is asked that does not answer; each time costs everybody a minute


class FlowerNode(Protocol):
    """A node as Flower's public `Grid.get_nodes` returns it."""

    @property
    def node_id(self) -> int:
        """Flower's number of the node."""

    @property
    def name(self) -> str:
        """The name it was registered under, or ""."""

    @property
    def public_key(self) -> bytes:
        """Its key; only that of a registered node is the same when it comes back."""

    @property
    def registered_at(self) -> str:
        """When it was registered, ISO 8601."""

    @property
    def last_activated_at(self) -> str:
        """When it was last activated, ISO 8601, or ""."""

    @property
    def heartbeat_interval(self) -> float:
        """Seconds between signs of life."""


def is_simulated(node: FlowerNode) -> bool:
    """Return whether a node is one of the simulation engine's."""
    return node.heartbeat_interval >= _SIMULATED


IdentitySource = Literal["auto", "key", "node-id"] | Callable[[Any], str | None]
"""Where names come from: "auto" as above, "key" the registered public key, "node-id" Flower's own number (of use only
while nodes never restart), or your function of a `FlowerNode`."""


class Directory:
    """The names of the nodes that are connected.

    Args:
        grid: Flower's.
        identity: Where names come from.
    """

    def __init__(self, grid: Grid, identity: IdentitySource = "auto") -> None:
        self._grid = grid
        self._described = hasattr(grid, "get_nodes")  # else an older Flower, which shows node ids alone
        if identity == "key" and not self._described:
            raise ConfigurationError(
                'identity="key": this version of Flower does not show a ServerApp the keys of its nodes; '
                'install a newer one, or leave identity at "auto" and call fedelect.flower.introduce(app) in the '
                "client app"
            )
        self._identity = identity
        self._names: dict[int, str | None] = {}  # by node id; an id never changes hands
        self._silent: dict[int, int] = {}  # by node id, how often it was asked in vain
        self._introduced: set[int] = set()  # ids of nodes whose name is but their own word
        self._impostors: set[int] = set()  # those of them that gave a registered name
        self._registered: set[str] = set()  # names that are more than a node's word
        self._found: dict[str, int] = {}  # the last result of `present`
        self._found_for: frozenset[int] | None = None  # the ids it holds for; None if it must be found anew

    def present(self) -> Mapping[str, int]:
        """Name -> node id of every node that is connected and has a name, in order of names.

        Of two nodes with one name the last to come counts: the other is, most likely, its predecessor that has not
        been declared lost yet. But a name that a node only says it has never counts where that name is registered,
        whether the registered node is there or not.

        While the same nodes are connected, the same object is returned, at the cost of a look at their ids.
        """
        if self._found_for is None or self._found_for != frozenset(self._grid.get_node_ids()):
            self._find()
        return self._found

    def _find(self) -> None:
        nodes = self._list_nodes()
        self._learn([node for node in nodes if node.node_id not in self._names])
        found: dict[str, int] = {}
        settled = all(node.node_id in self._names for node in nodes)
        for node in sorted(nodes, key=lambda node: (node.last_activated_at or node.registered_at, node.node_id)):
            name = self._names.get(node.node_id)
            if name is None or self._is_impostor(node.node_id, name):
                continue
            if name in found:
                LOG.warning("two nodes are called %s: %s counts, %s does not", name, node.node_id, found[name])
                settled = False  # which of them came last may change, although both are connected
            found[name] = node.node_id
        self._found = {name: found[name] for name in sort_names(found)}
        self._found_for = frozenset(node.node_id for node in nodes) if settled else None

    def _list_nodes(self) -> Sequence[FlowerNode]:
        if self._described:
            nodes: list[FlowerNode] = list(self._grid.get_nodes())
            return nodes
        return [_BareNode(node_id) for node_id in self._grid.get_node_ids()]

    @property
    def nameless(self) -> list[int]:
        """Ids of the nodes seen that have no name."""
        return [node_id for node_id, name in self._names.items() if name is None]

    @property
    def registered(self) -> list[str]:
        """The names seen so far that are more than a node's word, sorted."""
        return sorted(self._registered)

    def recall(self, registered: Iterable[str]) -> None:
        """Go on with the registered names of a saved run."""
        self._registered |= set(registered)
        self._found_for = None

    def _is_impostor(self, node_id: int, name: str) -> bool:
        if node_id not in self._introduced or name not in self._registered:
            return False
        if node_id not in self._impostors:
            self._impostors.add(node_id)
            LOG.warning("node %s calls itself %s, a name registered for another: it takes no part", node_id, name)
        return True

    def _learn(self, nodes: Sequence[FlowerNode]) -> None:
        if not nodes:
            return
        if callable(self._identity):
            known = {node.node_id: self._identity(node) for node in nodes}
        elif self._identity == "node-id":
            known = {node.node_id: str(node.node_id) for node in nodes}
        elif self._identity == "key":
            known = {node.node_id: fingerprint(node.public_key) for node in nodes}
        elif all(map(is_simulated, nodes)):
            first = len(self._names)
            order = sorted(nodes, key=lambda node: (node.registered_at, node.node_id))
            known = {node.node_id: str(first + place) for place, node in enumerate(order)}
        else:
            known = {node.node_id: node.name for node in nodes if node.name}
            said = self._introductions([node.node_id for node in nodes if not node.name])
            self._introduced |= set(said)
            if not self._described:
                said = _name_by_id(said)
            known |= said
        for node_id, name in known.items():
            if name and not _is_name(name):
                LOG.warning("node %s has a name that is none: %s; %s", node_id, ascii(name[:_LONGEST_NAME]), _NAMES)
                name = None
            elif not name:
                LOG.warning("node %s has no stable name and takes no part; %s", node_id, NAME_REMEDY)
            self._names[node_id] = name or None
            if name and node_id not in self._introduced:
                self._registered.add(name)

    def _introductions(self, node_ids: Sequence[int]) -> dict[int, str | None]:
        """Ask the nodes for their names; None for one that has none, or has not answered twice."""
        asked = {
            number: Message(RecordDict({"config": ConfigRecord()}), dst_node_id=node_id, message_type=INTRODUCTION)
            for number, node_id in enumerate(node_ids)
        }
        answers = exchange(self._grid, asked, timeout_s=_INTRODUCTION_S)
        names: dict[int, str | None] = {}
        for number, why in answers.failures.items():
            node_id = node_ids[number]
            self._silent[node_id] = self._silent.get(node_id, 0) + 1
            if why.startswith("error") or self._silent[node_id] >= _INTRODUCTIONS:
                names[node_id] = None
        for number, reply in answers.replies.items():
            record = reply.content.get(INTRODUCTION_RECORD)
            said = record.get(INTRODUCTION_KEY) if isinstance(record, ConfigRecord) else None
            names[node_ids[number]] = said if isinstance(said, str) and said else None
        return names


@dataclass(frozen=True, slots=True)
class _BareNode:
    """A node of which nothing is known but its id."""

    node_id: int
    name: str = ""
    public_key: bytes = b""
    registered_at: str = ""
    last_activated_at: str = ""
    heartbeat_interval: float = 0.0


def _name_by_id(said: Mapping[int, str | None]) -> dict[int, str | None]:
    """Return the names that nodes gave, and for those that gave none their node id."""
    if not all(said.values()):
        LOG.warning(
            "this version of Flower shows no names, and some client apps say none: those nodes are known by their id, "
            "which is another when they restart; call fedelect.flower.introduce(app) in the client app, or install a "
            "newer Flower"
        )
    return {node_id: name or str(node_id) for node_id, name in said.items()}


_LONGEST_NAME = 100
_NAMES = f"allowed: up to {_LONGEST_NAME} printable characters; it takes no part"


def _is_name(name: str) -> bool:
    return len(name) <= _LONGEST_NAME and name.isprintable()


NAME_REMEDY = (
    "register it with `flwr supernode register KEY --name NAME`, or start it with --node-config 'client=\"NAME\"' and "
    "call fedelect.flower.introduce(app) in the client app, or see `identity` of the strategy"
)
"""What to do about a node without a name."""


def fingerprint(key: bytes) -> str | None:
    """A name for a registered public key; None if there is none."""
    return f"key-{hashlib.sha256(key).hexdigest()[:16]}" if key else None


def sort_names(names: Iterable[str]) -> list[str]:
    """Names in the order a person would put them.

    >>> sort_names(["site 10", "site 9"])
    ['site 9', 'site 10']
    """
    return sorted(names, key=lambda name: ([_rank(part) for part in re.split(r"(\d+)", name) if part], name))


def _rank(part: str) -> tuple[bool, int, str]:
    """Digits by their value, without making a number of them: there may be thousands."""
    if not part.isdecimal():
        return True, 0, part
    digits = part.lstrip("0")
    return False, len(digits), digits
