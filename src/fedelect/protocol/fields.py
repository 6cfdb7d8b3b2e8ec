"""The fields of a frame: written one after the other, read back with every length checked."""

import struct
from collections.abc import Callable, Iterable
from typing import Self, TypeVar

from fedelect.errors import RemoteProtocolError
from fedelect.protocol.statements import BLIND_BYTES, DIGEST_BYTES

_Item = TypeVar("_Item")
_PAIR, _LEAST_SIGNATURE = struct.Struct("<II"), 8 + 16  # bytes: client, length, and the shortest signature there is
_U32, _U64, _F64, _U8 = struct.Struct("<I"), struct.Struct("<Q"), struct.Struct("<d"), struct.Struct("<B")


class Writer:
    """Collects the fields of one frame."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def content(self) -> bytes:
        """All fields."""
        return b"".join(self._parts)

    def digest(self, name: bytes) -> Self:
        """A hash, 32 bytes."""
        if len(name) != DIGEST_BYTES:
            raise ValueError(f"a hash has {DIGEST_BYTES} bytes, got {len(name)}")
        self._parts.append(name)
        return self

    def blind(self, content: bytes) -> Self:
        """The blind of a value, 16 bytes."""
        if len(content) != BLIND_BYTES:
            raise ValueError(f"a blind has {BLIND_BYTES} bytes, got {len(content)}")
        self._parts.append(content)
        return self

    def u32(self, number: int) -> Self:
        """A client, a round or a count, below 2**32."""
        self._parts.append(_U32.pack(number))
        return self

    def u64(self, number: int) -> Self:
        """A slot, below 2**64."""
        self._parts.append(_U64.pack(number))
        return self

    def f64(self, number: float) -> Self:
        """A float, as its IEEE bytes."""
        self._parts.append(_F64.pack(number))
        return self

    def u8(self, number: int) -> Self:
        """A tag, below 256."""
        self._parts.append(_U8.pack(number))
        return self

    def blob(self, content: bytes) -> Self:
        """Bytes of any length, after their length."""
        self._parts += (_U32.pack(len(content)), content)
        return self

    def u32_list(self, numbers: Iterable[int]) -> Self:
        """Numbers below 2**32, after their count."""
        listed = tuple(numbers)
        self._parts += (_U32.pack(len(listed)), struct.pack(f"<{len(listed)}I", *listed))
        return self


class Reader:
    """Reads the fields of one frame; RemoteProtocolError wherever the bytes do not suffice."""

    def __init__(self, frame: bytes, start: int) -> None:
        self._frame, self._place = frame, start

    def end(self) -> None:
        """Check that nothing follows."""
        if self._place != len(self._frame):
            raise RemoteProtocolError(f"{len(self._frame) - self._place} bytes follow the end of a frame")

    def digest(self) -> bytes:
        """A hash."""
        return self._take(DIGEST_BYTES)

    def blind(self) -> bytes:
        """The blind of a value."""
        return self._take(BLIND_BYTES)

    def u32(self) -> int:
        """A whole number below 2**32."""
        return int.from_bytes(self._take(4), "little")

    def u64(self) -> int:
        """A whole number below 2**64."""
        return int.from_bytes(self._take(8), "little")

    def f64(self) -> float:
        """A float."""
        number: float = _F64.unpack(self._take(8))[0]
        return number

    def u8(self) -> int:
        """A whole number below 256."""
        return self._take(1)[0]

    def blob(self) -> bytes:
        """Bytes with their length."""
        return self._take(self.u32())

    def u32_list(self) -> tuple[int, ...]:
        """Several whole numbers."""
        count = self.u32()
        numbers: tuple[int, ...] = struct.unpack(f"<{count}I", self._take(4 * count))
        return numbers

    def many(self, read: Callable[[], _Item], *, at_least: int, at_most: int | None = None) -> tuple[_Item, ...]:
        """Items after their count; each takes at least `at_least` bytes, so a false count is refused at once.

        More than `at_most` are refused before any is read.
        """
        count = self.u32()
        if at_most is not None and count > at_most:
            raise RemoteProtocolError(f"a frame says that {count} items follow; at most {at_most} are allowed")
        if count * at_least > len(self._frame) - self._place:
            raise RemoteProtocolError(f"a frame says that {count} items follow, which it is too short for")
        return tuple(read() for _ in range(count))

    def signatures(self) -> tuple[tuple[int, bytes], ...]:
        """(client, signature) pairs after their count; the bulk of history, so read without a call for each field."""
        frame, size, place, count = self._frame, len(self._frame), self._place + 4, self.u32()
        if count * _LEAST_SIGNATURE > size - place:
            raise RemoteProtocolError(f"a frame says that {count} signatures follow, which it is too short for")
        pairs = []
        for _ in range(count):
            if place + 8 > size:
                raise RemoteProtocolError("a frame is cut short")
            client, length = _PAIR.unpack_from(frame, place)
            end = place + 8 + length
            if end > size:
                raise RemoteProtocolError("a frame is cut short")
            pairs.append((client, frame[place + 8 : end]))
            place = end
        self._place = place
        return tuple(pairs)

    def _take(self, size: int) -> bytes:
        end = self._place + size
        if end > len(self._frame):
            raise RemoteProtocolError("a frame is cut short")
        taken = self._frame[self._place : end]
        self._place = end
        return taken
