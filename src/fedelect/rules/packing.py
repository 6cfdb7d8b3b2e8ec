"""Arrays as short JSON-able text: base64 of the zlib-compressed little-endian bytes."""

import base64
import binascii
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedelect.errors import StateError


def pack(array: NDArray[Any], dtype: str) -> str:
    """Pack `array`, flattened, into text; `dtype` is a little-endian type such as "<f8"."""
    return base64.b64encode(zlib.compress(np.ascontiguousarray(array, dtype=dtype).tobytes())).decode("ascii")


def unpack(text: object, dtype: str, *, size: int, what: str) -> NDArray[Any]:
    """Unpack the `size` values in `text`; StateError if it does not hold exactly these."""
    try:
        if not isinstance(text, str):
            raise TypeError(f"expected text, got {type(text).__name__}")
        array = np.frombuffer(zlib.decompress(base64.b64decode(text, validate=True)), dtype=dtype)
    except (TypeError, ValueError, binascii.Error, zlib.error) as error:
        raise StateError(f"the saved {what} cannot be read: {error}; the state is damaged") from error
    if array.size != size:
        raise StateError(f"the saved {what} holds {array.size} values where {size} belong; the state is damaged")
    return array.astype(array.dtype.newbyteorder("="))
