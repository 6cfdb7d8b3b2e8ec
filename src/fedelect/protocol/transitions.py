"""The states of a peer and the moves between them, as data.

Two rules. All that a peer may do next is in `TRANSITIONS`: an event that is not listed under the present state is
misuse by the host and raises LocalProtocolError before anything changes. Messages from others are no events here:
they are welcome in every state, and what they bring about (all rounds done, all values known) is.

The diagram in docs/PROTOCOL.md is `mermaid()`.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from fedelect.errors import LocalProtocolError


class State(Enum):
    """Where a peer stands in its slot."""

    IDLE = "idle"
    """No slot has begun yet."""

    EXCHANGING = "exchanging"
    """Belief messages go back and forth with the neighbours."""

    SETTLED = "settled"
    """The belief is there; the host has to propose."""

    GOSSIPING = "gossiping"
    """Claims spread until all are known."""

    AGREED = "agreed"
    """All claims are known and the cohort follows from them. Neighbours that lack some are answered."""

    SKIPPED = "skipped"
    """No cohort in this slot. Neighbours that lack claims are answered."""


class Event(Enum):
    """What happens to a peer: calls of its host, and what it concludes from messages."""

    BEGIN_SLOT = "begin_slot"
    ROUNDS_DONE = "rounds done"
    PROPOSE = "propose"
    ALL_KNOWN = "all values known"
    TOO_FEW = "too few can be elected"
    RESEND_DEADLINE = "resend deadline"
    SLOT_DEADLINE = "slot deadline"
    RECONSIDER = "reconsider"
    WITHDRAW = "withdraw"


TRANSITIONS: Mapping[State, Mapping[Event, State]] = MappingProxyType(
    {
        State.IDLE: {
            Event.BEGIN_SLOT: State.EXCHANGING,
            Event.RECONSIDER: State.IDLE,
        },
        State.EXCHANGING: {
            Event.ROUNDS_DONE: State.SETTLED,
            Event.RESEND_DEADLINE: State.EXCHANGING,
            Event.SLOT_DEADLINE: State.SKIPPED,
        },
        State.SETTLED: {
            Event.PROPOSE: State.GOSSIPING,
            Event.RESEND_DEADLINE: State.SETTLED,
            Event.SLOT_DEADLINE: State.SKIPPED,
        },
        State.GOSSIPING: {
            Event.ALL_KNOWN: State.AGREED,
            Event.TOO_FEW: State.SKIPPED,
            Event.RESEND_DEADLINE: State.GOSSIPING,
            Event.SLOT_DEADLINE: State.SKIPPED,
        },
        State.AGREED: {
            Event.BEGIN_SLOT: State.EXCHANGING,
            Event.RECONSIDER: State.AGREED,
            Event.WITHDRAW: State.SKIPPED,
            Event.RESEND_DEADLINE: State.AGREED,
            Event.SLOT_DEADLINE: State.AGREED,
        },
        State.SKIPPED: {
            Event.BEGIN_SLOT: State.EXCHANGING,
            Event.RESEND_DEADLINE: State.SKIPPED,
            Event.SLOT_DEADLINE: State.SKIPPED,
        },
    }
)
"""state -> event -> next state."""

OPEN = frozenset({State.EXCHANGING, State.SETTLED, State.GOSSIPING})
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
