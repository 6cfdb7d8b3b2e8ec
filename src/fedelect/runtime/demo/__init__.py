"""A federation of real peers on this machine, to look at: who is who, the server's side, and the run folder."""

from fedelect.runtime.demo.elections import Held as Held
from fedelect.runtime.demo.elections import ServerSide as ServerSide
from fedelect.runtime.demo.federation import couplings_for as couplings_for
from fedelect.runtime.demo.federation import free_addresses as free_addresses
from fedelect.runtime.demo.federation import settings_for as settings_for
from fedelect.runtime.demo.play import Demo as Demo
from fedelect.runtime.demo.play import play_demo as play_demo
from fedelect.runtime.demo.written import header_of as header_of
from fedelect.runtime.demo.written import noted as noted

__all__ = [
    "Demo",
    "Held",
    "ServerSide",
    "couplings_for",
    "free_addresses",
    "header_of",
    "noted",
    "play_demo",
    "settings_for",
]
