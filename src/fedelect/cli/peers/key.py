"""`fedelect peers key`: a client's own secret, made on its own machine."""

from pathlib import Path
from typing import Annotated

import typer

from fedelect.cli.console import make_console


def key(folder: Annotated[Path, typer.Argument(help="The peer's folder to be; made if it is not there.")]) -> None:
    """Make the secret that signs for this client and print its public key, a line for `peers init --keys`.

    The secret never leaves the folder. What `init` writes for this client is put beside it.
    """
    from fedelect.runtime.identity import PUBLIC_PREFIX, new_signing_key

    make_console().print(f"{PUBLIC_PREFIX}{new_signing_key(folder).hex()}", highlight=False, soft_wrap=True)
