"""Scenarios as TOML text.

Parsing is strict. Writing prints every key, each under a comment with its meaning and its allowed values; the text
parses back to an equal value.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from fedelect._text import printable
from fedelect.errors import ConfigurationError
from fedelect.scenario.config import ScenarioConfig, explain_refusal, field_meta, table_type

LARGEST_TEXT = 10_000_000
"""Characters of the longest text that is read as a scenario."""

_WIDTH = 100
_LONG_KEY = re.compile(r"""(?m)(?:^|[\[{,])[ \t]*+(?:["'\w-]++[ \t]*+\.[ \t]*+){50}""")  # possessive: in linear time
_TOO_DEEP = "the scenario is nested too deeply; a scenario has tables of keys, no more"


def parse_scenario(text: str) -> ScenarioConfig:
    r"""Parse a scenario from TOML; keys left out take the paper's values.

    >>> parse_scenario('clients = 8\nbudget = 2').budget
    2

    Raises:
        ConfigurationError: The text is not TOML, or a key is unknown, of the wrong type or impossible; the
            message names the dotted key, what was got and what is allowed.
    """
    if len(text) > LARGEST_TEXT:
        raise ConfigurationError(f"the scenario is longer than {LARGEST_TEXT:,} characters; is it a scenario?")
    if _LONG_KEY.search(text):  # the parser would take time and memory by the square of its parts
        raise ConfigurationError(_TOO_DEEP)
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"the scenario is not valid TOML: {error}") from error
    except RecursionError as error:
        raise ConfigurationError(_TOO_DEEP) from error
    except ValueError as error:  # a whole number of thousands of digits
        raise ConfigurationError(f"the scenario cannot be read: {error}") from error
    return _convert(given)


def change_scenario(config: ScenarioConfig, changes: Mapping[str, Any]) -> ScenarioConfig:
    """Return the scenario with some keys changed; a table such as `data` is changed key by key.

    >>> change_scenario(ScenarioConfig(), {"clients": 8, "data": {"iid_clients": 2}}).data.iid_clients
    2

    Raises:
        ConfigurationError: A key is unknown, of the wrong type or impossible, as in `parse_scenario`.
    """
    return _convert(_merge(cast("dict[str, Any]", msgspec.to_builtins(config)), changes))


def _merge(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(table)
    for key, value in changes.items():
        old = table.get(key)
        inner = old if isinstance(old, Mapping) else {}
        merged[key] = _merge(inner, value) if isinstance(value, Mapping) else value
    return merged


def _convert(given: dict[str, Any]) -> ScenarioConfig:
    try:
        plain = msgspec.to_builtins(given)
    except TypeError as error:
        raise ConfigurationError(f"a scenario holds plain values only: {error}") from error
    try:
        return msgspec.convert(plain, ScenarioConfig)
    except msgspec.ValidationError as error:
        raise explain_refusal(error, plain) from error


def scenario_toml(config: ScenarioConfig) -> str:
    """Write `config` as commented TOML that `parse_scenario` reads back to an equal value.

    A table that is not set is written as a comment, with its defaults.
    """
    return "\n".join(_body_lines("", config)) + "\n"


def _body_lines(path: str, table: msgspec.Struct, *, unset: bool = False) -> list[str]:
    """Lines of a table's keys, then of the tables in it; `path` is its own dotted key and a dot."""
    keys: list[str] = []
    tables: list[str] = []
    unset_tables: list[str] = []
    for field in msgspec.structs.fields(table):
        value = getattr(table, field.name)
        kind = table_type(type(table), field.name)
        if kind is None:
            keys += _key_lines(type(table), field.name, value, unset=unset)
        elif value is msgspec.UNSET:
            unset_tables += ["", *_table_lines(f"{path}{field.name}", kind(), unset=True)]
        else:
            tables += ["", *_table_lines(f"{path}{field.name}", value, unset=unset)]
    return keys + tables + unset_tables


def _table_lines(path: str, table: msgspec.Struct, *, unset: bool) -> list[str]:
    note = (type(table).__doc__ or "").partition(": ")[2]
    head = [f"# [{path}]"] if unset else [f"# {note[:1].upper()}{note[1:]}", f"[{path}]"]
    return [*head, *_body_lines(f"{path}.", table, unset=unset)]


def _key_lines(owner: type, name: str, value: object, *, unset: bool) -> list[str]:
    """A comment with the meaning, and the key; in a table that is not set, the key alone as a comment."""
    meta = field_meta(owner, name)
    line = f"# {name} = ..." if value is msgspec.UNSET else f"{name} = {_toml(value)}"
    if unset:
        return [f"# {line.removeprefix('# ')}"]
    if meta is None or meta.extra is None:
        return [line]
    return [f"# {meta.description}: {meta.extra['allowed']}", line]


def _toml(value: object) -> str:
    if isinstance(value, str):
        # JSON's escapes are TOML's; TOML alone forbids a bare DEL.
        text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        return "".join(one if printable(one) == one else f"\\u{ord(one):04x}" for one in text)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        parts = [_toml(part) for part in value]
        flat = f"[{', '.join(parts)}]"
        return flat if len(flat) <= _WIDTH else "[\n" + "".join(f"  {part},\n" for part in parts) + "]"
    return repr(value)
