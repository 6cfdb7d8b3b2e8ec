"""One seed, many named streams.

`stream(seed, "training", trial, slot)` is a generator that depends on its name and on nothing else: not on
which other streams exist, how much was drawn from them, the process, or the platform. Every draw in fedelect
comes from such a stream. So adding a draw in one place never changes another, and a resumed run needs no generator
state.
"""

import hashlib

import numpy as np


def stream(seed: int | str, *name: str | int) -> np.random.Generator:
    """Return the independent random stream `name` of `seed`.

    >>> stream(1, "channel", 3).integers(1000) == stream(1, "channel", 3).integers(1000)
    np.True_
    """
    return np.random.Generator(np.random.PCG64(int.from_bytes(_digest(seed, name), "little")))


def derive(seed: int | str, *name: str | int) -> int:
    """Derive a seed (63 bits) for a part with a seed of its own, such as a selector."""
    return int.from_bytes(_digest(seed, name)[:8], "little") >> 1


def rank_key(seed: int | str, *name: str | int) -> bytes:
    """Return sixteen bytes by which ties are ordered, the same on every machine.

    Sorting clients by `rank_key(seed, slot, client)` is a fair draw that everyone who knows the seed can repeat.
    """
    return _digest(seed, name)


class Draws:
    """Uniform integers under a name, exact for any limit; for a few draws far cheaper than building a generator.

    The bits are BLAKE2b hashes of the name and a counter.

    >>> Draws(1, "ties", 7).below(10) == Draws(1, "ties", 7).below(10)
    True
    """

    __slots__ = ("_bits", "_block", "_name", "_pool")

    def __init__(self, seed: int | str, *name: str | int) -> None:
        self._name = _render(seed, name)
        self._block = 0
        self._pool = 0
        self._bits = 0  # how many bits of the pool have not been used

    def below(self, limit: int) -> int:
        """A uniformly random integer in 0 .. limit-1."""
        width = (limit - 1).bit_length()
        while True:
            while self._bits < width:
                block = hashlib.blake2b(self._name + self._block.to_bytes(8, "little")).digest()
                self._pool |= int.from_bytes(block, "little") << self._bits
                self._bits += 512
                self._block += 1
            number = self._pool & ((1 << width) - 1)
            self._pool >>= width
            self._bits -= width
            if number < limit:
                return number

    def sample(self, size: int, k: int) -> list[int]:
        """A uniformly random set of `k` integers out of 0 .. size-1, sorted (Floyd's algorithm)."""
        chosen: set[int] = set()
        for top in range(size - k, size):
            number = self.below(top + 1)
            chosen.add(top if number in chosen else number)
        return sorted(chosen)


def _digest(seed: int | str, name: tuple[str | int, ...]) -> bytes:
    return hashlib.blake2b(_render(seed, name), digest_size=16).digest()


def _render(seed: int | str, name: tuple[str | int, ...]) -> bytes:
    # repr keeps ("a", 1) and ("a1",) apart, and 1 from "1"; int() turns numpy integers into plain ones.
    return repr((seed, *name) if _PLAIN.issuperset(map(type, (seed, *name))) else _plain(seed, *name)).encode()


_PLAIN = frozenset({int, str})


def _plain(*parts: int | str) -> tuple[int | str, ...]:
    return tuple(part if isinstance(part, str) else int(part) for part in parts)
