"""A frame that is too much is refused before it is read."""

import struct

import pytest
from tests.protocol.election_kit import config, statement

from fedelect.errors import RemoteProtocolError
from fedelect.protocol import Certificate, decode_message, encode
from fedelect.protocol.chain import HISTORY_LIMIT
from fedelect.protocol.fields import Reader
from fedelect.protocol.messages import HistoryMessage
from fedelect.runtime.transport import frame_limit


def history(certificates: int, signatures: int, signature: bytes = bytes(64)) -> HistoryMessage:
    shared = config()
    one = Certificate(statement(shared), tuple((client, signature) for client in range(signatures)))
    return HistoryMessage(shared.digest, 0, 1, (one,) * certificates)


def test_more_certificates_than_a_message_may_hold_are_refused_before_any_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert len(decode_message(encode(history(HISTORY_LIMIT, 3))).certificates) == HISTORY_LIMIT  # type: ignore[union-attr]
    frame = encode(history(HISTORY_LIMIT + 1, 3))

    def must_not_be_called(reader: Reader) -> None:
        raise AssertionError("a certificate was read")

    monkeypatch.setattr(Reader, "signatures", must_not_be_called)
    with pytest.raises(RemoteProtocolError, match="257 items follow; at most 256"):
        decode_message(frame)


def test_signatures_that_do_not_fit_are_refused_before_any_is_read() -> None:
    frame = encode(history(1, 2))
    place = frame.index(struct.pack("<II", 0, 64)) - 4
    for claimed, match in ((2**32 - 1, "too short for"), (3, "cut short"), (1, "bytes follow")):
        with pytest.raises(RemoteProtocolError, match=match):
            decode_message(frame[:place] + struct.pack("<I", claimed) + frame[place + 4 :])
    with pytest.raises(RemoteProtocolError, match="too short for"):
        decode_message(encode(history(1, 10_000, signature=b"")))  # eight bytes each would make many of them


@pytest.mark.parametrize("clients", [2, 5, 20, 100])
def test_the_largest_honest_message_fits_the_frames_of_its_federation(clients: int) -> None:
    everybody = tuple(range(clients))
    shared = config()
    one = statement(shared)
    full = Certificate(
        type(one)(one.configuration, one.slot, one.previous, everybody, one.map_hash),
        tuple((client, bytes(64)) for client in everybody),
    )
    frame = encode(HistoryMessage(shared.digest, 0, 1, (full,) * HISTORY_LIMIT))
    assert len(frame) <= frame_limit(clients)
