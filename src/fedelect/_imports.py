"""A user's own classes and functions, named as "module:attribute" in a scenario or on the command line."""

import importlib
from collections.abc import Callable
from typing import Any

from fedelect.errors import ConfigurationError


def import_callable(name: str, *, what: str) -> Callable[..., Any]:
    """What "module:attribute" names: something that can be called.

    Args:
        name: The name; its module is found in the current folder or on PYTHONPATH.
        what: What it is named for, for the message.

    Raises:
        ConfigurationError: The module cannot be imported, whatever it raises, or has no such function or class.
    """
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # whatever a user's module raises
        raise ConfigurationError(
            f"{what} {name!r} cannot be imported: {type(error).__name__}: {error}; "
            f"is the module in this folder or on PYTHONPATH, and sound?"
        ) from error
    if not callable(found):
        raise ConfigurationError(f"{what} {name!r} is {found!r}, which cannot be called; name a function or a class")
    return found  # type: ignore[no-any-return]
