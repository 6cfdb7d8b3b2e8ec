"""One peer, call by call: what it sends, when it concludes, what it refuses."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fedelect.equations.cold_start import cold_start_groups
from fedelect.errors import AvailabilityError, ConfigurationError, LocalProtocolError, RemoteProtocolError
from fedelect.protocol import (
    BeliefMessage,
    BeliefSettled,
    Claim,
    CohortAgreed,
    Deadline,
    Effect,
    GossipMessage,
    History,
    Message,
    Peer,
    PeerConfig,
    Send,
    SetDeadline,
    SlotSkipped,
    State,
    Values,
    Verdict,
    Wait,
)

CONFIG = PeerConfig(clients=4, budget=2, rounds=2, resend_s=0.5, slot_s=5.0)
EVIDENCE = PeerConfig(clients=4, budget=2, reading="evidence")


def middle(config: PeerConfig = CONFIG, history: History | None = None) -> Peer:
    """Client 1 of the path 0 - 1 - 2 - 3; its neighbours are given out of order on purpose."""
    return Peer(config, 1, [2, 0], [0.3, 0.1], history=history)


def belief(
    sender: int, number: int, value: float = 0.1, *, slot: int = 1, config: PeerConfig = CONFIG
) -> BeliefMessage:
    return BeliefMessage(config.digest, slot, number, sender, 1, value)


def gossip(
    sender: int, values: Values, *, slot: int = 1, wants_reply: bool = False, config: PeerConfig = CONFIG
) -> GossipMessage:
    return GossipMessage(config.digest, slot, sender, 1, values, wants_reply)


def sent(effects: list[Effect]) -> list[Message]:
    return [effect.message for effect in effects if isinstance(effect, Send)]


def only(effects: list[Effect], kind: type[Effect]) -> list[Effect]:
    return [effect for effect in effects if isinstance(effect, kind)]


def settled_peer(config: PeerConfig = CONFIG) -> Peer:
    peer = middle(config)
    peer.begin_slot(1, 0.5)
    if config.reading == "ising":
        for number in (1, 2):
            for sender in (0, 2):
                peer.receive(belief(sender, number))
    return peer


OTHERS: dict[int, Claim] = {n: Claim(0.1 * n, 0.2) for n in (0, 2, 3)}


def agreed_peer() -> Peer:
    peer = settled_peer()
    peer.propose(0.4, 0.3)
    (agreed,) = only(peer.receive(gossip(0, OTHERS)), CohortAgreed)
    assert isinstance(agreed, CohortAgreed)
    return peer


def test_a_slot_begins_with_two_deadlines_and_round_one_to_each_neighbour() -> None:
    peer = middle()
    effects = peer.begin_slot(1, 0.5)
    assert only(effects, SetDeadline) == [
        SetDeadline(Deadline(Wait.SLOT, 1), 5.0),
        SetDeadline(Deadline(Wait.RESEND, 1), 0.5),
    ]
    assert [(message.receiver, message.slot) for message in sent(effects)] == [(0, 1), (2, 1)]
    assert peer.state is State.EXCHANGING
    assert peer.neighbours == (0, 2)


def test_after_the_last_round_the_belief_is_handed_to_the_host() -> None:
    peer = middle()
    peer.begin_slot(1, 0.5)
    peer.receive(belief(0, 1))
    assert len(sent(peer.receive(belief(2, 1)))) == 2
    peer.receive(belief(2, 2))
    (effect,) = peer.receive(belief(0, 2))
    assert isinstance(effect, BeliefSettled)
    assert effect.slot == 1
    assert 0.0 < effect.belief < 1.0
    assert peer.state is State.SETTLED
    assert peer.receive(belief(0, 2)) == []


def test_under_the_evidence_reading_the_belief_is_there_at_once() -> None:
    for opinion, expected in ((0.5, 0.25), (math.nan, math.nan)):
        peer = middle(EVIDENCE)
        (effect,) = only(peer.begin_slot(1, opinion), BeliefSettled)
        assert isinstance(effect, BeliefSettled)
        assert (effect.slot, effect.residual) == (1, 0.0)
        assert effect.belief == pytest.approx(expected, nan_ok=True)
        assert peer.slot == 1
        assert peer.state is State.SETTLED


def test_a_proposal_goes_to_the_neighbours_and_all_values_make_a_cohort() -> None:
    peer = settled_peer()
    messages = sent(peer.propose(0.4, 0.3))
    assert [message.receiver for message in messages] == [0, 2]
    assert all(isinstance(message, GossipMessage) and message.values == {1: Claim(0.4, 0.3)} for message in messages)
    effects = peer.receive(gossip(0, OTHERS))
    # What came from 0 goes on to 2 only.
    assert [
        (message.receiver, set(message.values)) for message in sent(effects) if isinstance(message, GossipMessage)
    ] == [(2, {0, 2, 3})]
    second = tuple(cold_start_groups(4, 2, CONFIG.seed)[1].tolist())
    assert only(effects, CohortAgreed) == [CohortAgreed(1, second, ())]
    assert peer.state is State.AGREED
    assert peer.history.elected == second
    assert peer.values == {1: Claim(0.4, 0.3), **OTHERS}


def test_claims_may_come_before_the_own_belief_has_settled() -> None:
    peer = middle()
    peer.begin_slot(1, 0.5)
    assert len(sent(peer.receive(gossip(0, OTHERS)))) == 1
    for number in (1, 2):
        for sender in (0, 2):
            peer.receive(belief(sender, number))
    assert len(only(peer.propose(0.4, 0.3), CohortAgreed)) == 1


def test_a_single_client_elects_itself_alone() -> None:
    peer = Peer(PeerConfig(clients=1, budget=1), 0, [], [])
    (settled,) = only(peer.begin_slot(1, 0.9), BeliefSettled)
    assert isinstance(settled, BeliefSettled)
    (agreed,) = peer.propose(0.9, settled.belief)
    assert isinstance(agreed, CohortAgreed)
    assert agreed.cohort == (0,)
    assert len(agreed.indices) == 1


def test_pulls_count_the_agreed_cohorts_once_their_slot_begins() -> None:
    peer = agreed_peer()
    first, second = (tuple(group.tolist()) for group in cold_start_groups(4, 2, CONFIG.seed))
    assert peer.history == History(1, tuple(int(n in first) for n in range(4)), second)
    peer.begin_slot(2, 0.5)
    assert peer.history == History(2, (1, 1, 1, 1), None)


def test_a_withdrawn_cohort_is_not_counted() -> None:
    peer = agreed_peer()
    pulls = peer.history.pulls
    peer.withdraw()
    assert peer.state is State.SKIPPED
    peer.begin_slot(3, 0.5)
    assert peer.history.pulls == pulls


def test_a_late_message_from_a_past_slot_is_ignored() -> None:
    peer = agreed_peer()
    peer.begin_slot(2, 0.5)
    assert peer.receive(belief(0, 1, slot=1)) == []
    assert peer.receive(gossip(0, OTHERS, slot=1)) == []
    assert peer.values == {}


def test_a_neighbour_still_in_the_past_slot_is_answered() -> None:
    peer = agreed_peer()
    peer.begin_slot(2, 0.5)
    (answer,) = sent(peer.receive(gossip(2, {2: OTHERS[2]}, slot=1, wants_reply=True)))
    assert isinstance(answer, GossipMessage)
    assert (answer.slot, answer.receiver, set(answer.values)) == (1, 2, {0, 1, 3})
    assert not answer.wants_reply
    everything: Values = {1: Claim(0.4, 0.3), **OTHERS}
    assert peer.receive(gossip(2, everything, slot=1, wants_reply=True)) == []


def test_messages_of_the_slot_to_come_wait_for_it() -> None:
    peer = middle()
    assert peer.receive(belief(0, 1, 0.7)) == []
    assert peer.receive(belief(2, 1, 0.9)) == []
    assert [message.round for message in sent(peer.begin_slot(1, 0.5)) if isinstance(message, BeliefMessage)] == [
        1,
        1,
        2,
        2,
    ]


def test_early_messages_keep_to_one_slot_and_one_round_for_each_neighbour() -> None:
    peer = middle()
    peer.receive(belief(0, 2, slot=1))  # nobody can be in round 2 without us: not kept
    peer.receive(belief(0, 1, slot=1))
    peer.receive(belief(0, 1, slot=3))  # newer: takes the place
    peer.receive(belief(0, 1, slot=2))  # older: does not
    peer.receive(gossip(0, {0: OTHERS[0]}, slot=3))
    peer.receive(gossip(0, {3: OTHERS[3]}, slot=3, wants_reply=True))
    peer.receive(gossip(0, {2: OTHERS[2]}, slot=2))
    peer.receive(gossip(2, {2: OTHERS[2]}, slot=2))
    assert len(sent(peer.begin_slot(1, 0.5))) == 2
    assert peer.values == {}
    peer.deadline_passed(Deadline(Wait.SLOT, 1))
    peer.begin_slot(2, 0.5)
    assert peer.values == {2: OTHERS[2]}
    peer.deadline_passed(Deadline(Wait.SLOT, 2))
    effects = peer.begin_slot(3, 0.5)
    assert peer.values == {0: OTHERS[0], 3: OTHERS[3]}
    assert {message.receiver for message in sent(effects) if isinstance(message, GossipMessage)} == {2}


def test_at_the_resend_deadline_a_peer_repeats_the_rounds_that_were_not_shown_to_arrive() -> None:
    peer = middle()
    peer.begin_slot(1, 0.5)
    peer.receive(belief(0, 1))
    peer.receive(belief(0, 2))  # 0 has our round 1
    effects = peer.deadline_passed(Deadline(Wait.RESEND, 1))
    assert [(m.receiver, m.round) for m in sent(effects) if isinstance(m, BeliefMessage)] == [(2, 1)]
    assert effects[-1] == SetDeadline(Deadline(Wait.RESEND, 1), 0.5)


def test_at_the_resend_deadline_a_gossiping_peer_asks_every_neighbour() -> None:
    peer = settled_peer()
    peer.propose(0.4, 0.3)
    peer.receive(gossip(0, {0: OTHERS[0], 1: Claim(0.4, 0.3)}))
    messages = sent(peer.deadline_passed(Deadline(Wait.RESEND, 1)))
    polls = {m.receiver: (dict(m.values), m.wants_reply) for m in messages if isinstance(m, GossipMessage)}
    assert polls == {0: ({}, True), 2: ({0: OTHERS[0], 1: Claim(0.4, 0.3)}, True)}
    # 2 has not claimed anything yet, so it may still lack our last round; 0 has.
    assert [(m.receiver, m.round) for m in messages if isinstance(m, BeliefMessage)] == [(2, 2)]


def test_a_peer_that_waits_for_its_host_still_repeats_its_last_round() -> None:
    peer = settled_peer()
    messages = sent(peer.deadline_passed(Deadline(Wait.RESEND, 1)))
    assert [(m.receiver, m.round) for m in messages if isinstance(m, BeliefMessage)] == [(0, 2), (2, 2)]


def test_under_the_evidence_reading_there_are_no_rounds_to_repeat() -> None:
    peer = settled_peer(EVIDENCE)
    assert sent(peer.deadline_passed(Deadline(Wait.RESEND, 1))) == []


def test_an_agreed_peer_answers_but_asks_no_more() -> None:
    peer = agreed_peer()
    assert peer.deadline_passed(Deadline(Wait.RESEND, 1)) == []
    (answer,) = sent(peer.receive(gossip(2, {}, wants_reply=True)))
    assert isinstance(answer, GossipMessage)
    assert set(answer.values) == {0, 1, 2, 3}
    assert not answer.wants_reply
    assert peer.receive(gossip(2, answer.values, wants_reply=True)) == []


def test_at_the_slot_deadline_a_peer_says_whom_it_waited_for() -> None:
    peer = middle()
    peer.begin_slot(1, 0.5)
    peer.receive(belief(0, 1))
    (skipped,) = peer.deadline_passed(Deadline(Wait.SLOT, 1))
    assert isinstance(skipped, SlotSkipped)
    assert skipped.missing == (2,)
    assert "client 1 waited 5 s for belief messages of round 1 from neighbours 2" in skipped.reason

    peer = settled_peer()
    (skipped,) = peer.deadline_passed(Deadline(Wait.SLOT, 1))
    assert isinstance(skipped, SlotSkipped)
    assert skipped.missing == (1,)
    assert "host to propose" in skipped.reason

    peer = settled_peer()
    peer.propose(0.4, 0.3)
    peer.receive(gossip(0, {0: OTHERS[0]}))
    (skipped,) = peer.deadline_passed(Deadline(Wait.SLOT, 1))
    assert isinstance(skipped, SlotSkipped)
    assert skipped.missing == (2, 3)
    assert "claims of clients 2, 3" in skipped.reason
    assert peer.state is State.SKIPPED
    assert peer.history.elected is None


def test_a_skipped_peer_stays_skipped_but_passes_claims_on() -> None:
    peer = settled_peer()
    peer.propose(0.4, 0.3)
    peer.deadline_passed(Deadline(Wait.SLOT, 1))
    effects = peer.receive(gossip(0, OTHERS))
    assert len(sent(effects)) == 1
    assert only(effects, CohortAgreed) == []
    assert peer.state is State.SKIPPED
    assert peer.deadline_passed(Deadline(Wait.RESEND, 1)) == []


def test_once_agreed_the_slot_deadline_means_nothing() -> None:
    peer = agreed_peer()
    assert peer.deadline_passed(Deadline(Wait.SLOT, 1)) == []
    assert peer.history.elected is not None
    peer.begin_slot(2, 0.5)
    assert peer.deadline_passed(Deadline(Wait.SLOT, 1)) == []
    assert peer.state is State.EXCHANGING


def test_too_few_clients_to_elect_skip_the_slot() -> None:
    peer = settled_peer()
    peer.propose(0.4, 0.3)
    effects = peer.receive(gossip(0, dict.fromkeys((0, 2, 3), Verdict.EXCLUDED)))
    (skipped,) = only(effects, SlotSkipped)
    assert isinstance(skipped, SlotSkipped)
    assert "1 of 4 clients can be elected" in skipped.reason
    assert peer.state is State.SKIPPED


def test_a_client_that_says_two_things_is_excluded_and_the_news_spreads() -> None:
    peer = settled_peer()
    peer.propose(0.4, 0.3)
    peer.receive(gossip(0, {3: Claim(0.3, 0.2)}))
    messages = sent(peer.receive(gossip(2, {3: Claim(0.9, 0.2)})))
    assert {m.receiver: dict(m.values) for m in messages if isinstance(m, GossipMessage)} == {
        0: {3: Verdict.EXCLUDED},
        2: {3: Verdict.EXCLUDED},
    }


def test_reconsidering_elects_again_among_those_who_are_there() -> None:
    peer = agreed_peer()
    first, second = cold_start_groups(4, 2, CONFIG.seed).tolist()
    here = sorted([*first, second[0]])
    (again,) = peer.reconsider(here)
    assert isinstance(again, CohortAgreed)
    # Only one untried client is there: it is elected, filled up with one that was tried.
    assert second[0] in again.cohort
    assert set(again.cohort) < set(here)
    assert peer.history.elected == again.cohort
    with pytest.raises(AvailabilityError):
        peer.reconsider([0])
    assert peer.history.elected == again.cohort


def test_before_the_first_slot_the_first_group_can_be_reconsidered() -> None:
    peer = middle()
    first, second = (tuple(group.tolist()) for group in cold_start_groups(4, 2, CONFIG.seed))
    assert peer.history.elected == first
    assert peer.reconsider(second) == [CohortAgreed(0, second, ())]
    with pytest.raises(LocalProtocolError, match="holds no map"):
        middle(history=History(3, (1, 1, 1, 1), None)).reconsider([0, 1])


def test_a_peer_goes_on_from_its_history() -> None:
    peer = agreed_peer()
    heir = middle(history=peer.history)
    peer.begin_slot(2, 0.5)
    heir.begin_slot(2, 0.5)
    assert heir.history == peer.history


def test_misuse_by_the_host_is_refused_and_changes_nothing() -> None:
    peer = agreed_peer()
    before = (peer.state, peer.history, peer.values)
    misuses: list[tuple[Callable[[], object], str]] = [
        (lambda: peer.propose(0.5, 0.5), "'propose' may not happen while the peer is agreed"),
        (lambda: peer.begin_slot(1, 0.5), "slot numbers only grow"),
        (lambda: peer.begin_slot(3, 0.5), "agreed for slot 2"),
        (lambda: peer.begin_slot(2, 1.5), "opinion must be in"),
        (lambda: peer.deadline_passed(Deadline(Wait.SLOT, 2)), "has not begun"),
    ]
    for misuse, match in misuses:
        with pytest.raises(LocalProtocolError, match=match):
            misuse()
        assert (peer.state, peer.history, peer.values) == before
    settled = settled_peer()
    with pytest.raises(LocalProtocolError, match="the mean must be"):
        settled.propose(2.0, 0.5)
    with pytest.raises(LocalProtocolError, match="the belief must be"):
        settled.propose(0.5, -1.0)
    with pytest.raises(LocalProtocolError, match="begin_slot"):
        settled.begin_slot(2, 0.5)
    assert settled.state is State.SETTLED


BAD_MESSAGES: list[tuple[Message, str]] = [
    (replace(belief(0, 1), configuration="other"), "start all peers with the same"),
    (replace(belief(0, 1), receiver=2), "takes messages to itself"),
    (belief(3, 1), "from its neighbours"),
    (belief(0, 1, slot=0), "numbered from 1"),
    (belief(0, 0), "round 0 of 2"),
    (belief(0, 3), "round 3 of 2"),
    (belief(0, 1, math.nan), "must be finite"),
    (gossip(0, {4: Claim(0.5, 0.5)}), "there are 0..3"),
    (gossip(0, {3: Claim(1.5, 0.5)}), "the mean must be"),
]


@pytest.mark.parametrize(("message", "match"), BAD_MESSAGES)
def test_unsound_messages_are_the_senders_fault_and_change_nothing(message: Message, match: str) -> None:
    peer = middle()
    peer.begin_slot(1, 0.5)
    with pytest.raises(RemoteProtocolError, match=match):
        peer.receive(message)
    assert peer.values == {}
    assert peer.state is State.EXCHANGING


def test_the_evidence_reading_knows_no_belief_messages() -> None:
    peer = middle(EVIDENCE)
    peer.begin_slot(1, 0.5)
    with pytest.raises(RemoteProtocolError, match="reading has none"):
        peer.receive(belief(0, 1, config=EVIDENCE))


def test_no_message_and_no_map_carries_an_index() -> None:
    fields = {*BeliefMessage.__slots__, *GossipMessage.__slots__, *Claim.__slots__}
    assert not [name for name in fields if "index" in name or "indices" in name]


def test_a_message_does_not_change_with_the_map_it_was_made_from() -> None:
    values: dict[int, Claim] = {0: OTHERS[0]}
    message = gossip(0, values)
    values[3] = OTHERS[3]
    assert dict(message.values) == {0: OTHERS[0]}
    with pytest.raises(TypeError):
        message.values[3] = OTHERS[3]  # type: ignore[index]


def test_configurations_that_cannot_work_are_refused() -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"budget": 5}, "budget"),
        ({"rounds": 0}, "rounds"),
        ({"damping": 1.0}, "damping"),
        ({"exploration": -1.0}, "exploration"),
        ({"exploration": math.inf}, "exploration"),
        ({"reading": "tarot"}, "ising, evidence"),
        ({"resend_s": 0.0}, "deadlines"),
        ({"resend_s": 9.0, "slot_s": 9.0}, "deadlines"),
        ({"slot_s": math.inf}, "deadlines"),
    ]
    for changes, match in refused:
        with pytest.raises(ConfigurationError, match=match):
            replace(CONFIG, **changes)


def test_every_setting_is_part_of_the_hash() -> None:
    assert CONFIG.digest == replace(CONFIG).digest
    changes: list[dict[str, object]] = [
        {"seed": 2},
        {"damping": 1e-300},
        {"graph": "x"},
        {"slot_s": 6.0},
        {"budget": 1},
    ]
    digests = {replace(CONFIG, **change).digest for change in changes}  # type: ignore[arg-type]
    assert len(digests | {CONFIG.digest}) == 6


def test_peers_that_cannot_be_are_refused() -> None:
    for neighbours, couplings, match in (
        ([1], [0.1], "its own neighbour"),
        ([0, 0], [0.1, 0.1], "twice"),
        ([4], [0.1], "outside"),
        ([0], [], "couplings"),
        ([0], [math.nan], "couplings"),
    ):
        with pytest.raises(ConfigurationError, match=match):
            Peer(CONFIG, 1, neighbours, couplings)
    with pytest.raises(ConfigurationError, match="outside"):
        Peer(CONFIG, 4, [], [])
    for history, match in (
        (History(1, (1, 1), None), "pulls"),
        (History(-1, (1, 1, 1, 1), None), "slot"),
        (History(1, (1, 1, 1, -1), None), "pulls"),
        (History(1, (1, 1, 1, 1), (0,)), "2 members"),
        (History(1, (1, 1, 1, 1), (0, 7)), "outside"),
    ):
        with pytest.raises(ConfigurationError, match=match):
            middle(history=history)
