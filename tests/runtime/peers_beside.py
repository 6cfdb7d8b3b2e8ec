"""Peers in threads of this process over memory, each with its real control socket: what stands beside a ClientApp."""

import io
import threading
from collections.abc import Mapping
from pathlib import Path

from fedelect.runtime.control import ControlClient
from fedelect.runtime.host_messages import Stop
from fedelect.runtime.identity import read_identity
from fedelect.runtime.process import serve
from fedelect.runtime.transport import MemoryNetwork, MemoryTransport


class BesidePeers:
    """The peers of these folders, by client; they are served as `fedelect peer --control` serves them."""

    def __init__(self, folders: Mapping[int, Path]) -> None:
        self.folders = dict(folders)
        self.network = MemoryNetwork()
        self._threads: dict[int, threading.Thread] = {}
        for client in folders:
            self.start(client)

    def start(self, client: int) -> None:
        identity = read_identity(self.folders[client])
        self.config = identity.config
        ready = threading.Event()
        links = MemoryTransport(self.network, client, frozenset(identity.config.neighbours[client]))

        def run() -> None:
            serve(
                identity.folder,
                io.BytesIO(),
                lambda notice: ready.set(),
                stay=True,
                control=True,
                transport=links,
                missing_after_s=0.05,
            )

        self._threads[client] = threading.Thread(target=run, daemon=True)
        self._threads[client].start()
        assert ready.wait(20.0)

    def stop(self, client: int) -> None:
        with ControlClient(self.folders[client]) as peer:
            peer.tell(Stop())
        self._threads[client].join(20.0)
        assert not self._threads[client].is_alive()

    def close(self) -> None:
        for client, thread in self._threads.items():
            if thread.is_alive():
                self.stop(client)
