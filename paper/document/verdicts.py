"""The verdicts on file: what the committed results gave when the document was last written."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from fedelect.errors import RunError
from fedelect.records.files import make_folder, replace_file
from paper.claims import Finding
from paper.runner import AbstractResultStore


class KeptVerdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One claim.

    Attributes:
        verdict: The verdict.
        outcomes: Of each check, in order.
    """

    verdict: str
    outcomes: list[str]


def verdicts_path(store: AbstractResultStore) -> Path:
    """Where they are kept: beside the folder of results."""
    return store.folder.parent / "verdicts.json"


def on_atlas_path(verdicts: Path) -> Path:
    """Where the verdicts by runs on the atlas are kept: beside the others."""
    return verdicts.with_name(f"{verdicts.stem}-on-atlas.json")


def write_verdicts(path: Path, findings: Sequence[Finding]) -> None:
    """Keep the verdicts by the key of their claim."""
    kept = {
        finding.claim.key: KeptVerdict(verdict=finding.verdict, outcomes=list(finding.outcomes)) for finding in findings
    }
    make_folder(path.parent)
    replace_file(path, msgspec.json.format(msgspec.json.encode(kept), indent=1), b"\n")


def read_verdicts(path: Path) -> dict[str, KeptVerdict]:
    """The verdicts on file by the key of their claim.

    Raises:
        RunError: They cannot be read.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, KeptVerdict])
    except (OSError, msgspec.MsgspecError) as error:
        raise RunError(f"the verdicts {path} cannot be read: {error}; run `python -m paper document`") from error
