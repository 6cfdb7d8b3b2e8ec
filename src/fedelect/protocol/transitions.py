"""The states of a peer and the transitions between them, as data.

Two rules. An event that `TRANSITIONS` does not list under the present state is misuse by the host and raises
LocalProtocolError before anything changes. Messages are not events here: they are accepted in every state; their
consequences (all rounds done, a certificate) are events.

The diagram in docs/theory/protocol-messages.md is `mermaid()`.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from fedelect.errors import LocalProtocolError


class State(Enum):
    """State of a peer in its slot."""

    IDLE = "idle"
    """No slot has begun since the peer was created."""

    EXCHANGING = "exchanging"
    """Belief messages are exchanged with the neighbours."""

    SETTLED = "settled"
    """The belief is settled; the host has to propose."""

    FLOODING = "flooding"
    """Signed values spread, round by round."""

    CERTIFYING = "certifying"
    """The map is frozen and voted on; votes spread until a quorum agrees."""

    DECIDED = "decided"
    """There is a certificate. Neighbours that lack it get it on request."""

    SKIPPED = "skipped"
    """No certificate arrived in time."""


class Event(Enum):
    """Events of a peer: calls of its host, and conclusions from messages."""

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
    """Transitions out of a state with an open slot: its own, and those that all such states share."""
    return {Event[name]: target for name, target in moves.items()} | {
        Event.CERTIFIED: State.DECIDED,
        Event.CAUGHT_UP: caught_up,
        Event.PASSED_OVER: State.SKIPPED,
        Event.RESEND_DEADLINE: stays,
        Event.SLOT_DEADLINE: State.SKIPPED,
        **_links(stays),
    }


def _close(stays: State) -> Mapping[Event, State]:
    moves = {Event.BEGIN_SLOT: State.EXCHANGING, Event.RESEND_DEADLINE: stays, Event.SLOT_DEADLINE: stays}
    return moves | _links(stays)


def _links(stays: State) -> dict[Event, State]:
    """Links change in every state; the consequences are other events."""
    return {Event.NEIGHBOUR_LOST: stays, Event.NEIGHBOUR_BACK: stays}


TRANSITIONS: Mapping[State, Mapping[Event, State]] = MappingProxyType(
    {
        State.IDLE: {Event.BEGIN_SLOT: State.EXCHANGING, **_links(State.IDLE)},
        State.EXCHANGING: _open(State.EXCHANGING, caught_up=State.EXCHANGING, ROUNDS_DONE=State.SETTLED),
        State.SETTLED: _open(State.SETTLED, caught_up=State.SETTLED, PROPOSE=State.FLOODING),
        State.FLOODING: _open(State.FLOODING, caught_up=State.SETTLED, FROZEN=State.CERTIFYING, TOO_FEW=State.SKIPPED),
        State.CERTIFYING: _open(State.CERTIFYING, caught_up=State.CERTIFYING),
        State.DECIDED: _close(State.DECIDED),
        State.SKIPPED: _close(State.SKIPPED),
    }
)
"""state -> event -> next state."""

OPEN_STATES = frozenset({State.EXCHANGING, State.SETTLED, State.FLOODING, State.CERTIFYING})
"""The states with an open slot."""


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
