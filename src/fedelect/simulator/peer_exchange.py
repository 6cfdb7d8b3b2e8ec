"""How an exchange among simulated peers went."""

from dataclasses import dataclass

from fedelect.equations.beliefs import Outcome
from fedelect.records import Exchange
from fedelect.vocabulary import Floats


@dataclass(frozen=True, slots=True, eq=False)
class PeerExchange:
    """How the last exchange among the peers went, for the record.

    Attributes:
        slot: The slot whose opinions were exchanged.
        beliefs: (N,) what the peers settled on; nan where one did not get so far.
        rounds: Rounds of belief messages; 0 under the "evidence" reading.
        residual: How far any message still moved in the last round.
        outcome: Settled, or rounds exhausted with advice.
        messages: Messages sent, repetitions of lost ones included.
        lost: How many of them were lost.
        virtual_s: Virtual seconds until all had agreed or given up.
        skipped: Why no cohort came of it, or None.
    """

    slot: int
    beliefs: Floats
    rounds: int
    residual: float
    outcome: Outcome
    messages: int
    lost: int
    virtual_s: float
    skipped: str | None

    def for_the_record(self) -> Exchange:
        """What a slot record keeps of it."""
        return Exchange(
            rounds=self.rounds,
            residual=self.residual,
            outcome=str(self.outcome) if self.skipped is None else f"no cohort: {self.skipped}",
            messages=self.messages,
            virtual_seconds=self.virtual_s,
        )
