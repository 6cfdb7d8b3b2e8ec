"""Peers in threads of this process over memory, each with its real control socket: what stands beside a ClientApp."""

import io
import threading
from collections.abc import Mapping
from pathlib import Path

from tests.runtime.federation_kit import LONG_S

from fedelect.runtime.control import ControlClient
from fedelect.runtime.host_messages import Stop
from fedelect.runtime.identity import read_identity
from fedelect.runtime.process import serve
from fedelect.runtime.transport import Inbox, MemoryNetwork, MemoryTransport


class _AnnouncedLinks(MemoryTransport):
    """Links that say when they are open."""

    def __init__(self, network: MemoryNetwork, client: int, neighbours: frozenset[int]) -> None:
        super().__init__(network, client, neighbours)
        self.open = threading.Event()

    def start(self, inbox: Inbox) -> None:
        super().start(inbox)
        self.open.set()


class ControlledPeers:
    """The peers of these folders, by client; they are served as `fedelect peer --control` serves them."""

    def __init__(self, folders: Mapping[int, Path]) -> None:
        self.folders = dict(folders)
        self.network = MemoryNetwork()
        self._threads: dict[int, threading.Thread] = {}
        for up in [self._start(client) for client in folders]:
            assert up.wait(LONG_S)

    def start(self, client: int) -> None:
        assert self._start(client).wait(LONG_S)

    def _start(self, client: int) -> threading.Event:
        """Start a peer's thread; the event is set when its links and its control socket are open."""
        identity = read_identity(self.folders[client])
        self.config = identity.config
        links = _AnnouncedLinks(self.network, client, frozenset(identity.config.neighbours[client]))

        def run() -> None:
            serve(
                identity.folder,
                io.BytesIO(),
                lambda notice: None,
                stay=True,
                control=True,
                transport=links,
                missing_after_s=LONG_S,
            )

        self._threads[client] = threading.Thread(target=run, daemon=True)
        self._threads[client].start()
        return links.open

    def stop(self, client: int) -> None:
        with ControlClient(self.folders[client]) as peer:
            peer.tell(Stop())
        self._threads[client].join(LONG_S)
        assert not self._threads[client].is_alive()

    def close(self) -> None:
        for client, thread in self._threads.items():
            if thread.is_alive():
                self.stop(client)
