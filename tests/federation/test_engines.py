import msgspec
import pytest

from fedelect.errors import ConfigurationError
from fedelect.federation import DEFAULT_ENGINE, PlainEngine, StackedEngine, engine_names, make_engine
from fedelect.scenario import ModelConfig, ScenarioConfig


def test_linear_models_have_four_engines_and_auto_is_the_default() -> None:
    config = ScenarioConfig()
    made = {name: make_engine(name, config) for name in engine_names(config)}
    assert {name: type(engine) for name, engine in made.items()} == {
        "auto": StackedEngine,
        "plain": PlainEngine,
        "gram": StackedEngine,
        "primal": StackedEngine,
    }
    assert DEFAULT_ENGINE == "auto"
    assert [engine.name.removesuffix("-numpy") for engine in made.values()] == [
        "stacked-auto",
        "plain",
        "stacked-gram",
        "stacked-primal",
    ]


def test_pytorch_modules_have_engines_of_their_own() -> None:
    config = msgspec.structs.replace(ScenarioConfig(), model=ModelConfig(kind="mlp"))
    assert make_engine("auto", config).name == make_engine("torch", config).name == "torch-layers"
    assert make_engine("torch-loop", config).name == "torch-loop"
    with pytest.raises(ConfigurationError, match=r"'gram'; allowed .*: auto, torch, torch-layers, torch-loop"):
        make_engine("gram", config)


def test_an_unknown_engine_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigurationError, match=r"engine: got 'fast'.*auto, plain, gram, primal"):
        make_engine("fast", ScenarioConfig())
