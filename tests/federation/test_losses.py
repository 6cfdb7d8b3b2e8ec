"""Each client's loss of a trained model."""

import msgspec
import numpy as np
import pytest
from tests.worlds import digits, tiny

from fedelect.federation import Job, MeasuresLosses, PlainEngine, StackedEngine, make_engine
from fedelect.federation.train import summarise_losses
from fedelect.scenario import ScenarioConfig, build_scenario


def test_mean_and_rms_are_worked_out_by_hand() -> None:
    mean, rms = summarise_losses(3, {0: np.array([3.0, 4.0]), 2: np.array([2.0])})
    assert mean == pytest.approx([3.5, np.nan, 2.0], nan_ok=True)
    assert rms == pytest.approx([np.sqrt(12.5), np.nan, 2.0], nan_ok=True)


def test_the_hinge_loss_of_a_zero_model_is_one_for_each_class() -> None:
    world = build_scenario(tiny(), digits())
    for engine in (PlainEngine(), StackedEngine()):
        assert isinstance(engine, MeasuresLosses)
        losses = engine.losses(world, engine.initial_model(world))
        assert losses.mean.tolist() == losses.rms.tolist() == [10.0] * 6


@pytest.mark.parametrize("path", ["torch-loop", "torch-layers"])
def test_a_pytorch_modules_losses_are_its_cross_entropies(path: str) -> None:
    torch = pytest.importorskip("torch")
    plain = msgspec.to_builtins(tiny())
    plain["model"] |= {"kind": "mlp", "step": 0.05}
    world = build_scenario(msgspec.convert(plain, ScenarioConfig), digits())
    engine = make_engine(path, world.config)
    assert isinstance(engine, MeasuresLosses)
    (training,) = engine.train(world, [Job(cohort=(0, 1), seed=3)])
    losses = engine.losses(world, training.model)
    network = engine._network(world)[0]  # type: ignore[attr-defined]
    network.load(training.model)
    network.module.eval()
    for client in (0, 5):
        with torch.no_grad():
            scores = network.module(torch.tensor(world.train_inputs[client]))
            each = torch.nn.functional.cross_entropy(
                scores, torch.tensor(world.train_labels[client]), reduction="none"
            ).numpy()
        assert losses.mean[client] == pytest.approx(each.mean(), rel=1e-5)
        assert losses.rms[client] == pytest.approx(np.sqrt((each**2).mean()), rel=1e-5)
    some = engine.losses(world, training.model, clients=np.array([5, 2]))
    assert np.flatnonzero(~np.isnan(some.mean)).tolist() == [2, 5]
    assert some.mean[[2, 5]] == pytest.approx(losses.mean[[2, 5]], rel=1e-5)
    assert np.isnan(engine.losses(world, training.model, clients=np.array([], dtype=np.int64)).mean).all()
