"""A peer that stops itself (SIGSTOP) when it is in a given phase of a given slot, so that it can be killed in it.

`PeerProcesses` starts it through `wrap`, which puts this file before the usual command:
`python stopping_peer.py python -c CODE FOLDER CONTROL PATH...`. Of that only the folder and the import path are used.
"""

import sys

if __name__ == "__main__":
    FOLDER = sys.argv[4]
    sys.path[:] = sys.argv[6:]

import os
import signal
from pathlib import Path

from fedelect.runtime.host_messages import Notice, Phase, encode_line
from fedelect.runtime.process import StandardInput, serve

STOP_NAME = "stop_in.txt"
"""Slot and phase to stop in, in the peer's folder; without the file it does not."""


def main() -> None:
    folder = Path(FOLDER)
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)

    def tell(notice: Notice) -> None:
        answers.write(encode_line(notice))
        path = folder / STOP_NAME
        if isinstance(notice, Phase) and path.exists() and path.read_text() == f"{notice.slot} {notice.phase}":
            os.kill(os.getpid(), signal.SIGSTOP)

    serve(folder, StandardInput(), tell)


if __name__ == "__main__":
    main()
