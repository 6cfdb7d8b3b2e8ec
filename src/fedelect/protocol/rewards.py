"""A client's own rewards: which of its opinions count, and the mean it claims."""

import math

from fedelect.errors import LocalProtocolError
from fedelect.protocol.chain import CertificateChain


class OwnRewards:
    """One client's opinions by slot, and their mean over the slots in which it was elected.

    Others check that a claimed mean moves only with elections. So an opinion must be there before its client first
    claims a mean on top of that slot's certificate: one that comes later is not counted.

    Args:
        client: Whose they are.
    """

    def __init__(self, client: int) -> None:
        self._client = client
        self._opinions: dict[int, float] = {}
        self._closed = 0  # opinions of slots up to this one are settled

    def give(self, slot: int, opinion: float) -> bool:
        """The client judged the model trained in `slot`; returns whether that can still count (nan: no opinion)."""
        if not (math.isnan(opinion) or 0.0 <= opinion <= 1.0):
            raise LocalProtocolError(f"an opinion must be in [0, 1], or nan if there is none, got {opinion!r}")
        if slot <= self._closed or math.isnan(opinion):
            return False
        self._opinions[slot] = opinion
        return True

    def close(self, slot: int) -> None:
        """Settle the slots up to `slot`, as a claim on top of its certificate did."""
        self._closed = max(self._closed, slot)

    def claim(self, chain: CertificateChain) -> float:
        """The mean to propose on top of `chain`; nan if there are no rewards yet. Settles the slots up to its head."""
        self.close(chain.slot)
        total, count = 0.0, 0
        for certificate in chain.certificates:
            if self._client in certificate.cohort and certificate.slot in self._opinions:
                total, count = total + self._opinions[certificate.slot], count + 1
        return total / count if count else math.nan


def to_claim(chain: CertificateChain, *, rule: str, mean: float, belief: float, judged: int) -> tuple[float, float]:
    """The mean and belief that a host proposes for its client on top of `chain`.

    Under "bp-gp" a belief is about the model that the last certified cohort trained, or there is none: what is said on
    top of a certificate counts for its cohort, and older news would count for the wrong one. No mean is told.

    Args:
        chain: History as its peer knows it now.
        rule: Of the configuration.
        mean: As `OwnRewards.claim` has it.
        belief: As given by `BeliefSettled`.
        judged: The slot whose model the opinion behind that belief is of; 0 if none.
    """
    if rule == "bp-gp":
        return math.nan, belief if judged == chain.slot > 0 else math.nan
    return mean, belief if judged > 0 else math.nan
