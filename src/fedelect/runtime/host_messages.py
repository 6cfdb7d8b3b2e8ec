"""Commands to a peer's host and its notices, one line of JSON each.

No notice holds an opinion, a mean, a belief or an index: those stay in the peer's own folder (`SlotLog`).
"""

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from fedelect.errors import ConfigurationError
from fedelect.protocol import Certificate, encode

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A slot number or a count that fits into a frame."""


class BeginSlot(Struct, frozen=True, kw_only=True, tag="begin", forbid_unknown_fields=True):
    """Elect the cohort of `slot`.

    Attributes:
        slot: Higher than any before.
        judged: The slot whose model is judged now, the last one trained in; 0 if none.
        opinion: The client's opinion of that model, in [0, 1]; None if it has none, or `model` is given.
        model: Path of that model (.npy), for the peer to judge on the client's own share.
        certificates: The last certificates, oldest first, hexadecimal; for peers that missed them.
    """

    slot: Count
    judged: Count = 0
    opinion: float | None = None
    model: str | None = None
    certificates: tuple[str, ...] = ()


class ReplayCertificates(Struct, frozen=True, kw_only=True, tag="replay", forbid_unknown_fields=True):
    """Repeat `agreed` for the certificates of slots after `after`, oldest first; for a server that missed some.

    Attributes:
        after: The last slot whose certificate is known.
        most: Largest number of certificates; None for all.
        token: Returned in `replayed`, which follows them.
    """

    after: Count = 0
    most: Count | None = None
    token: str = ""


class Stop(Struct, frozen=True, tag="stop", forbid_unknown_fields=True):
    """Close the links and end."""


Command = BeginSlot | ReplayCertificates | Stop
"""Any command."""


class Link(Struct, frozen=True, kw_only=True, tag="link"):
    """A neighbour came up or went down."""

    neighbour: int
    up: bool


class Ready(Struct, frozen=True, tag="ready"):
    """All neighbours are up."""


class Missing(Struct, frozen=True, kw_only=True, tag="missing"):
    """Neighbours that are not up in time; `text` gives names, addresses and usual causes."""

    neighbours: tuple[int, ...]
    text: str

    @classmethod
    def after(cls, seconds: float, names: Mapping[int, str]) -> "Missing":
        """Build the notice from the names by client number."""
        return cls(
            neighbours=tuple(names),
            text=f"not up after {seconds:g} s: {', '.join(names.values())}. Usual causes: it is not started; "
            f"a firewall, or a wrong address in the roster; its certificate is of another CA, expired, or not for its "
            f"address; its roster is another one, in which the two are no neighbours",
        )


class Phase(Struct, frozen=True, kw_only=True, tag="phase"):
    """Progress of the peer in its slot, and its messages so far.

    Attributes:
        slot: The slot that is elected for.
        phase: A state of the protocol: "exchanging", "flooding", "certifying", "decided" or "skipped".
        sent: Messages sent in this slot.
        sent_bytes: Their bytes.
    """

    slot: int
    phase: str
    sent: int
    sent_bytes: int


class Agreed(Struct, frozen=True, kw_only=True, tag="agreed"):
    """The slot is decided; the server verifies `certificate` (hexadecimal)."""

    slot: int
    cohort: tuple[int, ...]
    certificate: str


class ReplayDone(Struct, frozen=True, kw_only=True, tag="replayed"):
    """End of a replay; `last` is the last slot shown if later ones were left out."""

    token: str
    last: int | None = None


class Skipped(Struct, frozen=True, kw_only=True, tag="skipped"):
    """The peer has no certificate for the slot."""

    slot: int
    reason: str


class Trouble(Struct, frozen=True, kw_only=True, tag="trouble"):
    """A problem to look at: a refused message, proven misbehaviour, an invalid command."""

    text: str


class Greeting(Struct, frozen=True, kw_only=True, tag="greeting"):
    """First notice on the control socket: which peer this is.

    Attributes:
        client: Its number in the roster.
        configuration: Hash of the election's configuration, hexadecimal.
        slot_s: Seconds after which it gives an election up.
    """

    client: int
    configuration: str
    slot_s: float


Notice = Link | Ready | Missing | Phase | Agreed | ReplayDone | Skipped | Trouble | Greeting
"""Any notice."""


class SlotLog(Struct, frozen=True, kw_only=True):
    """A peer's own log of a slot, in its folder. Times are of the machine's monotonic clock, in seconds.

    Attributes:
        slot: The slot that was elected for.
        judged: The slot whose model the opinion is of; 0 if none.
        opinion: The client's opinion; None if it had none.
        mean: The mean it claimed; None if none.
        belief: Its belief after the exchange.
        residual: Largest change of its messages in the last round.
        cohort: The elected cohort; None if the slot was skipped here.
        indices: The members' indices, if this peer voted for that cohort.
        reason: Why the slot was skipped.
        sent: Messages sent.
        sent_bytes: Their bytes.
        received: Messages received.
        refused: Messages refused.
        began_s: When the slot began here.
        ended_s: When the slot was decided or skipped here.
    """

    slot: int
    judged: int
    opinion: float | None = None
    mean: float | None = None
    belief: float | None = None
    residual: float | None = None
    cohort: tuple[int, ...] | None = None
    indices: tuple[float, ...] = ()
    reason: str | None = None
    sent: int = 0
    sent_bytes: int = 0
    received: int = 0
    refused: int = 0
    began_s: float = 0.0
    ended_s: float | None = None


SLOTS_NAME = "slots.jsonl"
"""File of slot logs in a peer's folder."""


def agreed_notice(certificate: Certificate) -> Agreed:
    """Return the notice that shows a certificate."""
    return Agreed(slot=certificate.slot, cohort=certificate.cohort, certificate=encode(certificate).hex())


def replay(certificates: Iterable[Certificate], asked: ReplayCertificates) -> list[Notice]:
    """Return the notices that answer a `replay`; `certificates` is the whole history, oldest first."""
    wanted = [certificate for certificate in certificates if certificate.slot > asked.after]
    shown = wanted[: asked.most]
    last = shown[-1].slot if shown and len(shown) < len(wanted) else None
    return [*map(agreed_notice, shown), ReplayDone(token=asked.token, last=last)]


def encode_line(item: Command | Notice | SlotLog) -> bytes:
    """Encode as one line of JSON."""
    return msgspec.json.encode(item) + b"\n"


_MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def decode_command(line: bytes) -> Command:
    """Decode a command.

    Raises:
        ConfigurationError: The line is no command.
    """
    try:
        return msgspec.json.decode(line, type=BeginSlot | ReplayCertificates | Stop)
    except _MALFORMED as error:
        raise ConfigurationError(f"no command: {error}; see docs/tutorials/talk-to-a-peer.md") from error


def decode_notice(line: bytes) -> Notice:
    """Decode a notice.

    Raises:
        ConfigurationError: The line is no notice.
    """
    try:
        return _notices.decode(line)
    except _MALFORMED as error:
        raise ConfigurationError(f"no notice of a peer: {error}") from error


_notices: msgspec.json.Decoder[Notice] = msgspec.json.Decoder(
    Link | Ready | Missing | Phase | Agreed | ReplayDone | Skipped | Trouble | Greeting
)


def decode_logs(content: bytes) -> list[SlotLog]:
    """Decode a file of slot logs; a last line cut short by a crash is left out."""
    lines = content.split(b"\n")[:-1]
    return [msgspec.json.decode(line, type=SlotLog) for line in lines if line]
