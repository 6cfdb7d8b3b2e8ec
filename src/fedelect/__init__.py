"""fedelect: let the clients of a federated learning system elect who trains next.

Importing this package loads numpy and nothing heavier. Start at `fedelect.selectors` (who trains next),
`fedelect.scenario` (which world) or the command `fedelect demo`.
"""

from fedelect.errors import FedelectError as FedelectError
from fedelect.vocabulary import Ask as Ask
from fedelect.vocabulary import Feedback as Feedback

__version__ = "0.1.0"
__all__ = ["Ask", "FedelectError", "Feedback", "__version__"]
