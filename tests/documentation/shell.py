"""Commands of the documentation, compared with what they call: without running them."""

import re
import shlex
import tomllib

import click
from tools.site.commands import find_command
from tools.site.links import ROOT

EXTERNAL = ("flwr", "flower-supernode", "source", "cd", "git")
"""Commands of others; nothing is checked."""


def split_commands(code: str) -> list[list[str]]:
    """The commands of a block, as words; comments, prompts and settings of variables are left out."""
    joined = re.sub(r"\\\n\s*", " ", code)
    found = list[list[str]]()
    for line in joined.splitlines():
        words = shlex.split(re.sub(r"…|^nice (-n \d+ )?|^\s+", "", line), comments=True)
        while words and re.match(r"[A-Z_]+=", words[0]):
            words = words[1:]
        if words:
            found.append(words)
    return found


def check_command(words: list[str]) -> None:
    """Check one command.

    Raises:
        click.UsageError: It does not exist, or has an option or value that its program refuses.
    """
    name, *rest = words
    if name == "fedelect":
        check_fedelect(rest)
    elif name == "python":
        check_python(rest)
    elif name == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        _require(rest[0] in targets, f"make has no target {rest[0]}")
    elif name == "pip":
        check_extras(rest)
    else:
        _require(name in EXTERNAL, f"nothing is known of the command {name}")


def check_fedelect(words: list[str]) -> None:
    """Check a command of ours against its own parser: names and types of options, number of arguments."""
    command, rest = find_command(words)
    if "--help" in rest:
        return
    context = click.Context(command, info_name=" ".join(words[:2]))
    given, left, _ = command.make_parser(context).parse_args(list(rest))
    _require(not left, f"{command.name} leaves {left} over")
    for parameter in command.params:
        value = given.get(parameter.name or "")
        values = [one for one in (value if isinstance(value, list | tuple) else [value]) if isinstance(one, str)]
        needed = parameter.required and parameter.param_type_name == "argument"
        _require(bool(values) or not needed, f"{command.name} lacks {parameter.name}")
        for one in values:
            if not isinstance(parameter.type, click.Path):
                parameter.type.convert(one, parameter, context)


def check_python(words: list[str]) -> None:
    """Check that a module or file is there, and that its source has each option; code is compiled."""
    if words[0] == "-c":
        compile(words[1], "<command>", "exec")
        return
    module = words[1].replace(".", "/") if words[0] == "-m" else words[0]
    places = [ROOT / f"{module}.py", ROOT / module, ROOT / "examples/flower" / module]
    place = next((place for place in places if place.exists()), None)
    _require(place is not None, f"there is no {module}")
    assert place is not None
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    source = "\n".join(file.read_text(encoding="utf-8") for file in files)
    for option in (word for word in words if word.startswith("--")):
        _require(f'"{option}"' in source or option.lstrip("-").replace("-", "_") in source, f"{place} lacks {option}")


def check_extras(words: list[str]) -> None:
    """Check that the extras which are installed are those of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for word in words:
        found = re.fullmatch(r"(?:fedelect|\.)\[([\w,]+)\]", word)
        if found:
            unknown = set(found.group(1).split(",")) - project["optional-dependencies"].keys()
            _require(not unknown, f"pyproject.toml has no extra {unknown}")


def _require(met: bool, said: str) -> None:
    if not met:
        raise click.UsageError(said)
