"""The pages of the command line, from the commands themselves."""

import inspect
from collections.abc import Iterator

import click
import typer

from fedelect.cli.main import COMMANDS, app, load_command


def list_commands() -> Iterator[tuple[str, click.Command]]:
    """Every command that can be run, by its full name ("atlas build")."""
    for name in COMMANDS:
        command = load_command(name)
        if isinstance(command, click.Group):
            for part, inner in command.commands.items():
                yield f"{name} {part}", inner
        else:
            yield name, command


def find_command(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that words (without `fedelect`) name, and the arguments that are left.

    Raises:
        click.UsageError: There is no such command.
    """
    commands = dict(list_commands())
    for length in (2, 1):
        name = " ".join(words[:length])
        if len(words) >= length and name in commands:
            return commands[name], words[length:]
    raise click.UsageError(f"`fedelect {' '.join(words)}` names none of: {', '.join(commands)}")


def make_page(name: str, command: click.Command) -> str:
    """Markdown of one command: usage, what it does, arguments and options."""
    context = click.Context(command, info_name=f"fedelect {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f"## fedelect {name}", "", inspect.cleandoc(command.help or ""), ""]
    lines += ["```text", f"fedelect {name} {usage}", "```", ""]
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    options = [one for one in command.params if isinstance(one, click.Option)]
    if arguments:
        lines += ["| argument | meaning |", "|---|---|"]
        lines += [f"| `{one.make_metavar(context)}` | {_cell(getattr(one, 'help', ''))} |" for one in arguments]
        lines.append("")
    lines += ["| option | default | meaning |", "|---|---|---|"]
    lines += [f"| {_flags(one)} | {_default(one)} | {_cell(one.help)} |" for one in options]
    return "\n".join([*lines, ""])


def make_index() -> str:
    """Markdown of the whole command line."""
    root = typer.main.get_command(app)
    lines = ["# Command line", "", root.help or "", ""]
    lines += ["This page is made from the code of the commands. `fedelect COMMAND --help` prints the same.", ""]
    lines += ["| command | what it does |", "|---|---|"]
    pages = list(list_commands())
    lines += [f"| [`fedelect {name}`](#fedelect-{name.replace(' ', '-')}) | {_first(each)} |" for name, each in pages]
    lines += [
        "",
        "Every command takes `--help`. `fedelect --version` prints the version. `--debug` shows a traceback.",
        "",
    ]
    return "\n".join([*lines, *(make_page(name, command) for name, command in pages)])


def _first(command: click.Command) -> str:
    return _cell(inspect.cleandoc(command.help or "").split("\n\n")[0])


def _flags(option: click.Option) -> str:
    return ", ".join(f"`{flag}`" for flag in (*option.opts, *option.secondary_opts))


def _default(option: click.Option) -> str:
    if option.required:
        return "required"
    if option.default in (None, False, ()) or callable(option.default):
        return ""
    return f"`{option.default}`"


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")
