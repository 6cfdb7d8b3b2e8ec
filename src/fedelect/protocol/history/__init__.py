"""What was certified, what it says about means, and who is proven to have lied."""

from fedelect.protocol.history.appraisals import Appraisals as Appraisals
from fedelect.protocol.history.chain import HISTORY_LIMIT as HISTORY_LIMIT
from fedelect.protocol.history.chain import Admission as Admission
from fedelect.protocol.history.chain import CertificateChain as CertificateChain
from fedelect.protocol.history.proofs import ImpossibleMove as ImpossibleMove
from fedelect.protocol.history.proofs import Proof as Proof
from fedelect.protocol.history.proofs import TwoValues as TwoValues
from fedelect.protocol.history.proofs import TwoVotes as TwoVotes
from fedelect.protocol.history.rewards import OwnRewards as OwnRewards
from fedelect.protocol.history.rewards import to_claim as to_claim

__all__ = [
    "HISTORY_LIMIT",
    "Admission",
    "Appraisals",
    "CertificateChain",
    "ImpossibleMove",
    "OwnRewards",
    "Proof",
    "TwoValues",
    "TwoVotes",
    "to_claim",
]
