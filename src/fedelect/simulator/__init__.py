"""The loop in one process, under a virtual clock."""

from fedelect.simulator.network import LinkConditions as LinkConditions
from fedelect.simulator.network import Network as Network
from fedelect.simulator.network import Traffic as Traffic
from fedelect.simulator.peer_election import PeerElection as PeerElection
from fedelect.simulator.peer_exchange import PeerExchange as PeerExchange
from fedelect.simulator.plan import Ground as Ground
from fedelect.simulator.plan import Plan as Plan
from fedelect.simulator.plan import parse_selectors as parse_selectors
from fedelect.simulator.run import simulate as simulate

__all__ = [
    "Ground",
    "LinkConditions",
    "Network",
    "PeerElection",
    "PeerExchange",
    "Plan",
    "Traffic",
    "parse_selectors",
    "simulate",
]
