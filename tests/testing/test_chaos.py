"""Thousands of elections in which all goes wrong; and deliberately broken peers, which must be caught."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from fedelect.errors import ConfigurationError
from fedelect.protocol import Peer, PeerConfig, Signer, Verifier
from fedelect.protocol import inbox as inbox_module
from fedelect.protocol.effects import Record
from fedelect.protocol.history import Appraisals
from fedelect.protocol.memory import Memory
from fedelect.protocol.messages import BeliefMessage, GossipMessage
from fedelect.protocol.statements import Appraisal
from fedelect.runtime import Ed25519Signer, Ed25519Verifier
from fedelect.seeds import rank_key
from fedelect.testing.chaos import ChaosPlan, ChaosResult, ChaosRun, draw_schedule, run_chaos
from fedelect.testing.chaos import byzantine as byzantine_module
from fedelect.testing.chaos.observer import Observer

CRASHES = ChaosPlan(clients=5, slots=2, max_faulty=1)
BYZANTINE = ChaosPlan(clients=4, slots=2, max_faulty=1, byzantine=1)
BY_SET = ChaosPlan(clients=5, slots=5, max_faulty=1, rule="bp-gp")  # three slots of opening
BYZANTINE_BY_SET = ChaosPlan(clients=4, slots=5, max_faulty=1, byzantine=1, rule="bp-gp")


def ed25519_keys(clients: int, seed: int) -> tuple[Sequence[Signer], Verifier]:
    secrets = [rank_key(seed, client) + rank_key(seed, "more", client) for client in range(clients)]
    return [Ed25519Signer(secret) for secret in secrets], Ed25519Verifier()


def check(outcomes: Sequence[ChaosResult]) -> None:
    for outcome in outcomes:
        assert outcome.sound, outcome
    assert sum(outcome.decided for outcome in outcomes) > len(outcomes) // 4  # the peers were not all asleep
    assert sum(outcome.skipped for outcome in outcomes) > 0  # and not everything was calm


@pytest.mark.parametrize("part", range(4))
def test_crashes_loss_and_partitions_never_split_a_slot(part: int) -> None:
    check([run_chaos(seed, CRASHES) for seed in range(100 * part, 100 * part + 100)])


@pytest.mark.parametrize("part", range(4))
def test_a_byzantine_client_never_splits_a_slot(part: int) -> None:
    outcomes = [run_chaos(seed, BYZANTINE) for seed in range(100 * part, 100 * part + 100)]
    check(outcomes)
    assert sum(outcome.refused for outcome in outcomes) > 0


@pytest.mark.parametrize("plan", [BY_SET, BYZANTINE_BY_SET], ids=["crashes", "byzantine"])
def test_by_bp_gp_no_slot_is_split_and_no_vote_is_guessed(plan: ChaosPlan) -> None:
    outcomes = [run_chaos(seed, plan) for seed in range(80)]
    check(outcomes)
    assert sum(outcome.decided for outcome in outcomes) > 80 * plan.slots // 3


def test_a_client_that_pushes_beliefs_is_refused_and_nothing_else_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusals: list[tuple[object, str]] = []
    watched = Observer.note_refusal

    def refused(observer: Observer, client: int, message: Any, reason: Exception) -> None:
        refusals.append((message, str(reason)))
        watched(observer, client, message, reason)

    monkeypatch.setattr(Observer, "note_refusal", refused)
    monkeypatch.setattr(byzantine_module, "BEHAVIOURS", ("pushes", "late"))
    outcomes = [run_chaos(seed, BYZANTINE) for seed in range(30)]
    assert all(outcome.sound for outcome in outcomes)
    assert len(refusals) == sum(outcome.refused for outcome in outcomes) > 30
    for message, reason in refusals:
        assert isinstance(message, BeliefMessage) and message.value in byzantine_module.EXCESSIVE_MESSAGES
        assert "lets none through that is larger than itself" in reason


def test_two_byzantine_clients_among_seven_never_split_a_slot() -> None:
    check([run_chaos(seed, ChaosPlan(clients=7, slots=2, max_faulty=2, byzantine=2)) for seed in range(20)])


def test_with_real_signatures_it_is_the_same() -> None:
    plan = replace(BYZANTINE, slots=2, keys=ed25519_keys)
    check([run_chaos(seed, plan) for seed in range(20)])


@pytest.mark.parametrize(
    ("max_faulty", "rule"), [(0, "bp-ucb"), (1, "bp-ucb"), (2, "bp-ucb"), (1, "bp-gp"), (2, "bp-gp")]
)
def test_while_all_is_calm_and_at_most_f_crash_everybody_left_decides_every_slot(max_faulty: int, rule: str) -> None:
    slots = 3 if rule == "bp-ucb" else 5
    plan = ChaosPlan(clients=5, slots=slots, max_faulty=max_faulty, calm=True, rule=rule)
    for seed in range(25 if rule == "bp-ucb" else 12):
        outcome = run_chaos(seed, plan)
        assert outcome.sound and not outcome.undecided, outcome
        assert outcome.decided == slots, outcome
        assert outcome.refused == 0


def test_a_run_is_the_same_whenever_it_is_repeated() -> None:
    assert run_chaos(3, BYZANTINE) == run_chaos(3, BYZANTINE) != run_chaos(4, BYZANTINE)
    assert draw_schedule(3, BYZANTINE).crashes == draw_schedule(3, BYZANTINE).crashes


def test_plans_that_make_no_sense_are_refused() -> None:
    for changes, match in (
        ({"byzantine": 2}, "byzantine must be from 0 to max_faulty, 1, got 2"),
        ({"byzantine": 1, "behaviour": "nice"}, "behaviour must be one of two values, .*, got 'nice'"),
        ({"slots": 0}, "slots"),
        ({"clients": 1001}, "clients must be at most 1000 in a chaos run, got 1001"),
        ({"rule": "set-gp"}, "rule must be one of bp-ucb, bp-gp"),
    ):
        arguments: dict[str, Any] = {"max_faulty": 1} | changes
        with pytest.raises(ConfigurationError, match=match):
            ChaosPlan(**arguments)


def first_caught(plan: ChaosPlan, sign: str, seeds: int = 150) -> ChaosResult | None:
    """The first run that breaks a promise, and does so in these words."""
    for seed in range(seeds):
        outcome = run_chaos(seed, plan)
        if any(sign in violation for violation in outcome.violations) or (sign == "split" and outcome.split):
            return outcome
    return None


def a_quorum_of_half(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PeerConfig, "quorum", property(lambda config: config.clients // 2))


def a_peer_that_forgets_what_it_signed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Memory, "note_signed", lambda memory, record: None)


def a_disk_that_confirms_and_forgets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ChaosRun, "_store", lambda run, client, record: _watched(run, client, record))


def _watched(run: ChaosRun, client: int, record: Record) -> list[Any]:
    run._observer.check_record(client, record, run._peers[client])
    return run._peers[client].persisted(record)


def no_look_at_the_predecessor(patch: pytest.MonkeyPatch) -> None:
    honest = Peer.receive

    def receive(peer: Peer, message: Any) -> list[Any]:
        if isinstance(message, GossipMessage) and message.slot == peer.slot:
            message = replace(message, previous=peer._now.previous)
        return honest(peer, message)

    patch.setattr(Peer, "receive", receive)
    patch.setattr(inbox_module, "_check_context", lambda *arguments: None)


def no_look_at_the_size_of_belief_messages(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(inbox_module, "_check_belief", lambda *arguments: None)


def no_look_at_signatures(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Memory, "check_entry", lambda memory, entry, previous: None)
    patch.setattr(Memory, "check_relays", lambda memory, relayed, slot, previous: None)
    patch.setattr(Memory, "check_vote", lambda memory, vote: None)


def a_peer_that_guesses_what_it_does_not_know(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Appraisals, "missing", lambda appraisals: ())


def no_look_at_the_seal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Appraisals, "check", lambda appraisals, appraisal, certificate: None)


def a_vote_without_the_appraisal_behind_it(patch: pytest.MonkeyPatch) -> None:
    honest = Peer._vote

    def vote(peer: Peer) -> list[Any]:
        effects = honest(peer)
        return [effect for effect in effects if not isinstance(getattr(effect, "record", None), Appraisal)]

    patch.setattr(Peer, "_vote", vote)


BROKEN: list[tuple[Callable[[pytest.MonkeyPatch], None], ChaosPlan, str]] = [
    (a_quorum_of_half, ChaosPlan(clients=4, slots=2, max_faulty=1), "split"),
    (a_peer_that_forgets_what_it_signed, CRASHES, "signed two votes"),
    (a_disk_that_confirms_and_forgets, CRASHES, "signed two votes"),
    (no_look_at_the_predecessor, ChaosPlan(clients=5, slots=4, max_faulty=1), "another slot or history"),
    (no_look_at_signatures, BYZANTINE, ""),
    (no_look_at_the_size_of_belief_messages, BYZANTINE, "pushed to a belief"),
    (a_peer_that_guesses_what_it_does_not_know, BY_SET, "does not follow from history"),
    (no_look_at_the_seal, BYZANTINE_BY_SET, "another appraisal"),
    (a_vote_without_the_appraisal_behind_it, BY_SET, "before the appraisal"),
]


@pytest.mark.parametrize(("broken", "plan", "sign"), BROKEN, ids=[broken.__name__ for broken, _, _ in BROKEN])
def test_broken_peers_are_caught(
    broken: Callable[[pytest.MonkeyPatch], None], plan: ChaosPlan, sign: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    found = first_caught(plan, sign)
    assert found is not None
    monkeypatch.undo()
    assert run_chaos(found.seed, plan).sound  # and the honest ones go through the same unharmed


def test_links_say_what_is_true_late_or_never_and_unless_all_is_calm_also_what_is_not() -> None:
    wild, calm = ([draw_schedule(seed, replace(CRASHES, calm=quiet)) for seed in range(40)] for quiet in (False, True))
    assert {schedule.report_delay_s for schedule in wild} == {None, 0.1, 0.3, 0.6}
    false_reports = [report for schedule in wild for report in schedule.false_reports]
    assert {report.lost for report in false_reports} == {True, False}
    assert not any(schedule.false_reports for schedule in calm)
    assert all(
        one.neighbour in schedule.config.neighbours[one.client] for schedule in wild for one in schedule.false_reports
    )


def test_a_crash_strikes_where_it_is_told_to() -> None:
    plan = functools.partial(draw_schedule, plan=CRASHES)
    points = {crash.point for seed in range(20) for crash in plan(seed).crashes}
    assert points == {"before", "after", "sending", "any"}
