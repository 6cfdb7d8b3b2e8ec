"""Lies that can be proven, and honest things that never are."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocol.election_kit import SIGNERS, VERIFIER, chain_of, config, statement, value, vote

from fedelect.errors import LocalProtocolError, RemoteProtocolError
from fedelect.protocol import CertificateChain, OwnRewards
from fedelect.protocol.proofs import ImpossibleMove, Proof, TwoValues, TwoVotes, can_move, check_proof
from fedelect.seeds import stream

SHARED = config()
LINKS = chain_of(SHARED, [(0, 1), (2, 3), (0, 2)])
HEADS = [SHARED.digest, *(link.identity for link in LINKS)]


def judge(proof: Proof) -> None:
    chain = CertificateChain(SHARED, VERIFIER)
    chain.extend(LINKS)
    check_proof(proof, config=SHARED, verifier=VERIFIER, chain=chain, previous=chain.head)


def said(mean: float, slot: int, place: int, client: int = 1) -> object:
    return value(SHARED, client, mean, slot=slot, previous=HEADS[place])


SOUND: list[Proof] = [
    TwoValues(value(SHARED, 1, belief=0.1), value(SHARED, 1, belief=0.2)),
    TwoVotes(vote(statement(SHARED), 1), vote(statement(SHARED, cohort=(1, 2)), 1)),
    ImpossibleMove(value(SHARED, 1, 0.5, slot=2, previous=HEADS[1]), value(SHARED, 1, 0.6, slot=3, previous=HEADS[2])),
    ImpossibleMove(value(SHARED, 0, 0.2, slot=2, previous=HEADS[1]), value(SHARED, 0, 0.9, slot=5, previous=HEADS[3])),
    ImpossibleMove(value(SHARED, 0, 0.2, slot=2, previous=HEADS[1]), value(SHARED, 0, slot=5, previous=HEADS[3])),
    ImpossibleMove(value(SHARED, 1, slot=2, previous=HEADS[1]), value(SHARED, 1, 0.5, slot=5, previous=HEADS[3])),
]


@pytest.mark.parametrize("proof", SOUND)
def test_two_things_that_cannot_both_be_honest_prove_a_lie(proof: Proof) -> None:
    judge(proof)
    assert proof.client == proof.other.client


OTHER = config(seed=2)
UNSOUND: list[tuple[Proof, str]] = [
    (TwoValues(value(SHARED, 1), value(SHARED, 1)), "do not contradict"),
    (TwoValues(value(SHARED, 1), value(SHARED, 2)), "one client"),
    (TwoValues(value(SHARED, 1), value(SHARED, 1, belief=0.2, slot=2)), "different slots"),
    (TwoValues(value(SHARED, 1), value(SHARED, 1, belief=0.2, previous=HEADS[1])), "different slots, histories"),
    (TwoValues(value(OTHER, 1), value(OTHER, 1, belief=0.2)), "elections"),
    (TwoValues(value(SHARED, 1), replace(value(SHARED, 1, belief=0.2), signature=b"")), "did not sign"),
    (TwoVotes(vote(statement(SHARED), 1), vote(statement(SHARED), 1)), "the same"),
    (TwoVotes(vote(statement(SHARED), 1), vote(statement(SHARED, slot=2), 1)), "different slots"),
    (TwoVotes(vote(statement(SHARED), 1), vote(statement(SHARED, previous=HEADS[1]), 1)), "or histories"),
    (TwoVotes(vote(statement(OTHER), 1), vote(statement(OTHER, cohort=(1, 2)), 1)), "configuration"),
    (
        TwoVotes(
            vote(statement(SHARED), 1),
            replace(vote(statement(SHARED, cohort=(1, 2)), 1), signature=SIGNERS[2].sign(b"")),
        ),
        "did not sign",
    ),
    (
        ImpossibleMove(
            value(SHARED, 0, 0.2, slot=2, previous=HEADS[1]), value(SHARED, 0, 0.6, slot=5, previous=HEADS[3])
        ),
        "can have moved so",
    ),
    (
        ImpossibleMove(value(SHARED, 1, 0.5, slot=2, previous=bytes(32)), value(SHARED, 1, 0.6, slot=3)),
        "as far as the history tells",
    ),
    (
        ImpossibleMove(
            value(SHARED, 1, 0.5, slot=3, previous=HEADS[2]), value(SHARED, 1, 0.6, slot=2, previous=HEADS[1])
        ),
        "can have moved so",
    ),
    (ImpossibleMove(value(OTHER, 1, 0.5), value(OTHER, 1, 0.6, slot=2)), "another election"),
]


@pytest.mark.parametrize(("proof", "match"), UNSOUND)
def test_what_proves_nothing_is_refused(proof: Proof, match: str) -> None:
    with pytest.raises(RemoteProtocolError, match=match):
        judge(proof)


@given(st.integers(0, 500))
def test_honest_means_never_move_impossibly(number: int) -> None:
    rng = stream(number, "rewards")
    client = 1
    cohorts = [(0, 1) if rng.random() < 0.6 else (2, 3) for _ in range(12)]
    chain = CertificateChain(SHARED, VERIFIER)
    rewards = OwnRewards(client)
    claims = [(rewards.claim(chain), 0)]
    elections = 0
    for link in chain_of(SHARED, cohorts):
        chain.add(link)
        elections += client in link.cohort
        if rng.random() < 0.8:
            rewards.give(link.slot, float(rng.random()))
        claims.append((rewards.claim(chain), elections))
    for place, (before, then) in enumerate(claims):
        for after, now in claims[place:]:
            assert can_move(before, after, now - then)


def test_rewards_count_in_elected_slots_of_history_and_only_if_they_came_in_time() -> None:
    chain = CertificateChain(SHARED, VERIFIER)
    rewards = OwnRewards(0)
    assert math.isnan(rewards.claim(chain))
    chain.add(LINKS[0])
    assert rewards.give(1, 0.5)
    assert not rewards.give(1, math.nan)
    assert rewards.claim(chain) == 0.5
    assert not rewards.give(1, 0.9)  # too late: it has claimed a mean on top of slot 1
    chain.add(LINKS[1])
    assert rewards.give(2, 0.9)  # not elected there
    chain.add(LINKS[2])
    assert rewards.claim(chain) == 0.5
    rival = chain_of(SHARED, [(2, 3)], first_slot=9)[0]
    chain.add(rival)  # another branch, on which it was never elected
    assert math.isnan(rewards.claim(chain))
    with pytest.raises(LocalProtocolError, match="an opinion must be"):
        rewards.give(10, 1.5)
