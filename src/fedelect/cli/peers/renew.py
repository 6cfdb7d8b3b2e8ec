"""`fedelect peers renew`: a new TLS certificate for a peer, before the old one expires."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def renew(
    folder: Annotated[
        Path, typer.Argument(help="The peer's folder; its roster.json, ca.pem, certificate.pem will do.")
    ],
    ca: Annotated[Path, typer.Option(help="Folder of the CA that the federation was founded with.")],
) -> None:
    """Give a peer a new TLS certificate and key; the key that signs elections stays, for it is who the peer is.

    The peer goes on with the old ones until it is started again. Its neighbours need not know.
    """
    from fedelect.runtime.identity import renew as renewed

    expires = renewed(folder, ca)
    console = Console()
    for line in (
        f"{folder} has a new certificate and TLS key, good until {expires:%Y-%m-%d}",
        "bring certificate.pem and tls.key to the peer's machine if this is another, and start the peer again",
    ):
        console.print(line, highlight=False, soft_wrap=True)
