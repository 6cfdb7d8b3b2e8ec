"""Every claim of the paper's numerical section, and of its theorems, tested by the results on file."""

from paper.claims import beliefs, central, democratized, selected_time, sets, sweeps, table, theory
from paper.claims.claim import VERDICTS, Check, Claim, Finding, Verdict, assess, verdict_of

CLAIMS: tuple[Claim, ...] = (
    *sets.CLAIMS,
    *selected_time.CLAIMS,
    *central.CLAIMS,
    *beliefs.CLAIMS,
    *democratized.CLAIMS,
    *table.CLAIMS,
    *sweeps.CLAIMS,
    *theory.CLAIMS,
)
"""In the order of the paper."""

__all__ = ["CLAIMS", "VERDICTS", "Check", "Claim", "Finding", "Verdict", "assess", "verdict_of"]
