"""Run on Flower: a selector, or the clients, decide who trains; any Flower strategy aggregates. See docs/FLOWER.md."""

from fedelect.errors import MissingExtraError

try:
    import flwr  # noqa: F401
except ImportError as error:
    raise MissingExtraError("running on Flower", "flower") from error

from fedelect.flower.client import PrivateOpinion, introduce
from fedelect.flower.election_messages import ELECTION_ACTION
from fedelect.flower.election_mod import ElectionMod
from fedelect.flower.peer_elected import PeerElected
from fedelect.flower.privacy import OpinionPrivacy
from fedelect.flower.rounds import read_slot
from fedelect.flower.strategy import GoalDirected

__all__ = [
    "ELECTION_ACTION",
    "ElectionMod",
    "GoalDirected",
    "OpinionPrivacy",
    "PeerElected",
    "PrivateOpinion",
    "introduce",
    "read_slot",
]
