"""A witness at the server's door: all that reached it, by field and by byte, against what it must not know."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flwr.app import ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.proto.recorddict_pb2 import RecordDict as ProtoRecordDict
from tests.leaks import Secrets, traces

from fedelect.errors import RemoteProtocolError
from fedelect.protocol import Certificate, CertificateChain, PeerConfig, decode_record, encode
from fedelect.runtime.signing import Ed25519Verifier

Fields = Mapping[str, Mapping[str, type | str]]
"""By record, by field, its type; of an array, its form as text."""

ELECTION_FIELDS: Fields = {"fedelect": {"done": int, "outcome": str, "certificates": list}}
OUTCOMES = ("agreed", "skipped", "unreached", "stranger", "failed")


@dataclass(frozen=True)
class Received:
    """One message that reached the server: its type, and its content or error as the wire carries it."""

    kind: str
    content: bytes
    error: str | None = None

    @classmethod
    def of(cls, kind: str, content: RecordDict) -> "Received":
        return cls(kind, recorddict_to_proto(content).SerializeToString())

    @property
    def records(self) -> RecordDict:
        return recorddict_from_proto(ProtoRecordDict.FromString(self.content))


def complaints(received: Sequence[Received], secrets: Secrets, config: PeerConfig, training: Fields) -> list[str]:
    """What reached the server and should not have; [] if nothing did."""
    found = []
    for number, message in enumerate(received):
        where = f"message {number} ({message.kind})"
        if message.error is not None:
            found.append(f"{where} is an error, whose text is free: {message.error!r}")
            continue
        allowed = ELECTION_FIELDS if message.kind == "evaluate.fedelect" else training
        fields = fields_of(message.records)
        if fields != allowed:
            found.append(f"{where} has the fields {fields}, allowed: {allowed}")
        beside = _without_arrays(message)
        if message.kind == "evaluate.fedelect" and fields == allowed:
            odd, beside = _without_certificates(message, config)
            found += [f"{where}: {one}" for one in odd]
        found += [f"{where} holds {one}" for one in traces(message.content, secrets, beside=beside)]
    return found


def fields_of(content: RecordDict) -> Fields:
    return {name: _types(record) for name, record in content.items()}


def _types(record: ArrayRecord | ConfigRecord | MetricRecord) -> dict[str, type | str]:
    if isinstance(record, ArrayRecord):
        return {name: f"{array.dtype} {list(array.shape)} {array.stype}" for name, array in record.items()}
    return {name: type(value) for name, value in record.items()}


def _without_arrays(message: Received) -> bytes:
    """Return the message without the model's arrays: four bytes of them may be any float."""
    beside = message.content
    for record in message.records.array_records.values():
        for array in record.values():
            beside = beside.replace(array.data, b"")
    return beside


def _without_certificates(message: Received, config: PeerConfig) -> tuple[list[str], bytes]:
    """Return what is wrong with an answer, and the answer without its certificates.

    Certificates must verify and have no byte too many. Four bytes of a signature may be any float.
    """
    found, beside = [], message.content
    record = message.records["fedelect"]
    assert isinstance(record, ConfigRecord)
    slot, outcome, certificates = record["done"], record["outcome"], record["certificates"]
    if not (isinstance(slot, int) and 1 <= slot < 1000):
        found.append(f"it is of slot {slot!r}")
    if outcome not in OUTCOMES:
        found.append(f"its outcome is {outcome!r}")
    assert isinstance(certificates, list)
    for frame in certificates:
        if not isinstance(frame, bytes):
            found.append("what it shows are no bytes")
            continue
        try:
            certificate = decode_record(frame)
            if not isinstance(certificate, Certificate) or encode(certificate) != frame:
                raise RemoteProtocolError("it is something else")
            CertificateChain(config, Ed25519Verifier()).check(certificate)
        except RemoteProtocolError as error:
            found.append(f"no certificate: {error}")
        else:
            beside = beside.replace(frame, b"")
    return found, beside


def stored_leaks(folder: Path, log: str, secrets: Secrets) -> list[str]:
    """Return where a secret number stands in what the server stored: the files of its run folder, and its log.

    Models, signatures and times are as good as random: only forms that cannot be met by chance are searched.
    """
    found = [f"the log holds {one}" for one in traces(log.encode(), secrets)]
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = re.sub(rb'"seconds":[0-9.e+-]+', b"", file.read_bytes())
        found += [f"{file.name} holds {one}" for one in traces(content, secrets)]
    return found
