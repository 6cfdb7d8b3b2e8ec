"""Report slots to a function of the user's, such as one that passes figures to an experiment tracker."""

from collections.abc import Callable

from fedelect.errors import ConfigurationError, RunError
from fedelect.records.codec import describe
from fedelect.records.schema import SlotRecord

OnSlot = Callable[[SlotRecord], None]
"""Function that gets the record of each slot once, after it was appended, in the process that writes the run."""


def check_on_slot(on_slot: object) -> None:
    """Raise ConfigurationError unless this is a function or None."""
    if on_slot is not None and not callable(on_slot):
        raise ConfigurationError(f"on_slot: got {on_slot!r}; allowed: a function of a SlotRecord, or None")


def report_slot(on_slot: OnSlot | None, record: SlotRecord) -> None:
    """Call the function, if there is one.

    Raises:
        RunError: It failed.
    """
    if on_slot is None:
        return
    try:
        on_slot(record)
    except Exception as error:  # a user's function may raise anything
        raise RunError(
            f"on_slot failed for {describe(record)}: {type(error).__name__}: {error}. What is recorded is kept; see to "
            f"the function. A run that is resumed does not report this slot a second time"
        ) from error
