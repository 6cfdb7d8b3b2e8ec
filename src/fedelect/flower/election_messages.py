"""What server and clients say to each other of an election, and nothing else: one ConfigRecord each way.

The server asks by a message type of its own, so a client without the mod answers with an error instead of its
opinion. An answer is checked field by field and by type; one that holds anything else is refused whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

from flwr.app import ConfigRecord, MessageType, RecordDict

from fedelect.errors import RemoteProtocolError
from fedelect.protocol import FRAME_LIMIT

ELECTION_ACTION = "fedelect"
"""The action under which a ClientApp registers its evaluate function: `@app.evaluate(ELECTION_ACTION, mods=[...])`."""

ELECTION = f"{MessageType.EVALUATE}.{ELECTION_ACTION}"
"""Type of the message by which clients are asked to judge the model and elect."""

RECORD = "fedelect"
"""The record that holds a request or an answer."""

MOST_CERTIFICATES = 4096
"""An answer shows no more, and no more than `FRAME_LIMIT` bytes of them."""

ClientOutcome = Literal["agreed", "skipped", "unreached", "stranger", "failed"]
"""How it went at a client: its peer has the slot's certificate; its peer has none; no peer could be reached; the peer
there is another client's, or of another federation; something else went wrong, which its own log tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionRequest:
    """Judge the model, then elect.

    Attributes:
        slot: The slot to elect for.
        judged: The slot whose model is to be judged first, the last that was trained in; 0 if none.
        client: The receiver's number in the roster, as the server sees it.
        configuration: Hash of the election's configuration.
        after: The last slot whose certificate the server knows; it wants those of later slots.
        certificates: The last ones that it knows, for peers that missed them.
    """

    slot: int
    judged: int
    client: int
    configuration: bytes
    after: int
    certificates: tuple[bytes, ...]

    def record(self) -> ConfigRecord:
        """It as it is sent."""
        return ConfigRecord(
            {
                "slot": self.slot,
                "judged": self.judged,
                "client": self.client,
                "configuration": self.configuration,
                "after": self.after,
                "certificates": list(self.certificates),
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionAnswer:
    """Done: all that the server is sent of an election.

    Attributes:
        slot: The slot that was elected for.
        outcome: How it went.
        certificates: Of slots after the one that the server knew last, oldest first.
    """

    slot: int
    outcome: ClientOutcome
    certificates: tuple[bytes, ...] = ()

    def content(self) -> RecordDict:
        """It as it is sent."""
        fields = {"done": self.slot, "outcome": self.outcome, "certificates": list(_fitting(self.certificates))}
        return RecordDict({RECORD: ConfigRecord(fields)})  # type: ignore[arg-type]  # a list of bytes is a value


def read_request(content: RecordDict) -> ElectionRequest:
    """The request in a message from the server; RemoteProtocolError if it is none."""
    fields = _fields(content.get(RECORD), _REQUEST)
    return ElectionRequest(
        **{name: cast("int", fields[name]) for name in ("slot", "judged", "client", "after")},
        configuration=cast("bytes", fields["configuration"]),
        certificates=tuple(cast("list[bytes]", fields["certificates"])),
    )


def read_answer(content: RecordDict, slot: int) -> ElectionAnswer:
    """The answer in a client's reply to a request for `slot`; RemoteProtocolError if it is none, or holds more."""
    if list(content) != [RECORD]:
        raise RemoteProtocolError(f"it holds {len(content)} records; an answer is one, called {RECORD!r}")
    fields = _fields(content[RECORD], _ANSWER)
    if fields["done"] != slot:
        raise RemoteProtocolError(f"it is of another slot, {fields['done']}")
    if fields["outcome"] not in get_args(ClientOutcome):
        raise RemoteProtocolError(f"its outcome is none of {', '.join(get_args(ClientOutcome))}")
    certificates = tuple(cast("list[bytes]", fields["certificates"]))
    if len(certificates) > MOST_CERTIFICATES or sum(map(len, certificates)) > FRAME_LIMIT:
        raise RemoteProtocolError(f"it shows more than {MOST_CERTIFICATES} certificates, or {FRAME_LIMIT} bytes")
    return ElectionAnswer(slot=slot, outcome=cast("ClientOutcome", fields["outcome"]), certificates=certificates)


_REQUEST = {"slot": int, "judged": int, "client": int, "configuration": bytes, "after": int, "certificates": list}
_ANSWER = {"done": int, "outcome": str, "certificates": list}


def _fields(record: object, expected: Mapping[str, type]) -> Mapping[str, object]:
    if not isinstance(record, ConfigRecord):
        raise RemoteProtocolError(f"its {RECORD!r} is no ConfigRecord")
    if set(record) != set(expected):
        raise RemoteProtocolError(f"its fields are not {', '.join(sorted(expected))}")
    for name, kind in expected.items():
        value = record[name]
        if type(value) is not kind or (type(value) is int and not 0 <= value < 2**63):
            raise RemoteProtocolError(f"its {name!r} is no {kind.__name__} that can be")
        if isinstance(value, list) and not all(type(item) is bytes for item in cast("Sequence[object]", value)):
            raise RemoteProtocolError(f"its {name!r} is not a list of bytes")
    return record


def _fitting(certificates: Iterable[bytes]) -> list[bytes]:
    """As many of the oldest as an answer may show; the rest is asked for later."""
    kept: list[bytes] = []
    left = FRAME_LIMIT
    for certificate in certificates:
        left -= len(certificate)
        if left < 0 or len(kept) == MOST_CERTIFICATES:
            break
        kept.append(certificate)
    return kept
