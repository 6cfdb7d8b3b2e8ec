"""What peers say to each other and to their hosts, and how it travels as bytes."""

from fedelect.protocol.wire.codec import FRAME_LIMIT as FRAME_LIMIT
from fedelect.protocol.wire.codec import decode_message as decode_message
from fedelect.protocol.wire.codec import decode_record as decode_record
from fedelect.protocol.wire.codec import encode as encode
from fedelect.protocol.wire.effects import BeliefSettled as BeliefSettled
from fedelect.protocol.wire.effects import CohortAgreed as CohortAgreed
from fedelect.protocol.wire.effects import Deadline as Deadline
from fedelect.protocol.wire.effects import Effect as Effect
from fedelect.protocol.wire.effects import HistoryAdvanced as HistoryAdvanced
from fedelect.protocol.wire.effects import LiarProven as LiarProven
from fedelect.protocol.wire.effects import Persist as Persist
from fedelect.protocol.wire.effects import Record as Record
from fedelect.protocol.wire.effects import Send as Send
from fedelect.protocol.wire.effects import SetDeadline as SetDeadline
from fedelect.protocol.wire.effects import SlotSkipped as SlotSkipped
from fedelect.protocol.wire.effects import Wait as Wait
from fedelect.protocol.wire.messages import AppraisalMessage as AppraisalMessage
from fedelect.protocol.wire.messages import AppraisalRequest as AppraisalRequest
from fedelect.protocol.wire.messages import BeliefMessage as BeliefMessage
from fedelect.protocol.wire.messages import GossipMessage as GossipMessage
from fedelect.protocol.wire.messages import HistoryMessage as HistoryMessage
from fedelect.protocol.wire.messages import HistoryRequest as HistoryRequest
from fedelect.protocol.wire.messages import Message as Message

__all__ = [
    "FRAME_LIMIT",
    "AppraisalMessage",
    "AppraisalRequest",
    "BeliefMessage",
    "BeliefSettled",
    "CohortAgreed",
    "Deadline",
    "Effect",
    "GossipMessage",
    "HistoryAdvanced",
    "HistoryMessage",
    "HistoryRequest",
    "LiarProven",
    "Message",
    "Persist",
    "Record",
    "Send",
    "SetDeadline",
    "SlotSkipped",
    "Wait",
    "decode_message",
    "decode_record",
    "encode",
]
