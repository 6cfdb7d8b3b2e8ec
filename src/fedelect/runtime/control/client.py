"""Client of a peer's control socket: give it an opinion and wait for the election to end."""

import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from fedelect.errors import ConfigurationError, RunError
from fedelect.runtime.control.server import LONGEST_LINE, dial, socket_path
from fedelect.runtime.host_messages import (
    Agreed,
    BeginSlot,
    Command,
    Greeting,
    Notice,
    ReplayCertificates,
    ReplayDone,
    Skipped,
    decode_notice,
    encode_line,
)

PAGE = 256
"""Certificates asked for at a time; a client that reads too slowly is disconnected."""

_GREETING_S = 10.0


@dataclass(frozen=True, slots=True)
class ElectionReply:
    """How an election ended at a peer.

    Attributes:
        certificates: Certificates of all later slots than the one named, oldest first, hexadecimal.
        decided: Whether the slot that was elected for is among them.
        reason: Why it is not; keep this text on the machine.
    """

    certificates: tuple[str, ...]
    decided: bool
    reason: str = ""


class ControlClient:
    """Connection to the peer of a folder, another process of this machine (`fedelect peer FOLDER --control`).

    Use it in a `with` statement, one for each election, so that late notices of one are not taken for the next.

    Args:
        folder: The peer's folder.

    Attributes:
        greeting: Which peer it is.

    Raises:
        RunError: No peer listens there, or it hangs.
    """

    def __init__(self, folder: Path) -> None:
        path = socket_path(folder)
        try:
            self._connection = dial(path, _GREETING_S)
        except TimeoutError as error:
            raise RunError(f"the peer on {path} hangs: it takes no connection; start it again") from error
        except OSError as error:
            raise RunError(
                f"no peer listens on {path}: {error.strerror}; start it: fedelect peer {folder} --control"
            ) from error
        try:
            notice = self._next(time.monotonic() + _GREETING_S)
            if notice is None:
                raise RunError(f"the peer on {path} hangs: it did not greet within {_GREETING_S:g} s; start it again")
            if not isinstance(notice, Greeting):
                raise RunError(f"what listens on {path} did not greet as a peer does")
            self.greeting = notice
        except BaseException:
            self.close()
            raise

    def elect(
        self,
        slot: int,
        *,
        judged: int,
        opinion: float | None,
        certificates: tuple[str, ...] = (),
        after: int = 0,
        within_s: float,
    ) -> ElectionReply:
        """Take part in the election for `slot`, and wait until it ends.

        First ask for earlier certificates. An election that is open or decided is not disturbed; its end is returned.

        Args:
            slot: The slot to elect for.
            judged: The slot whose model the opinion is of; 0 if none.
            opinion: In [0, 1]; None if there is none.
            certificates: The last ones that the server knows, oldest first, hexadecimal.
            after: The last slot whose certificate the server knows; those of later slots are returned.
            within_s: Longest time to wait.

        Raises:
            RunError: The peer has gone.
        """
        until = time.monotonic() + within_s
        found: dict[int, str] = {}
        replayed = self._replay(after, found, until)
        if replayed:  # decided or not: its opinion may still count
            self.tell(BeginSlot(slot=slot, judged=judged, opinion=opinion, certificates=certificates))
        while replayed and slot not in found and (notice := self._next(until)) is not None:
            if isinstance(notice, Agreed) and notice.slot > after:
                found[notice.slot] = notice.certificate
            if isinstance(notice, Skipped) and notice.slot == slot:
                return ElectionReply(_in_order(found), False, notice.reason)
        reason = "" if slot in found else f"the peer had not decided within {within_s:g} s"
        return ElectionReply(_in_order(found), slot in found, reason)

    def _replay(self, after: int, found: dict[int, str], until: float) -> bool:
        """Ask for all certificates after a slot, a page at a time; return whether there was time for it."""
        last: int | None = after
        while last is not None:
            token = secrets.token_hex(8)  # others are answered here, too
            self.tell(ReplayCertificates(after=last, most=PAGE, token=token))
            while (notice := self._next(until)) is not None:
                if isinstance(notice, Agreed) and notice.slot > after:
                    found[notice.slot] = notice.certificate
                if isinstance(notice, ReplayDone) and notice.token == token:
                    last = notice.last
                    break
            else:
                return False
        return True

    def tell(self, command: Command) -> None:
        """Give the peer a command."""
        try:
            self._connection.send_bytes(encode_line(command))
        except OSError as error:
            raise RunError(f"the peer went away: {error}") from error

    def close(self) -> None:
        """Disconnect; the peer stays."""
        self._connection.close()

    def _next(self, until: float) -> Notice | None:
        """Return the next notice; None if it takes too long."""
        try:
            if not self._connection.poll(max(0.0, until - time.monotonic())):
                return None
            return decode_notice(self._connection.recv_bytes(LONGEST_LINE))
        except (OSError, EOFError, ConfigurationError) as error:
            raise RunError(f"the peer went away: {type(error).__name__} {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _in_order(found: dict[int, str]) -> tuple[str, ...]:
    return tuple(found[slot] for slot in sorted(found))
