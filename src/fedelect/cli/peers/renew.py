"""`fedelect peers renew`: a new TLS certificate for a peer, before the old one expires."""

from pathlib import Path
from typing import Annotated

import typer

from fedelect.cli.console import make_console


def renew(
    member: Annotated[str, typer.Argument(help="Whom to certify: the peer's name in the roster, for example peer07.")],
    ca: Annotated[Path, typer.Option(help="Folder of the CA that the federation was founded with.")],
    folder: Annotated[Path, typer.Option(help="The peer's folder; its roster.json, ca.pem, certificate.pem will do.")],
) -> None:
    """Give a peer a new TLS certificate and key; the key that signs elections stays, for it is who the peer is.

    Where it listens is in the CA's own roster.json; the folder must agree with it. The peer goes on with the old ones
    until it is started again. Its neighbours need not know.
    """
    from fedelect.runtime.identity import renew as renewed

    done = renewed(member, folder, ca)
    console = make_console()
    for line in (
        f"{done.name}, listening on {done.host}: new certificate and TLS key in {folder}, good until "
        f"{done.expires:%Y-%m-%d}",
        "bring certificate.pem and tls.key to the peer's machine if this is another, and start the peer again",
    ):
        console.print(line, highlight=False, soft_wrap=True)
