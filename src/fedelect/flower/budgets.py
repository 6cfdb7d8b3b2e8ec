"""Cohorts whose size changes over time: a user's function of the slot, checked."""

from collections.abc import Callable

from fedelect.errors import ConfigurationError
from fedelect.selectors import AbstractSelector, selector_classes
from fedelect.vocabulary import as_int

BudgetFunction = Callable[[int], int]
"""Slot (from 1) -> K, how many clients train in it."""


class BudgetSchedule:
    """The size of the cohort in each slot. The function is called once for a slot.

    Args:
        function: The user's function.

    Raises:
        ConfigurationError: The function raises for slot 1, or returns no whole number from 1.
    """

    def __init__(self, function: BudgetFunction) -> None:
        self.function = function
        self._sizes: dict[int, int] = {}
        self.first = self.size(1)

    def size(self, slot: int) -> int:
        """Return K of a slot.

        Raises:
            ConfigurationError: The function raises, or returns no whole number from 1.
        """
        if slot not in self._sizes:
            try:
                size: object = self.function(slot)
            except Exception as error:  # whatever a user's function raises
                raise ConfigurationError(f"budget= raised {type(error).__name__}: {error}, for slot {slot}") from error
            try:
                found = as_int("budget", size)
            except ConfigurationError:
                found = 0
            if found < 1:
                raise ConfigurationError(
                    f"budget= returned {size!r} for slot {slot}; it must return a whole number of clients from 1"
                )
            self._sizes[slot] = found
        return self._sizes[slot]

    def sizes(self, slots: int) -> list[int]:
        """Return K of every slot from 1 to `slots`."""
        return [self.size(slot) for slot in range(1, slots + 1)]

    def check_clients(self, slots: int, clients: int) -> None:
        """Raise ConfigurationError if a slot takes more than all clients."""
        for slot, size in enumerate(self.sizes(slots), start=1):
            if size > clients:
                raise ConfigurationError(
                    f"budget= returned {size} for slot {slot}, and there are at most {clients} clients; return fewer, "
                    f"or give clients=, the most that may take part"
                )


def read_budget(budget: int | BudgetFunction | None) -> tuple[int | None, BudgetSchedule | None]:
    """Return K of the first slot, and the schedule if K is a function of the slot."""
    if callable(budget):
        schedule = BudgetSchedule(budget)
        return schedule.first, schedule
    return (None if budget is None else as_int("budget", budget)), None


def check_resizes(selector: AbstractSelector | None) -> None:
    """Raise ConfigurationError unless the selector can elect cohorts of changing size.

    Args:
        selector: The selector; None for the recommended one of a cold start, which cannot.
    """
    if selector is not None and selector.resizes:
        return
    can = ", ".join(name for name, kind in selector_classes().items() if kind.resizes)
    what = "the selector of a cold start" if selector is None else type(selector).__name__
    raise ConfigurationError(
        f"budget= is a function of the slot, and {what} elects the same number of clients in every slot; give a "
        f"number, or a selector that takes any size: {can} (without sets of its own)"
    )
