"""What "torch-layers" puts in the place of torch's own layers: the same numbers, and torch's own where they differ."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.worlds import digits
from torch import Tensor

from fedelect.federation import Job
from fedelect.federation.torch.engine import TorchEngine
from fedelect.federation.torch.linear import linear_of_onednn, linear_of_torch, ways_for
from fedelect.scenario import DataConfig, ModelConfig, Scenario, ScenarioConfig, build_scenario

has_onednn = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="this build of torch has no linear layer by oneDNN"
)
JOBS = [Job(cohort=cohort, seed=3) for cohort in ((0, 2, 5), (1, 3))]


def world(*, precision: str = "float32", kind: str = "mlp") -> Scenario:
    config = ScenarioConfig(
        name="layers",
        seed=1,
        clients=6,
        budget=3,
        rounds_per_slot=2,
        data=DataConfig(source="digits", iid_clients=2, samples=(7, 25)),
        model=ModelConfig(kind=kind, step=0.05, epochs=2, batch=6, precision=precision),  # type: ignore[arg-type]
    )
    return build_scenario(config, digits())


def outcome(scenario: Scenario) -> list[bytes]:
    """The bits of models and scores."""
    engine = TorchEngine("layers")
    models = [result.model for result in engine.train(scenario, JOBS)]
    scores = engine.scores(scenario, models)
    return [model.tobytes() for model in models] + [share.tobytes() for own in scores for share in own]


@has_onednn
@given(st.integers(1, 40), st.integers(1, 70), st.integers(1, 20), st.booleans(), st.booleans(), st.booleans())
def test_linear_layers_of_onednn_are_those_of_torch(
    rows: int, taken: int, made: int, bias: bool, rectified: bool, transposed: bool
) -> None:
    rng = np.random.default_rng(rows)

    def draw(*shape: int) -> Tensor:
        return torch.tensor(rng.normal(size=shape), dtype=torch.float32)

    inputs, weight = draw(rows, taken + 3)[:, :taken], draw(made, taken)
    if transposed:
        inputs, weight = draw(taken, rows).T, draw(taken, made).T
    biases = draw(made) if bias else None
    expected = linear_of_torch(inputs.double(), weight.double(), None if biases is None else biases.double(), rectified)
    found = linear_of_onednn(inputs, weight, biases, rectified)
    assert found.shape == (rows, made)
    assert torch.allclose(found.double(), expected, atol=1e-4)


def test_onednn_is_tried_for_single_precision_only() -> None:
    assert ways_for(torch.zeros(1, dtype=torch.float64)) == [linear_of_torch]
    assert ways_for(torch.zeros(1))[-1] == linear_of_torch


def no_operator(*_: Any) -> Tensor:
    raise RuntimeError("unsupported")


def half_precision(inputs: Tensor, weight: Tensor, bias: Tensor | None, attribute: str, *_: Any) -> Tensor:
    rounded = linear_of_torch(inputs.bfloat16(), weight.bfloat16()).float()
    made = rounded if bias is None else rounded + bias
    return made.relu() if attribute == "relu" else made


@has_onednn
@pytest.mark.parametrize("found", [{}, {"_linear_pointwise": no_operator}, {"_linear_pointwise": half_precision}])
def test_where_onednn_is_missing_or_differs_torchs_own_products_serve(
    found: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = world()
    by_onednn = outcome(scenario)
    with monkeypatch.context() as patch:
        patch.setattr("fedelect.federation.torch.layers.ways_for", lambda _: [linear_of_torch])
        by_torch = outcome(scenario)
    monkeypatch.setattr(torch.ops, "mkldnn", SimpleNamespace(**found))
    assert outcome(scenario) == by_torch != by_onednn
