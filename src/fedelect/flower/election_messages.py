"""Messages of an election between server and clients: one ConfigRecord each way.

The request has its own message type, so a client without the mod answers with an error, not with its opinion. An
answer is checked field by field and by type; one that holds anything else is refused.
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
"""Type of the message that asks clients to judge the model and elect."""

RECORD = "fedelect"
"""Name of the record that holds a request or an answer."""

MOST_CERTIFICATES = 4096
"""Largest number of certificates in an answer, which also holds at most `FRAME_LIMIT` bytes of them."""

ClientOutcome = Literal["agreed", "skipped", "unreached", "stranger", "failed"]
"""Outcome at a client: its peer has the slot's certificate; has none; could not be reached; is another client's or of
another federation; another error, which is in the client's own log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionRequest:
    """Request to judge the model, then elect.

    Attributes:
        slot: The slot to elect for.
        judged: The slot whose model is judged first, the last one trained in; 0 if none.
        client: The receiver's number in the roster.
        configuration: Hash of the election's configuration.
        after: The last slot whose certificate the server knows; it asks for those of later slots.
        certificates: The last certificates that it knows, for peers that missed them.
    """

    slot: int
    judged: int
    client: int
    configuration: bytes
    after: int
    certificates: tuple[bytes, ...]

    def record(self) -> ConfigRecord:
        """Return the record to send."""
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
    """A client's whole answer to a request.

    Attributes:
        slot: The slot that was elected for.
        outcome: Outcome at the client.
        certificates: Certificates of slots after `after`, oldest first.
    """

    slot: int
    outcome: ClientOutcome
    certificates: tuple[bytes, ...] = ()

    def content(self) -> RecordDict:
        """Return the record to send."""
        fields = {"done": self.slot, "outcome": self.outcome, "certificates": list(_take_fitting(self.certificates))}
        return RecordDict({RECORD: ConfigRecord(fields)})  # type: ignore[arg-type]  # a list of bytes is a value


def read_request(content: RecordDict) -> ElectionRequest:
    """Read a request; RemoteProtocolError if the content is none."""
    fields = _check_fields(content.get(RECORD), _REQUEST)
    return ElectionRequest(
        **{name: cast("int", fields[name]) for name in ("slot", "judged", "client", "after")},
        configuration=cast("bytes", fields["configuration"]),
        certificates=tuple(cast("list[bytes]", fields["certificates"])),
    )


def read_answer(content: RecordDict, slot: int) -> ElectionAnswer:
    """Read the answer to a request for `slot`; RemoteProtocolError if the content is none, or holds more."""
    if list(content) != [RECORD]:
        raise RemoteProtocolError(f"it holds {len(content)} records; an answer is one, called {RECORD!r}")
    fields = _check_fields(content[RECORD], _ANSWER)
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


def _check_fields(record: object, expected: Mapping[str, type]) -> Mapping[str, object]:
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


def _take_fitting(certificates: Iterable[bytes]) -> list[bytes]:
    """Return as many of the oldest as fit into an answer."""
    kept: list[bytes] = []
    left = FRAME_LIMIT
    for certificate in certificates:
        left -= len(certificate)
        if left < 0 or len(kept) == MOST_CERTIFICATES:
            break
        kept.append(certificate)
    return kept
