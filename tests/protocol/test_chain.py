"""Certified history: what verifies, what links, which branch counts; the server's side of it."""

from dataclasses import replace

import pytest
from tests.protocol.election_kit import SIGNERS, VERIFIER, certificate, chain_of, config, statement

from fedelect.errors import RemoteProtocolError
from fedelect.protocol import Admission, Certificate, CertificateChain

SHARED = config()
COHORTS = [(0, 1), (2, 3), (0, 2), (1, 3)]


def chain(*certificates: Certificate) -> CertificateChain:
    made = CertificateChain(SHARED, VERIFIER)
    made.extend(certificates)
    return made


def test_the_server_trains_on_each_certificate_that_extends_its_history_once() -> None:
    server = chain()
    assert (server.head, server.slot, len(server)) == (SHARED.digest, 0, 0)
    for one in chain_of(SHARED, COHORTS):
        assert server.add(one) is Admission.HEAD
        assert server.add(one) is Admission.KNOWN
        assert server.head == one.identity
    assert server.pulls.tolist() == [2, 2, 2, 2]
    assert [server.elections(client, server.head) for client in range(4)] == [2, 2, 2, 2]


def test_a_certificate_whose_predecessor_is_unknown_waits() -> None:
    first, second, third, _ = chain_of(SHARED, COHORTS)
    server = chain(first)
    assert server.add(third) is Admission.UNLINKED
    assert server.slot == 1
    assert server.extend([second, third]) == (second, third)
    assert server.slot == 3


def test_slots_may_be_skipped_but_not_turned_back() -> None:
    first = certificate(statement(SHARED, slot=5))
    server = chain(first)
    assert server.slot == 5
    back = certificate(statement(SHARED, slot=4, previous=first.identity))
    assert server.add(back) is Admission.UNLINKED
    assert server.at(4) is None and server.at(5) is first and server.at(6) is None


def test_of_two_branches_the_one_that_ends_in_the_higher_slot_is_history() -> None:
    first, second, *_ = chain_of(SHARED, COHORTS)
    rival = certificate(statement(SHARED, slot=3, cohort=(1, 2), previous=first.identity))
    one, other = chain(first, second, rival), chain(first, rival, second)
    for built in (one, other):
        assert [link.slot for link in built.certificates] == [1, 3]
        assert built.pulls.tolist() == [1, 2, 1, 0]
        assert second.identity not in built and built.knows(second.identity)
        assert built.elections_between(2, first.identity, built.head) == 1
        assert built.elections_between(2, second.identity, built.head) is None
        assert built.elections_between(2, first.identity, second.identity) == 1  # a branch that is not history
        assert built.elections_between(2, SHARED.digest, bytes(32)) is None
        assert [built.elections(n, second.identity) for n in range(4)] == [1, 1, 1, 1]
    assert other.add(second) is Admission.KNOWN
    assert chain(first, rival).add(second) is Admission.BEHIND


def test_a_name_on_another_branch_gets_history_from_where_it_left() -> None:
    first, second, *_ = chain_of(SHARED, COHORTS)
    rival = certificate(statement(SHARED, slot=3, cohort=(1, 2), previous=first.identity))
    built = chain(first, second, rival)
    assert built.after((second.identity,)) == (rival,)
    assert built.after((first.identity,)) == (rival,)
    assert built.after((SHARED.digest,)) == (first, rival)
    assert built.after((SHARED.digest,), limit=1) == (first,)
    assert built.after((bytes(32), SHARED.digest)) == (first, rival)
    assert built.after((bytes(32),)) == ()


def test_a_locator_is_short_and_ends_with_the_beginning() -> None:
    built = chain(*chain_of(SHARED, [(0, 1)] * 100))
    locator = built.locator()
    assert len(locator) < 15
    assert locator[0] == built.head
    assert locator[-1] == SHARED.digest
    assert all(name in built for name in locator)
    assert chain().locator() == (SHARED.digest,)


def forged(said: Certificate) -> Certificate:
    (client, _), *rest = said.signatures
    return Certificate(said.statement, ((client, SIGNERS[3].sign(said.statement.content)), *rest))


MARK = b"\1" * 32
GOOD = certificate(statement(SHARED, hashed=MARK))
BAD: list[tuple[Certificate, str]] = [
    (certificate(statement(SHARED, hashed=MARK), signers=(0, 1)), "2 signatures are no certificate; it takes 3"),
    (forged(GOOD), "signature of client 0 .* is not its own"),
    (Certificate(GOOD.statement, GOOD.signatures[:1] * 3), "different clients in order"),
    (Certificate(GOOD.statement, GOOD.signatures[::-1]), "different clients in order"),
    (Certificate(GOOD.statement, (*GOOD.signatures, (9, b"x"))), "different clients in order"),
    (Certificate(replace(GOOD.statement, slot=2), GOOD.signatures), "not its own"),
    (certificate(statement(SHARED, slot=0)), "numbered from 1"),
    (certificate(statement(SHARED, cohort=(1, 0))), "in order"),
    (certificate(statement(SHARED, cohort=(0, 1, 2))), "has 2 members"),
    (certificate(statement(SHARED, cohort=(0, 7))), "different clients in order"),
    (certificate(statement(config(seed=2))), "it is of configuration"),
]


@pytest.mark.parametrize(("bad", "match"), BAD)
def test_what_is_no_certificate_is_refused_and_changes_nothing(bad: Certificate, match: str) -> None:
    built = chain(*chain_of(SHARED, COHORTS[:2]))
    head = built.head
    with pytest.raises(RemoteProtocolError, match=match):
        built.add(bad)
    with pytest.raises(RemoteProtocolError, match=match):
        built.extend([*chain_of(SHARED, COHORTS), bad])
    assert (built.head, len(built)) == (head, 2)
