"""All that talks to Flower's nodes: who they are, what they are sent, what came back."""

from fedelect.flower.messages.exchange import LOG as LOG
from fedelect.flower.messages.exchange import Answers as Answers
from fedelect.flower.messages.exchange import Enough as Enough
from fedelect.flower.messages.exchange import exchange as exchange
from fedelect.flower.messages.nodes import Clients as Clients
from fedelect.flower.messages.nodes import Directory as Directory
from fedelect.flower.messages.nodes import Identity as Identity
from fedelect.flower.messages.rounds import ROUND_KEY as ROUND_KEY
from fedelect.flower.messages.rounds import SLOT_KEY as SLOT_KEY
from fedelect.flower.messages.rounds import EvaluateFunction as EvaluateFunction
from fedelect.flower.messages.rounds import Rounds as Rounds
from fedelect.flower.messages.rounds import Trained as Trained

__all__ = [
    "LOG",
    "ROUND_KEY",
    "SLOT_KEY",
    "Answers",
    "Clients",
    "Directory",
    "Enough",
    "EvaluateFunction",
    "Identity",
    "Rounds",
    "Trained",
    "exchange",
]
