"""One peer whose host says that a link is down, or up again: whom it waits for, and what it says."""

import pytest
from tests.protocol.election_kit import Wired, config, make_peer, value
from tests.protocol.peer_kit import EVIDENCE, PATHS, belief, flooding_peer, gossip, gossips, only, sent, voting_peer

from fedelect.errors import LocalProtocolError
from fedelect.protocol import State
from fedelect.protocol.effects import BeliefSettled, CohortAgreed, Deadline, SlotSkipped, Wait
from fedelect.protocol.gossip import Relayed
from fedelect.protocol.messages import BeliefMessage
from fedelect.protocol.open_slot import Attendance

COMPLETE = tuple((one, other) for one in range(4) for other in range(one + 1, 4))


def test_a_lost_neighbour_has_gone_at_once_until_it_speaks_and_if_all_are_lost_none_has() -> None:
    lost = {1}
    attendance = Attendance([1, 2], silent_intervals=2, limit=4, lost=lost)
    assert attendance.has_gone(1) and not attendance.has_gone(2)
    lost.add(2)  # it is this peer that is cut off
    assert not attendance.has_gone(1) and not attendance.has_gone(2)
    attendance.tick([1, 2])
    attendance.tick([1, 2])
    assert attendance.has_gone(1) and attendance.has_gone(2)
    attendance.hear(2)
    assert lost == {1} and attendance.has_gone(1) and not attendance.has_gone(2)


def test_belief_rounds_go_on_without_a_lost_neighbour_and_without_a_tick() -> None:
    peer = make_peer(PATHS, 1)
    peer.begin_slot(1, 0.5)
    assert peer.receive(belief(0, 1)) == []  # neighbour 2 is waited for
    second = [one for one in sent(peer.neighbour_lost(2)) if isinstance(one, BeliefMessage)]
    assert [(one.receiver, one.round) for one in second] == [(0, 2), (2, 2)]
    assert only(peer.receive(belief(0, 2)), BeliefSettled)


def test_a_neighbour_that_is_lost_after_it_sent_its_round_is_not_waited_for_in_the_next() -> None:
    peer = make_peer(PATHS, 1)
    peer.begin_slot(1, 0.5)
    peer.receive(belief(2, 1))
    assert peer.neighbour_lost(2) == []
    assert sent(peer.receive(belief(0, 1)))
    assert only(peer.receive(belief(0, 2)), BeliefSettled)


def test_who_is_lost_when_a_slot_begins_is_not_waited_for_in_it_unless_it_has_spoken_since() -> None:
    peer = make_peer(PATHS, 1)
    assert peer.neighbour_lost(2) == []
    peer.begin_slot(1, 0.5)
    peer.receive(belief(0, 1))
    assert only(peer.receive(belief(0, 2)), BeliefSettled)
    other = make_peer(PATHS, 1)
    other.neighbour_lost(2)
    other.receive(belief(2, 1))  # kept until the slot begins
    other.begin_slot(1, 0.5)
    other.receive(belief(0, 1))
    assert other.receive(belief(0, 2)) == [] and other.state is State.EXCHANGING


def test_a_flood_goes_on_without_a_lost_neighbour() -> None:
    peer = flooding_peer()
    others = tuple(value(EVIDENCE, n) for n in (0, 2, 3))
    assert gossips(peer.neighbour_lost(2)) == []
    peer.receive(gossip(0, others, number=4))
    assert peer.state is State.CERTIFYING


def test_a_neighbour_that_is_back_is_told_at_once_what_it_may_have_missed_and_is_waited_for_again() -> None:
    peer = flooding_peer()
    peer.neighbour_lost(2)
    (message,) = gossips(peer.neighbour_back(2))
    assert message.receiver == 2 and message.wants_reply and Relayed(value(EVIDENCE, 1, belief=0.25)) in message.entries
    peer.receive(gossip(0, (value(EVIDENCE, 0),), number=4))
    assert peer.state is State.FLOODING


def test_outside_an_open_slot_links_come_and_go_without_a_word() -> None:
    peer, ballot = voting_peer()
    peer.persisted(ballot)
    peer.deadline_passed(Deadline(Wait.SLOT, 1))
    assert peer.neighbour_lost(0) == peer.neighbour_back(0) == []
    assert peer.state is State.SKIPPED


def test_only_neighbours_can_be_lost_or_back() -> None:
    peer = make_peer(PATHS, 1)
    for call in (peer.neighbour_lost, peer.neighbour_back):
        with pytest.raises(LocalProtocolError, match=r"client 3 is no neighbour; those are \(0, 2\)"):
            call(3)


def test_the_others_decide_without_a_single_tick_when_their_links_say_who_is_gone() -> None:
    wired = Wired(config(edges=COMPLETE, max_faulty=1))
    wired.begin(1, [0, 1, 2])
    wired.deliver()
    assert not wired.agreed
    for client in (0, 1, 2):
        wired.carry_out(client, wired.peers[client].neighbour_lost(3))
    wired.deliver()
    assert set(wired.agreed) == {0, 1, 2}
    wired.begin(2, [0, 1, 2])  # and it is not waited for in the next slot either
    wired.deliver()
    assert set(wired.agreed) == {0, 1, 2}


def test_hosts_that_are_wrong_about_links_cost_a_decision_at_worst() -> None:
    wired = Wired(config(edges=COMPLETE, max_faulty=1))
    for client, neighbours in ((0, (1, 2)), (1, (0, 2)), (2, (0, 1)), (3, (0, 1))):
        for neighbour in neighbours:
            wired.peers[client].neighbour_lost(neighbour)
    wired.begin(1)
    wired.deliver()
    for client in range(4):
        wired.carry_out(client, wired.peers[client].deadline_passed(Deadline(Wait.SLOT, 1)))
    ends = {client: wired.agreed.get(client) or wired.skipped[client] for client in range(4)}
    assert len({end.certificate.identity for end in ends.values() if isinstance(end, CohortAgreed)}) <= 1
    assert all(end.reason for end in ends.values() if isinstance(end, SlotSkipped))
