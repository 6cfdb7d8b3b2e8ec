"""Between a peer and the programs beside it on its machine: a local socket in the peer's folder, and who uses it.

For programs that come and go while the peer stays, such as a Flower ClientApp, a new process for every message. What is
said is what is said on standard input and output (`fedelect.runtime.host_messages`). Needs Unix sockets and no extra.
"""

from fedelect.runtime.control.client import ControlClient, ElectionReply
from fedelect.runtime.control.server import CONTROL_NAME, ControlServer

__all__ = ["CONTROL_NAME", "ControlClient", "ControlServer", "ElectionReply"]
