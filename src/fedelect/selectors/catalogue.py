"""Selectors by name: built-in ones, entry points of other packages, and `module:Class`.

A specification is `NAME`, `NAME:key=value,key=value` or `module:Class[:key=value,...]` (or `module:function`). A value
may be a list, whose items are separated by commas too: `fixed:cohort=0,1,2,3,4` (`cohort=3,` for a list of one), or a
list of lists: `round-robin:cohorts=0,1;2,3`.
"""

import importlib.metadata
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fedelect._imports import import_callable
from fedelect._text import suggest
from fedelect.errors import BudgetError, ConfigurationError, FedelectError
from fedelect.selectors import literature
from fedelect.selectors.base import AbstractSelector
from fedelect.selectors.baselines import FixedCohort, RandomCohort, RoundRobin, ShuffledCycle
from fedelect.selectors.bp_ucb import BpUcb
from fedelect.selectors.gaussian_process import BpGp, LossGp, SetGp
from fedelect.selectors.quick_init_ucb import QuickInitUcb
from fedelect.selectors.recommended import recommended
from fedelect.selectors.sound_cycle import SoundCycle
from fedelect.selectors.subset_ucb import SubsetUcb

ENTRY_POINT_GROUP = "fedelect.selectors"
"""Entry point group under which other packages offer selector classes."""

Make = Callable[..., AbstractSelector]
"""A selector's class, or a function that builds one from keyword arguments."""

AUTO = "auto"
"""Name under which the selector that `recommended` returns is built."""

_OFFERED = ("clients", "budget", "seed")  # set by `build`, not by the specification
_OFFERED_BY_PROGRAMS = ("scenario", "framework", "start", "signals")  # to their own functions only

_FAMILIES: dict[str, dict[str, type[AbstractSelector]]] = {
    "baseline": {"fixed": FixedCohort, "random": RandomCohort, "cycle": ShuffledCycle, "round-robin": RoundRobin},
    "paper": {"subset-ucb": SubsetUcb, "quick-init-ucb": QuickInitUcb, "bp-ucb": BpUcb},
    "ours": {"sound-cycle": SoundCycle, "set-gp": SetGp, "loss-gp": LossGp, "bp-gp": BpGp},
    "literature: loss": {
        "power-of-choice": literature.PowerOfChoice,
        "active-fl": literature.ActiveFl,
        "oort": literature.Oort,
        "pyramid-fl": literature.PyramidFl,
        "fedcor": literature.FedCor,
    },
    "literature: diversity": {
        "divfl": literature.DivFl,
        "clustered-by-size": literature.ClusteredBySize,
        "clustered-by-similarity": literature.ClusteredBySimilarity,
        "favor": literature.Favor,
    },
    "literature: contribution": {"s-fedavg": literature.SFedAvg, "greedyfed": literature.GreedyFed},
    "literature: bandit": {
        "client-ucb": literature.ClientUcb,
        "client-thompson": literature.ClientThompson,
        "additive-thompson": literature.AdditiveThompson,
        "context-ucb": literature.ContextUcb,
    },
    "literature: system": {
        "tifl": literature.TiFl,
        "fedcs": literature.FedCs,
        "data-size": literature.DataSize,
        "best-channel": literature.BestChannel,
        "e3cs": literature.E3cs,
    },
    "literature: fairness": {
        "proportional-fair": literature.ProportionalFair,
        "rbcs-f": literature.RbcsF,
        "fair-ucb": literature.FairUcb,
    },
}


def selector_families() -> dict[str, dict[str, type[AbstractSelector]]]:
    """All named selectors by family: built-in ones first, then those of entry points, if any, as "other packages"."""
    families = {family: dict(classes) for family, classes in _FAMILIES.items()}
    known = {name for classes in families.values() for name in classes}
    others = {
        point.name: _check_class(point.load(), f"entry point {point.name!r}")
        for point in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
        if point.name not in known
    }
    return families | ({"other packages": others} if others else {})


def selector_classes() -> dict[str, type[AbstractSelector]]:
    """All named selectors: built-in ones first, then those of entry points."""
    return {name: kind for classes in selector_families().values() for name, kind in classes.items()}


@dataclass(frozen=True, slots=True)
class SelectorSpec:
    """A selector to build. It can be pickled if it is `importable`.

    Attributes:
        text: Its label in records: the specification as given, or the name of a class or function.
        make: The class or function that builds it.
        parameters: The constructor arguments that the text sets.
    """

    text: str
    make: Make
    parameters: dict[str, Any]

    @classmethod
    def of(cls, thing: "str | Make", *, extra: Mapping[str, Make] | None = None) -> "SelectorSpec":
        """Specify a selector by text (see `parse`), by its class, or by a function.

        A class of the catalogue is labelled with its name there, another class or function with `module:Name`. One that
        other processes cannot import (defined in `__main__`, a notebook or a function) has its bare name.

        Args:
            thing: A text, a subclass of `AbstractSelector`, or a function `(clients, budget, seed) -> selector`, which
                gets those of the three that it declares, by name.
            extra: As in `parse`.
        """
        if isinstance(thing, str):
            return cls.parse(thing, extra=extra)
        if not callable(thing):
            raise ConfigurationError(f"a selector is a name, a class or a function, got {thing!r}")
        bare = getattr(thing, "__name__", type(thing).__name__).strip("<>")  # a lambda is called <lambda>
        make = _check_maker(thing, bare)
        names = {kind: name for name, kind in {**selector_classes(), **(extra or {})}.items()}
        return cls(names.get(make) or _import_name(make) or bare, make, {})

    @property
    def importable(self) -> bool:
        """Whether another process can import `make`."""
        return _import_name(self.make) is not None

    @classmethod
    def parse(cls, text: str, *, extra: Mapping[str, Make] | None = None) -> "SelectorSpec":
        """Read a specification such as `bp-ucb:exploration=0.01` or `my_module:MyUcb`.

        Args:
            text: The specification.
            extra: More classes or functions by name.
        """
        name, _, rest = text.partition(":")
        known: dict[str, Make] = {**selector_classes(), AUTO: recommended, **(extra or {})}
        if rest and "=" not in rest.partition(":")[0] and name not in known:
            attribute, _, rest = rest.partition(":")
            own = f"{name}:{attribute}"
            make: Make = _check_maker(import_callable(own, what="selector"), own)
        else:
            make = _look_up(name, known)
        parameters = _parse_parameters(text, rest)
        offered_more = make is recommended or make in (extra or {}).values()
        offered = (*_OFFERED, *_OFFERED_BY_PROGRAMS) if offered_more else _OFFERED
        allowed = [key for key in inspect.signature(make).parameters if key not in offered]
        for key in parameters:
            if key not in allowed:
                raise ConfigurationError(
                    f"selector {text!r}: unknown parameter {key!r}; "
                    f"{make.__name__} takes {', '.join(allowed) or 'none'}"
                )
        return cls(text, make, parameters)

    def build(self, *, clients: int, budget: int, seed: int, **extra: Any) -> AbstractSelector:
        """Build the selector for `clients`, of whom `budget` train.

        `extra` are more arguments for functions that were passed as `extra` to `of` or `parse`.
        """
        offered = {"clients": clients, "budget": budget, "seed": seed, **extra}
        accepted = inspect.signature(self.make).parameters
        kinds = {parameter.kind for parameter in accepted.values()}
        always = ("clients", "budget", "seed") if inspect.Parameter.VAR_KEYWORD in kinds else ()
        given = {key: value for key, value in offered.items() if key in accepted or key in always}
        arguments = given | self.parameters
        missing = [
            key
            for key, parameter in accepted.items()
            if parameter.default is inspect.Parameter.empty
            and parameter.kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
            and key not in arguments
        ]
        if missing:
            example = f"for example {self.text}:{missing[0]}={'0,1,2' if missing[0] == 'cohort' else '1'}"
            advice = example if self.importable else "it is given clients, budget and seed, by name"
            raise ConfigurationError(f"selector {self.text!r} needs {', '.join(missing)}; {advice}")
        try:
            selector = self.make(**arguments)
        except FedelectError:
            raise
        except Exception as error:  # whatever a user's class raises
            raise ConfigurationError(f"selector {self.text!r} cannot be built: {error}") from error
        if not isinstance(selector, AbstractSelector):
            raise ConfigurationError(f"selector {self.text!r} gave {selector!r}, not an AbstractSelector")
        if selector.budget != budget:
            raise BudgetError(
                f"selector {self.text!r} elects {selector.budget} clients where the scenario's budget is {budget}; "
                f"change one of them"
            )
        return selector


def _look_up(name: str, classes: Mapping[str, Make]) -> Make:
    if name not in classes:
        raise ConfigurationError(
            f"unknown selector {name!r}{suggest(name, classes)}; `fedelect selectors` lists the known ones, and your "
            f"own class is module:Class"
        )
    return classes[name]


def _check_class(found: object, what: str) -> type[AbstractSelector]:
    if not (isinstance(found, type) and issubclass(found, AbstractSelector)):
        raise ConfigurationError(f"{what} is {found!r}, not a subclass of fedelect.selectors.AbstractSelector")
    return found


def _check_maker(found: Callable[..., Any], what: str) -> Make:
    return _check_class(found, what) if isinstance(found, type) else found


def _import_name(make: Make) -> str | None:
    """`module:name` of a class or function that other processes can import, else None."""
    module, name = getattr(make, "__module__", None), getattr(make, "__qualname__", "")
    if module in (None, "__main__") or getattr(sys.modules.get(module), name, None) is not make:
        return None
    return f"{module}:{name}"


def _parse_parameters(text: str, rest: str) -> dict[str, Any]:
    values: dict[str, list[str]] = {}
    key = ""
    for item in rest.split(",") if rest else []:
        head, sign, tail = item.partition("=")
        if sign:
            key = head.strip()
            values[key] = [tail]
        elif key:
            values[key].append(item)
        else:
            raise ConfigurationError(f"selector {text!r}: expected key=value after the name, got {item!r}")
    return {name: _parse_value(",".join(items)) for name, items in values.items()}


def _parse_value(text: str) -> Any:
    if ";" in text:
        return [_parse_list(part) for part in text.split(";")]
    return _parse_list(text) if "," in text else _parse_scalar(text.strip())


def _parse_list(text: str) -> list[bool | int | float | str]:
    return [_parse_scalar(item.strip()) for item in text.split(",") if item.strip()]


def _parse_scalar(text: str) -> bool | int | float | str:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
