"""A real peer as a process: its folder, commands on standard input, notices on standard output.

It ends on the command `stop`, by SIGTERM, or when its input ends because the process that started it is gone; then
within `END_S` seconds. With `control` the same commands and notices pass through a socket in the folder, for programs
that come and go. Keys, opinions and beliefs leave the folder only as the protocol sends them.
"""

import contextlib
import datetime
import math
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np

from fedelect.analytics import accuracy
from fedelect.equations.scores import linear_scores
from fedelect.errors import ConfigurationError, FedelectError
from fedelect.runtime.control import ControlServer
from fedelect.runtime.host_messages import BeginSlot, Greeting, Notice, Stop, Trouble, decode_command, encode_line
from fedelect.runtime.identity import RENEW_DAYS, Identity, read_identity
from fedelect.runtime.journal import Journal
from fedelect.runtime.node import Node
from fedelect.runtime.signing import Ed25519Verifier
from fedelect.runtime.transport import Inbox, Transport, frame_limit
from fedelect.runtime.transport.tls_links import TlsTransport

END_S = 5.0
"""Seconds within which a peer ends after its input has ended."""

SHARE_NAME = "share.npz"
"""The client's own test data in its folder: `inputs` (D, F) and `labels` (D,)."""

REALM_LETTERS = 16

DAY_S = 86_400.0
"""Interval at which a running peer checks its certificate."""


class Lines(Protocol):
    """Source of command lines."""

    def readline(self) -> bytes:
        """Return the next line; empty at the end."""


class StandardInput:
    """Standard input for a thread that may still be waiting for a line when the process ends.

    It would hold the lock of `sys.stdin`, and the interpreter aborts at that lock when it ends.
    """

    def __init__(self) -> None:
        self._rest = b""

    def readline(self) -> bytes:
        """Return the next line; empty at the end."""
        while b"\n" not in self._rest and (more := os.read(0, 1 << 16)):
            self._rest += more
        line, end, self._rest = self._rest.partition(b"\n")
        return line + end


def transport_of(identity: Identity) -> TlsTransport:
    """Return the real links of a peer."""
    members = identity.roster.members
    return TlsTransport(
        realm=identity.config.digest.hex()[:REALM_LETTERS],
        client=identity.client,
        address=members[identity.client].address,
        neighbours={other: (members[other].name, members[other].address) for other in _neighbours(identity)},
        tls=identity.tls,
        frame_limit=frame_limit(len(members)),
    )


def judge_on_own_share(folder: Path, model: Path) -> float:
    """Return the accuracy of a linear model, (F+1, C) in an .npy file, on the share in `folder`.

    Raises:
        ConfigurationError: There is no such share or model.
    """
    try:
        with np.load(folder / SHARE_NAME, allow_pickle=False) as share:
            inputs, labels = share["inputs"], share["labels"]
        return accuracy(linear_scores(np.load(model, allow_pickle=False), inputs), labels)
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise ConfigurationError(
            f"cannot judge {model} on {folder / SHARE_NAME}: {error}; a share holds `inputs` and `labels`"
        ) from error


def serve(
    folder: Path,
    commands: Lines,
    tell: Callable[[Notice], None],
    *,
    stay: bool = False,
    control: bool = False,
    missing_after_s: float = 10.0,
    transport: Transport | None = None,
) -> None:
    """Run the peer of `folder` until it is told to stop.

    Args:
        folder: A peer's folder, see `fedelect.runtime.identity.create_federation`.
        commands: Source of commands.
        tell: Called with every notice, from several threads.
        stay: Whether to run on when the commands end.
        control: Whether to listen on the control socket, too; see `fedelect.runtime.control`.
        missing_after_s: Seconds after which to name the neighbours that are not up.
        transport: The links; by default those of the folder's roster.

    Raises:
        ConfigurationError: The folder is incomplete; see `read_identity`.
    """
    identity = read_identity(folder)
    journal = Journal(folder)
    inbox = Inbox()
    with contextlib.ExitStack() as ends:
        ends.callback(journal.close)
        if control:
            tell = _with_control(identity, inbox, tell, ends)
        members = identity.roster.members
        node = Node(
            config=identity.config,
            client=identity.client,
            signer=identity.signer,
            verifier=Ed25519Verifier(),
            transport=transport or transport_of(identity),
            journal=journal,
            folder=folder,
            tell=tell,
            inbox=inbox,
            addresses={one: f"{members[one].name} at {members[one].address}" for one in _neighbours(identity)},
            missing_after_s=missing_after_s,
        )
        over = threading.Event()
        ends.callback(over.set)
        warn_before_expiry(identity, tell, over)
        threading.Thread(target=_read, args=(folder, commands, inbox, tell, stay), daemon=True).start()
        node.run()


def _with_control(
    identity: Identity, inbox: Inbox, tell: Callable[[Notice], None], ends: contextlib.ExitStack
) -> Callable[[Notice], None]:
    """Open the control socket until `ends`; return a function that sends notices there, too."""
    config = identity.config
    greeting = Greeting(client=identity.client, configuration=config.digest.hex(), slot_s=config.settings.slot_s)
    control = ControlServer(identity.folder, greeting, lambda line: _obey(identity.folder, line, inbox, tell_all))
    ends.callback(control.close)

    def tell_all(notice: Notice) -> None:
        tell(notice)
        control.tell(notice)

    return tell_all


def warn_before_expiry(
    identity: Identity, tell: Callable[[Notice], None], over: threading.Event, every_s: float = DAY_S
) -> threading.Thread:
    """Warn that the certificate in use will expire: at once, and every day until `over` is set.

    Returns:
        The thread that warns.
    """
    warning = Trouble(
        text=f"the certificate of {identity.folder} that is in use expires on {identity.expires:%Y-%m-%d}; see "
        f"fedelect peers renew, then start the peer again"
    )

    def check() -> None:
        if identity.expires - datetime.datetime.now(datetime.UTC) < datetime.timedelta(days=RENEW_DAYS):
            tell(warning)

    def check_on() -> None:
        while not over.wait(every_s):
            check()

    check()
    thread = threading.Thread(target=check_on, daemon=True)
    thread.start()
    return thread


def _neighbours(identity: Identity) -> list[int]:
    return list(identity.config.neighbours[identity.client])


def _read(folder: Path, commands: Lines, inbox: Inbox, tell: Callable[[Notice], None], stay: bool) -> None:
    for line in iter(commands.readline, b""):
        _obey(folder, line, inbox, tell)
    if not stay:
        inbox.put(Stop())


def _obey(folder: Path, line: bytes, inbox: Inbox, tell: Callable[[Notice], None]) -> None:
    try:
        command = decode_command(line)
        inbox.put(_with_opinion(folder, command) if isinstance(command, BeginSlot) else command)
    except FedelectError as error:
        tell(Trouble(text=str(error)))
    except Exception as error:  # any error of a line, or of a file that it names: the peer runs on
        tell(Trouble(text=f"a command could not be carried out: {type(error).__name__}: {error}"))


def _with_opinion(folder: Path, begin: BeginSlot) -> BeginSlot:
    if begin.model is None:
        return begin
    opinion = judge_on_own_share(folder, Path(begin.model))
    return msgspec.structs.replace(begin, opinion=None if math.isnan(opinion) else opinion)


def end_in_time(process_is_over: threading.Event) -> None:
    """Wait for the end of the process; after `END_S` seconds, force it."""
    if not process_is_over.wait(END_S):
        os._exit(1)


def main() -> None:
    """`python -m fedelect.runtime.process FOLDER [control]`: as a child of `fedelect.runtime.launch`."""
    folder, control = Path(sys.argv[1]), sys.argv[2:3] == ["control"]
    lock = threading.Lock()
    over = threading.Event()
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # keep prints of libraries out of the notices

    def tell(notice: Notice) -> None:
        with lock, contextlib.suppress(OSError):  # the reader may be gone; then the input ends, too
            answers.write(encode_line(notice))

    class Watched(StandardInput):
        """Gives the process `END_S` seconds when the input ends."""

        def readline(self) -> bytes:
            line = super().readline()
            if not line:
                threading.Thread(target=end_in_time, args=(over,), daemon=True).start()
            return line

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then stops its peers
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        serve(folder, Watched(), tell, control=control)
    except FedelectError as error:
        tell(Trouble(text=str(error)))
        sys.exit(1)
    finally:
        over.set()


if __name__ == "__main__":
    main()
