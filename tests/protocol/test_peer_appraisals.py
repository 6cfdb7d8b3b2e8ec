"""Peers under the rule bp-gp: the dense form's cohorts, and no vote before the worth of all of history is known."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.protocol.election_kit import BLIND, Wired, config, make_peer, sealed_chain, value
from tests.protocol.peer_kit import gossip, only, sent

from fedelect.errors import LocalProtocolError, RemoteProtocolError
from fedelect.protocol import Certificate, Peer, prepare_claim
from fedelect.protocol.chain import HISTORY_LIMIT
from fedelect.protocol.effects import Deadline, Effect, Persist, Record, SlotSkipped, Wait
from fedelect.protocol.messages import AppraisalMessage, AppraisalRequest, HistoryMessage, Message
from fedelect.protocol.statements import Appraisal, SignedValue, Vote, map_hash, seal_map
from fedelect.seeds import stream
from fedelect.selectors import BpGp
from fedelect.vocabulary import Cohort, Feedback

BP_GP = config(rule="bp-gp", reading="evidence", max_faulty=1)


class Hosts(Wired):
    """Peers whose slots are trained in as soon as they are certified."""

    def elect(self, slot: int, clients: Sequence[int]) -> None:
        """Hold the election of `slot` among some clients; their opinions are of the slot before."""
        self.agreed, self.skipped = {}, {}
        for client in clients:
            opinion = opinion_of(slot - 1, client) if slot > 1 else math.nan
            self.carry_out(client, self.peers[client].begin_slot(slot, opinion))
        for _ in range(12):
            self.deliver()
            for client in clients:
                if self.peers[client].slot == slot:
                    self.carry_out(client, self.peers[client].deadline_passed(Deadline(Wait.RESEND, slot)))

    def votes(self, client: int) -> list[int]:
        return [record.statement.slot for record in self.disks[client] if isinstance(record, Vote)]

    def cohorts(self) -> list[Cohort]:
        return [one.cohort for one in self.peers[0].chain.certificates]


def opinion_of(slot: int, client: int) -> float:
    return float(np.round(stream(5, "opinions", slot).random(4)[client], 3))


def dense(slots: int) -> list[Cohort]:
    selector = BpGp(clients=4, budget=2, seed=1)
    cohorts = []
    for slot in range(1, slots + 1):
        selection = selector.ask()
        cohorts.append(selection.cohort)
        selector.tell(selection, Feedback(beliefs=[opinion_of(slot, client) ** 2 for client in range(4)]))
    return cohorts


EVERYBODY = (0, 1, 2, 3)


def test_peers_elect_what_the_dense_form_elects() -> None:
    hosts = Hosts(BP_GP)
    for slot in range(1, 11):
        hosts.elect(slot, EVERYBODY)
        assert len(hosts.agreed) == 4
    assert hosts.cohorts() == dense(10)
    assert not [message for message in hosts.sent if isinstance(message, AppraisalRequest | AppraisalMessage)]


def test_what_stands_behind_a_vote_is_stored_before_it() -> None:
    hosts = Hosts(BP_GP)
    for slot in (1, 2, 3):
        hosts.elect(slot, EVERYBODY)
    for disk in hosts.disks:
        places = {record.statement.identity: n for n, record in enumerate(disk) if isinstance(record, Vote)}
        kept = {record.certificate: n for n, record in enumerate(disk) if isinstance(record, Appraisal)}
        assert len(places) == 3
        assert all(kept[name] == place - 1 for name, place in places.items())
    (_, second, third) = hosts.peers[0].chain.certificates
    worth = [record.worth for record in hosts.disks[2] if isinstance(record, Appraisal)]
    assert math.isnan(worth[0])
    assert worth[1:] == [math.fsum(opinion_of(slot, n) for n in range(4)) / 4 for slot in (1, 2)]
    entries = {n: entry if isinstance(entry, SignedValue) else None for n, entry in hosts.peers[0].entries.items()}
    assert third.statement.map_hash == seal_map(map_hash(entries), worth[2])
    assert second.statement.map_hash != third.statement.map_hash


def test_a_peer_that_was_cut_off_asks_for_what_it_missed_and_votes_again() -> None:
    away = {3}
    hosts = Hosts(BP_GP, cut=lambda message: bool(away & {message.sender, message.receiver}))
    for slot in range(1, 7):
        hosts.elect(slot, EVERYBODY if slot == 1 else (0, 1, 2))
    assert hosts.peers[3].chain.slot == 0
    away.clear()
    for slot in (7, 8):
        hosts.elect(slot, EVERYBODY)
        assert len(hosts.agreed) == 4
    assert hosts.votes(3)[-2:] == [7, 8]
    answers = [message for message in hosts.sent if isinstance(message, AppraisalMessage)]
    assert {message.receiver for message in answers} == {3}


def test_a_restarted_peer_finds_its_appraisals_on_its_disk_and_asks_nobody() -> None:
    hosts = Hosts(BP_GP)
    for slot in range(1, 6):
        hosts.elect(slot, EVERYBODY)
    hosts.peers = [make_peer(BP_GP, client, hosts.disks[client]) for client in range(4)]
    hosts.sent.clear()
    for slot in range(6, 9):
        hosts.elect(slot, EVERYBODY)
    assert hosts.cohorts() == dense(8)
    assert not [message for message in hosts.sent if isinstance(message, AppraisalRequest | AppraisalMessage)]


def test_if_all_voters_crash_before_they_see_the_certificate_the_worth_is_not_lost() -> None:
    hosts = Hosts(BP_GP)
    hosts.elect(1, EVERYBODY)
    hosts.cut = lambda message: bool(getattr(message, "votes", ()))
    hosts.elect(2, EVERYBODY)
    assert not hosts.agreed and [hosts.votes(client)[-1] for client in range(4)] == [2] * 4
    votes = [record for disk in hosts.disks for record in disk if isinstance(record, Vote)]
    second = [one for one in votes if one.statement.slot == 2]
    shown = Certificate(second[0].statement, tuple((one.client, one.signature) for one in second))
    hosts.cut = lambda message: False
    hosts.in_flight.clear()
    hosts.peers = [make_peer(BP_GP, client, hosts.disks[client]) for client in range(4)]
    for client in range(4):
        hosts.carry_out(client, hosts.peers[client].learn([shown]))
    hosts.elect(3, EVERYBODY)
    assert len(hosts.agreed) == 4


def behind() -> tuple[Peer, list[Certificate], list[Appraisal]]:
    """Client 1 has two certificates and does not know what the cohort of the first was worth."""
    certificates, appraisals = sealed_chain(BP_GP, [(0, 1), (2, 3)], [math.nan, 0.5])
    return make_peer(BP_GP, 1, [*certificates]), certificates, appraisals


def freeze(peer: Peer, head: bytes) -> list[Effect]:
    """Slot 3 up to the frozen map."""
    peer.begin_slot(3, 0.5)
    (stored,) = only(peer.propose(math.nan, 0.25, BLIND), Persist)
    assert isinstance(stored, Persist)
    peer.persisted(stored.record)
    others = tuple(value(BP_GP, n, belief=0.25, slot=3, previous=head) for n in (0, 2, 3))
    rounds = BP_GP.flood_rounds
    messages = [gossip(n, others, number=rounds, slot=3, previous=head, shared=BP_GP) for n in peer.neighbours]
    return [effect for message in messages for effect in peer.receive(message)]


def test_a_peer_that_lacks_a_worth_does_not_vote_says_why_and_votes_once_it_has_it() -> None:
    peer, certificates, appraisals = behind()
    effects = freeze(peer, certificates[-1].identity)
    assert peer.state.value == "flooding" and not only(effects, Persist)
    waiting = peer.deadline_passed(Deadline(Wait.RESEND, 3))
    asked = [message for message in sent(waiting) if isinstance(message, AppraisalRequest)]
    assert [(one.receiver, one.certificates) for one in asked] == [
        (neighbour, (certificates[1].identity,)) for neighbour in peer.neighbours
    ]
    answer = AppraisalMessage(BP_GP.digest, 0, 1, (appraisals[1],))
    kept = [effect.record for effect in only(peer.receive(answer), Persist) if isinstance(effect, Persist)]
    assert kept[0] == appraisals[1]
    assert isinstance(kept[1], Appraisal) and isinstance(kept[2], Vote)
    assert kept[1].certificate == kept[2].statement.identity
    assert peer.state.value == "certifying"
    assert peer.receive(answer) == []  # said once more

    peer, certificates, _ = behind()
    freeze(peer, certificates[-1].identity)
    (skipped,) = peer.deadline_passed(Deadline(Wait.SLOT, 3))
    assert isinstance(skipped, SlotSkipped)
    assert "the worth of earlier cohorts, without which it does not vote" in skipped.reason


def test_hostile_appraisals_are_refused_without_effect() -> None:
    peer, _, appraisals = behind()
    peer.begin_slot(3, 0.5)

    def message(*those: Appraisal) -> AppraisalMessage:
        return AppraisalMessage(BP_GP.digest, 0, 1, those)

    right = appraisals[1]
    for hostile, match in (
        (message(replace(right, worth=0.9)), "not the one that the certificate of slot 2 seals"),
        (message(right, replace(right, values=bytes(32))), "not the one that"),
        (message(), "0 items of history; 1 to 256"),
        (message(*[right] * (HISTORY_LIMIT + 1)), "257 items of history; 1 to 256"),
        (replace(message(right), sender=3, receiver=1), "takes messages to itself from its neighbours"),
        (AppraisalRequest(BP_GP.digest, 0, 1, ()), "0 items"),
        (AppraisalRequest(BP_GP.digest, 0, 1, (bytes(32),) * 257), "257 items"),
    ):
        with pytest.raises(RemoteProtocolError, match=match):
            peer.receive(hostile)
    assert peer.receive(message(Appraisal(bytes(32), bytes(32), 0.5))) == []  # of a certificate unknown here: no news
    assert only(peer.receive(message(right)), Persist) == [Persist(right)]


def test_under_bp_ucb_nobody_speaks_of_appraisals() -> None:
    shared = config(reading="evidence")
    peer = make_peer(shared, 1)
    strange: tuple[Message, ...] = (
        AppraisalRequest(shared.digest, 0, 1, (bytes(32),)),
        AppraisalMessage(shared.digest, 0, 1, (Appraisal(bytes(32), bytes(32), 0.5),)),
    )
    for message in strange:
        with pytest.raises(RemoteProtocolError, match="the rule bp-ucb has none"):
            peer.receive(message)


def test_a_request_is_answered_with_what_is_known() -> None:
    certificates, appraisals = sealed_chain(BP_GP, [(0, 1), (2, 3), (0, 2)], [math.nan, 0.5, 0.25])
    records: list[Record] = [*certificates, appraisals[1]]
    peer = make_peer(BP_GP, 0, records)
    names = tuple(one.identity for one in certificates)
    request = AppraisalRequest(BP_GP.digest, 1, 0, (*names, bytes(32)))
    assert sent(peer.receive(request)) == [AppraisalMessage(BP_GP.digest, 0, 1, (appraisals[1],))]
    assert peer.receive(replace(request, certificates=names[2:])) == []


def test_who_joins_late_gets_a_long_history_in_pieces() -> None:
    slots = 2 * HISTORY_LIMIT + 10
    cohorts = [(n % 2, 2 + n % 2) for n in range(slots)]
    certificates, appraisals = sealed_chain(BP_GP, cohorts, [math.nan, *[0.5] * (slots - 1)], signers=(0, 2, 3))
    old, late = make_peer(BP_GP, 0, [*certificates, *appraisals]), make_peer(BP_GP, 1)
    asked = late.learn(certificates[:1]) + late.begin_slot(slots + 1, 0.5)
    assert not [message for message in sent(asked) if isinstance(message, AppraisalRequest)]
    in_flight: list[Message] = list(sent(old.begin_slot(slots + 1, 0.5)))
    in_flight += sent(old.deadline_passed(Deadline(Wait.RESEND, slots + 1)))
    in_flight = [message for message in in_flight if message.receiver == 1]
    answers: list[AppraisalMessage] = []
    histories = 0
    while in_flight:
        message = in_flight.pop(0)
        histories += isinstance(message, HistoryMessage)
        answers += [message] if isinstance(message, AppraisalMessage) else []
        effects = (old if message.receiver == 0 else late).receive(message)
        in_flight += [one for one in sent(effects) if {one.receiver, one.sender} == {0, 1}]
        assert len(answers) + histories < 20
    assert late.chain.head == old.chain.head
    assert histories == 3
    got = [one for message in answers for one in message.appraisals]
    assert {one.certificate for one in got} == {one.identity for one in certificates[1:]}
    assert max(len(message.appraisals) for message in answers) <= HISTORY_LIMIT
    assert late._memory.appraisals.missing() == ()


def test_a_mean_is_neither_told_nor_believed() -> None:
    certificates, appraisals = sealed_chain(BP_GP, [(0, 1)], [math.nan])
    peer = make_peer(BP_GP, 1, [*certificates, *appraisals])
    head = certificates[0].identity
    peer.begin_slot(2, 0.5)
    with pytest.raises(LocalProtocolError, match="it holds a mean"):
        peer.propose(0.5, 0.25, BLIND)
    (stored,) = only(peer.propose(math.nan, 0.25, BLIND), Persist)
    assert isinstance(stored, Persist)
    peer.persisted(stored.record)
    with pytest.raises(RemoteProtocolError, match="it holds a mean"):
        peer.receive(gossip(0, (value(BP_GP, 0, 0.5, slot=2, previous=head),), slot=2, previous=head, shared=BP_GP))


def test_a_belief_counts_for_the_cohort_that_it_is_said_on_top_of_or_not_at_all() -> None:
    certificates, _ = sealed_chain(BP_GP, [(0, 1), (2, 3)], [math.nan, 0.5])
    chain = make_peer(BP_GP, 1, [*certificates]).chain

    def claimed(rule: str, judged: int) -> tuple[float, float]:
        return prepare_claim(chain, rule=rule, mean=0.7, belief=0.3, judged=judged)

    assert claimed("bp-ucb", 1) == claimed("bp-ucb", 2) == (0.7, 0.3)
    assert math.isnan(claimed("bp-ucb", 0)[1])
    assert claimed("bp-gp", 2)[1] == 0.3 and math.isnan(claimed("bp-gp", 2)[0])
    for judged in (0, 1, 3):  # no model yet; of the slot before; of one that this peer has not heard of
        assert all(map(math.isnan, claimed("bp-gp", judged)))
