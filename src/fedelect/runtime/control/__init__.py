"""Control socket of a peer, in its folder, for other programs of the same machine.

For programs that come and go while the peer stays, such as a Flower ClientApp, a new process for every message.
Commands and notices are those of standard input and output (`fedelect.runtime.host_messages`). Needs Unix sockets.
"""

from fedelect.runtime.control.client import ControlClient, ElectionReply
from fedelect.runtime.control.server import CONTROL_NAME, ControlServer

__all__ = ["CONTROL_NAME", "ControlClient", "ControlServer", "ElectionReply"]
