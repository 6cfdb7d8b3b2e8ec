"""The loop in one process, under a virtual clock."""

from fedelect.simulator.network import LinkConditions, Network, Traffic
from fedelect.simulator.peer_election import PeerElection
from fedelect.simulator.plan import Plan, TrainingSource, specify_selectors
from fedelect.simulator.run import simulate

__all__ = [
    "LinkConditions",
    "Network",
    "PeerElection",
    "Plan",
    "Traffic",
    "TrainingSource",
    "simulate",
    "specify_selectors",
]
