"""One seed, many named streams.

`stream(seed, "training", trial, slot)` is a generator that depends on its name and on nothing else: not on
which other streams exist, how much was drawn from them, the process, or the platform. Every draw in fedelect
comes from such a stream, so adding a draw in one place never moves another, and a resumed run needs no
generator state: it asks for the next name.
"""

import hashlib

import numpy as np


def stream(seed: int | str, *name: str | int) -> np.random.Generator:
    """The independent random stream called `name` under `seed`.

    >>> stream(1, "channel", 3).integers(1000) == stream(1, "channel", 3).integers(1000)
    np.True_
    """
    return np.random.Generator(np.random.PCG64(int.from_bytes(_digest(seed, name), "little")))


def derive(seed: int | str, *name: str | int) -> int:
    """A seed (63 bits) for a part that takes a seed of its own, such as a selector."""
    return int.from_bytes(_digest(seed, name)[:8], "little") >> 1


def rank_key(seed: int | str, *name: str | int) -> bytes:
    """Sixteen bytes by which ties are ordered, the same on every machine.

    Sorting clients by `rank_key(seed, slot, client)` is a fair draw that anybody who knows the seed can repeat.
    """
    return _digest(seed, name)


def _digest(seed: int | str, name: tuple[str | int, ...]) -> bytes:
    # A JSON-like rendering keeps ("a", 1) and ("a1",) apart, and int 1 from str "1".
    text = repr((seed if isinstance(seed, str) else int(seed), *(n if isinstance(n, str) else int(n) for n in name)))
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
