"""The parts of one slot: beliefs settle, values flood, a cohort follows, votes add up."""

from fedelect.protocol.slot.attendance import Attendance as Attendance
from fedelect.protocol.slot.belief_exchange import BeliefExchange as BeliefExchange
from fedelect.protocol.slot.election import decide as decide
from fedelect.protocol.slot.election import worth_of as worth_of
from fedelect.protocol.slot.flooding import Entry as Entry
from fedelect.protocol.slot.flooding import Flood as Flood
from fedelect.protocol.slot.flooding import join as join
from fedelect.protocol.slot.voting import Ballots as Ballots

__all__ = ["Attendance", "Ballots", "BeliefExchange", "Entry", "Flood", "decide", "join", "worth_of"]
