"""Every claim of the paper against the committed results: those that hold and those that do not, as we found them."""

import pytest
from tests.reproduce.committed import ROOT, committed, committed_on_atlas

from fedelect.reproduce import CLAIMS, PRESETS, Evidence, assess, experiment
from fedelect.reproduce.claims import Claim
from fedelect.reproduce.document import read_verdicts

pytestmark = pytest.mark.paper


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Evidence]:
    """By the file of verdicts: what they were judged by."""
    folder = tmp_path_factory.mktemp("committed")
    return {
        "verdicts.json": Evidence(library=committed(folder), preset=PRESETS["paper"]),
        "verdicts-on-atlas.json": Evidence(library=committed_on_atlas(folder), preset=PRESETS["paper"].on_atlas()),
    }


@pytest.mark.parametrize("file", ["verdicts.json", "verdicts-on-atlas.json"])
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.key)
def test_the_results_give_the_verdict_on_file(claim: Claim, file: str, evidence: dict[str, Evidence]) -> None:
    verdicts = read_verdicts(ROOT / "reproduction" / file)
    if claim.key not in verdicts:
        assert "on-atlas" in file and not experiment(claim.where).in_main_world
        return
    kept = verdicts[claim.key]
    finding = assess(claim, evidence[file])
    assert (finding.verdict, list(finding.outcomes)) == (kept.verdict, kept.outcomes)
    if finding.verdict == "not measured yet":
        pytest.skip(f"not measured yet: {claim.key}")
    for check, measured, outcome in zip(claim.checks, finding.measured, finding.outcomes, strict=True):
        assert measured is not None and measured.low is not None and measured.high is not None
        inside = check.claimed.low < measured.low and measured.high < check.claimed.high
        outside = measured.high <= check.claimed.low or measured.low >= check.claimed.high
        assert {"holds": inside, "fails": outside, "undecided": not inside and not outside}[outcome]
    assert finding.why, f"{claim.key}: no reason is given for {finding.verdict!r}"
