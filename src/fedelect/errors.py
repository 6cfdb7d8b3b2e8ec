"""Every exception fedelect raises on purpose.

A message says what was wrong, what was got and what to do. The tree:

    FedelectError
    ├── ConfigurationError        a parameter, scenario or selector name that cannot be used   (ValueError)
    │   ├── BudgetError           more clients to elect than there are
    │   └── UnmeasuredError       an engine does not know a quantity that a selector asks for
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


class UnmeasuredError(ConfigurationError):
    """An engine does not know a quantity (losses, the size of a model) that a selector asks for."""


class FeedbackError(FedelectError, ValueError):
    """Feedback that does not fit the question it answers."""


class MissingSignalError(FeedbackError):
    """The selector needs a signal (reward, opinions, beliefs) that the feedback lacks."""


class StaleSelectionError(FedelectError):
    """A selection that is not, or no longer, the open one."""


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
    """Another peer broke the protocol (for example by speaking for another client)."""


class MissingExtraError(FedelectError, ImportError):
    """An optional dependency is not installed; the message holds the install line.

    Args:
        feature: What needs it.
        extra: The extra of fedelect that brings it, or the package itself.
        is_package: Whether `extra` is a package of its own.
    """

    def __init__(self, feature: str, extra: str, is_package: bool = False) -> None:
        what = f"{extra}, which is not installed" if is_package else "an extra that is not installed"
        install = extra if is_package else f"'fedelect[{extra}]'"
        super().__init__(f"{feature} needs {what}; run: pip install {install}")
        self._arguments = (feature, extra, is_package)

    def __reduce__(self) -> tuple[type["MissingExtraError"], tuple[str, str, bool], dict[str, object]]:
        # One raised in a worker process can then be shown by its parent.
        return type(self), self._arguments, self.__dict__
