"""Clients of Flower's older API: their names, and the chosen ones as an inner strategy sees them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, cast

from flwr.app import Error, Message, RecordDict
from flwr.server import ClientManager
from flwr.server.client_proxy import ClientProxy
from flwr.server.criterion import Criterion
from flwr.serverapp import Grid

from fedelect.errors import ConfigurationError
from fedelect.flower.exchange import LOG
from fedelect.flower.nodes import Directory, FlowerNode, IdentitySource, is_simulated, sort_names
from fedelect.flower.slot_grid import REFUSED, SlotGrid
from fedelect.vocabulary import ClientId

ProxyIdentity = Literal["auto", "cid"] | Callable[[ClientProxy], str | None]
"""Where a client's name comes from: "auto" (see `ProxyDirectory`), "cid" Flower's own, or a function of its proxy."""


class ProxyDirectory:
    """The names of the clients that a ClientManager holds; a `fedelect.flower.client_numbers.NameSource`.

    In simulation the name is the partition id. On a SuperLink it is the name that the node was registered under, else
    its node id. With `start_server` it is the cid, which is another when a client reconnects. A node id is here a
    number that a proxy gets when it is first seen.

    Args:
        manager: Flower's.
        identity: Where names come from.
    """

    def __init__(self, manager: ClientManager, identity: ProxyIdentity) -> None:
        self._manager = manager
        self._identity = identity
        self._numbers: dict[str, int] = {}  # by cid
        self._proxies: dict[int, ClientProxy] = {}
        self._names: dict[str, str | None] = {}  # by cid
        self._nodes: Directory | None = None  # of the grid behind the proxies, if there is one
        self._warned = False
        self._found: dict[str, int] = {}
        self._found_for: tuple[str, ...] | None = None

    def present(self) -> Mapping[str, int]:
        """Name -> number of every client that is connected and has a name, in order of names; the last to come counts.

        The same object while the same clients are connected.
        """
        proxies = dict(self._manager.all())
        if self._found_for != tuple(proxies):
            found = {}
            for cid, proxy in proxies.items():
                if (name := self._name(proxy)) is not None:
                    found[name] = self.number(proxy)
                    self._proxies[found[name]] = proxy
                self._names[cid] = name
            self._found = {name: found[name] for name in sort_names(found)}
            self._found_for = tuple(proxies)
        return self._found

    def number(self, proxy: ClientProxy) -> int:
        """Return the number of a client's proxy."""
        return self._numbers.setdefault(proxy.cid, len(self._numbers) + 1)

    def proxy(self, number: int) -> ClientProxy:
        """Return the proxy with this number."""
        return self._proxies[number]

    @property
    def nameless(self) -> list[int]:
        """Numbers of the clients seen that have no name."""
        return [self._numbers[cid] for cid, name in self._names.items() if name is None and cid in self._numbers]

    @property
    def registered(self) -> list[str]:
        """None: nothing is saved."""
        return []

    def recall(self, registered: Iterable[str]) -> None:
        """Do nothing: nothing is saved."""

    def _name(self, proxy: ClientProxy) -> str | None:
        if self._identity == "cid":
            return proxy.cid
        if callable(self._identity):
            return self._ask(proxy, self._identity)
        if (partition := getattr(proxy, "partition_id", None)) is not None:
            return str(partition)
        if isinstance(grid := getattr(proxy, "grid", None), Grid):
            self._nodes = self._nodes or Directory(grid, _choose_identity(grid))
            ids = {node_id: name for name, node_id in self._nodes.present().items()}
            return ids.get(proxy.node_id)
        if not self._warned:
            self._warned = True
            LOG.warning(
                "clients are known by their connection, and one that reconnects counts as another client; give "
                "identity=, a function of its ClientProxy, if they can say who they are"
            )
        return proxy.cid

    def _ask(self, proxy: ClientProxy, identity: Callable[[ClientProxy], str | None]) -> str | None:
        if proxy.cid in self._names:  # it may cost a message
            return self._names[proxy.cid]
        try:
            name = identity(proxy)
        except Exception as error:  # a user's function may raise anything, a client may be gone
            LOG.warning("client %s takes no part, for identity= failed: %s: %s", proxy.cid, type(error).__name__, error)
            return None
        if not isinstance(name, str) or not name:
            LOG.warning("client %s takes no part, for identity= gave %r; allowed: a text", proxy.cid, name)
            return None
        return name


def _choose_identity(grid: Grid) -> IdentitySource:
    """Return how nodes of a grid are named: by partition in simulation, else by registered name or node id."""
    if not hasattr(grid, "get_nodes"):
        return "node-id"
    nodes: list[FlowerNode] = list(grid.get_nodes())
    return "auto" if nodes and all(map(is_simulated, nodes)) else _name_or_id


def _name_or_id(node: FlowerNode) -> str:
    return node.name or str(node.node_id)


class ChosenClients(ClientManager):
    """The ClientManager as a hook of an inner strategy sees it: with the chosen clients and no others.

    Args:
        proxies: The chosen ones.
    """

    def __init__(self, proxies: Sequence[ClientProxy]) -> None:
        self._proxies = {proxy.cid: proxy for proxy in proxies}

    def num_available(self) -> int:
        """Return how many were chosen."""
        return len(self._proxies)

    def all(self) -> dict[str, ClientProxy]:
        """Return the chosen clients by cid."""
        return dict(self._proxies)

    def wait_for(self, num_clients: int, timeout: int = 0) -> bool:
        """Return whether as many were chosen; there will never be more."""
        return len(self._proxies) >= num_clients

    def sample(
        self, num_clients: int, min_num_clients: int | None = None, criterion: Criterion | None = None
    ) -> list[ClientProxy]:
        """Return all that were chosen, whatever is asked for."""
        return list(self._proxies.values())

    def register(self, client: ClientProxy) -> NoReturn:
        """Refused."""
        raise ConfigurationError("an inner strategy may not change which clients there are")

    unregister = register


class ProxyGrid(Grid):
    """A grid that shows the clients' numbers and sends nothing: Flower's older loop does that.

    Args:
        directory: The clients.
    """

    def __init__(self, directory: ProxyDirectory) -> None:
        self._directory = directory

    def get_node_ids(self) -> Iterable[int]:
        """Return the numbers of the clients that are there."""
        return list(self._directory.present().values())

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: clients are reached by their ClientProxy."""
        raise ConfigurationError("the older API has no grid: its clients are reached by their ClientProxy")

    set_run = _refuse
    create_message = _refuse
    push_messages = _refuse
    pull_messages = _refuse
    send_and_receive = _refuse

    @property
    def run(self) -> Any:
        """Refused: there is none."""
        return self._refuse()


@dataclass(slots=True)
class _Metadata:
    """As much of a message's metadata as the loop reads."""

    dst_node_id: int
    src_node_id: int
    message_type: str = ""
    ttl: float = math.inf
    message_id: str = ""
    reply_to_message_id: str = ""


@dataclass(slots=True)
class _Note:
    """What looks like a Message to the loop. Flower makes real ones in a ServerApp only, and nobody sends these."""

    metadata: _Metadata
    content: RecordDict
    error: Error | None = None

    def has_error(self) -> bool:
        """Return whether it reports an error."""
        return self.error is not None


def make_message(content: RecordDict, number: int, message_type: str) -> Message:
    """Return a message to the client with this number, which is not sent."""
    return cast(Message, _Note(_Metadata(number, 0, message_type), content))


def make_reply(number: int, answer: RecordDict | Error) -> Message:
    """Return a reply of the client with this number."""
    about = _Metadata(0, number)
    if isinstance(answer, Error):
        return cast(Message, _Note(about, RecordDict(), answer))
    return cast(Message, _Note(about, answer))


class ProxySlotGrid(SlotGrid):
    """The grid of the loop, on which messages come to nothing but notes.

    Args:
        directory: The clients.
    """

    def __init__(self, directory: ProxyDirectory) -> None:
        super().__init__(ProxyGrid(directory))

    def make_error(self, client: ClientId, reason: str) -> Message:
        """Return an error in the place of a reply of `client`; its number is of no interest any more."""
        return make_reply(0, Error(REFUSED, reason))
