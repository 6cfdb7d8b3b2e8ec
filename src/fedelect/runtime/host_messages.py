"""What is said between a peer's host and whoever runs it: commands in, notices out, one line of JSON each.

No notice holds an opinion, a mean, a belief or an index: those stay in the peer's own folder (`SlotLog`).
"""

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from fedelect.errors import ConfigurationError
from fedelect.protocol import Certificate, encode

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""The number of a slot, or how many; no other fits into a frame."""


class BeginSlot(Struct, frozen=True, kw_only=True, tag="begin", forbid_unknown_fields=True):
    """Elect who trains in `slot`.

    Attributes:
        slot: Higher than any before.
        judged: The slot whose model is judged now, the last that was trained in; 0 if none ever was.
        opinion: This client's of that model, in [0, 1]; None if it has none, or `model` is given.
        model: Path of that model (.npy), to be judged on the client's own share.
        certificates: The last certificates, oldest first, hexadecimal; for peers that missed them.
    """

    slot: Count
    judged: Count = 0
    opinion: float | None = None
    model: str | None = None
    certificates: tuple[str, ...] = ()


class ReplayCertificates(Struct, frozen=True, kw_only=True, tag="replay", forbid_unknown_fields=True):
    """Say `agreed` again for the certificates of slots after `after`, oldest first; for a server that missed some.

    Attributes:
        after: The last slot that is known.
        most: How many to show at most; None for all.
        token: Said again in `recounted`, which comes after them.
    """

    after: Count = 0
    most: Count | None = None
    token: str = ""


class Stop(Struct, frozen=True, tag="stop", forbid_unknown_fields=True):
    """Close the links and end."""


Command = BeginSlot | ReplayCertificates | Stop
"""What a host can be told."""


class Link(Struct, frozen=True, kw_only=True, tag="link"):
    """A neighbour came up or went down."""

    neighbour: int
    up: bool


class Ready(Struct, frozen=True, tag="ready"):
    """All neighbours are up."""


class Missing(Struct, frozen=True, kw_only=True, tag="missing"):
    """These neighbours are not up although there was time; `text` says who, where, and what usually is the cause."""

    neighbours: tuple[int, ...]
    text: str

    @classmethod
    def after(cls, seconds: float, names: Mapping[int, str]) -> "Missing":
        """Say who (by number, what to call it) is not up after so many seconds."""
        return cls(
            neighbours=tuple(names),
            text=f"not up after {seconds:g} s: {', '.join(names.values())}. Usual causes: it is not started; "
            f"a firewall, or a wrong address in the roster; its certificate is of another CA, expired, or not for its "
            f"address; its roster is another one, in which the two are no neighbours",
        )


class Phase(Struct, frozen=True, kw_only=True, tag="phase"):
    """How far the peer is in its slot; what it costs, not what it says.

    Attributes:
        slot: The slot that is elected for.
        phase: A state of the protocol: "exchanging", "flooding", "certifying", "decided" or "skipped".
        sent: Messages that it has sent in this slot.
        sent_bytes: Their bytes.
    """

    slot: int
    phase: str
    sent: int
    sent_bytes: int


class Agreed(Struct, frozen=True, kw_only=True, tag="agreed"):
    """The slot is decided; `certificate` (hexadecimal) is what the server verifies."""

    slot: int
    cohort: tuple[int, ...]
    certificate: str


class ReplayDone(Struct, frozen=True, kw_only=True, tag="replayed"):
    """All that a `recount` asked for has been said; `last` is the slot of the last one if later ones were left out."""

    token: str
    last: int | None = None


class Skipped(Struct, frozen=True, kw_only=True, tag="skipped"):
    """This peer saw no certificate for the slot."""

    slot: int
    reason: str


class Trouble(Struct, frozen=True, kw_only=True, tag="trouble"):
    """Something that somebody should look at: a refused message, a proven lie, a command that makes no sense."""

    text: str


class Greeting(Struct, frozen=True, kw_only=True, tag="greeting"):
    """Said first on the control socket: which peer this is.

    Attributes:
        client: Its number in the roster.
        configuration: Hash of the election's configuration, hexadecimal.
        slot_s: After how many seconds it gives an election up.
    """

    client: int
    configuration: str
    slot_s: float


Notice = Link | Ready | Missing | Phase | Agreed | ReplayDone | Skipped | Trouble | Greeting
"""What a host says."""


class SlotLog(Struct, frozen=True, kw_only=True):
    """What a peer notes of a slot in its own folder. Times are of the machine's monotonic clock, in seconds.

    Attributes:
        slot: The slot that was elected for.
        judged: The slot whose model the opinion is of; 0 if none.
        opinion: The client's own; None if it had none.
        mean: What it claimed; None if nothing.
        belief: What it settled on.
        residual: How far its messages still moved in the last round.
        cohort: Who was elected; None if the slot was skipped here.
        indices: The members' indices, if this peer voted for the same.
        reason: Why the slot was skipped.
        sent: Messages sent.
        sent_bytes: Their bytes.
        received: Messages received.
        refused: How many of those were refused.
        began_s: When the opinion was there.
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
"""Where a peer notes its slots, in its own folder."""


def agreed_notice(certificate: Certificate) -> Agreed:
    """What is said of a certificate."""
    return Agreed(slot=certificate.slot, cohort=certificate.cohort, certificate=encode(certificate).hex())


def replay(certificates: Iterable[Certificate], asked: ReplayCertificates) -> list[Notice]:
    """What is answered to a `recount`; the certificates are all that there are, oldest first."""
    wanted = [certificate for certificate in certificates if certificate.slot > asked.after]
    shown = wanted[: asked.most]
    last = shown[-1].slot if shown and len(shown) < len(wanted) else None
    return [*map(agreed_notice, shown), ReplayDone(token=asked.token, last=last)]


def encode_line(item: Command | Notice | SlotLog) -> bytes:
    """One line."""
    return msgspec.json.encode(item) + b"\n"


_MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def decode_command(line: bytes) -> Command:
    """The command in a line.

    Raises:
        ConfigurationError: It is none.
    """
    try:
        return msgspec.json.decode(line, type=BeginSlot | ReplayCertificates | Stop)
    except _MALFORMED as error:
        raise ConfigurationError(f"no command: {error}; see docs/PEERS.md") from error


def decode_notice(line: bytes) -> Notice:
    """The notice in a line.

    Raises:
        ConfigurationError: It is none.
    """
    try:
        return _notices.decode(line)
    except _MALFORMED as error:
        raise ConfigurationError(f"no notice of a peer: {error}") from error


_notices: msgspec.json.Decoder[Notice] = msgspec.json.Decoder(
    Link | Ready | Missing | Phase | Agreed | ReplayDone | Skipped | Trouble | Greeting
)


def decode_logs(content: bytes) -> list[SlotLog]:
    """The slots that a peer noted; a last line cut short by a crash is left out."""
    lines = content.split(b"\n")[:-1]
    return [msgspec.json.decode(line, type=SlotLog) for line in lines if line]
