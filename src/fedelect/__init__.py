"""fedelect: let the clients of a federated learning system elect who trains next.

Importing this package loads numpy and nothing heavier. Start at `fedelect.selectors` (who trains next),
`fedelect.scenario` (which world) or the command `fedelect demo`.
"""

from fedelect.errors import FedelectError
from fedelect.vocabulary import Feedback, Selection

__version__ = "0.1.0"
__all__ = ["FedelectError", "Feedback", "Selection", "__version__"]
