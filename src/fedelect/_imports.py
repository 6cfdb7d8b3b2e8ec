"""Import by name: a user's own classes and functions, and the modules of fedelect's extras."""

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

from fedelect.errors import ConfigurationError, MissingExtraError


def require_extras(feature: str, **modules: str) -> None:
    """Check that modules are installed, without importing them.

    Args:
        feature: What needs them, for the message.
        modules: Top-level module -> the extra that installs it.

    Raises:
        MissingExtraError: Names the extras of all that are missing.
    """
    missing = {extra for module, extra in modules.items() if not _is_installed(module)}
    if missing:
        raise MissingExtraError(feature, ",".join(sorted(missing)))


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def import_callable(name: str, *, what: str) -> Callable[..., Any]:
    """Import the class or function that "module:attribute" names.

    Args:
        name: The name; its module is found in the current folder or on PYTHONPATH.
        what: Its role, for error messages.

    Raises:
        ConfigurationError: The module cannot be imported, whatever it raises, or has no such function or class.
    """
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # a user's module may raise anything
        raise ConfigurationError(
            f"{what} {name!r} cannot be imported: {type(error).__name__}: {error}; "
            f"is the module in this folder or on PYTHONPATH, and sound?"
        ) from error
    if not callable(found):
        raise ConfigurationError(f"{what} {name!r} is {found!r}, which cannot be called; name a function or a class")
    return found  # type: ignore[no-any-return]
