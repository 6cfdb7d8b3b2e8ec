"""The loop in one process, under a virtual clock."""

from fedelect.simulator.network import LinkConditions, Network, Traffic
from fedelect.simulator.peer_election import PeerElection
from fedelect.simulator.peer_exchange import PeerExchange
from fedelect.simulator.plan import Plan, TrainingSource, specify_selectors
from fedelect.simulator.run import simulate

__all__ = [
    "LinkConditions",
    "Network",
    "PeerElection",
    "PeerExchange",
    "Plan",
    "Traffic",
    "TrainingSource",
    "simulate",
    "specify_selectors",
]
