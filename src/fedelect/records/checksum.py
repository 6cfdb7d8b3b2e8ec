"""Checksums of a run's files: accidental damage is found before a number is believed.

The last key of every line of slots.jsonl is `checksum`: the CRC-32 of the run's id and of all lines up to this one,
checksums left out. A changed, missing, moved or foreign line therefore does not fit. run.json has one of its own.
Who wants to deceive can compute them anew: this is no protection from tampering.
"""

import re
import zlib

from fedelect.errors import RunError

_LINE_TAIL = b',"checksum":"%08x"}'
_LINE_END = _LINE_TAIL + b"\n"
_HEADER_TAIL = b',\n  "run_id": "%b",\n  "checksum": "%08x"\n}\n'
_HEADER = re.compile(rb'(.*),\n  "run_id": "([0-9a-f]{32})",\n  "checksum": "[0-9a-f]{8}"\n\}\n', re.DOTALL)

TAIL_BYTES = len(_LINE_TAIL % 0)
"""Length of the end of a line that holds its checksum, without the line feed."""


def begin_chain(run_id: str) -> int:
    """Return the checksum that the first line of a run builds on."""
    return zlib.crc32(run_id.encode())


def seal_line(record: bytes, before: int) -> tuple[bytes, int]:
    """Return a record, a JSON object, as a line with checksum and line feed; and that checksum.

    Args:
        record: The object, without white space around it.
        before: Checksum of the line before it.
    """
    body = record[:-1]
    checksum = zlib.crc32(body, before)
    return body + _LINE_END % checksum, checksum


def open_line(line: bytes, before: int) -> tuple[bytes, int]:
    """Return the record in a line (without line feed), a JSON object, and the line's checksum; RunError if it is wrong.

    Args:
        line: The line.
        before: Checksum of the line before it.
    """
    body = line[:-TAIL_BYTES]
    checksum = zlib.crc32(body, before)
    if not line.endswith(_LINE_TAIL % checksum):
        raise RunError("its checksum does not fit its content and the lines before it")
    return body + b"}", checksum


def read_checksum(tail: bytes) -> int:
    """Return the checksum in the last `TAIL_BYTES` bytes of a line (without line feed) that was verified before."""
    return int(tail[-10:-2], 16)


def seal_header(header: bytes, run_id: str) -> bytes:
    """Return a header, indented JSON, with the run's id and a checksum as its last keys."""
    body, closing = header[:-3], header[-3:]
    assert closing == b"\n}\n", "a header is indented JSON with a line feed at its end"
    return body + _HEADER_TAIL % (run_id.encode(), _checksum_header(body, run_id.encode()))


def open_header(text: bytes) -> tuple[bytes, str]:
    """Return the header and the run's id in the content of run.json; RunError if the checksum does not fit."""
    found = _HEADER.fullmatch(text)
    if found is None:
        raise RunError("its last keys are not `run_id` and `checksum`")
    body, run_id = found.groups()
    if text != body + _HEADER_TAIL % (run_id, _checksum_header(body, run_id)):
        raise RunError("its checksum does not fit its content")
    return body + b"\n}\n", run_id.decode()


def _checksum_header(body: bytes, run_id: bytes) -> int:
    return zlib.crc32(run_id, zlib.crc32(body))
