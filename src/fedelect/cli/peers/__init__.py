"""Commands about elections among peers, simulated and real. Real ones need the extra `peer`."""

import typer

from fedelect.cli.peers.chaos import chaos as chaos
from fedelect.cli.peers.demo import demo as demo
from fedelect.cli.peers.init import init as init
from fedelect.cli.peers.key import key as key
from fedelect.cli.peers.peer import peer as peer
from fedelect.cli.peers.renew import renew as renew

app = typer.Typer(help="Real peers: found a federation, or see one at work on this machine.", no_args_is_help=True)
app.command("init")(init)
app.command("demo")(demo)
app.command("key")(key)
app.command("renew")(renew)

__all__ = ["app", "chaos", "demo", "init", "key", "peer", "renew"]
