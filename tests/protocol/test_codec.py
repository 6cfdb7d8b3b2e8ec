"""Bytes and messages: there and back to the bit, and no bytes that do harm."""

import contextlib
import math
import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocol.election_kit import config, statement, value

from fedelect.errors import RemoteProtocolError
from fedelect.protocol import FRAME_LIMIT, Certificate, decode_message, decode_record, encode
from fedelect.protocol.gossip import Relayed
from fedelect.protocol.messages import (
    AppraisalMessage,
    AppraisalRequest,
    BeliefMessage,
    GossipMessage,
    HistoryMessage,
    HistoryRequest,
)
from fedelect.protocol.proofs import ImpossibleMove, TwoValues, TwoVotes
from fedelect.protocol.statements import Appraisal, SignedValue, Statement, Vote, digest, map_hash, relay_content

names = st.binary(min_size=32, max_size=32)
clients = st.integers(0, 2**32 - 1)
slots = st.integers(0, 2**64 - 1)
reals = st.floats(allow_nan=True, allow_infinity=True)
signatures = st.binary(min_size=16, max_size=80)
blinds = st.binary(min_size=16, max_size=16)
values = st.builds(SignedValue, names, slots, names, clients, reals, reals, blinds, signatures)
statements = st.builds(Statement, names, slots, names, st.lists(clients, max_size=5).map(tuple), names)
votes = st.builds(Vote, statements, clients, signatures)
certificates = st.builds(Certificate, statements, st.lists(st.tuples(clients, signatures), max_size=4).map(tuple))
proofs = (
    st.builds(TwoValues, values, values) | st.builds(TwoVotes, votes, votes) | st.builds(ImpossibleMove, values, values)
)
relays = st.lists(st.tuples(clients, signatures), max_size=3).map(tuple)
relayed = st.builds(Relayed, values | proofs, relays)
appraisals = st.builds(Appraisal, names, names, reals)
records = values | votes | certificates | proofs | appraisals
messages = (
    st.builds(BeliefMessage, names, clients, clients, slots, names, clients, reals)
    | st.builds(
        GossipMessage,
        names,
        clients,
        clients,
        slots,
        names,
        clients,
        st.lists(relayed, max_size=3).map(tuple),
        st.lists(votes, max_size=3).map(tuple),
        st.booleans(),
    )
    | st.builds(HistoryRequest, names, clients, clients, st.lists(names, max_size=4).map(tuple))
    | st.builds(HistoryMessage, names, clients, clients, st.lists(certificates, max_size=3).map(tuple))
    | st.builds(AppraisalRequest, names, clients, clients, st.lists(names, max_size=4).map(tuple))
    | st.builds(AppraisalMessage, names, clients, clients, st.lists(appraisals, max_size=3).map(tuple))
)


@given(messages)
def test_a_message_comes_back_to_the_bit(message: Any) -> None:
    frame = encode(message)
    back = decode_message(frame)
    assert type(back) is type(message)
    assert encode(back) == frame
    if not isinstance(message, BeliefMessage) or not math.isnan(message.value):
        assert back == message


@given(records)
def test_a_record_comes_back_to_the_bit(record: Any) -> None:
    frame = encode(record)
    back = decode_record(frame)
    assert (back, encode(back)) == (record, frame)


@given(messages | records, st.data())
def test_whatever_is_cut_short_lengthened_or_changed_raises_one_error_or_is_another_message(
    item: Any, data: st.DataObject
) -> None:
    frame = encode(item)
    with pytest.raises(RemoteProtocolError):
        decode_message(frame[: data.draw(st.integers(0, len(frame) - 1))])
    with pytest.raises(RemoteProtocolError):
        decode_message(frame + data.draw(st.binary(min_size=1, max_size=9)))
    changed = bytearray(frame)
    changed[data.draw(st.integers(0, len(frame) - 1))] ^= data.draw(st.integers(1, 255))
    for read in (decode_message, decode_record):
        with contextlib.suppress(RemoteProtocolError):
            read(bytes(changed))


@given(st.binary(max_size=300))
def test_garbage_raises_one_error(garbage: bytes) -> None:
    for frame in (garbage, b"FE\x02" + garbage):
        for read in (decode_message, decode_record):
            with contextlib.suppress(RemoteProtocolError):
                read(frame)


def test_what_is_wrong_with_a_frame_is_said() -> None:
    shared = config()
    good = encode(value(shared, 1))
    for frame, match in (
        (b"", "no frame"),
        (b"HTTP/1.1", "no frame"),
        (b"FE\x01" + good[3:], "version 1; this peer speaks version 3"),
        (b"FE\x03\x63" + good[4:], "kind 99"),
        (good[:-1], "cut short"),
        (good + b"x", "1 bytes follow"),
        (good + bytes(FRAME_LIMIT), "longer than the limit"),
    ):
        with pytest.raises(RemoteProtocolError, match=match):
            decode_record(frame)
    with pytest.raises(RemoteProtocolError, match="no message"):
        decode_message(good)
    request = encode(HistoryRequest(shared.digest, 0, 1, (shared.digest,)))
    with pytest.raises(RemoteProtocolError, match="no record"):
        decode_record(request)
    oversized = request[:-36] + struct.pack("<I", 2**31) + request[-32:]
    with pytest.raises(RemoteProtocolError, match="too short for"):
        decode_message(oversized)
    with pytest.raises(TypeError):
        encode(3)  # type: ignore[arg-type]


def test_signed_bytes_are_pinned_down() -> None:
    said = SignedValue(bytes(32), 7, b"\1" * 32, 3, 0.5, math.nan, b"0123456789abcdef")
    assert said.content == (
        b"fedelect/value/2\0"
        + (bytes(32) + struct.pack("<Q", 7) + b"\1" * 32)
        + struct.pack("<Idd", 3, 0.5, math.nan)
        + b"0123456789abcdef"
    )
    stated = Statement(bytes(32), 7, b"\1" * 32, (2, 5), b"\2" * 32)
    assert stated.content == (
        b"fedelect/vote/2\0" + bytes(32) + struct.pack("<Q", 7) + b"\1" * 32 + b"\2" * 32 + struct.pack("<III", 2, 2, 5)
    )
    assert statement(config()).identity != statement(config(), slot=2).identity
    context = bytes(32) + struct.pack("<Q", 7) + b"\1" * 32 + struct.pack("<I", 3)
    for about, named in ((said, digest(said.content)), (None, bytes(32))):
        assert relay_content(bytes(32), 7, b"\1" * 32, 3, about) == b"fedelect/relay/1\0" + context + named


def test_the_hash_of_a_map_tells_maps_apart_and_nothing_else() -> None:
    shared = config()
    one, two = value(shared, 1, belief=0.1), value(shared, 2, belief=0.2)
    plain = map_hash({1: one, 2: two})
    assert map_hash({2: two, 1: one}) == plain
    different = [
        map_hash({1: one}),
        map_hash({1: one, 2: None}),
        map_hash({1: one, 2: two}, [1, 2]),
        map_hash({1: one, 2: two}, [1]),
        map_hash({1: two, 2: one}),
        map_hash({1: one, 2: value(shared, 2, belief=0.2, blind=bytes(16))}),
        map_hash({}),
    ]
    assert len({plain, *different}) == len(different) + 1
    assert map_hash({1: one}, [2, 1]) == map_hash({1: one}, [1, 2])


def test_unknown_tags_and_flags_are_refused_and_short_hashes_never_written() -> None:
    shared = config()
    message = GossipMessage(shared.digest, 0, 1, 1, shared.digest, 1, (Relayed(value(shared, 0)),))
    frame = bytearray(encode(message))
    flag = 4 + 32 + 8 + 8 + 32 + 4
    assert frame[flag] == 0 and frame[flag + 5] == 0
    for place, match in ((flag, "flag must be 0 or 1, got 7"), (flag + 5, "entry of kind 7")):
        changed = frame.copy()
        changed[place] = 7
        with pytest.raises(RemoteProtocolError, match=match):
            decode_message(bytes(changed))
    with pytest.raises(ValueError, match="a hash has 32 bytes, got 5"):
        encode(HistoryRequest(b"short", 0, 1, ()))
    with pytest.raises(ValueError, match="a blind has 16 bytes, got 5"):
        encode(replace(value(shared, 0), blind=b"short"))
