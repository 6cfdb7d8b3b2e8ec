"""The IDX format of the original MNIST files: arrays of bytes with a short header."""

import math
import struct

import numpy as np
from numpy.typing import NDArray

from fedelect.errors import DataError

_UNSIGNED_BYTE = 0x08


def parse_idx(content: bytes, name: str) -> NDArray[np.uint8]:
    """The array of unsigned bytes in an IDX file.

    The header is two zero bytes, a byte for the element type, a byte for the number of dimensions, then each
    dimension as a big-endian 32-bit number.

    Args:
        content: The whole file, not compressed.
        name: What to call the file in messages.

    Raises:
        DataError: The file is damaged or is something else.
    """
    if len(content) < 4 or content[:2] != b"\0\0":
        raise DataError(f"{name} is not an IDX file: it starts with {content[:4].hex() or 'nothing'}")
    kind, dimensions = content[2], content[3]
    if kind != _UNSIGNED_BYTE or not 1 <= dimensions <= 4:
        raise DataError(f"{name}: element type {kind:#04x} in {dimensions} dimensions; expected bytes (0x08) in 1 to 4")
    start = 4 + 4 * dimensions
    if len(content) < start:
        raise DataError(f"{name} is cut off: {len(content)} bytes, but its header alone has {start}")
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    if len(content) != start + math.prod(shape):
        raise DataError(
            f"{name} is damaged: its header promises {shape} and so {start + math.prod(shape)} bytes, "
            f"it has {len(content)}"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)
