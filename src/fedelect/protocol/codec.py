"""Bytes <-> messages and records, version 3.

A frame is b"FE", the version, a kind, the fields. Integers and floats are little-endian and of fixed width; floats are
their IEEE bytes. Bytes that are no frame of this version, too long, cut short or followed by more, raise
RemoteProtocolError and nothing else; the content is checked by the receiver.
"""

from collections.abc import Callable
from typing import Any

from fedelect.errors import RemoteProtocolError
from fedelect.protocol.chain import HISTORY_LIMIT
from fedelect.protocol.effects import Record
from fedelect.protocol.fields import Reader, Writer
from fedelect.protocol.gossip import Entry, Relayed
from fedelect.protocol.messages import (
    AppraisalMessage,
    AppraisalRequest,
    BeliefMessage,
    GossipMessage,
    HistoryMessage,
    HistoryRequest,
    Message,
)
from fedelect.protocol.proofs import ImpossibleMove, TwoValues, TwoVotes
from fedelect.protocol.statements import Appraisal, Certificate, SignedValue, Statement, Vote

VERSION = 3
"""Raised when the bytes change their meaning."""

FRAME_LIMIT = 8 * 1024 * 1024
"""Largest frame in bytes: 256 certificates of a few hundred ed25519 signatures each."""

_MAGIC = b"FE"


def encode(item: Message | Record) -> bytes:
    """The frame of a message or record."""
    for kind, (cls, write, _) in enumerate(_KINDS):
        if isinstance(item, cls):
            writer = Writer()
            write(writer, item)
            return b"".join((_MAGIC, bytes((VERSION, kind)), writer.content()))
    raise TypeError(f"encode() takes a message or a record, got {type(item).__name__}")


def decode_message(frame: bytes) -> Message:
    """The message in a frame from another peer."""
    item = _decode(frame)
    if not isinstance(item, Message):
        raise RemoteProtocolError(f"a frame holds a {type(item).__name__}, which is no message")
    return item


def decode_record(frame: bytes) -> Record:
    """The record in a frame, for example one that `Persist` had written, or a certificate shown to the server."""
    item = _decode(frame)
    if isinstance(item, Message):
        raise RemoteProtocolError(f"a frame holds a {type(item).__name__}, which is no record")
    return item


def _decode(frame: bytes) -> Message | Record:
    if len(frame) > FRAME_LIMIT:
        raise RemoteProtocolError(f"a frame of {len(frame)} bytes is longer than the limit of {FRAME_LIMIT}")
    if len(frame) < 4 or frame[:2] != _MAGIC:
        raise RemoteProtocolError("these bytes are no frame of a fedelect peer")
    if frame[2] != VERSION:
        raise RemoteProtocolError(f"a frame of version {frame[2]}; this peer speaks version {VERSION}: upgrade one")
    if frame[3] >= len(_KINDS):
        raise RemoteProtocolError(f"a frame of kind {frame[3]}, which version {VERSION} does not have")
    reader = Reader(frame, 4)
    item: Message | Record = _KINDS[frame[3]][2](reader)
    reader.end()
    return item


def _write_value(writer: Writer, value: SignedValue) -> None:
    writer.digest(value.configuration).u64(value.slot).digest(value.previous).u32(value.client)
    writer.f64(value.mean).f64(value.belief).blind(value.blind).blob(value.signature)


def _read_value(reader: Reader) -> SignedValue:
    configuration, slot, previous, client = reader.digest(), reader.u64(), reader.digest(), reader.u32()
    numbers = reader.f64(), reader.f64()
    return SignedValue(configuration, slot, previous, client, *numbers, reader.blind(), reader.blob())


def _write_statement(writer: Writer, statement: Statement) -> None:
    writer.digest(statement.configuration).u64(statement.slot).digest(statement.previous)
    writer.u32_list(statement.cohort).digest(statement.map_hash)


def _read_statement(reader: Reader) -> Statement:
    return Statement(reader.digest(), reader.u64(), reader.digest(), reader.u32_list(), reader.digest())


def _write_vote(writer: Writer, vote: Vote) -> None:
    _write_statement(writer, vote.statement)
    writer.u32(vote.client).blob(vote.signature)


def _read_vote(reader: Reader) -> Vote:
    return Vote(_read_statement(reader), reader.u32(), reader.blob())


def _write_signatures(writer: Writer, signatures: tuple[tuple[int, bytes], ...]) -> None:
    writer.u32(len(signatures))
    for client, signature in signatures:
        writer.u32(client).blob(signature)


def _write_certificate(writer: Writer, certificate: Certificate) -> None:
    _write_statement(writer, certificate.statement)
    _write_signatures(writer, certificate.signatures)


def _read_certificate(reader: Reader) -> Certificate:
    return Certificate(_read_statement(reader), reader.signatures())


def _write_two_values(writer: Writer, proof: TwoValues | ImpossibleMove) -> None:
    _write_value(writer, proof.one)
    _write_value(writer, proof.other)


def _write_two_votes(writer: Writer, proof: TwoVotes) -> None:
    _write_vote(writer, proof.one)
    _write_vote(writer, proof.other)


def _write_relayed(writer: Writer, relayed: Relayed) -> None:
    tag = _ENTRY_TYPES.index(type(relayed.entry))
    writer.u8(tag)
    _WRITERS[tag](writer, relayed.entry)
    _write_signatures(writer, relayed.signatures)


def _read_relayed(reader: Reader) -> Relayed:
    tag = reader.u8()
    if tag >= len(_ENTRY_TYPES):
        raise RemoteProtocolError(f"an entry of kind {tag}, which version {VERSION} does not have")
    return Relayed(_READERS[tag](reader), reader.signatures())


def _read_two_values(reader: Reader) -> TwoValues:
    return TwoValues(_read_value(reader), _read_value(reader))


def _read_two_votes(reader: Reader) -> TwoVotes:
    return TwoVotes(_read_vote(reader), _read_vote(reader))


def _read_move(reader: Reader) -> ImpossibleMove:
    return ImpossibleMove(_read_value(reader), _read_value(reader))


_ENTRY_TYPES: tuple[type[Entry], ...] = (SignedValue, TwoValues, TwoVotes, ImpossibleMove)
_WRITERS: tuple[Callable[[Writer, Any], None], ...] = (
    _write_value,
    _write_two_values,
    _write_two_votes,
    _write_two_values,
)
_READERS: tuple[Callable[[Reader], Entry], ...] = (_read_value, _read_two_values, _read_two_votes, _read_move)


def _write_header(writer: Writer, message: Message) -> None:
    writer.digest(message.configuration).u32(message.sender).u32(message.receiver)


def _read_header(reader: Reader) -> tuple[bytes, int, int]:
    return reader.digest(), reader.u32(), reader.u32()


def _write_belief(writer: Writer, message: BeliefMessage) -> None:
    _write_header(writer, message)
    writer.u64(message.slot).digest(message.previous).u32(message.round).f64(message.value)


def _read_belief(reader: Reader) -> BeliefMessage:
    return BeliefMessage(*_read_header(reader), reader.u64(), reader.digest(), reader.u32(), reader.f64())


def _write_gossip(writer: Writer, message: GossipMessage) -> None:
    _write_header(writer, message)
    writer.u64(message.slot).digest(message.previous).u32(message.round).u8(message.wants_reply)
    writer.u32(len(message.entries))
    for entry in message.entries:
        _write_relayed(writer, entry)
    writer.u32(len(message.votes))
    for vote in message.votes:
        _write_vote(writer, vote)


def _read_gossip(reader: Reader) -> GossipMessage:
    ends, slot, previous, round_number = _read_header(reader), reader.u64(), reader.digest(), reader.u32()
    wants_reply = reader.u8()
    if wants_reply > 1:
        raise RemoteProtocolError(f"a flag must be 0 or 1, got {wants_reply}")
    entries = reader.many(lambda: _read_relayed(reader), at_least=90)
    votes = reader.many(lambda: _read_vote(reader), at_least=90)
    return GossipMessage(*ends, slot, previous, round_number, entries, votes, bool(wants_reply))


def _write_request(writer: Writer, message: HistoryRequest) -> None:
    _write_header(writer, message)
    writer.u32(len(message.locator))
    for name in message.locator:
        writer.digest(name)


def _read_request(reader: Reader) -> HistoryRequest:
    return HistoryRequest(*_read_header(reader), reader.many(reader.digest, at_least=32))


def _write_history(writer: Writer, message: HistoryMessage) -> None:
    _write_header(writer, message)
    writer.u32(len(message.certificates))
    for certificate in message.certificates:
        _write_certificate(writer, certificate)


def _read_history(reader: Reader) -> HistoryMessage:
    header = _read_header(reader)
    return HistoryMessage(*header, reader.many(lambda: _read_certificate(reader), at_least=90, at_most=HISTORY_LIMIT))


def _write_appraisal(writer: Writer, appraisal: Appraisal) -> None:
    writer.digest(appraisal.certificate).digest(appraisal.values).f64(appraisal.worth)


def _read_appraisal(reader: Reader) -> Appraisal:
    return Appraisal(reader.digest(), reader.digest(), reader.f64())


def _write_appraisal_request(writer: Writer, message: AppraisalRequest) -> None:
    _write_header(writer, message)
    writer.u32(len(message.certificates))
    for name in message.certificates:
        writer.digest(name)


def _read_appraisal_request(reader: Reader) -> AppraisalRequest:
    return AppraisalRequest(*_read_header(reader), reader.many(reader.digest, at_least=32))


def _write_appraisals(writer: Writer, message: AppraisalMessage) -> None:
    _write_header(writer, message)
    writer.u32(len(message.appraisals))
    for appraisal in message.appraisals:
        _write_appraisal(writer, appraisal)


def _read_appraisals(reader: Reader) -> AppraisalMessage:
    return AppraisalMessage(*_read_header(reader), reader.many(lambda: _read_appraisal(reader), at_least=72))


_KINDS: tuple[tuple[type[Any], Callable[[Writer, Any], None], Callable[[Reader], Any]], ...] = (
    (BeliefMessage, _write_belief, _read_belief),
    (GossipMessage, _write_gossip, _read_gossip),
    (HistoryRequest, _write_request, _read_request),
    (HistoryMessage, _write_history, _read_history),
    (SignedValue, _write_value, _read_value),
    (Vote, _write_vote, _read_vote),
    (Certificate, _write_certificate, _read_certificate),
    (TwoValues, _write_two_values, _read_two_values),
    (TwoVotes, _write_two_votes, _read_two_votes),
    (ImpossibleMove, _write_two_values, _read_move),
    (AppraisalRequest, _write_appraisal_request, _read_appraisal_request),
    (AppraisalMessage, _write_appraisals, _read_appraisals),
    (Appraisal, _write_appraisal, _read_appraisal),
)
