"""What the cohorts of history were worth: sealed in certificates, checked, counted in order and without gaps."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.protocol.election_kit import VERIFIER, Wired, config, sealed_chain, value

from fedelect.errors import RemoteProtocolError, StateError
from fedelect.protocol import Certificate, CertificateChain, PeerConfig, decode_record, encode
from fedelect.protocol.effects import Record
from fedelect.protocol.election import cohort_worth
from fedelect.protocol.history import Appraisals
from fedelect.protocol.memory import Memory
from fedelect.protocol.statements import Appraisal, map_hash, seal_map
from fedelect.rules import CohortStatistics
from fedelect.vocabulary import Cohort

BP_GP = config(rule="bp-gp", memory=3)
COHORTS: tuple[Cohort, ...] = ((0, 1), (2, 3), (0, 2), (0, 1), (1, 3))
WORTHS = (math.nan, 0.5, 0.25, math.nan, 0.75)  # of the cohort before: of none, of (0, 1), of (2, 3), ...


def rows(played: CohortStatistics) -> list[tuple[tuple[int, ...], float, float]]:
    cohorts, means, weights, _, _ = played.evidence()
    return [
        (tuple(cohort), mean, weight) for cohort, mean, weight in zip(cohorts.tolist(), means, weights, strict=True)
    ]


def book(certificates: Sequence[Certificate]) -> tuple[Appraisals, CertificateChain]:
    chain = CertificateChain(BP_GP, VERIFIER)
    chain.extend(certificates)
    return Appraisals(BP_GP, chain), chain


def test_a_cohort_is_worth_what_the_map_of_the_next_certified_slot_says_and_nothing_where_nobody_judged_it() -> None:
    certificates, appraisals = sealed_chain(BP_GP, COHORTS, WORTHS)
    known, _ = book(certificates)
    known.add(*appraisals)
    assert known.missing() == ()
    played, tried = known.statistics(0.125)  # of (1, 3), by the map that is frozen now
    assert rows(played) == [((2, 3), 0.25, 1.0), ((0, 1), 0.625, 2.0), ((1, 3), 0.125, 1.0)]
    assert tried == (0, 1, 2, 3)
    again, _ = known.statistics(math.nan)
    assert rows(again) == [((2, 3), 0.25, 1.0), ((0, 1), 0.625, 2.0)]  # and what was added above is gone
    assert book([])[0].statistics(0.5)[0].evidence()[0].shape == (0, 2)  # before anything has trained


def test_who_was_tried_is_known_also_of_cohorts_that_are_forgotten() -> None:
    cohorts = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]
    certificates, appraisals = sealed_chain(BP_GP, cohorts, [math.nan, 0.1, 0.2, 0.3, 0.4])
    known, _ = book(certificates[:4])
    known.add(*appraisals)
    assert known.statistics(math.nan)[1] == (0, 1, 2, 3)
    known, _ = book(certificates)
    known.add(*appraisals)
    played, tried = known.statistics(0.5)
    assert [cohort for cohort, _, _ in rows(played)] == cohorts[2:]
    assert tried == (0, 1, 2, 3)


def test_what_is_lacking_is_named_and_nothing_behind_a_gap_counts() -> None:
    certificates, appraisals = sealed_chain(BP_GP, COHORTS, WORTHS)
    known, _ = book(certificates)
    names = [one.identity for one in certificates]
    assert known.missing() == tuple(names[1:])  # the first map judges nobody
    known.add(appraisals[1], appraisals[3], appraisals[4])
    assert known.missing() == (names[2],)
    known.add(appraisals[2])
    assert known.missing() == ()
    assert known.find([names[2], bytes(32), names[4]]) == (appraisals[2], appraisals[4])


def test_under_bp_ucb_nothing_is_lacking() -> None:
    shared = config()
    certificates, _ = sealed_chain(shared, COHORTS, WORTHS)
    chain = CertificateChain(shared, VERIFIER)
    chain.extend(certificates)
    assert Appraisals(shared, chain).missing() == ()


def test_an_appraisal_that_its_certificate_does_not_seal_is_refused_and_one_of_an_unknown_certificate_ignored() -> None:
    certificates, appraisals = sealed_chain(BP_GP, COHORTS[:2], WORTHS[:2])
    known, _ = book(certificates)
    right = appraisals[1]
    for wrong in (replace(right, worth=0.5000000001), replace(right, values=bytes(32)), replace(right, worth=math.nan)):
        with pytest.raises(RemoteProtocolError, match="not the one that the certificate of slot 2 seals"):
            known.filter_new([appraisals[0], wrong])
    assert known.find([certificates[0].identity]) == ()  # whatever raises has changed nothing
    stranger = Appraisal(bytes(32), bytes(32), 0.5)
    assert known.filter_new([stranger, right, right]) == (right,)
    known.add(right)
    assert known.filter_new([replace(right, worth=0.9)]) == ()  # what is known is known


def test_an_error_does_not_tell_the_worth() -> None:
    certificates, appraisals = sealed_chain(BP_GP, COHORTS[:2], WORTHS[:2])
    known, _ = book(certificates)
    with pytest.raises(RemoteProtocolError) as raised:
        known.filter_new([replace(appraisals[1], worth=0.31415)])
    assert "0.3" not in str(raised.value)


def test_when_another_branch_becomes_history_its_worths_count() -> None:
    certificates, appraisals = sealed_chain(BP_GP, COHORTS[:3], WORTHS[:3])
    known, chain = book(certificates)
    known.add(*appraisals)
    assert rows(known.statistics(math.nan)[0]) == [((0, 1), 0.5, 1.0), ((2, 3), 0.25, 1.0)]
    root = certificates[0].identity
    branch, theirs = sealed_chain(BP_GP, [(1, 2), (0, 3)], [0.875, 0.375], previous=root, first_slot=4)
    chain.extend(branch)
    assert known.missing() == tuple(one.identity for one in branch)
    known.add(*theirs)
    assert rows(known.statistics(math.nan)[0]) == [((0, 1), 0.875, 1.0), ((1, 2), 0.375, 1.0)]


SHARES = tuple(right / 4 for right in range(5))  # the opinions that a test share of four samples allows


def found_by_trial(shared: PeerConfig, hashed: bytes, blinds: Sequence[bytes]) -> list[tuple[float, ...]]:
    """What a server finds that tries all opinions of all clients, with these blinds, against a statement's hash."""
    opened = []
    for guess in itertools.product(SHARES, repeat=shared.clients):
        values = {n: value(shared, n, belief=one * one, blind=blinds[n]) for n, one in enumerate(guess)}
        tried = map_hash(values)
        if hashed in (tried, seal_map(tried, cohort_worth(values, shared.clients))):
            opened.append(guess)
    return opened


@pytest.mark.parametrize("rule", ["bp-ucb", "bp-gp"])
def test_from_the_certificate_alone_nobody_finds_the_opinions_by_trial_however_few_there_can_be(rule: str) -> None:
    shared = config(rule=rule, reading="evidence")
    wired = Wired(shared)
    secret = (0.75, 0.25, 1.0, 0.5)
    for client, opinion in enumerate(secret):
        wired.carry_out(client, wired.peers[client].begin_slot(1, opinion))
    wired.deliver()
    hashed = wired.agreed[0].certificate.statement.map_hash
    blinds = [wired.blind(client) for client in range(4)]
    assert found_by_trial(shared, hashed, [bytes(16)] * 4) == []
    assert found_by_trial(shared, hashed, [*blinds[:3], bytes(16)]) == []  # one that is not known is enough
    assert found_by_trial(shared, hashed, blinds) == [secret]  # and it is nothing but the blinds that hides them


def test_the_seal_binds_the_worth() -> None:
    values = bytes(range(32))
    seals = {seal_map(values, worth) for worth in (0.5, math.nextafter(0.5, 1.0), math.nan, 0.0)}
    assert len(seals) == 4 and seal_map(bytes(32), 0.5) not in seals
    assert Appraisal(values, values, math.nan) == Appraisal(values, values, math.nan)


def test_a_memory_is_made_again_with_its_appraisals_also_those_of_votes_that_came_to_nothing() -> None:
    certificates, appraisals = sealed_chain(BP_GP, COHORTS, WORTHS)
    lone = Appraisal(bytes(32), bytes(32), 0.5)
    records: list[Record] = [*certificates, *appraisals, lone]
    memory = Memory(BP_GP, 1, VERIFIER, [decode_record(encode(record)) for record in records])
    assert memory.appraisals.missing() == ()
    assert memory.appraisals.find([lone.certificate]) == ()  # not certified: nobody is told
    with pytest.raises(StateError, match="not the one that the certificate of slot 3 seals"):
        Memory(BP_GP, 1, VERIFIER, [*certificates, replace(appraisals[2], worth=0.0)])


def test_appraisals_are_equal_by_certificate_and_seal_also_where_the_worth_is_nan() -> None:
    one, other = (Appraisal(bytes(32), bytes(32), math.nan) for _ in range(2))
    assert len({one, other}) == 1
    assert len({one, Appraisal(bytes(32), bytes(32), 0.5), Appraisal(bytes([1] * 32), bytes(32), math.nan)}) == 3
