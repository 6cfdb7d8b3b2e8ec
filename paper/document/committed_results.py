"""The results that are kept with the code."""

from pathlib import Path

from fedelect.atlas import load_atlas, shipped_atlases
from fedelect.errors import RunError
from fedelect.scenario import preset
from paper.calibration import read_calibration
from paper.catalogue import PRESETS
from paper.runner import AbstractResultStore, ResultStoreOnFile


def committed_results(root: Path, results: Path | None = None) -> ResultStoreOnFile:
    """The paper's results as they are kept in a clone; their data are not needed, the calibration knows the hash.

    Args:
        root: The folder of the clone.
        results: The folder of results, if it is another; the calibration lies beside it.

    Raises:
        RunError: There is no calibration, or it cannot be read.
    """
    chosen = PRESETS["paper"]
    folder = results or root / chosen.folder
    path = folder.parent / "calibration.json"
    if not path.exists():
        raise RunError(f"there is no {path}; `python -m paper calibration` makes it")
    digest = read_calibration(path).data_digest
    return ResultStoreOnFile(folder=folder, base=preset("paper"), known_digest=digest, block=chosen.block)


def committed_results_on_atlas(root: Path) -> ResultStoreOnFile:
    """The results of the main world on the atlas that comes with fedelect, as they are kept in a clone.

    Args:
        root: The folder of the clone.
    """
    chosen = PRESETS["paper"].on_atlas()
    digest = load_atlas(shipped_atlases()["paper"]).digest
    return ResultStoreOnFile(folder=root / chosen.folder, base=preset("paper"), known_digest=digest, block=chosen.block)


def registered_folder(store: AbstractResultStore) -> Path:
    """The folder of the pre-registered run: beside that of the trained results."""
    return store.folder.parent / "registered"
