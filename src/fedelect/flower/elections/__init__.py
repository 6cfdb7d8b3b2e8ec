"""FL&DA on Flower: the peers beside the SuperNodes elect, and the server learns who won from certificates alone."""

from fedelect.flower.elections.mod import ElectionMod
from fedelect.flower.elections.strategy import PeerElected
from fedelect.flower.elections.wire import ELECTION_ACTION

__all__ = ["ELECTION_ACTION", "ElectionMod", "PeerElected"]
