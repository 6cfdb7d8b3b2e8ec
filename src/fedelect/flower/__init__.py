"""Run on Flower: a selector, or the clients, decide who trains; any Flower strategy aggregates. See docs/FLOWER.md."""

from fedelect.errors import MissingExtraError

try:
    import flwr  # noqa: F401
except ImportError as error:
    raise MissingExtraError("running on Flower", "flower") from error

from fedelect.flower.client import PrivateOpinion as PrivateOpinion
from fedelect.flower.client import introduce as introduce
from fedelect.flower.elections import ELECTION_ACTION as ELECTION_ACTION
from fedelect.flower.elections import ElectBeside as ElectBeside
from fedelect.flower.elections import Elected as Elected
from fedelect.flower.messages.rounds import ROUND_KEY as ROUND_KEY
from fedelect.flower.messages.rounds import SLOT_KEY as SLOT_KEY
from fedelect.flower.privacy import OpinionPrivacy as OpinionPrivacy
from fedelect.flower.strategy import GoalDirected as GoalDirected

__all__ = [
    "ELECTION_ACTION",
    "ROUND_KEY",
    "SLOT_KEY",
    "ElectBeside",
    "Elected",
    "GoalDirected",
    "OpinionPrivacy",
    "PrivateOpinion",
    "introduce",
]
