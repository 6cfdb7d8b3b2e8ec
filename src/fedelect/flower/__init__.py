"""Run on Flower: a selector decides who trains, any Flower strategy aggregates. See docs/FLOWER.md."""

from fedelect.errors import MissingExtraError

try:
    import flwr  # noqa: F401
except ImportError as error:
    raise MissingExtraError("running on Flower", "flower") from error

from fedelect.flower.client import PrivateOpinion as PrivateOpinion
from fedelect.flower.client import introduce as introduce
from fedelect.flower.messages.rounds import ROUND_KEY as ROUND_KEY
from fedelect.flower.messages.rounds import SLOT_KEY as SLOT_KEY
from fedelect.flower.privacy import OpinionPrivacy as OpinionPrivacy
from fedelect.flower.strategy import GoalDirected as GoalDirected

__all__ = ["ROUND_KEY", "SLOT_KEY", "GoalDirected", "OpinionPrivacy", "PrivateOpinion", "introduce"]
