"""Checks of what a strategy is given, before anything is sent, and the default run folder."""

from pathlib import Path

from flwr.serverapp.strategy import Strategy

from fedelect.errors import ConfigurationError
from fedelect.flower.inner import remember_state
from fedelect.flower.privacy import OpinionPrivacy
from fedelect.flower.settings import selector_label
from fedelect.flower.signals import MEASURED, REPORTED
from fedelect.loop import check_fits
from fedelect.selectors import AbstractSelector
from fedelect.vocabulary import Signal, as_int

SUPPLIED: frozenset[Signal] = frozenset({"reward", "opinions"}) | MEASURED | REPORTED
"""Signals that a selector can get on Flower; see `fedelect.flower.signals`."""

ASKED: frozenset[Signal] = frozenset({"reward", "opinions"}) | REPORTED
"""Those of them that clients give when they are asked to evaluate."""


def new_run_folder() -> Path:
    """Return the path of a new run folder: the next number in `fedelect-runs`, below the current folder."""
    parent = Path("fedelect-runs")
    taken = [int(entry.name) for entry in parent.iterdir() if entry.name.isdecimal()] if parent.is_dir() else []
    return (parent / f"{max(taken, default=0) + 1:03d}").absolute()


def check_numbers(budget: int, clients: int | None) -> None:
    """Raise ConfigurationError unless a recommended selector can be made for them; None: the clients that are there."""
    if budget < 1:
        raise ConfigurationError(f"budget: got {budget}; allowed: a whole number from 1")
    if clients is not None and as_int("clients", clients) < budget:
        raise ConfigurationError(
            f"clients, or names: got {clients}, fewer than the budget of {budget}; allowed: {budget} or more, or None"
        )


def check_strategy(strategy: object, start: str) -> None:
    """Raise ConfigurationError unless this can be the inner strategy."""
    if isinstance(strategy, type):
        name = strategy.__name__
        raise ConfigurationError(f"strategy: got the class {name}; allowed: an object of it, such as {name}()")
    if not isinstance(strategy, Strategy):
        kind = type(strategy)
        old = any(base.__module__.startswith("flwr.server.strategy") for base in kind.__mro__)
        remedy = "; for that API there is fedelect.flower.legacy.GoalDirected" if old else ""
        raise ConfigurationError(
            f"strategy: got {kind.__name__}{' of the older flwr.server.strategy' if old else ''}; allowed: a strategy "
            f"of flwr.serverapp.strategy{remedy}"
        )
    if start == "cold":
        try:
            remember_state(strategy)
        except Exception as error:  # whatever its attributes raise
            raise ConfigurationError(
                f"a cold start begins each slot with {type(strategy).__name__} as it is now, and its attributes cannot "
                f"be copied: {error}; make them copyable, or use start='warm'"
            ) from error


def check_selector(selector: AbstractSelector, privacy: OpinionPrivacy | None, *, scored: bool = False) -> None:
    """Raise ConfigurationError unless a server on Flower can tell this selector what it needs.

    Args:
        selector: The selector.
        privacy: What clients promise of noisy opinions, if they add noise.
        scored: Whether the server can score models.
    """
    if not isinstance(selector, AbstractSelector):
        raise ConfigurationError(f"selector: got {type(selector).__name__}; allowed: a selector of fedelect.selectors")
    if "beliefs" in selector.needs:
        raise ConfigurationError(
            f"{type(selector).__name__} needs the clients' beliefs, which stay with the clients; let them elect, with "
            f"fedelect.flower.PeerElected, or choose another selector"
        )
    missing = sorted(selector.needs - SUPPLIED)
    if missing:
        raise ConfigurationError(
            f"{type(selector).__name__} needs {' and '.join(map(repr, missing))}, which is not supplied on Flower; "
            f"choose another selector (`fedelect selectors` lists what each needs)"
        )
    if "contributions" in selector.needs and not scored:
        raise ConfigurationError(
            f"{type(selector).__name__} needs 'contributions', which the server estimates by a score of models; give "
            f"score=, a function of a model (an ArrayRecord) into a number, such as its accuracy on validation data at "
            f"the server, or choose another selector"
        )
    check_fits(selector, "fa", selector_label(selector), validated=scored)
    hidden = sorted(selector.needs & ({"opinions"} | REPORTED))
    if privacy is not None and hidden:
        raise ConfigurationError(
            f"{type(selector).__name__} needs each client's {' and '.join(map(repr, hidden))}, and with `privacy` "
            f"there is only a noisy average"
        )
