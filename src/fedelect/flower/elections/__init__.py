"""FL&DA on Flower: the peers beside the SuperNodes elect, and the server learns who won from certificates alone."""

from fedelect.flower.elections.mod import ElectBeside as ElectBeside
from fedelect.flower.elections.strategy import Elected as Elected
from fedelect.flower.elections.wire import ELECTION_ACTION as ELECTION_ACTION

__all__ = ["ELECTION_ACTION", "ElectBeside", "Elected"]
