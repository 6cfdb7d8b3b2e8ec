"""Every claim of the paper against the committed results: those that hold and those that do not, as we found them."""

import pytest
from tests.reproduce.committed import ROOT, committed

from fedelect.reproduce import CLAIMS, PRESETS, Evidence, assess
from fedelect.reproduce.claims import Claim
from fedelect.reproduce.document import read_verdicts

pytestmark = pytest.mark.paper


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return Evidence(library=committed(tmp_path_factory.mktemp("committed")), preset=PRESETS["paper"])


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.key)
def test_the_results_give_the_verdict_on_file(claim: Claim, evidence: Evidence) -> None:
    kept = read_verdicts(ROOT / "reproduction/verdicts.json")[claim.key]
    finding = assess(claim, evidence)
    assert (finding.verdict, list(finding.outcomes)) == (kept.verdict, kept.outcomes)
    if finding.verdict == "not measured yet":
        pytest.skip(f"not measured yet: {claim.key}")
    for check, measured, outcome in zip(claim.checks, finding.measured, finding.outcomes, strict=True):
        assert measured is not None and measured.low is not None and measured.high is not None
        inside = check.claimed.low < measured.low and measured.high < check.claimed.high
        outside = measured.high <= check.claimed.low or measured.low >= check.claimed.high
        assert {"holds": inside, "fails": outside, "undecided": not inside and not outside}[outcome]
    assert finding.why, f"{claim.key}: no reason is given for {finding.verdict!r}"
