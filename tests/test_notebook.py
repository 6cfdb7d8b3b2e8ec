"""The example notebook runs from top to bottom in a real kernel, and shows what it says."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration  # a kernel in a process of its own

NOTEBOOK = Path(__file__).parents[1] / "examples/quickstart.ipynb"

# In a process of its own, for Jupyter leaves sockets open; these are in the test's folder, so that no port is needed.
EXECUTE = """
import sys
import nbformat
from nbclient import NotebookClient
from traitlets.config import Config
source, folder = sys.argv[1:]
notebook = nbformat.read(source, as_version=4)
config = Config({"AsyncKernelManager": {"transport": "ipc", "ip": folder + "/socket"}})
limits = {"timeout": 600, "startup_timeout": 600}
NotebookClient(notebook, config=config, **limits, resources={"metadata": {"path": folder}}).execute()
nbformat.write(notebook, folder + "/executed.ipynb")
"""


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    pytest.importorskip("nbclient")
    folder = tmp_path_factory.mktemp("nb")
    command = [sys.executable, "-W", "ignore", "-c", EXECUTE, str(NOTEBOOK), str(folder)]
    (folder / "tmp").mkdir()
    subprocess.run(command, check=True, env=os.environ | {"TMPDIR": str(folder / "tmp")})
    executed = json.loads((folder / "executed.ipynb").read_text(encoding="utf-8"))
    return [cell for cell in executed["cells"] if cell["cell_type"] == "code"]


def shown(cell: dict[str, Any], kind: str) -> str:
    return "\n".join("".join(output["data"].get(kind, "")) for output in cell["outputs"] if "data" in output)


def printed(cell: dict[str, Any]) -> str:
    return "".join("".join(output.get("text", "")) for output in cell["outputs"])


def test_the_notebook_shows_a_bar_a_table_and_the_figures_behind_it(cells: list[dict[str, Any]]) -> None:
    first = shown(cells[0], "text/html")
    assert "<progress" in first and "320 of 320 replica-slots" in first
    assert "<table>" in first and "fixed:cohort=0,1,2,3,4" in first
    assert "random" in printed(cells[1]) and "±" in printed(cells[1])
    assert "((4, 20, 20), (4, 20, 5)" in "".join(shown(cells[2], "text/plain").split("\n"))
    assert shown(cells[3], "text/plain") == "(40, 5, 'warm')"
    assert "all trials run in this process, for other processes cannot import LeastTried" in printed(cells[4])
    assert shown(cells[4], "text/plain").endswith("(np.int64(1), np.int64(2))")
    assert shown(cells[5], "text/plain") == "('report.html', True)"
    assert "mean_opinion" in shown(cells[6], "text/html")
