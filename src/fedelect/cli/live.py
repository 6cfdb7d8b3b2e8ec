"""`fedelect live`: a run on a local web page that updates itself, whichever process runs it."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fedelect.cli.look import Targets
from fedelect.live import DEFAULT_PORT, LiveServer, Watch

Host = Annotated[
    str,
    typer.Option(help="Address to listen on. Others than this machine's own can be read by whoever reaches them."),
]
Port = Annotated[
    int | None,
    typer.Option(
        help=f"Port to listen on, 0 for any free one; {DEFAULT_PORT} if left out and free.", show_default=False
    ),
]


def live(
    folders: Annotated[list[Path], typer.Argument(help="A run folder; may be begun later. Several side by side.")],
    host: Host = "127.0.0.1",
    port: Port = None,
    target: Targets = None,
) -> None:
    """Serve the report of a run that is going on, in this or another process, and update it as slots finish."""
    with LiveServer(Watch(folders, targets=target), host=host, port=port) as server:
        console = Console()
        console.print(f"live: {server.address}  (Ctrl-C ends it)", highlight=False, soft_wrap=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


@contextlib.contextmanager
def serving(folder: Path, console: Console, *, wanted: bool, port: int | None) -> Iterator[None]:
    """Serve `folder` while the block runs, if it is wanted; at its end pages get the last word."""
    if not wanted:
        yield
        return
    with LiveServer(Watch([folder]), port=port) as server:
        console.print(f"live: {server.address}", highlight=False, soft_wrap=True)
        yield
        server.last_word()
