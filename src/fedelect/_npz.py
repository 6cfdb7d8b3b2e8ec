"""Read .npz files of plain arrays that strangers may have written.

Nothing is unpickled, and no memory is asked for that the file cannot fill: the sizes that a file claims are compared
with what it holds before an array is made of it.
"""

import io
import math
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fedelect._machine import format_bytes, memory_bytes
from fedelect.errors import DataError

_MOST_INFLATED = 1040
"""Deflate makes a byte of at most 1032; a little more, for headers."""


def read_npz(path: Path, choose: Callable[[Sequence[str]], Sequence[str]]) -> dict[str, NDArray[Any]]:
    """Read arrays of an .npz file.

    Args:
        path: The file.
        choose: Given the names of the arrays in it, the names of those to read.

    Raises:
        FileNotFoundError: There is no such file.
        DataError: It is damaged, something else, holds pickled objects, or does not fit into memory.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            chosen = choose(list(members))
            _refuse_too_large(path, [members[name] for name in chosen])
            return {name: _read_member(archive, members[name]) for name in chosen}
    except (FileNotFoundError, DataError):
        raise
    except zipfile.BadZipFile as error:
        raise DataError(
            f"{path} is not an .npz file but something else (text, one array), or is cut off; numpy.savez writes one"
        ) from error
    except (OSError, EOFError, ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise DataError(f"{path} cannot be read: {type(error).__name__} {error}; is it damaged?") from error
    except (zlib.error, NotImplementedError, RuntimeError, struct.error, OverflowError, KeyError) as error:
        raise DataError(f"{path} cannot be read: {error}; is it damaged?") from error


def _refuse_too_large(path: Path, members: Sequence[zipfile.ZipInfo]) -> None:
    for info in members:
        if info.file_size > _MOST_INFLATED * (info.compress_size + 1):
            raise DataError(
                f"{path} is damaged: its array {info.filename} claims {format_bytes(info.file_size)}, but has only "
                f"{format_bytes(info.compress_size)} in the file"
            )
    needed = sum(info.file_size for info in members)
    if needed > memory_bytes():
        raise DataError(
            f"the arrays in {path} take {format_bytes(needed)}, more than this machine's memory of "
            f"{format_bytes(memory_bytes())}; give fewer samples"
        )


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(info) as file:
        shape, fortran, dtype = _read_array_header(file)
        if dtype.hasobject:
            raise DataError(
                f"{archive.filename} holds pickled objects in {info.filename}, which are not loaded; save plain arrays "
                f"with numpy.savez"
            )
        claimed, held = dtype.itemsize * math.prod(shape), info.file_size - file.tell()
        if claimed != held or min(shape, default=0) < 0:
            raise DataError(
                f"{archive.filename} is damaged: its array {info.filename} claims {format_bytes(claimed)}, but has "
                f"{format_bytes(held)}"
            )
        content = bytearray(held)
        if cast(io.BufferedIOBase, file).readinto(content) != held or file.read(1):
            raise DataError(f"{archive.filename} is damaged: its array {info.filename} is cut off")
    return np.frombuffer(content, dtype=dtype).reshape(shape, order="F" if fortran else "C")


def _read_array_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(file)
    raise DataError(f"an array of format {version} is not read; save plain arrays with numpy.savez")
