"""`fedelect peer`: be one real peer, from its folder."""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer


def peer(
    folder: Annotated[Path, typer.Argument(help="The peer's folder, as `fedelect peers init` made it.")],
    stay: Annotated[
        bool, typer.Option("--stay", help="Stay when the commands end (they come on standard input); stop by a signal.")
    ] = False,
    control: Annotated[
        bool,
        typer.Option("--control", help="Listen on the socket `control` in the folder, too, for a Flower app."),
    ] = False,
    missing_after: Annotated[
        float, typer.Option(help="Seconds after which neighbours that are not up are named.")
    ] = 10.0,
) -> None:
    """Run one peer: commands on standard input, notices on standard output, a line of JSON each (docs/PEERS.md).

    It does not start without TLS, or with a key that is not in the roster.
    """
    from fedelect.runtime.host_messages import Notice, encode_line
    from fedelect.runtime.process import StandardInput, serve

    lock = threading.Lock()

    def tell(notice: Notice) -> None:
        with lock:
            try:
                sys.stdout.buffer.write(encode_line(notice))
                sys.stdout.buffer.flush()
            except OSError:  # the reader is gone; the peer runs on without it
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        serve(folder, StandardInput(), tell, stay=stay, control=control, missing_after_s=missing_after)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
