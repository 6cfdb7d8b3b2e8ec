"""A Byzantine member, as a real process with real keys: it is proven to have lied, left out, and holds nobody up."""

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.faults import byzantine_peer
from tests.runtime.federation_kit import place
from tests.runtime.process_kit import real

from fedelect.protocol.proofs import ImpossibleMove, Proof, TwoValues, TwoVotes
from fedelect.runtime.host_messages import Trouble
from fedelect.runtime.journal import Journal

pytestmark = pytest.mark.integration

BYZANTINE = 4
HONEST = [0, 1, 2, 3]
SLOTS = 9


def proofs_of(folder: Path) -> list[Proof]:
    journal = Journal(folder)
    journal.close()
    return [record for record in journal.records if isinstance(record, TwoValues | TwoVotes | ImpossibleMove)]


@pytest.mark.parametrize(
    ("habit", "proof"), [(byzantine_peer.TWO_VALUES, TwoValues), (byzantine_peer.IMPOSSIBLE_MEAN, ImpossibleMove)]
)
def test_a_member_that_lies_is_proven_excluded_and_holds_nobody_up(
    tmp_path: Path, habit: str, proof: type[Proof]
) -> None:
    wraps = {BYZANTINE: (sys.executable, byzantine_peer.__file__, habit)}
    settings: dict[str, Any] = {
        "max_faulty": 1,
        "byzantine": True,
        "resend_s": 0.3,
        "silent_intervals": 20,
        "slot_s": 60.0,
    }
    with real(tmp_path / "fed", place(), wraps=wraps, **settings) as fed:
        for slot in range(1, SLOTS + 1):
            fed.begin(slot, range(5))
            assert fed.finish(slot, HONEST) >= set(HONEST)
    cohorts = {one.slot: one.cohort for one in fed.server.chain.certificates}
    assert set(cohorts) == set(range(1, SLOTS + 1))
    before = [slot for slot, cohort in cohorts.items() if BYZANTINE in cohort]
    assert before and max(before) <= byzantine_peer.HONEST_SLOTS  # elected while it was honest, and never again
    said = [(client, notice.text) for client, notice in fed.heard if isinstance(notice, Trouble)]
    expected = f"client {BYZANTINE} is proven to have lied: {proof.__name__}"
    assert {client for client, text in said if text == expected} >= set(HONEST)
    assert not [text for _, text in said if "proven" in text and text != expected]  # nobody was framed
    for client in HONEST:
        (kept,) = proofs_of(fed.folders[client])
        assert isinstance(kept, proof) and kept.client == BYZANTINE
