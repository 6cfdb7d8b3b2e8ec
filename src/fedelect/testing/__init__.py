"""For authors of selectors: the suite that every selector must pass.

from fedelect.testing import check_selector

def test_my_selector() -> None:
print(check_selector(MySelector))  # the class, its name, or a function (clients, budget, seed) -> selector
"""

from fedelect.testing.conformance import ConformanceReport, check_selector, selector_checks
from fedelect.testing.requirements import ConformanceError

__all__ = ["ConformanceError", "ConformanceReport", "check_selector", "selector_checks"]
