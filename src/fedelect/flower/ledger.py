"""What a node's opinions have cost so far: zero-concentrated privacy (rho), which adds up over runs and settings.

In a file that processes share, one at a time; or in the node's state. The file is one line of JSON with a checksum, and
is replaced as a whole before an opinion leaves the client: a crash may count an opinion that was not given, never the
other way round.
"""

from pathlib import Path

import msgspec
from flwr.app import Context, MetricRecord

from fedelect.errors import RunError
from fedelect.flower.privacy import OpinionPrivacy
from fedelect.records.checksum import open_line, seal_line
from fedelect.records.codec import UNREADABLE
from fedelect.records.files import as_run_error, replace_file
from fedelect.records.lock import FolderLock

FILE_KEY = "privacy-ledger"
"""Key of the node config that names the file."""

_STATE_KEY = "fedelect"
_ROUNDING = 1.0 + 1e-9  # costs are added in floating point; the noise is larger than needed by as much


class _Spent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The promise that the ledger was begun under, and what it has cost."""

    epsilon: float
    delta: float
    rho: float = 0.0
    released: int = 0


class PrivacyLedger:
    """Counts what a node's opinions cost, and refuses what would break the promise.

    Args:
        context: The node's; its config may name a file as `privacy-ledger`.
    """

    def __init__(self, context: Context) -> None:
        named = context.node_config.get(FILE_KEY)
        self._file = None if named is None else Path(str(named)).resolve()  # one lock, whatever links lead there
        self._context = context

    def spend(self, privacy: OpinionPrivacy, examples: int) -> str | None:
        """Count one opinion over `examples` examples, durably if there is a file.

        Returns:
            None if it may be given, else why not; nothing is counted then.

        Raises:
            RunError: The file is damaged, or cannot be locked, read or written; no opinion may be given.
        """
        if self._file is None:
            return self._spend(privacy, examples)
        lock = FolderLock(self._file.with_name(self._file.name + ".lock"), wait=True)
        try:
            return self._spend(privacy, examples)
        finally:
            lock.release()

    def _spend(self, privacy: OpinionPrivacy, examples: int) -> str | None:
        spent = self._read() or _Spent(epsilon=privacy.epsilon, delta=privacy.delta)
        if (spent.epsilon, spent.delta) != (privacy.epsilon, privacy.delta):
            return (
                f"{self._file or 'this node'} counts under epsilon {spent.epsilon:g}, delta {spent.delta:g}, and has "
                f"spent rho {spent.rho:.6g}; got epsilon {privacy.epsilon:g}, delta {privacy.delta:g}: keep the "
                f"promise, or make a new one in a new file, to which what was spent adds up"
            )
        after = spent.rho + privacy.cost(examples)
        if after > privacy.budget * _ROUNDING:
            return (
                f"the privacy budget is spent: {spent.released} opinions cost rho {spent.rho:.6g} of "
                f"{privacy.budget:.6g} (epsilon {spent.epsilon:g}, delta {spent.delta:g}), one more costs "
                f"{privacy.cost(examples):.6g}"
            )
        self._write(msgspec.structs.replace(spent, rho=after, released=spent.released + 1))
        return None

    def _read(self) -> _Spent | None:
        if self._file is None:
            record = self._context.state.get(_STATE_KEY)
            return msgspec.convert(dict(record), _Spent) if isinstance(record, MetricRecord) else None
        try:
            content, _ = open_line(self._file.read_bytes().removesuffix(b"\n"), 0)
            return msgspec.json.decode(content, type=_Spent)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise as_run_error("read", self._file, error) from error
        except (*UNREADABLE, RunError) as error:
            raise RunError(
                f"the privacy ledger {self._file} is damaged, so nobody knows what was spent: {error}; restore it from "
                f"a copy. No opinion is given"
            ) from error

    def _write(self, spent: _Spent) -> None:
        if self._file is None:
            self._context.state[_STATE_KEY] = MetricRecord(msgspec.structs.asdict(spent))
        else:
            replace_file(self._file, seal_line(msgspec.json.encode(spent), 0)[0])
