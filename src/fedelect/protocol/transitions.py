"""The states of a peer and the moves between them, as data.

Two rules. All that a peer may do next is in `TRANSITIONS`: an event that is not listed under the present state is
misuse by the host and raises LocalProtocolError before anything changes. Messages from others are no events here:
they are welcome in every state, and what they bring about (all rounds done, a certificate) is.

The diagram in docs/PROTOCOL.md is `mermaid()`.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from fedelect.errors import LocalProtocolError


class State(Enum):
    """Where a peer stands in its slot."""

    IDLE = "idle"
    """No slot has begun since the peer was made."""

    EXCHANGING = "exchanging"
    """Belief messages go back and forth with the neighbours."""

    SETTLED = "settled"
    """The belief is there; the host has to propose."""

    FLOODING = "flooding"
    """Signed values spread, round by round."""

    CERTIFYING = "certifying"
    """The map is frozen and voted on; votes spread until a quorum agrees."""

    DECIDED = "decided"
    """There is a certificate. Neighbours that lack it are answered."""

    SKIPPED = "skipped"
    """No certificate was seen in time."""


class Event(Enum):
    """What happens to a peer: calls of its host, and what it concludes from messages."""

    BEGIN_SLOT = "begin_slot"
    ROUNDS_DONE = "belief rounds done"
    PROPOSE = "propose"
    FROZEN = "flood rounds done"
    TOO_FEW = "too few can be elected"
    CERTIFIED = "certificate"
    CAUGHT_UP = "history moved on"
    PASSED_OVER = "a later slot is certified"
    RESEND_DEADLINE = "resend deadline"
    SLOT_DEADLINE = "slot deadline"
    NEIGHBOUR_LOST = "neighbour_lost"
    NEIGHBOUR_BACK = "neighbour_back"


def _open(stays: State, *, caught_up: State, **moves: State) -> Mapping[Event, State]:
    """The moves out of a state in which a slot is under way: some of its own, and those that all such states have."""
    return {Event[name]: target for name, target in moves.items()} | {
        Event.CERTIFIED: State.DECIDED,
        Event.CAUGHT_UP: caught_up,
        Event.PASSED_OVER: State.SKIPPED,
        Event.RESEND_DEADLINE: stays,
        Event.SLOT_DEADLINE: State.SKIPPED,
        **_links(stays),
    }


def _closed(stays: State) -> Mapping[Event, State]:
    moves = {Event.BEGIN_SLOT: State.EXCHANGING, Event.RESEND_DEADLINE: stays, Event.SLOT_DEADLINE: stays}
    return moves | _links(stays)


def _links(stays: State) -> dict[Event, State]:
    """Links come and go in every state; what follows from it is an event of its own."""
    return {Event.NEIGHBOUR_LOST: stays, Event.NEIGHBOUR_BACK: stays}


TRANSITIONS: Mapping[State, Mapping[Event, State]] = MappingProxyType(
    {
        State.IDLE: {Event.BEGIN_SLOT: State.EXCHANGING, **_links(State.IDLE)},
        State.EXCHANGING: _open(State.EXCHANGING, caught_up=State.EXCHANGING, ROUNDS_DONE=State.SETTLED),
        State.SETTLED: _open(State.SETTLED, caught_up=State.SETTLED, PROPOSE=State.FLOODING),
        State.FLOODING: _open(State.FLOODING, caught_up=State.SETTLED, FROZEN=State.CERTIFYING, TOO_FEW=State.SKIPPED),
        State.CERTIFYING: _open(State.CERTIFYING, caught_up=State.CERTIFYING),
        State.DECIDED: _closed(State.DECIDED),
        State.SKIPPED: _closed(State.SKIPPED),
    }
)
"""state -> event -> next state."""

OPEN_STATES = frozenset({State.EXCHANGING, State.SETTLED, State.FLOODING, State.CERTIFYING})
"""The states in which a slot is under way."""


def next_state(state: State, event: Event) -> State:
    """The state that `event` leads to; LocalProtocolError if it may not happen in `state`."""
    moves = TRANSITIONS[state]
    if event not in moves:
        allowed = ", ".join(repr(move.value) for move in moves)
        raise LocalProtocolError(f"{event.value!r} may not happen while the peer is {state.value}; what may: {allowed}")
    return moves[event]


def mermaid() -> str:
    """The transition table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {State.IDLE.value}"]
    for state, moves in TRANSITIONS.items():
        lines += [f"    {state.value} --> {target.value}: {event.value}" for event, target in moves.items()]
    return "\n".join(lines) + "\n"
