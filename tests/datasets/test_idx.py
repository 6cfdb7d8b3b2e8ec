import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fedelect.datasets.idx import parse_idx
from fedelect.errors import DataError


@given(hnp.arrays(np.uint8, hnp.array_shapes(min_dims=1, max_dims=4, max_side=5)))
def test_an_array_survives_being_written_as_idx(array: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> None:
    content = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
    assert np.array_equal(parse_idx(content, "file"), array)


@given(st.binary(max_size=40))
def test_any_bytes_are_an_array_or_a_data_error(content: bytes) -> None:
    try:
        parse_idx(content, "file")
    except DataError as error:
        assert str(error).startswith("file")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "labels is not an IDX file: it starts with nothing"),
        (b"\x1f\x8b\x08\x00", "it starts with 1f8b0800"),
        (b"\0\0\x0d\x01" + bytes(4), "element type 0x0d"),
        (b"\0\0\x08\x02\0\0\0\x01", "cut off: 8 bytes, but its header alone has 12"),
        (b"\0\0\x08\x01\0\0\0\x03ab", r"promises \(3,\) and so 11 bytes, it has 10"),
        (b"\0\0\x08\x01\0\0\0\x01ab", "damaged"),
    ],
)
def test_a_damaged_file_is_refused_with_the_reason(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_idx(content, "labels")
