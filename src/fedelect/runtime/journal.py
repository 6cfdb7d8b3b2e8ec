"""What a peer must not forget, on disk: its records and its own opinions, each forced there before anybody hears of it.

An entry is its length, a checksum, a kind and its bytes. A crash in the middle of a write leaves an incomplete last
entry, of which nobody has heard; it is cut off at the next start. Anything else that does not fit is damage, and
refused. The folder is locked: two processes with one key could vote twice.
"""

import os
import struct
import zlib
from pathlib import Path

from fedelect.errors import RemoteProtocolError, RunError, StateError
from fedelect.protocol import CertificateChain, OwnRewards, Record, SignedValue, decode_record, encode
from fedelect.records.lock import FolderLock

JOURNAL_NAME = "journal"
LOCK_NAME = "lock"

_HEAD = struct.Struct("<II")
_OPINION = struct.Struct("<Qd")
_RECORD_KIND, _OPINION_KIND = b"R", b"O"


class Journal:
    """The journal in a peer's folder, opened and locked.

    Args:
        folder: The folder.

    Attributes:
        records: What the peer had asked to keep, in order.
        opinions: By slot, what the client thought of the model trained in it.

    Raises:
        RunLockedError: Another process runs this peer.
        StateError: The journal is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.records: list[Record] = []
        self.opinions: dict[int, float] = {}
        self._lock = FolderLock(folder / LOCK_NAME)
        self._path = folder / JOURNAL_NAME
        try:
            content = self._path.read_bytes() if self._path.exists() else b""
            sound = self._load(content)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            os.ftruncate(self._file, sound)
            os.lseek(self._file, sound, os.SEEK_SET)
            os.fsync(self._file)
            _sync_folder(folder)
        except OSError as error:
            self._lock.release()
            raise RunError(f"cannot use {self._path}: {error.strerror}; check the folder's permissions") from error
        except BaseException:
            self._lock.release()
            raise

    def keep_record(self, record: Record) -> None:
        """On return the record survives a crash and a power cut."""
        self._append(_RECORD_KIND + encode(record))
        self.records.append(record)

    def keep_opinion(self, slot: int, opinion: float) -> None:
        """The same for the client's opinion of the model that was trained in `slot`."""
        self._append(_OPINION_KIND + _OPINION.pack(slot, opinion))
        self.opinions[slot] = opinion

    def rewards(self, client: int, chain: CertificateChain, settled: CertificateChain) -> OwnRewards:
        """The client's rewards as they were; what its last claim was built on is settled.

        Args:
            client: Whose journal this is.
            chain: Certified history as it is known now.
            settled: An empty one of the same election.
        """
        rewards = OwnRewards(client)
        for slot, opinion in self.opinions.items():
            rewards.give(slot, opinion)
        claims = [record for record in self.records if isinstance(record, SignedValue)]
        if claims:
            settled.extend([certificate for certificate in chain.certificates if certificate.slot < claims[-1].slot])
            rewards.claim(settled)
        return rewards

    def close(self) -> None:
        """Let go of the folder; does nothing the second time."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            self._lock.release()

    def _append(self, content: bytes) -> None:
        entry = _HEAD.pack(len(content), zlib.crc32(content)) + content
        try:
            while entry:
                entry = entry[os.write(self._file, entry) :]
            os.fsync(self._file)
        except OSError as error:
            raise RunError(f"cannot write {self._path}: {error.strerror}; a peer that cannot remember stops") from error

    def _load(self, content: bytes) -> int:
        """Read the entries; returns where the last whole one ends."""
        place = 0
        while len(content) - place >= _HEAD.size:
            length, checksum = _HEAD.unpack_from(content, place)
            entry = content[place + _HEAD.size : place + _HEAD.size + length]
            end = place + _HEAD.size + length
            if len(entry) < length:
                break
            if zlib.crc32(entry) != checksum:
                if end == len(content):
                    break  # the last entry may have been on its way to the disk
                raise self._damaged(place)
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
            else:
                raise self._damaged(place)
        except (struct.error, RemoteProtocolError) as error:
            raise self._damaged(place) from error

    def _damaged(self, place: int) -> StateError:
        return StateError(
            f"{self._path} is damaged at byte {place}; a peer that has forgotten what it signed must not vote: "
            f"restore the file, or enrol the client anew with a fresh key"
        )


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
