"""[drift]: from some slot on, classes trade names for everybody; the data of all changes, and nobody is at fault."""

from typing import Annotated

from msgspec import Struct

from fedelect.scenario.flawed_data import draw_swaps
from fedelect.scenario.keys import describe_key
from fedelect.seeds import stream
from fedelect.vocabulary import Ints


class DriftConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[drift]: classes trade names in pairs, in all training and test data alike; leave the table out for none."""

    slot: Annotated[int, describe_key("first slot with the new names", "a whole number >= 1", ge=1)] = 50
    share: Annotated[
        float,
        describe_key("share of the classes that change; at least two do", "a number > 0, at most 1", gt=0.0, le=1.0),
    ] = 0.5


def draw_drift(config: DriftConfig, classes: int, *, seed: int, draw: int = 0) -> Ints:
    """(C,) the new name of each class, from the scenario's stream ("drift", draw).

    An even number of classes changes: the share of C, rounded down to a whole number of pairs, but at least one.
    """
    pairs = max(1, int(config.share * classes + 1e-9) // 2)
    return draw_swaps(classes, stream(seed, "drift", draw), 2 * pairs)
