"""The transition table: what may happen when, and the diagram drawn from it."""

from itertools import product
from pathlib import Path

import pytest

from fedelect.errors import LocalProtocolError
from fedelect.protocol import State
from fedelect.protocol.transitions import OPEN_STATES, TRANSITIONS, Event, mermaid, next_state

PAGE = Path(__file__).parents[2] / "docs" / "theory" / "protocol-messages.md"


@pytest.mark.parametrize(("state", "event"), list(product(State, Event)))
def test_what_is_in_the_table_moves_and_all_else_is_misuse(state: State, event: Event) -> None:
    if event in TRANSITIONS[state]:
        assert next_state(state, event) is TRANSITIONS[state][event]
    else:
        with pytest.raises(LocalProtocolError, match=f"while the peer is {state.value}"):
            next_state(state, event)


def test_every_state_can_be_reached_and_every_event_can_happen() -> None:
    reached, frontier = {State.IDLE}, [State.IDLE]
    while frontier:
        for target in TRANSITIONS[frontier.pop()].values():
            if target not in reached:
                reached.add(target)
                frontier.append(target)
    assert reached == set(State) == set(TRANSITIONS)
    assert {event for moves in TRANSITIONS.values() for event in moves} == set(Event)


def test_every_open_slot_ends_at_its_deadline_and_a_closed_one_can_be_followed() -> None:
    for state in OPEN_STATES:
        assert TRANSITIONS[state][Event.SLOT_DEADLINE] is State.SKIPPED
        assert TRANSITIONS[state][Event.CERTIFIED] is State.DECIDED
    for state in set(State) - OPEN_STATES:
        assert TRANSITIONS[state][Event.BEGIN_SLOT] is State.EXCHANGING


def test_the_diagram_has_one_arrow_for_each_move() -> None:
    arrows = [line for line in mermaid().splitlines() if "-->" in line]
    assert len(arrows) == 1 + sum(len(moves) for moves in TRANSITIONS.values())
    assert "    certifying --> decided: certificate" in arrows


def test_the_protocol_page_shows_exactly_this_diagram() -> None:
    assert f"```mermaid\n{mermaid()}```\n" in PAGE.read_text(encoding="utf-8")
