"""Search what others receive for numbers and bytes that must stay with a client.

Two kinds of match would be chance: a number that tells nothing (0, 1 and 0.5 are everywhere), and a short pattern in
bytes as good as random. The first are skipped; short forms are searched only beside such bytes.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fedelect.errors import RemoteProtocolError
from fedelect.protocol import Certificate, decode_record, encode
from fedelect.runtime.host_messages import SLOTS_NAME, Agreed, decode_logs, encode_line

Secrets = Mapping[str, set[float]]
"""By kind ("opinion", "mean", …), the numbers that must not be found."""

SHORTEST = 6
"""A form of fewer bytes can be met by chance."""


def telling(value: float) -> bool:
    """Return whether a number is odd enough to be found on purpose only; 0, 1, 0.5 and nan are not."""
    return (value * 2**12) % 1.0 != 0.0 and value == value


def peer_secrets(folders: Iterable[Path]) -> dict[str, set[float]]:
    """Return the telling opinions, means, beliefs and indices that peers noted in their folders."""
    found: dict[str, set[float]] = {"opinion": set(), "mean": set(), "belief": set(), "index": set()}
    for folder in folders:
        for log in decode_logs((folder / SLOTS_NAME).read_bytes()):
            for name in ("opinion", "mean", "belief"):
                value = getattr(log, name)
                found[name] |= set() if value is None else {value}
            found["index"] |= set(log.indices)
    return {name: {value for value in values if telling(value)} for name, values in found.items()}


def traces(content: bytes, secrets: Secrets, *, beside: bytes = b"") -> list[str]:
    """Return where a secret number stands: in `content` in a long form, in `beside` in a short one.

    Args:
        content: Any bytes.
        secrets: The numbers; those that tell nothing are skipped.
        beside: The part of `content` that holds no bytes as good as random.
    """
    found = []
    for name, values in secrets.items():
        for value in filter(telling, values):
            long, short = encodings(value)
            hits = [how for how, code in long.items() if code in content]
            hits += [how for how, code in short.items() if code in beside]
            found += [f"the {name} {value!r} as {how}" for how in hits]
    return found


def encodings(value: float) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return the forms of a number that cannot be met by chance, and those that can."""
    packed = {f"float64 {order}": struct.pack(f"{order}d", value) for order in "<>"}
    halves = {f"float32 {order}": struct.pack(f"{order}f", value) for order in "<>"}
    texts = {repr(value), f"{value:.6f}", f"{value:.8g}", f"{value:.5f}", f"{100 * value:.4f}", value.hex()}
    forms = packed | {f"text {text}": text.encode() for text in texts}
    forms |= {f"{how} in hexadecimal": code.hex().encode() for how, code in packed.items()}
    long = {how: code for how, code in forms.items() if len(code) >= SHORTEST}
    short = halves | {f"{how} in hexadecimal": code.hex().encode() for how, code in halves.items()}
    return long, short | {how: code for how, code in forms.items() if how not in long}


def notice_leaks(notices: Iterable[object], secrets: Secrets, hidden: Iterable[bytes] = ()) -> list[str]:
    """Return what notices of a peer show of secret numbers and of `hidden` bytes, raw or in hexadecimal.

    A certificate is decoded and its hashes and signatures are looked at one by one: a search of its bytes would also
    see numbers made of the end of one field and the beginning of the next.
    """
    parts = [part for notice in notices for part in _notice_parts(notice)]
    everything = b"\n".join(dict.fromkeys(parts))
    shown = [one.hex() for one in dict.fromkeys(hidden) if one in everything or one.hex().encode() in everything]
    return traces(everything, secrets) + [f"the bytes {one}" for one in shown]


def _notice_parts(notice: object) -> Sequence[bytes]:
    if not isinstance(notice, Agreed):
        return [encode_line(notice)] if hasattr(notice, "__struct_fields__") else [repr(notice).encode()]  # type: ignore[arg-type]
    around = f"{notice.slot} {notice.cohort}".encode()
    try:
        frame = bytes.fromhex(notice.certificate)
        certificate = decode_record(frame)
        if not isinstance(certificate, Certificate) or encode(certificate) != frame:
            raise RemoteProtocolError("something else, or more than a certificate")
    except (RemoteProtocolError, ValueError):
        return [around, notice.certificate.encode()]
    statement = certificate.statement
    numbers = f"{statement.slot} {statement.cohort} {[client for client, _ in certificate.signatures]}".encode()
    hashes = (statement.configuration, statement.previous, statement.map_hash)
    return [around, numbers, *hashes, *(signature for _, signature in certificate.signatures)]
