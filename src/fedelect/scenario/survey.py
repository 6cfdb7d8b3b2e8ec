"""[survey]: which clients are asked for their opinion after a slot, and who answers.

Drawn for all N clients in one block per (trial, slot), from the stream ("survey", trial, slot): whether a client is
drawn or answers does not depend on who was elected, so all selectors of a trial ask the same sample.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType

from fedelect.scenario.availability import Mask
from fedelect.scenario.keys import describe_key
from fedelect.seeds import stream
from fedelect.vocabulary import Cohort, Ints


class SurveyConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[survey]: how many clients are asked for their opinion; leave the table out if all are."""

    asked: Annotated[
        Annotated[int, Meta(ge=1)] | Annotated[float, Meta(gt=0.0, le=1.0)],
        describe_key(
            "clients asked after a slot beside the elected: a number, or a share of those that are there",
            "a whole number >= 1, or a share > 0.0 and at most 1.0",
        ),
    ] = 1.0
    answers: Annotated[
        float, describe_key("chance that a client that was asked answers", "a number in [0, 1]", ge=0.0, le=1.0)
    ] = 1.0


class SurveySample(NamedTuple):
    """Whom a survey asks.

    Attributes:
        asked: Clients that are asked, sorted: the sample and the elected.
        answering: Those of them that answer, sorted.
        counted: Those of them that are in the sample, sorted; only they enter the average.
    """

    asked: Ints
    answering: Ints
    counted: Ints


def draw_survey(
    config: SurveyConfig | UnsetType,
    cohort: Cohort,
    available: Mask | None,
    *,
    clients: int,
    seed: int,
    trial: int,
    slot: int,
) -> SurveySample:
    """Draw whom the survey of a slot asks among the clients that are there.

    Args:
        config: The table; unset if all that are there are asked and answer.
        cohort: The elected, who are asked too.
        available: (N,) who is there; None for all.
        clients: N.
        seed: Seed of the run.
        trial: Number of the trial.
        slot: The slot.
    """
    there = np.arange(clients) if available is None else np.flatnonzero(available)
    if config is UNSET:
        return SurveySample(there, there, there)
    keys, luck = stream(seed, "survey", trial, slot).random((2, clients))
    size = math.ceil(config.asked * there.size) if isinstance(config.asked, float) else config.asked
    sample = np.sort(there[np.argsort(keys[there], kind="stable")[:size]])
    asked = np.union1d(sample, np.array(cohort, dtype=np.int64))
    answering = asked[luck[asked] < config.answers]
    return SurveySample(asked, answering, np.intersect1d(answering, sample, assume_unique=True))
