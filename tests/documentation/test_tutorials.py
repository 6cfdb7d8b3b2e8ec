"""Tutorials, followed from top to bottom in an empty folder: files are saved, commands are run."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.documentation.blocks import find_blocks
from tests.documentation.shell import split_commands

FOLLOWED = ("index", "tutorials/write-a-selector", "tutorials/your-data", "tutorials/your-model")
DEADLINE_S = 240

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("page", FOLLOWED)
def test_a_tutorial_can_be_followed(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    ran = 0
    for block in find_blocks(f"docs/{page}.md"):
        if block.saved:
            (tmp_path / block.saved).write_text(block.code, encoding="utf-8")
        elif block.language == "python" and not block.reason:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block.code, str(block), "exec"), names)
        elif block.language == "sh" and not block.reason:
            for words in split_commands(block.code):
                run_command(words)
                ran += 1
    assert ran >= 2


def run_command(words: list[str]) -> None:
    """Run `fedelect ...` or `python ...` with this interpreter, as in an empty shell."""
    python = [sys.executable, "-m", "fedelect", *words[1:]] if words[0] == "fedelect" else [sys.executable, *words[1:]]
    done = subprocess.run(
        python, capture_output=True, text=True, timeout=DEADLINE_S, env={**os.environ, "COLUMNS": "100"}
    )
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
