"""A peer's records and opinions on disk, each forced there before any message depends on it.

An entry is its length, a checksum of what follows, the kind C, a checksum of the length, and a kind with its bytes. A
crash during a write leaves an incomplete last entry, on which no message depends; it is cut off at the next start. Any
other damage is refused, with the file unchanged. The folder is locked: two processes with one key could vote twice.

The length of the journal is also in a file of its own, the mark, forced to disk after every entry. A journal that is
gone, or shorter than its mark says, has lost what messages may depend on, and is refused: complete entries that are
missing at the end, or that are zeros now, look like a crash otherwise.
"""

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedelect.errors import RemoteProtocolError, RunError, StateError
from fedelect.protocol import CertificateChain, OwnRewards, decode_record, encode
from fedelect.protocol.effects import Record
from fedelect.protocol.statements import SignedValue
from fedelect.records.files import sync_folder
from fedelect.records.lock import FolderLock

JOURNAL_NAME = "journal"
MARK_NAME = "journal.mark"
LOCK_NAME = "lock"

_HEAD, _HEAD_SUM = struct.Struct("<II"), struct.Struct("<cI")
_UNWRITTEN = bytes(512), bytes(4)  # a sector, or the end, that the file has room for but never got
_MARK, _MARK_SUM = struct.Struct("<QQ"), struct.Struct("<I")
_MARK_BYTES = _MARK.size + _MARK_SUM.size
_OPINION, _SIZE = struct.Struct("<Qd"), struct.Struct("<I")
_RECORD_KIND, _OPINION_KIND, _CHECKED_KIND, _BATCH_KIND = b"R", b"O", b"C", b"B"


class Journal:
    """The journal in a peer's folder, opened and locked.

    Args:
        folder: The folder.

    Attributes:
        records: Persisted records, in order.
        opinions: By slot, the client's opinion of the model trained in it.

    Raises:
        RunLockedError: Another process runs this peer.
        StateError: The journal is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.records: list[Record] = []
        self.opinions: dict[int, float] = {}
        self._lock = FolderLock(folder / LOCK_NAME)
        self._path = folder / JOURNAL_NAME
        self._file, self._mark = -1, _Mark(folder / MARK_NAME)
        try:
            self._mark.load()
            content = self._path.read_bytes() if self._path.exists() else b""
            if content and not self._mark.found:
                raise StateError(
                    f"{self._path} has {len(content)} bytes, but {MARK_NAME}, which says how many were written, is "
                    f"gone or empty; restore both files, or enrol the client anew with a fresh key"
                )
            self._length = self._load(content)
            if self._length < self._mark.length:
                raise self._forgotten(len(content))
            self._file = open_private(self._path, os.O_RDWR)
            os.ftruncate(self._file, self._length)
            os.lseek(self._file, self._length, os.SEEK_SET)
            os.fsync(self._file)
            self._mark.set(self._length)
            sync_folder(folder)
        except OSError as error:
            self.close()
            raise RunError(f"cannot use {self._path}: {error.strerror}; check the folder's permissions") from error
        except BaseException:
            self.close()
            raise

    def keep_records(self, records: Sequence[Record]) -> None:
        """Persist records: on return they survive a crash and a power cut; before it, all of them or none."""
        contents = [encode(record) for record in records]
        if len(contents) == 1:
            self._append(_RECORD_KIND + contents[0])
        elif contents:
            self._append(_BATCH_KIND + b"".join(_SIZE.pack(len(content)) + content for content in contents))
        self.records += records

    def keep_opinion(self, slot: int, opinion: float) -> None:
        """Persist the client's opinion of the model that was trained in `slot`."""
        self._append(_OPINION_KIND + _OPINION.pack(slot, opinion))
        self.opinions[slot] = opinion

    def rewards(self, client: int, chain: CertificateChain) -> OwnRewards:
        """Rebuild the client's rewards; those under its last claim are closed.

        Args:
            client: The journal's client.
            chain: The certified history.
        """
        rewards = OwnRewards(client)
        for slot, opinion in self.opinions.items():
            rewards.give(slot, opinion)
        claims = [record for record in self.records if isinstance(record, SignedValue)]
        if claims:
            rewards.close(max((one.slot for one in chain.certificates if one.slot < claims[-1].slot), default=0))
        return rewards

    def close(self) -> None:
        """Release the folder; does nothing the second time."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self._mark.close()
        self._lock.release()

    def _append(self, content: bytes) -> None:
        entry = _frame(content)
        try:
            self._length += len(entry)
            while entry:
                entry = entry[os.write(self._file, entry) :]
            os.fsync(self._file)
            self._mark.set(self._length)
        except OSError as error:
            raise RunError(f"cannot write {self._path}: {error.strerror}; a peer that cannot remember stops") from error

    def _load(self, content: bytes) -> int:
        """Read the entries; return where the last complete one ends."""
        place = 0
        while place < len(content):
            entry, end = _entry_at(content, place)
            if entry is None:
                if not _is_torn(content[place:]):
                    raise self._describe_damage(place)
                break
            self._take(entry, place)
            place = end
        return place

    def _take(self, entry: bytes, place: int) -> None:
        try:
            if entry[:1] == _OPINION_KIND:
                slot, opinion = _OPINION.unpack(entry[1:])
                self.opinions[slot] = opinion
            elif entry[:1] == _RECORD_KIND:
                self.records.append(decode_record(entry[1:]))
            elif entry[:1] == _BATCH_KIND:
                self.records += [decode_record(content) for content in _parts(entry[1:])]
            else:
                raise self._describe_damage(place)
        except (struct.error, RemoteProtocolError) as error:
            raise self._describe_damage(place) from error

    def _forgotten(self, length: int) -> StateError:
        what = f"has {length} bytes, of which {self._length} are sound" if length else "is gone"
        return StateError(
            f"{self._path} {what}, but {self._mark.length} were written; a peer that has forgotten what it signed must "
            f"not vote: restore the file, or enrol the client anew with a fresh key"
        )

    def _describe_damage(self, place: int) -> StateError:
        return StateError(
            f"{self._path} is damaged at byte {place}; a peer that has forgotten what it signed must not vote: "
            f"restore the file, or enrol the client anew with a fresh key"
        )


class _Mark:
    """The length of the journal that is on disk, in a file of its own: two places, written in turn.

    Args:
        path: The file. It is made by the first `set`, before the journal's first entry.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, -1
        self._turn = self.length = 0

    def load(self) -> None:
        """Read the file, if there is one."""
        content = self._path.read_bytes() if self._path.exists() else b""
        parts = (content[place * _MARK_BYTES : (place + 1) * _MARK_BYTES] for place in range(2))
        marks = [_MARK.unpack_from(part) for part in parts if part == _mark(part[: _MARK.size])]
        if content and not marks:
            raise StateError(
                f"{self._path} is damaged; restore it with the journal beside it, or enrol the client anew"
            )
        self._turn, self.length = max(marks, default=(0, 0))

    @property
    def found(self) -> bool:
        """Whether a length was read or written."""
        return self._turn > 0

    def set(self, length: int) -> None:
        """Write the length; on return it survives a crash, during it one of the two does."""
        if self._file < 0:
            self._file = open_private(self._path, os.O_RDWR)
        self._turn, self.length = self._turn + 1, length
        os.pwrite(self._file, _mark(_MARK.pack(self._turn, length)), self._turn % 2 * _MARK_BYTES)
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def open_private(path: Path, flags: int) -> int:
    """Open a file that its owner alone may read, made if it is not there; returns its descriptor."""
    descriptor = os.open(path, flags | os.O_CREAT, 0o600)
    if os.name == "posix":
        os.fchmod(descriptor, 0o600)
    return descriptor


def _mark(content: bytes) -> bytes:
    return content + _MARK_SUM.pack(zlib.crc32(content))


def _parts(batch: bytes) -> Iterator[bytes]:
    place = 0
    while place < len(batch):
        (size,) = _SIZE.unpack_from(batch, place)
        place += _SIZE.size + size
        yield batch[place - size : place]


def _frame(content: bytes) -> bytes:
    length = _HEAD_SUM.size + len(content)
    inner = _HEAD_SUM.pack(_CHECKED_KIND, _length_sum(length)) + content
    return _HEAD.pack(length, zlib.crc32(inner)) + inner


def _length_sum(length: int) -> int:
    return zlib.crc32(b"length" + length.to_bytes(4, "little"))


def _length_at(content: bytes, place: int) -> int:
    """Return the entry length in the head at `place`; 0 if there is no sound head."""
    if len(content) - place < _HEAD.size + _HEAD_SUM.size:
        return 0
    length, _ = _HEAD.unpack_from(content, place)
    kind, length_sum = _HEAD_SUM.unpack_from(content, place + _HEAD.size)
    return int(length) if kind == _CHECKED_KIND and length_sum == _length_sum(length) else 0


def _entry_at(content: bytes, place: int) -> tuple[bytes | None, int]:
    """Return kind and bytes of the complete entry at `place`, None if there is none, and where it ends."""
    length = _length_at(content, place)
    start = place + _HEAD.size
    entry = content[start : start + length]
    if length == 0 or len(entry) < length or zlib.crc32(entry) != _HEAD.unpack_from(content, place)[1]:
        return None, place
    return entry[_HEAD_SUM.size :], start + length


def _is_torn(rest: bytes) -> bool:
    """Return whether `rest`, which begins with no complete entry, can be a last entry cut short by a crash."""
    if any(_length_at(rest, place) > 0 for place in range(1, len(rest))):
        return False  # a later entry follows
    unwritten = _UNWRITTEN[0] in rest or rest.endswith(_UNWRITTEN[1])
    length = _length_at(rest, 0)
    if length == 0:
        return unwritten or len(rest) < _HEAD.size + _HEAD_SUM.size
    end = _HEAD.size + length
    return end > len(rest) or (end == len(rest) and unwritten)
