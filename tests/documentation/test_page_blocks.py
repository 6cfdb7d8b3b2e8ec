"""Every code block of the documentation is run, parsed or checked; those that are not say why."""

import ast
import contextlib
import doctest
import importlib
import io
import json
import re
from pathlib import Path

import click
import pytest
from tests.documentation.blocks import NO_CODE, Block, find_blocks, list_pages
from tests.documentation.shell import check_command, split_commands

from fedelect.runtime.host_messages import decode_command
from fedelect.scenario import parse_scenario

BLOCKS = {page: find_blocks(page) for page in list_pages()}
LANGUAGES = ("python", "pycon", "toml", "sh", "json", "diff", *NO_CODE)


def all_of(*languages: str) -> list[Block]:
    return [block for blocks in BLOCKS.values() for block in blocks if block.language in languages]


def test_every_block_is_in_a_language_that_these_tests_know() -> None:
    assert {block.language for blocks in BLOCKS.values() for block in blocks} <= set(LANGUAGES)
    assert len(all_of("python", "pycon")) > 10 and len(all_of("sh")) > 10 and len(all_of("toml")) > 5


def test_blocks_that_are_not_run_say_why_and_are_few() -> None:
    left = [block for block in all_of("python", "pycon", "sh") if block.reason]
    for block in left:
        print(f"not run: {block}: {block.reason}")
    assert all(len(block.reason.split()) > 2 for block in left) and len(left) <= 12


@pytest.mark.parametrize("page", sorted({block.page for block in all_of("python", "pycon")}))
def test_the_python_of_a_page_runs_from_top_to_bottom(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    for block in BLOCKS[page]:
        if block.language not in ("python", "pycon"):
            continue
        if block.reason:
            check_imports(block)
            continue
        exec(block.setup, names)
        if block.language == "pycon" or block.code.startswith(">>> "):
            run_doctest(block, names)
        else:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block.code, str(block), "exec"), names)


def check_imports(block: Block) -> None:
    """What a block imports from fedelect is there."""
    for node in ast.walk(ast.parse(block.code)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("fedelect"):
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name), f"{block}: {node.module} has no {alias.name}"


def run_doctest(block: Block, names: dict[str, object]) -> None:
    test = doctest.DocTestParser().get_doctest(block.code + "\n", names, str(block), block.page, block.line)
    said = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, out=said.write, clear_globs=False)
    names |= test.globs
    assert runner.summarize(verbose=False).failed == 0, said.getvalue()


@pytest.mark.parametrize("block", all_of("toml"), ids=str)
def test_a_table_is_a_scenario(block: Block) -> None:
    parse_scenario(block.code)


@pytest.mark.parametrize("block", all_of("sh"), ids=str)
def test_a_command_has_options_that_its_program_takes(block: Block) -> None:
    for words in split_commands(block.code):
        check_command(words)


@pytest.mark.parametrize("block", all_of("json"), ids=str)
def test_a_line_to_a_peer_is_a_command_that_it_takes(block: Block) -> None:
    for line in block.code.splitlines():
        assert json.loads(line)["type"] in type(decode_command(line.replace("…", "").encode())).__name__.lower()


@pytest.mark.parametrize("block", all_of("diff"), ids=str)
def test_a_difference_is_of_code_that_compiles_before_and_after(block: Block) -> None:
    for sign in "-+":
        lines = [line[1:] for line in block.code.splitlines() if line[:1] in (" ", "", sign)]
        body = "\n".join(line if not line.startswith("    ") else line.removeprefix("    ") for line in lines)
        compile(body, str(block), "exec")


@pytest.mark.parametrize(
    "command",
    [
        "fedelect run digits --selectors random",
        "fedelect run digits --slots many",
        "fedelect atlas",
        "fedelect report",
        "make nothing",
        "python -m paper.nothing",
        "python benchmarks/selectors.py --nonsense",
        "pip install 'fedelect[nothing]'",
        "unknown",
    ],
)
def test_a_command_that_does_not_exist_is_found_out(command: str) -> None:
    ((words),) = split_commands(command)
    with pytest.raises(click.UsageError):
        check_command(words)


def test_blocks_are_found_with_their_marks() -> None:
    text = (
        "Save this as `a.py`:\n\n<!-- setup: x = 1 -->\n```python\nx + 1\n```\n\nThen\n\n    make it\n\n"
        "<!-- not run: it is slow -->\n```sh\nls\n```\n- one\n\n    in a list\n"
    )
    first, second, third = find_blocks("page", text)
    assert (first.saved, first.setup, first.code, first.line) == ("a.py", "x = 1", "x + 1", 5)
    assert (second.language, second.code.strip()) == ("sh", "make it")
    assert third.reason == "it is slow" and re.match("page:", str(third))
