"""Commands about elections among peers, simulated and real. Real ones need the extra `peer`."""

import typer

from fedelect.cli.peers.chaos import chaos
from fedelect.cli.peers.demo import demo
from fedelect.cli.peers.init import init
from fedelect.cli.peers.key import key
from fedelect.cli.peers.peer import peer
from fedelect.cli.peers.renew import renew

app = typer.Typer(help="Real peers: found a federation, or see one at work on this machine.", no_args_is_help=True)
app.command("init")(init)
app.command("demo")(demo)
app.command("key")(key)
app.command("renew")(renew)

__all__ = ["chaos", "demo", "init", "key", "peer", "renew"]
