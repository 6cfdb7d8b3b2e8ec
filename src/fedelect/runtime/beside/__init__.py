"""Between a peer and the programs beside it on its machine: a local socket in the peer's folder, and who uses it.

For programs that come and go while the peer stays, such as a Flower ClientApp, a new process for every message. What is
said is what is said on standard input and output (`fedelect.runtime.talk`). Needs Unix sockets and no extra.
"""

from fedelect.runtime.beside.asking import Heard as Heard
from fedelect.runtime.beside.asking import PeerBeside as PeerBeside
from fedelect.runtime.beside.control import CONTROL_NAME as CONTROL_NAME
from fedelect.runtime.beside.control import Control as Control

__all__ = ["CONTROL_NAME", "Control", "Heard", "PeerBeside"]
