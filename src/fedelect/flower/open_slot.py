"""The slot that is being played on Flower, and what is made of it when it ends."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from flwr.app import ArrayRecord

from fedelect.flower.cohort_source import SlotOutcome, SurveyPlan
from fedelect.flower.exchange import Answers
from fedelect.flower.rounds import BLAMELESS, SlotTraining, count_bytes
from fedelect.loop import slot_record
from fedelect.records import Measures, SlotRecord
from fedelect.vocabulary import ClientId, Selection


@dataclass(slots=True, kw_only=True)
class OpenSlot:
    """The slot that is being played.

    Attributes:
        slot: Its number.
        begun: When it began, on the monotonic clock.
        before: The model before it.
        left_out: Connected clients that are left out after failures.
        available: How many clients could be elected.
        selection: Who was elected; None if nobody was.
        skipped: Why nobody was elected.
        trained: The training so far; None if nobody was elected.
        take_back: Gives the inner strategy the state it had before the slot.
        plan: Who is asked for an opinion.
        answers: What they answered.
    """

    slot: int
    begun: float
    before: ArrayRecord
    left_out: tuple[ClientId, ...]
    available: int
    selection: Selection | None = None
    skipped: str = ""
    trained: SlotTraining | None = None
    take_back: Callable[[], None] = lambda: None
    plan: SurveyPlan | None = None
    answers: Answers = field(default_factory=Answers)

    @property
    def training(self) -> SlotTraining | None:
        """The training, if it goes on."""
        return self.trained if self.trained is not None and self.trained.abandoned is None else None


def make_record(
    label: str, opened: OpenSlot, selection: Selection, trained: SlotTraining, outcome: SlotOutcome
) -> SlotRecord:
    """Make the record of a slot in which a cohort trained."""
    failed = [client for client, why in trained.failures.items() if why not in BLAMELESS]
    return slot_record(
        label,
        selection,
        arrivals=[trained.arrivals[client] for client in selection.cohort],
        rounds=trained.rounds,
        empty_rounds=trained.empty_rounds,
        note=outcome.note,
        opinions=outcome.opinions,
        mean_opinion=outcome.mean_opinion,
        reward=outcome.reward,
        reward_noise=outcome.reward_noise,
        signals=outcome.signals,
        available=opened.available,
        candidates=outcome.candidates,
        failed=tuple(sorted(failed)),
        left_out=opened.left_out,
        measures=Measures(
            evaluations=outcome.evaluations,
            bytes_down=trained.bytes_down + outcome.evaluations * count_bytes(trained.model),
            bytes_up=trained.bytes_up,
        ),
        seconds=time.monotonic() - opened.begun,
    )


def sort_members(trained: SlotTraining, outcome: SlotOutcome) -> tuple[list[ClientId], list[ClientId]]:
    """Return the members that count as failed, to be left out of the next slots, and those that succeeded.

    If nobody failed and the slot was abandoned, the whole cohort counts as failed, so that another is elected next. A
    member that is not connected or was not waited for is no failure; the first changes the next choice by itself.
    """
    silent = [client for client, arrived in trained.arrivals.items() if not arrived and client in trained.failures]
    failed = [client for client in silent if trained.failures[client] not in BLAMELESS]
    abandoned = outcome.note is not None and not outcome.planned
    if not failed and abandoned and BLAMELESS.isdisjoint(trained.failures.values()):
        failed = list(trained.arrivals)
    return failed, [client for client, arrived in trained.arrivals.items() if arrived and client not in failed]
