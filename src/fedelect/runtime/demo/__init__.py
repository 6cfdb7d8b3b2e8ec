"""A federation of real peers on this machine, to look at: who is who, the server's side, and the run folder."""

from fedelect.runtime.demo.elections import ElectionResult, ElectionServer
from fedelect.runtime.demo.federation import couplings_for, settings_for
from fedelect.runtime.demo.play import Demo, play_demo
from fedelect.runtime.demo.written import header_of, noted

__all__ = [
    "Demo",
    "ElectionResult",
    "ElectionServer",
    "couplings_for",
    "header_of",
    "noted",
    "play_demo",
    "settings_for",
]
