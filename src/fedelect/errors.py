"""Every exception fedelect raises on purpose.

A message says what was wrong, what was got and what to do. The tree:

    FedelectError
    ├── ConfigurationError        a parameter, scenario or selector name that cannot be used   (ValueError)
    │   └── BudgetError           more clients to elect than there are
    ├── FeedbackError             feedback that does not fit the question                      (ValueError)
    │   └── MissingSignalError    the selector needs a signal that the feedback lacks
    ├── StaleSelectionError       a selection that is not, or no longer, the open one
    ├── AvailabilityError         too few clients are there to form a cohort
    ├── SelectorError             a selector (a user's, most likely) failed or elected what it may not
    ├── NoElection                the clients did not agree on a cohort: the slot is skipped
    ├── StateError                a saved state that cannot be restored                        (ValueError)
    ├── DataError                 a data set that is missing, damaged or of the wrong shape
    ├── RunError                  a run folder that cannot be used as asked
    │   ├── RunMismatchError      it holds another configuration
    │   ├── RunLockedError        another process is writing to it
    │   └── SchemaError           it was written by a version this one does not know
    ├── ProtocolError
    │   ├── LocalProtocolError    the host misused its own peer
    │   └── RemoteProtocolError   another peer broke the protocol
    └── MissingExtraError         an optional dependency is not installed                      (ImportError)
"""


class FedelectError(Exception):
    """Base of all of fedelect's own exceptions."""


class ConfigurationError(FedelectError, ValueError):
    """A parameter, scenario or selector name that cannot be used."""


class BudgetError(ConfigurationError):
    """More clients to elect than there are, or none."""


class FeedbackError(FedelectError, ValueError):
    """Feedback that does not fit the question it answers."""


class MissingSignalError(FeedbackError):
    """The selector needs a signal (reward, opinions, beliefs) that the feedback lacks."""


class StaleSelectionError(FedelectError):
    """An ask that is not, or no longer, the open one."""


class AvailabilityError(FedelectError):
    """Too few clients are there to form a cohort."""


class SelectorError(FedelectError):
    """A selector (a user's, most likely) failed, or elected what it may not."""


class NoElection(FedelectError):
    """The clients did not agree on a cohort; the slot is skipped and nobody trains."""


class StateError(FedelectError, ValueError):
    """A saved state that cannot be restored."""


class DataError(FedelectError):
    """A data set that is missing, damaged or of the wrong shape."""


class RunError(FedelectError):
    """A run folder that cannot be used as asked."""


class RunMismatchError(RunError):
    """The run folder holds another configuration."""


class RunLockedError(RunError):
    """Another process is writing to the run folder."""


class SchemaError(RunError):
    """The run folder was written under a schema this version does not know."""


class ProtocolError(FedelectError):
    """Base of the two protocol errors; raise one of them."""


class LocalProtocolError(ProtocolError):
    """The host misused its own peer (for example proposed before the beliefs settled)."""


class RemoteProtocolError(ProtocolError):
    """Another peer broke the protocol (for example spoke for somebody else)."""


class MissingExtraError(FedelectError, ImportError):
    """An optional dependency is not installed; the message holds the install line."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an extra that is not installed; run: pip install 'fedelect[{extra}]'")
        self._arguments = (feature, extra)

    def __reduce__(self) -> tuple[type["MissingExtraError"], tuple[str, str], dict[str, object]]:
        return (
            type(self),
            self._arguments,
            self.__dict__,
        )  # so that one raised in a worker process can be shown by its parent
