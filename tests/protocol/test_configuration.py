"""What peers must have in common, and what cannot work."""

import itertools
import math
from typing import Any

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocol.election_kit import PATH, RING, SIGNERS, changed, config

from fedelect.errors import ConfigurationError
from fedelect.protocol import RULES, simulated_signers
from fedelect.protocol.graph import surviving_diameter
from fedelect.selectors import BpGp, BpUcb

CHORDS = tuple((n, (n + step) % 20) for n in range(20) for step in (1, 5))


@pytest.mark.parametrize(("max_faulty", "rounds"), [(0, 4), (1, 8), (2, 15), (3, 24)])
def test_a_ring_with_chords_of_twenty_needs_the_rounds_measured_for_it(max_faulty: int, rounds: int) -> None:
    assert (max_faulty + 1) * surviving_diameter(20, CHORDS, max_faulty) == rounds


@given(st.integers(2, 7), st.integers(0, 2), st.data())
def test_the_surviving_diameter_is_the_largest_after_any_failure(
    clients: int, max_faulty: int, data: st.DataObject
) -> None:
    pairs = list(itertools.combinations(range(clients), 2))
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True))
    graph = networkx.Graph(edges)
    graph.add_nodes_from(range(clients))
    worst: int | None = 0
    for count in range(max_faulty + 1):
        for failed in itertools.combinations(range(clients), count):
            left = graph.copy()
            left.remove_nodes_from(failed)
            if not left or not networkx.is_connected(left):
                worst = None
            elif worst is not None:
                worst = max(worst, networkx.diameter(left))
    if worst is None:
        with pytest.raises(ConfigurationError, match="cut off"):
            surviving_diameter(clients, edges, max_faulty)
    else:
        assert surviving_diameter(clients, edges, max_faulty) == worst


@pytest.mark.parametrize(
    ("clients", "max_faulty", "byzantine", "quorum"),
    [(1, 0, False, 1), (2, 0, False, 2), (4, 1, False, 3), (5, 2, False, 3), (4, 1, True, 3), (7, 2, True, 5)],
)
def test_any_two_quorums_share_a_peer_that_is_honest(
    clients: int, max_faulty: int, byzantine: bool, quorum: int
) -> None:
    edges = tuple(itertools.combinations(range(clients), 2))
    shared = config(clients, edges, budget=1, max_faulty=max_faulty, byzantine=byzantine, slot_s=30.0)
    assert shared.quorum == quorum
    shared_by_two = 2 * quorum - clients
    assert shared_by_two > (max_faulty if byzantine else 0)
    assert clients - max_faulty >= quorum  # so that the others can decide without those that fail


CHANGES: list[dict[str, Any]] = [
    {"budget": 1},
    {"exploration": 0.02},
    {"seed": 2},
    {"reading": "evidence"},
    {"rounds": 3},
    {"damping": 0.1},
    {"resend_s": 0.4},
    {"silent_intervals": 4},
    {"slot_s": 11.0},
    {"max_faulty": 1},
    {"couplings": (0.2, 0.2, 0.2, math.nextafter(0.2, 1.0))},
    {"keys": tuple(signer.key for signer in SIGNERS[1:5])},
    {"edges": ((0, 1), (1, 2), (2, 3), (1, 3))},
]


def test_whatever_differs_gives_another_hash() -> None:
    plain = config()
    others = [changed(plain, **change) for change in CHANGES]
    others += [changed(plain, max_faulty=1, byzantine=truth, slot_s=30.0) for truth in (False, True)]
    assert len({plain.digest, *(other.digest for other in others)}) == len(CHANGES) + 3
    assert config().digest == plain.digest
    assert len(plain.digest) == 32


def test_the_rule_and_its_parameters_are_part_of_the_hash_and_an_election_by_bp_ucb_is_called_as_ever() -> None:
    assert config().digest.hex() == "17077491100ad1d99955e6517c57c0a51f16bd5f164b4e23550a8dad15ef0a78"
    by_set: list[dict[str, Any]] = [{}, {"exploration": 0.5}, {"forgetting": 0.9}, {"memory": 64}, {"seed": 2}]
    names = {config().digest, *(config(rule="bp-gp", **change).digest for change in by_set)}
    assert len(names) == 6
    assert config(rule="bp-gp", exploration=RULES["bp-gp"]).digest == config(rule="bp-gp").digest
    assert tuple(config(rule=rule).settings.exploration_weight for rule in RULES) == tuple(RULES.values())


def test_what_a_rule_takes_unless_told_is_what_its_selector_takes() -> None:
    for rule, selector in (("bp-ucb", BpUcb), ("bp-gp", BpGp)):
        made = selector(clients=4, budget=2, seed=1)
        assert made.parameters["exploration"] == RULES[rule]
    assert {name: made.parameters[name] for name in ("forgetting", "memory")} == {
        "forgetting": config(rule="bp-gp").settings.forgetting,
        "memory": config(rule="bp-gp").settings.memory,
    }


BAD: list[tuple[dict[str, Any], str]] = [
    ({"budget": 5}, "budget"),
    ({"exploration": math.nan}, "exploration"),
    ({"reading": "guess"}, "reading"),
    ({"rule": "set-gp"}, "rule must be one of bp-ucb, bp-gp, got 'set-gp'"),
    ({"forgetting": 0.9}, "are the rule bp-gp's"),
    ({"memory": 64}, "are the rule bp-gp's"),
    ({"rule": "bp-gp", "forgetting": 0.0}, "forgetting must be > 0"),
    ({"rule": "bp-gp", "memory": 1}, "memory at least 2"),
    ({"rule": "bp-gp", "exploration": -1.0}, "exploration"),
    ({"rounds": 0}, "rounds"),
    ({"resend_s": 20.0}, "deadlines"),
    ({"silent_intervals": 0}, "deadlines"),
    ({"silent_intervals": 1}, "silent_intervals >= 2"),
    ({"silent_intervals": 10**20}, "silent_intervals must be at most 1000000000, got 100000000000000000000"),
    ({"keys": (b"a", b"b", b"c")}, "keys must be 4 different"),
    ({"keys": (b"a", b"b", b"c", b"a")}, "keys must be 4 different"),
    ({"max_faulty": -1}, "max_faulty must be"),
    ({"byzantine": "no"}, "byzantine must be true or false, got 'no'"),
    ({"max_faulty": 2}, "fewer than the 3 signatures"),
    ({"max_faulty": 1, "budget": 4}, "1 faulty peers leave 3 of 4 clients, fewer than a cohort of 4"),
    ({"edges": PATH, "couplings": (0.1,) * 3, "max_faulty": 1}, "does not survive 1 faulty peers: without clients"),
    ({"edges": PATH[:2], "couplings": (0.1,) * 2}, "some clients are cut off"),
    ({"couplings": (0.1,)}, "couplings must be one finite number"),
    ({"couplings": (0.1, 0.1, 0.1, math.inf)}, "couplings must be one finite number"),
    ({"edges": (*RING[:3], (0, 9))}, "outside"),
    ({"edges": (*RING[:3], (2, 2))}, "to itself"),
    ({"edges": (*RING[:3], (1, 0))}, "twice"),
]


@pytest.mark.parametrize(("changes", "match"), BAD)
def test_what_cannot_work_is_refused(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(ConfigurationError, match=match):
        changed(config(), **changes)


def test_a_byzantine_client_needs_three_honest_ones() -> None:
    with pytest.raises(ConfigurationError, match="1 byzantine peers need at least 4 clients"):
        config(3, ((0, 1), (1, 2), (0, 2)), budget=1, max_faulty=1, byzantine=True)


def test_a_slot_has_time_for_all_that_byzantine_peers_can_delay() -> None:
    # The exchange 2 + 3 intervals, two windows of 3 + 2 * 2, and 6 for the votes: 25 of half a second.
    with pytest.raises(ConfigurationError, match=r"take 25 resend intervals .* raise `slot_s` to 13"):
        config(max_faulty=1, byzantine=True, slot_s=12.4)
    shared = config(max_faulty=1, byzantine=True, slot_s=12.5)
    assert (shared.windows, shared.window_rounds, shared.flood_rounds) == (2, 2, 4)
    assert (config(max_faulty=1).windows, config(max_faulty=1).window_rounds) == (1, 4)
    assert config(max_faulty=1, byzantine=True, reading="evidence", slot_s=10.0).exchange_intervals == 0


def test_more_cases_than_can_be_tried_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="too many cases"):
        surviving_diameter(100, (), 5)


def test_simulated_signers_differ_by_client_and_seed() -> None:
    keys = {signer.key for seed in (1, 2) for signer in simulated_signers(5, seed)}
    assert len(keys) == 10
