"""A witness at the server's door: all that reached it, by field and by byte, against what it must not know."""

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flwr.app import ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.proto.recorddict_pb2 import RecordDict as ProtoRecordDict

from fedelect.errors import RemoteProtocolError
from fedelect.protocol import Certificate, CertificateChain, PeerConfig, decode_record, encode
from fedelect.runtime.host_messages import SLOTS_NAME, decode_logs
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


def secrets_of(folders: Iterable[Path]) -> dict[str, set[float]]:
    """What the peers noted of themselves: opinions, means, beliefs and indices."""
    found: dict[str, set[float]] = {"opinion": set(), "mean": set(), "belief": set(), "index": set()}
    for folder in folders:
        for log in decode_logs((folder / SLOTS_NAME).read_bytes()):
            for name in ("opinion", "mean", "belief"):
                value = getattr(log, name)
                found[name] |= set() if value is None else {value}
            found["index"] |= set(log.indices)
    return {name: {value for value in values if telling(value)} for name, values in found.items()}


def telling(value: float) -> bool:
    """Whether a number is odd enough to be found on purpose only: 0, 1 and 0.5 are everywhere."""
    return (value * 2**12) % 1.0 != 0.0


def complaints(
    received: Sequence[Received], secrets: Mapping[str, set[float]], config: PeerConfig, training: Fields
) -> list[str]:
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
        opaque = message.content
        if message.kind == "evaluate.fedelect" and fields == allowed:
            odd, opaque = _without_certificates(message, config)
            found += [f"{where}: {one}" for one in odd]
        found += [f"{where} holds {one}" for one in traces(message.content, opaque, secrets)]
    return found


def fields_of(content: RecordDict) -> Fields:
    return {name: _types(record) for name, record in content.items()}


def _types(record: ArrayRecord | ConfigRecord | MetricRecord) -> dict[str, type | str]:
    if isinstance(record, ArrayRecord):
        return {name: f"{array.dtype} {list(array.shape)} {array.stype}" for name, array in record.items()}
    return {name: type(value) for name, value in record.items()}


def _without_certificates(message: Received, config: PeerConfig) -> tuple[list[str], bytes]:
    """What is wrong with an answer (its certificates must verify and have no byte too many), and what is beside them.

    Signatures are as good as random: four bytes of them may look like any float, so only what is beside them is
    searched for such short traces.
    """
    found, opaque = [], message.content
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
            opaque = opaque.replace(frame, b"")
    return found, opaque


def kept(folder: Path, log: str, secrets: Mapping[str, set[float]]) -> list[str]:
    """Where a secret number stands in what the server wrote down: the files of its run folder, and its log.

    Models, signatures and times are as good as random: it is searched for what cannot be met by chance.
    """
    found = [f"the log holds {one}" for one in traces(log.encode(), b"", secrets, shortest=6)]
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = re.sub(rb'"seconds":[0-9.e+-]+', b"", file.read_bytes())
        found += [f"{file.name} holds {one}" for one in traces(content, b"", secrets, shortest=6)]
    return found


def traces(content: bytes, opaque: bytes, secrets: Mapping[str, set[float]], *, shortest: int = 1) -> list[str]:
    """Where a secret number stands in these bytes, in any of its usual forms of at least so many bytes."""
    found = []
    for name, values in secrets.items():
        for value in values:
            long, short = encodings(value)
            hits = [how for how, code in long.items() if len(code) >= shortest and code in content]
            hits += [how for how, code in short.items() if code in opaque]
            found += [f"the {name} {value!r} as {how}" for how in hits]
    return found


def encodings(value: float) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The forms of a number that cannot be met by chance, and those that can, in bytes as good as random."""
    packed = {f"float64 {order}": struct.pack(f"{order}d", value) for order in "<>"}
    short = {f"float32 {order}": struct.pack(f"{order}f", value) for order in "<>"}
    texts = {repr(value), f"{value:.6f}", f"{value:.8g}", f"{value:.5f}", f"{100 * value:.4f}", value.hex()}
    long = packed | {f"text {text}": text.encode() for text in texts}
    long |= {f"{how} in hexadecimal": code.hex().encode() for how, code in (packed | short).items()}
    return long, short
