"""Atlases that keep the clients' losses, for the selectors that look at them."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.atlas.made_up import built, plan, trained
from tests.worlds import digits, tiny
from tests.worlds import plan as run_plan

from fedelect.atlas import Atlas, AtlasEngine, load_atlas, trainer
from fedelect.atlas import build as build_module
from fedelect.atlas.file import save_atlas
from fedelect.atlas.table import LARGEST_LOSS, encode_losses
from fedelect.errors import ConfigurationError, DataError, RunMismatchError
from fedelect.federation import Job, linear_losses, train
from fedelect.records import read_run
from fedelect.scenario import build_scenario
from fedelect.simulator import simulate

WORLD = build_scenario(tiny(upload_probability=0.8), digits())


def test_losses_are_those_of_each_seeds_models_and_survive_the_file_and_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_module, "CHUNK", 4)

    def stop(finished: int, total: int) -> None:
        if finished >= 20:
            raise KeyboardInterrupt

    of = plan(tiny(upload_probability=0.8), losses=2)
    with pytest.raises(KeyboardInterrupt):
        built(of, tmp_path / "a.npz", progress=stop)
    built(of, tmp_path / "a.npz")
    atlas = load_atlas(tmp_path / "a.npz")
    assert atlas.losses is not None and atlas.losses.shape == (2, 2, 6, 15)
    assert np.array_equal(atlas.table, trained().table) and atlas.digest != trained().digest
    for rank in (0, 7, 14):
        for seed in range(2):
            (training,) = train(WORLD, [Job(cohort=atlas.cohort(rank), seed=7, trial=seed, slot=1)])
            expected = encode_losses(np.stack(linear_losses(WORLD, training.model)))
            assert np.array_equal(atlas.client_losses(rank, seed), expected.astype(np.float64))
    assert AtlasEngine(atlas).model_bits(WORLD) == 8 * training.model.nbytes
    with pytest.raises(RunMismatchError, match="losses differ"):
        built(plan(tiny(upload_probability=0.8)), tmp_path / "a.npz")


def test_where_few_seeds_have_losses_a_slot_is_told_those_of_the_same_cohort(tmp_path: Path) -> None:
    atlas = built(plan(tiny(upload_probability=0.8), losses=1), tmp_path / "a.npz")
    assert np.array_equal(atlas.client_losses(3, 1), atlas.client_losses(3, 0))
    simulate(run_plan("oort", slots=4, trials=1, config=atlas.config), atlas, tmp_path / "run", workers=1)
    for record in read_run(tmp_path / "run").records:
        assert record.signals is not None and record.signals.loss_rms is not None
        expected = atlas.client_losses(int(atlas.rank(record.cohort)), 0)[1]
        assert record.signals.loss_rms == pytest.approx(tuple(expected))


def test_an_atlas_without_losses_or_of_another_kind_of_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not know the clients' losses; build it with --losses 1"):
        simulate(run_plan("oort", slots=4, trials=1, config=trained().config), trained(), tmp_path / "run", workers=1)
    atlas = load_again(tmp_path)
    model = msgspec.structs.replace(atlas.config.model, kind="mlp")
    object.__setattr__(atlas.world, "config", msgspec.structs.replace(atlas.config, model=model))
    with pytest.raises(ConfigurationError, match="depends on the size of the model, which the atlas of a 'mlp'"):
        AtlasEngine(atlas).model_bits(WORLD)


def load_again(tmp_path: Path) -> Atlas:
    save_atlas(trained(), tmp_path / "copy.npz")
    return load_atlas(tmp_path / "copy.npz")


@pytest.mark.parametrize(
    ("shape", "says"), [((2, 3, 6, 15), "losses of 3 training seeds"), ((2, 1, 6, 14), "losses has shape")]
)
def test_losses_that_do_not_fit_are_refused(tmp_path: Path, shape: tuple[int, ...], says: str) -> None:
    atlas = load_again(tmp_path)
    object.__setattr__(atlas, "losses", np.zeros(shape, dtype=np.float16))
    save_atlas(atlas, tmp_path / "bad.npz")
    with pytest.raises(DataError, match=says):
        load_atlas(tmp_path / "bad.npz")


def test_losses_too_large_to_be_kept_are_kept_as_the_largest() -> None:
    losses = np.array([[1.0, LARGEST_LOSS], [65_520.0, 1e30], [65_000.0, np.inf]])
    assert encode_losses(losses).tolist() == [[1.0, LARGEST_LOSS], [LARGEST_LOSS] * 2, [LARGEST_LOSS] * 2]
    assert LARGEST_LOSS == 2**15 * (2 - 2**-5)  # the exponent's largest, and five binary digits after the first


@pytest.mark.parametrize("loss", [float("nan"), -0.5])
def test_losses_that_are_none_are_refused_with_advice(loss: float) -> None:
    with pytest.raises(ConfigurationError, match=f"loss is {loss}; an atlas keeps losses >= 0: lower the model's"):
        encode_losses(np.array([1.0, loss]))


def test_an_atlas_of_huge_losses_is_written_so_that_it_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "losses_on", lambda scenario, models, engine: np.full((2, len(models), 6), 1e6))
    built(plan(losses=1), tmp_path / "a.npz")
    losses = load_atlas(tmp_path / "a.npz").losses
    assert losses is not None and (losses == LARGEST_LOSS).all()


def test_an_atlas_that_could_not_be_read_is_not_written_and_its_parts_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_module, "encode_losses", lambda losses: np.full(losses.shape, np.inf, dtype=np.float16))
    with pytest.raises(ConfigurationError, match="no atlas that could be read again: losses holds inf"):
        built(plan(losses=1), tmp_path / "a.npz")
    assert not (tmp_path / "a.npz").exists()
    assert len(list((tmp_path / "a.npz.parts").glob("*.part"))) == 2 + 1 + 6


def test_the_losses_of_the_untrained_model_are_not_those_of_the_last_cohort(tmp_path: Path) -> None:
    atlas = built(plan(losses=1), tmp_path / "a.npz")
    engine = AtlasEngine(atlas)
    (training,) = engine.train(WORLD, [Job(cohort=(4, 5), seed=1, trial=0, slot=1)])
    assert np.array_equal(engine.losses(WORLD, training.model).mean, atlas.client_losses(14, 0)[0])
    with pytest.raises(ConfigurationError, match="does not know the clients' losses of the untrained model"):
        engine.losses(WORLD, engine.initial_model(WORLD))
