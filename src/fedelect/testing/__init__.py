"""For authors of selectors: the suite that every selector must pass, ours or yours.

from fedelect.testing import check_selector

def test_my_selector() -> None:
check_selector(lambda clients, budget, seed: MyUcb(clients=clients, budget=budget, seed=seed))
"""

from fedelect.testing.conformance import ConformanceError, check_selector, selector_checks

__all__ = ["ConformanceError", "check_selector", "selector_checks"]
