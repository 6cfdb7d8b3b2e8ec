"""Inputs and outputs of the original code of published methods; each file says which code made it, and how."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedelect.vocabulary import Floats, Ints


def load_vectors(name: str) -> dict[str, Any]:
    """The vectors of `tests/selectors/vectors/NAME.json`."""
    loaded: dict[str, Any] = json.loads((Path(__file__).parents[1] / "vectors" / f"{name}.json").read_text())
    return loaded


def as_signal(values: Sequence[float | None]) -> Floats:
    """(N,) values with nan in place of None."""
    return np.array([np.nan if value is None else value for value in values])


class ScriptedDraws:
    """In place of a random stream: every draw must have the recorded chances, and gives the recorded clients."""

    def __init__(self, chances: dict[str, float] | None, drawn: list[int]) -> None:
        self.chances, self.drawn = chances, drawn

    def choice(self, pool: Ints, count: int, *, replace: bool = True, p: Floats | None = None) -> Ints:
        """Check pool, count and chances `p` against the record."""
        assert not replace and count == len(self.drawn)
        if self.chances is not None:
            assert p is not None
            found = {str(client): chance for client, chance in zip(pool.tolist(), p.tolist(), strict=True)}
            assert found == pytest.approx(self.chances, rel=1e-6, abs=1e-9)
        assert set(self.drawn) <= set(pool.tolist())
        return np.array(self.drawn, dtype=np.int64)


def script_draws(
    monkeypatch: pytest.MonkeyPatch, modules: Sequence[str], draw: Callable[[str, int], ScriptedDraws]
) -> None:
    """Replace `stream` in the modules by `draw(name, slot)`."""
    for module in modules:
        monkeypatch.setattr(f"{module}.stream", lambda seed, name, slot: draw(name, slot))
