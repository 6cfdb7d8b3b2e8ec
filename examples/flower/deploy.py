"""Run the digits app on a deployment on this machine: TLS, node authentication, one process for each client, offline.

python deploy.py [--out FOLDER] [key=value ...]
"""

import sys
import tempfile
from pathlib import Path

from loopback import Loopback
from simulate import APP, options

SMALL = {"clients": 4, "budget": 2, "rounds-per-slot": 2, "slots": 3}


def main() -> int:
    """Deploy and run; 0 if Flower says that the run was completed."""
    out, given = options(__doc__ or "")
    settings = SMALL | given
    clients = int(str(settings["clients"]))
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch,
        Loopback(Path(scratch), simulation=False, tls=True) as link,
    ):
        for number in range(clients):
            link.start_node(number, clients)
        run = link.run(APP, settings)
        status = link.wait(run, deadline_s=3600)
        print(link.log(run))
    print(f"{status}; see it with: fedelect show {out}")
    return 0 if status == "finished:completed" else 1


if __name__ == "__main__":
    sys.exit(main())
