"""For authors of selectors: the suite that every selector must pass, ours or yours.

from fedelect.testing import check_selector

def test_my_selector() -> None:
check_selector(lambda clients, budget, seed: MyUcb(clients=clients, budget=budget, seed=seed))
"""

from fedelect.testing.conformance import ConformanceError as ConformanceError
from fedelect.testing.conformance import check_selector as check_selector
from fedelect.testing.conformance import selector_checks as selector_checks

__all__ = ["ConformanceError", "check_selector", "selector_checks"]
