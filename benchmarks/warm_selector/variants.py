"""`SoundCycle` with fewer signals, to see what each adds."""

from typing import ClassVar

from fedelect.selectors import SoundCycle
from fedelect.vocabulary import Signal


class LossesAlone(SoundCycle):
    """From opinions and losses."""

    uses: ClassVar[frozenset[Signal]] = frozenset({"loss"})


class OpinionsAlone(SoundCycle):
    """From opinions."""

    uses: ClassVar[frozenset[Signal]] = frozenset()
