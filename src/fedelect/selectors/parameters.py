"""Constructor arguments of selectors: recorded as JSON-able values, and checked."""

import functools
import inspect
import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar, cast

import numpy as np

from fedelect.errors import ConfigurationError, SelectorError

Constructor = TypeVar("Constructor", bound=Callable[..., None])


def record_arguments(init: Constructor) -> Constructor:
    """Wrap a constructor so that `self.parameters` holds its arguments, defaults included, by name.

    Of nested constructors the outermost counts. It may replace values, such as those of an iterator, in
    `self.parameters`; when it returns, all must be JSON-able.
    """
    signature = inspect.signature(init)
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
    if any(parameter.kind in by_position for parameter in signature.parameters.values()):
        raise SelectorError(f"{init.__qualname__} takes arguments without a name; let it take keyword arguments only")

    @functools.wraps(init)
    def record_and_call(self: Any, *positional: Any, **named: Any) -> None:
        if hasattr(self, "parameters"):  # called by the constructor of a subclass
            return init(self, *positional, **named)
        try:
            bound = signature.bind(self, *positional, **named)
        except TypeError:
            return init(self, *positional, **named)  # raises, and says which argument is wrong
        bound.apply_defaults()
        self.parameters = {}
        for name, value in list(bound.arguments.items())[1:]:
            parameter = signature.parameters[name]
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                self.parameters |= value
            else:
                self.parameters[name] = float(value) if _is_int_for_float(parameter, value) else value
        init(self, *positional, **named)
        for name, value in self.parameters.items():
            try:
                self.parameters[name] = _as_json(value)
            except TypeError as error:
                raise ConfigurationError(
                    f"{type(self).__name__} cannot save its argument {name}={value!r}: {error}; "
                    f"let its constructor set self.parameters[{name!r}] to numbers, texts, lists or mappings of such"
                ) from None
        return None

    record_and_call.__dict__[_RECORDS] = True
    return cast("Constructor", record_and_call)


_RECORDS = "__records_arguments__"


def records_arguments(init: Callable[..., None]) -> bool:
    """Return whether a constructor is wrapped by `record_arguments`."""
    return _RECORDS in vars(init)


def _is_int_for_float(parameter: inspect.Parameter, value: object) -> bool:
    return isinstance(parameter.default, float) and isinstance(value, int) and not isinstance(value, bool)


def _as_json(value: Any) -> Any:
    """Convert numpy values, tuples, sets and ranges in `value` to plain numbers and lists, mappings to dicts."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TypeError(f"{value} is not finite")
        return float(value)
    if isinstance(value, np.generic | np.ndarray):
        return _as_json(value.tolist())
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("a mapping has keys that are no text")
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, bytes | Iterator):
        return [_as_json(item) for item in value]
    raise TypeError(f"a {type(value).__name__} is not JSON-able")


def as_float(name: str, value: object, *, low: float, high: float) -> float:
    """Return `value` as a float; ConfigurationError unless it is a number from `low` to `high`."""
    number = math.nan if isinstance(value, bool) or not isinstance(value, numbers.Real) else float(value)
    if not low <= number <= high:
        raise ConfigurationError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}")
    return number


def as_exploration(value: object) -> float:
    """Return the exploration weight as a float; ConfigurationError unless it is a number from 0 to 1e9."""
    return as_float("exploration", value, low=0.0, high=1e9)


def as_seconds(name: str, value: object) -> float | None:
    """Return `value` as seconds > 0, or None if it is None."""
    return None if value is None else as_float(name, value, low=1e-9, high=1e9)
