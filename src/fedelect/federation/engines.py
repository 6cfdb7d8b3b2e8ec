"""Engines by name."""

from typing import Literal

from fedelect.errors import ConfigurationError
from fedelect.federation.engine import Engine, PlainEngine
from fedelect.federation.linear import StackedEngine
from fedelect.records import library_versions
from fedelect.scenario import ScenarioConfig

DEFAULT_ENGINE = "auto"
"""The engine that is taken if nothing else is said."""

_LINEAR: dict[str, Literal["auto", "gram", "primal"]] = {"auto": "auto", "gram": "gram", "primal": "primal"}
_TORCH: dict[str, Literal["loop", "vmap"]] = {
    "auto": "loop",
    "torch": "loop",
    "torch-loop": "loop",
    "torch-vmap": "vmap",
}


def engine_names(config: ScenarioConfig) -> tuple[str, ...]:
    """The engines that can train the models of `config`.

    >>> engine_names(ScenarioConfig())
    ('auto', 'plain', 'gram', 'primal')
    """
    return ("auto", "plain", "gram", "primal") if config.model.linear else tuple(_TORCH)


def make_engine(name: str, config: ScenarioConfig) -> Engine:
    """The engine called `name`, for the models of `config`.

    "auto" suits any scenario. For linear models there are "plain", the reference loop, and "gram" and "primal", the
    two paths of `StackedEngine`; for PyTorch modules "torch-loop" (also called "torch") and "torch-vmap", the two
    paths of `TorchEngine`.

    Raises:
        ConfigurationError: There is no such engine for these models.
        MissingExtraError: The models need PyTorch, which is not installed.
    """
    if name not in engine_names(config):
        names = ", ".join(engine_names(config))
        raise ConfigurationError(f'engine: got {name!r}; allowed with model.kind = "{config.model.kind}": {names}')
    if not config.model.linear:
        from fedelect.federation.torch.engine import TorchEngine  # PyTorch takes seconds to load

        return TorchEngine(_TORCH[name])
    return PlainEngine() if name == PlainEngine.name else StackedEngine(_LINEAR[name])


def versions_of(engine: str) -> dict[str, str]:
    """The versions of all that decides over the last bit of a run's numbers, given what its engine is called."""
    libraries = ["numba"] if engine.startswith("stacked") else ["torch"] if engine.startswith("torch") else []
    return library_versions(*libraries)
