"""The command line starts fast: what a command needs is imported when it is called."""

import subprocess
import sys

import pytest
import typer

from fedelect.cli.main import COMMANDS, load_command


def test_help_imports_no_command_and_nothing_that_they_need() -> None:
    code = (
        "import sys; sys.argv = ['fedelect', '--help']\n"
        "from fedelect.cli import main\n"
        "try: main()\n"
        "finally: print(*sorted(name for name in sys.modules if name.partition('.')[0] in ('fedelect', 'msgspec')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert set(done.stdout.splitlines()[-1].split()) == {
        "fedelect",
        "fedelect._version",
        "fedelect.cli",
        "fedelect.cli.main",
        "fedelect.errors",
        "fedelect.vocabulary",
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_every_line_of_the_help_is_the_first_line_of_its_command(name: str) -> None:
    command = load_command(name)
    assert command.name == name
    assert (command.help or "").partition("\n")[0] == COMMANDS[name][1]


def test_the_commands_of_a_group_are_those_of_its_module() -> None:
    group = load_command("scenario")
    with typer.Context(group) as context:
        assert group.get_short_help_str() and group.to_info_dict(context)["commands"].keys() == {"list", "show"}
