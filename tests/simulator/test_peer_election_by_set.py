"""Peers that elect by the rule bp-gp, and BP-GP over dense beliefs: two ways, one answer."""

import json
from typing import Any

import numpy as np
import pytest
from tests.simulator.peer_world_kit import BAD_LINKS, World, opinions_of, world

from fedelect.analytics import democratized_feedback
from fedelect.errors import ConfigurationError, NoElection
from fedelect.protocol import KeyedHashVerifier, Peer
from fedelect.rules import belief_value
from fedelect.seeds import stream
from fedelect.selectors import BpGp
from fedelect.simulator import LinkConditions, PeerElection
from fedelect.vocabulary import Feedback, Selection


def election(place: World | None = None, **changes: Any) -> PeerElection:
    settings: dict[str, Any] = {"rule": "bp-gp", "seed": 6} | changes
    return PeerElection.from_scenario(place or world(), **settings)


def tell(place: World, slot: int, selection: Selection, peers: PeerElection, dense: BpGp) -> None:
    """Both hear what the clients think of the model of `slot`."""
    opinions = opinions_of(slot, place.clients)
    peers.tell(selection, Feedback(opinions=opinions))
    dense.tell(selection, Feedback(beliefs=democratized_feedback(place, opinions)[0].beliefs))


@pytest.mark.parametrize(("reading", "conditions"), [("ising", LinkConditions()), ("evidence", BAD_LINKS)])
def test_peers_elect_the_cohorts_of_the_dense_form_to_the_bit(reading: str, conditions: LinkConditions) -> None:
    place = world(reading=reading, damping=0.1)
    peers, dense = election(place, seed=5, conditions=conditions), BpGp(clients=9, budget=4, seed=5)
    for slot in range(1, 21):
        selection = peers.ask()
        assert selection == dense.ask()  # cohort and bound, to the last bit
        if slot in (2, 11):  # nobody trained: nothing is learnt of that cohort
            peers.abandon(selection)
            dense.abandon(selection)
        else:
            tell(place, slot, selection, peers, dense)


@pytest.mark.parametrize(("clients", "budget"), [(1, 1), (2, 1), (5, 5), (7, 3)])
def test_edge_cases_of_budget_and_size(clients: int, budget: int) -> None:
    place = world(clients=clients, budget=budget, neighbours=1)
    peers, dense = election(place, seed=2), BpGp(clients=clients, budget=budget, seed=2)
    for slot in range(1, 7):
        selection = peers.ask()
        assert selection == dense.ask()
        tell(place, slot, selection, peers, dense)


def test_slots_abandoned_before_any_survey_try_the_same_clients_again() -> None:
    peers, dense = election(seed=3), BpGp(clients=9, budget=4, seed=3)
    cohorts = set()
    for _ in range(4):
        selection = peers.ask()
        assert selection == dense.ask()
        cohorts.add(selection.cohort)
        peers.abandon(selection)
        dense.abandon(selection)
    assert len(cohorts) == 1


def test_availability_restricts_the_election_as_in_the_dense_form() -> None:
    place = world(reading="evidence")
    peers, dense = election(place, seed=8), BpGp(clients=9, budget=4, seed=8)
    for slot in range(1, 9):
        here = sorted(stream(8, "here", slot).permutation(9)[:6].tolist())
        selection = peers.ask(here)
        assert selection == dense.ask(here)
        peers = PeerElection.restore(json.loads(json.dumps(peers.state())))
        tell(place, slot, selection, peers, dense)


def test_a_set_that_was_played_long_ago_is_forgotten_and_old_worths_fade_as_in_the_dense_form() -> None:
    place = world(clients=6, budget=2, reading="evidence")
    settings: dict[str, Any] = {"seed": 4, "forgetting": 0.9, "memory": 5, "exploration": 2.0}
    peers, dense = election(place, **settings), BpGp(clients=6, budget=2, **settings)
    for slot in range(1, 16):
        selection = peers.ask()
        assert selection == dense.ask()
        tell(place, slot, selection, peers, dense)
    assert len({one.cohort for one in peers.certificates}) > 5


def test_an_election_without_a_certificate_does_not_lose_what_the_last_cohort_was_worth() -> None:
    # Links so slow that some elections are skipped: opinions are told once more, and count for the same cohort.
    settings: dict[str, Any] = {"slot_s": 0.15, "resend_s": 0.05, "conditions": LinkConditions(loss=0.1)}
    peers = election(world(reading="evidence"), **settings)
    tolds: list[Selection] = []
    skipped = 0
    while len(tolds) < 8:
        try:
            selection = peers.ask()
        except NoElection:
            skipped += 1
            assert skipped < 200
            continue
        peers.tell(selection, Feedback(opinions=opinions_of(selection.slot, 9)))
        tolds.append(selection)
    assert skipped
    worths = {one.certificate: one.worth for peer in peers._peers for one in peer._memory.appraisals._known.values()}
    certified = [one for one in peers.certificates if one.slot <= tolds[-1].slot]
    assert [one.slot for one in certified] == [selection.slot for selection in tolds]
    for selection, after in zip(tolds[:-1], certified[1:], strict=True):
        assert worths[after.identity] == belief_value(opinions_of(selection.slot, 9) ** 2)


@pytest.mark.parametrize("ask_open", [True, False])
def test_a_restored_election_goes_on_exactly(ask_open: bool) -> None:
    peers = election(conditions=BAD_LINKS)
    for slot in range(1, 6):
        peers.tell(peers.ask(), Feedback(opinions=opinions_of(slot, 9)))
    if ask_open:
        peers.ask()
    again = PeerElection.restore(json.loads(json.dumps(peers.state())))
    assert again.state() == peers.state()
    for slot in range(6, 10):
        selection = peers.ask()
        assert again.ask() == selection
        for one in (peers, again):
            one.tell(selection, Feedback(opinions=opinions_of(slot, 9)))
        mine, theirs = peers.last_exchange, again.last_exchange
        assert mine is not None and theirs is not None
        np.testing.assert_array_equal(mine.beliefs, theirs.beliefs)
        assert (mine.exchange, mine.lost) == (theirs.exchange, theirs.lost)


def test_a_state_says_who_lacks_an_appraisal_and_the_restored_peer_asks_for_it_too() -> None:
    peers = election()
    for slot in range(1, 5):
        peers.tell(peers.ask(), Feedback(opinions=opinions_of(slot, 9)))
    peers._storage._now[3].clear()
    peers._peers[3] = Peer(peers._config, 3, peers._signers[3], KeyedHashVerifier(), records=peers.certificates)
    selection = peers.ask()
    peers.tell(selection, Feedback(opinions=opinions_of(5, 9)))
    state = json.loads(json.dumps(peers.state()))
    assert [lacking for _, _, lacking in state["memory"]["appraisals"]] == [[3]] * 5
    again = PeerElection.restore(state)
    assert again.ask() == peers.ask()
    mine, theirs = peers.last_exchange, again.last_exchange
    assert mine is not None and theirs is not None and mine.exchange == theirs.exchange
    assert again._storage._now[3].keys() >= {one.identity for one in peers.certificates[1:]}  # it has what it asked for


def test_rules_and_parameters_that_cannot_be_are_refused() -> None:
    for changes, match in (
        ({"rule": "set-gp"}, "rule must be one of bp-ucb, bp-gp"),
        ({"rule": "bp-ucb", "forgetting": 0.5}, "are the rule bp-gp's"),
        ({"memory": 1}, "memory at least 2"),
    ):
        with pytest.raises(ConfigurationError, match=match):
            election(**changes)
