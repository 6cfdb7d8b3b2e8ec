"""Neighbours settle beliefs, then gossip a cohort: a pure state machine without input or output.

`Peer` takes events and returns effects; whoever hosts it (the simulator, later real processes) carries them out.
"""

from fedelect.protocol.belief_exchange import BeliefExchange as BeliefExchange
from fedelect.protocol.cohort_gossip import CohortGossip as CohortGossip
from fedelect.protocol.cohort_gossip import decide as decide
from fedelect.protocol.cohort_gossip import merge as merge
from fedelect.protocol.configuration import History as History
from fedelect.protocol.configuration import PeerConfig as PeerConfig
from fedelect.protocol.messages import BeliefMessage as BeliefMessage
from fedelect.protocol.messages import BeliefSettled as BeliefSettled
from fedelect.protocol.messages import Claim as Claim
from fedelect.protocol.messages import CohortAgreed as CohortAgreed
from fedelect.protocol.messages import Deadline as Deadline
from fedelect.protocol.messages import Effect as Effect
from fedelect.protocol.messages import Entry as Entry
from fedelect.protocol.messages import GossipMessage as GossipMessage
from fedelect.protocol.messages import Message as Message
from fedelect.protocol.messages import Send as Send
from fedelect.protocol.messages import SetDeadline as SetDeadline
from fedelect.protocol.messages import SlotSkipped as SlotSkipped
from fedelect.protocol.messages import Values as Values
from fedelect.protocol.messages import Verdict as Verdict
from fedelect.protocol.messages import Wait as Wait
from fedelect.protocol.peer import Peer as Peer
from fedelect.protocol.transitions import TRANSITIONS as TRANSITIONS
from fedelect.protocol.transitions import Event as Event
from fedelect.protocol.transitions import State as State
from fedelect.protocol.transitions import mermaid as mermaid
from fedelect.protocol.transitions import next_state as next_state

__all__ = [
    "TRANSITIONS",
    "BeliefExchange",
    "BeliefMessage",
    "BeliefSettled",
    "Claim",
    "CohortAgreed",
    "CohortGossip",
    "Deadline",
    "Effect",
    "Entry",
    "Event",
    "GossipMessage",
    "History",
    "Message",
    "Peer",
    "PeerConfig",
    "Send",
    "SetDeadline",
    "SlotSkipped",
    "State",
    "Values",
    "Verdict",
    "Wait",
    "decide",
    "merge",
    "mermaid",
    "next_state",
]
