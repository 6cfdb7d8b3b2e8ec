"""Byzantine clients cannot keep the others from deciding while honest messages arrive within an interval."""

from dataclasses import replace

import pytest
from tests.testing.test_chaos import ed25519_keys

from fedelect.protocol.flood import Flood
from fedelect.protocol.open_slot import OpenSlot
from fedelect.testing.chaos import ChaosPlan, ChaosResult, run_chaos
from fedelect.testing.chaos.byzantine import BEHAVIOURS

ONE_OF_FOUR = ChaosPlan(clients=4, slots=10, max_faulty=1, byzantine=1, calm=True)
TWO_OF_SEVEN = ChaosPlan(clients=7, slots=9, max_faulty=2, byzantine=2, calm=True)
SIX_OF_TWENTY = ChaosPlan(clients=20, slots=2, max_faulty=6, byzantine=6, calm=True)
PROVABLE = {"two values", "two votes", "second value to some", "proof to some"}


def check(outcome: ChaosResult, plan: ChaosPlan) -> None:
    assert outcome.sound, outcome
    assert outcome.decided == plan.slots and not outcome.undecided, outcome
    if plan.behaviour in PROVABLE:
        assert len(outcome.proven) == plan.byzantine, outcome


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_one_of_four_keeps_nobody_from_deciding(behaviour: str) -> None:
    for rule in ("bp-ucb", "bp-gp"):
        plan = replace(ONE_OF_FOUR, behaviour=behaviour, rule=rule)
        check(run_chaos(3 if rule == "bp-gp" else 0, plan), plan)


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_two_of_seven_keep_nobody_from_deciding(behaviour: str) -> None:
    plan = replace(TWO_OF_SEVEN, behaviour=behaviour)
    check(run_chaos(1, plan), plan)


@pytest.mark.parametrize("behaviour", ["releases to some", "releases at the end", "withholds rounds", "proof to some"])
def test_six_of_twenty_keep_nobody_from_deciding(behaviour: str) -> None:
    plan = replace(SIX_OF_TWENTY, behaviour=behaviour)
    check(run_chaos(0, plan), plan)


def test_with_real_signatures_a_late_value_is_as_harmless() -> None:
    plan = replace(TWO_OF_SEVEN, slots=3, behaviour="releases to some", keys=ed25519_keys)
    check(run_chaos(2, plan), plan)


def undecided(plan: ChaosPlan, seeds: int = 3) -> int:
    outcomes = [run_chaos(seed, plan) for seed in range(seeds)]
    assert all(outcome.sound for outcome in outcomes)
    return sum(len(outcome.undecided) for outcome in outcomes)


@pytest.mark.parametrize(
    ("behaviour", "plan", "least"),
    [
        ("releases to some", TWO_OF_SEVEN, 1),
        ("releases at the end", TWO_OF_SEVEN, 14),
        ("second value to some", ONE_OF_FOUR, 1),
        ("proof to some", ONE_OF_FOUR, 1),
    ],
)
def test_without_chains_of_signatures_what_is_late_costs_slots(
    behaviour: str, plan: ChaosPlan, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Flood, "_in_time", lambda flood, one: not flood.frozen)
    assert undecided(replace(plan, behaviour=behaviour), seeds=2) >= least


def test_without_a_clock_that_ends_windows_a_client_that_withholds_rounds_costs_every_slot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Flood, "end_windows", lambda flood, count: None)
    plan = replace(TWO_OF_SEVEN, slots=2, behaviour="withholds rounds")
    assert undecided(plan, seeds=1) == plan.slots


def test_without_a_signature_of_its_own_a_peer_cannot_convince_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = OpenSlot._pass_on
    monkeypatch.setattr(OpenSlot, "_pass_on", lambda now, entry: (honest(now, entry)[0], b"no signature"))
    outcomes = [run_chaos(seed, replace(TWO_OF_SEVEN, behaviour="releases to some")) for seed in range(2)]
    assert any("refused an honest message" in text for outcome in outcomes for text in outcome.violations)
