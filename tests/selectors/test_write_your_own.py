"""The selector of docs/tutorials/write-a-selector.md does what the page says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fedelect.records import read_run
from fedelect.testing import check_selector

PAGE = Path(__file__).parents[2] / "docs/tutorials/write-a-selector.md"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)[0]
    (tmp_path / "my_module.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("my_module", None)
    return "my_module"


def test_the_selector_of_the_page_is_a_class_of_twenty_lines_that_conforms(module: str, tmp_path: Path) -> None:
    lines = [line for line in (tmp_path / f"{module}.py").read_text().splitlines() if line.strip()]
    assert len(lines[lines.index("class EpsilonGreedy(AbstractSelector):") :]) <= 20
    assert "Restore" in str(check_selector(f"{module}:EpsilonGreedy"))


def test_the_selector_of_the_page_runs_from_the_command_line(module: str, tmp_path: Path) -> None:
    command = f"run digits --selector {module}:EpsilonGreedy:epsilon=0.2 --slots 6 --trials 2 --out runs/mine"
    subprocess.run([sys.executable, "-m", "fedelect", *command.split()], cwd=tmp_path, check=True, capture_output=True)
    run = read_run(tmp_path / "runs/mine")
    (entry,) = run.header.selectors
    assert entry.parameters == {"epsilon": 0.2} and len(run.records) == 12
