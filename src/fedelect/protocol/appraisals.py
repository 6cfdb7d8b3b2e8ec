"""What the cohorts of history were worth, as the rule "bp-gp" needs it; under "bp-ucb" all of this stays empty.

The worth of a cohort follows from the map of the next certified slot, of which the certificate holds a seal only.
Whoever votes stores the appraisal behind it first, so as many disks hold it as signatures stand under the certificate.
Who was not among them asks its neighbours, and checks what it gets against the seal. Nobody votes before it knows
the worth of all cohorts of history: a guess would be a vote for something that does not follow.
"""

import math
from collections.abc import Iterable

from fedelect.errors import RemoteProtocolError
from fedelect.protocol.chain import HISTORY_LIMIT, CertificateChain
from fedelect.protocol.configuration import PeerConfig
from fedelect.protocol.election import empty_statistics
from fedelect.protocol.statements import Appraisal, Certificate
from fedelect.rules import CohortStatistics
from fedelect.vocabulary import Cohort


class Appraisals:
    """One peer's appraisals, and the worth of the cohorts of history that follows from them.

    Args:
        config: What all peers share.
        chain: History.
    """

    def __init__(self, config: PeerConfig, chain: CertificateChain) -> None:
        self._config = config
        self._chain = chain
        self._known: dict[bytes, Appraisal] = {}
        self._clear()

    def _clear(self) -> None:
        """Nothing of history is counted yet."""
        config = self._config
        self._played = empty_statistics(config.settings)
        self._tried: set[int] = set()
        self._last = config.digest  # the certificate up to which all is counted
        self._trained: Cohort | None = None  # its cohort

    def note(self, *appraisals: Appraisal) -> None:
        """Keep what is right: this peer's own, from before its vote, or what was checked."""
        self._known.update({appraisal.certificate: appraisal for appraisal in appraisals})

    def news(self, appraisals: Iterable[Appraisal]) -> tuple[Appraisal, ...]:
        """Those of certificates known here whose worth is not; what cannot be checked yet is left out.

        Raises:
            RemoteProtocolError: One of them is not what the certificate seals.
        """
        fresh: dict[bytes, Appraisal] = {}
        for appraisal in appraisals:
            certificate = self._chain.find(appraisal.certificate)
            if certificate is not None and appraisal.certificate not in self._known:
                self.check(appraisal, certificate)
                fresh[appraisal.certificate] = appraisal
        return tuple(fresh.values())

    def check(self, appraisal: Appraisal, certificate: Certificate) -> None:
        """Raise RemoteProtocolError unless the certificate's signers sealed this appraisal."""
        if appraisal.seal != certificate.statement.map_hash:
            raise RemoteProtocolError(
                f"an appraisal is not the one that the certificate of slot {certificate.slot} seals"
            )

    def find(self, names: Iterable[bytes]) -> tuple[Appraisal, ...]:
        """The appraisals of these certificates, as far as they are certified and known here."""
        return tuple(self._known[name] for name in names if name in self._known and self._chain.find(name) is not None)

    def lacking(self) -> tuple[bytes, ...]:
        """Certificates of history whose appraisal is not known, oldest first; as many as may be asked for at once."""
        if self._config.settings.rule != "bp-gp":
            return ()
        self._count()
        ahead = self._chain.after((self._last,), limit=len(self._chain))
        return tuple(one.identity for one in ahead if one.identity not in self._known)[:HISTORY_LIMIT]

    def played(self, worth: float) -> tuple[CohortStatistics, tuple[int, ...]]:
        """The cohorts of history with what they were worth, and whoever was in one of them.

        Args:
            worth: Of the last one, by the map that is frozen now; nan if nobody has a belief.
        """
        self._count()
        played, tried = self._played.copy(), set(self._tried)
        if self._trained is not None and not math.isnan(worth):
            played.note(self._trained, worth, 0.0)
            tried.update(self._trained)
        return played, tuple(sorted(tried))

    def _count(self) -> None:
        """Count what is known of history, from its beginning on and without a gap."""
        if self._last not in self._chain:
            self._clear()  # another branch has become history
        for certificate in self._chain.after((self._last,), limit=len(self._chain)):
            if self._trained is not None:
                appraisal = self._known.get(certificate.identity)
                if appraisal is None:
                    return
                if not math.isnan(appraisal.worth):  # else nobody judged it: nothing is learnt of that cohort
                    self._played.note(self._trained, appraisal.worth, 0.0)
                    self._tried.update(self._trained)
            self._last, self._trained = certificate.identity, certificate.cohort
