"""Compiled layers for images: torch's numbers and slopes, to the bit whatever else is there; else torch's layers."""

import copy
import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.federation.test_torch_layers import JOBS, world
from torch import Tensor, nn

from fedelect.federation.torch import layers
from fedelect.federation.torch.engine import TorchEngine
from fedelect.federation.torch.images import winograd
from fedelect.federation.torch.images.channels_last import ChannelsLastMaxPool2d, ContiguousGroupNorm
from fedelect.federation.torch.images.fusing import fuse
from fedelect.federation.torch.images.group_norm import ChannelsLastGroupNorm, normalise_groups
from fedelect.federation.torch.images.winograd import WinogradConv2d, convolve_by_winograd
from fedelect.federation.torch.network import Network, build_network

CONVOLVING = "tests.torch_models:Convolving"


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled layers are used whatever the processor; elsewhere they are slower, not wrong."""
    monkeypatch.setattr(winograd, "has_wide_vectors", lambda: True)


def draw(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return torch.tensor(np.random.default_rng([seed, *shape]).normal(size=shape), dtype=dtype).requires_grad_()


sizes = st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(1, 3), st.integers(3, 14), st.integers(3, 14))


@given(sizes, st.integers(0, 2), st.booleans(), st.booleans())
@settings(deadline=None)
def test_winograd_gives_the_outputs_and_slopes_of_torch(
    sizes: tuple[int, ...], margin: int, bias: bool, channels_last: bool
) -> None:
    count, taken, made, height, width = sizes
    images, weight = draw(count, 16 * taken, height, width), draw(16 * made, 16 * taken, 3, 3)
    if channels_last:
        images = images.detach().contiguous(memory_format=torch.channels_last).requires_grad_()
    biases = draw(16 * made) if bias else None
    expected = nn.functional.conv2d(images, weight, biases, padding=margin)
    found = convolve_by_winograd(images, weight, biases, margin)
    assert found.shape == expected.shape
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert torch.allclose(found, expected, atol=1e-10)
    given = (images, weight) if biases is None else (images, weight, biases)
    slopes = draw(*expected.shape, seed=1).detach()
    for one, other in zip(
        torch.autograd.grad(found, given, slopes), torch.autograd.grad(expected, given, slopes), strict=True
    ):
        assert torch.allclose(one, other, atol=1e-9)


@given(sizes, st.sampled_from([1, 2, 4]), st.booleans(), st.booleans())
@settings(deadline=None)
def test_group_normalisation_gives_the_outputs_and_slopes_of_torch(
    sizes: tuple[int, ...], groups: int, added: bool, rectified: bool
) -> None:
    count, taken, _, height, width = sizes
    channels = 4 * taken
    images, weight, bias = draw(count, channels, height, width), draw(channels, seed=1), draw(channels, seed=2)
    more = draw(count, channels, height, width, seed=3) if added else None
    expected = nn.functional.group_norm(images, groups, weight, bias, 1e-5)
    expected = expected if more is None else expected + more
    expected = expected.relu() if rectified else expected
    found = normalise_groups(images, weight, bias, more, groups, 1e-5, rectified)
    assert torch.allclose(found, expected, atol=1e-12)
    given = (images, weight, bias) if more is None else (images, weight, bias, more)
    slopes = draw(*images.shape, seed=4).detach()
    for one, other in zip(
        torch.autograd.grad(found, given, slopes), torch.autograd.grad(expected, given, slopes), strict=True
    ):
        assert torch.allclose(one, other, atol=1e-9)


def test_deviations_are_taken_about_the_mean() -> None:
    images = (1e4 + draw(2, 8, 7, 7)).float()
    expected = nn.functional.group_norm(images.double(), 2).float()
    ones, zeros = torch.ones(8), torch.zeros(8)
    assert torch.allclose(normalise_groups(images, ones, zeros, None, 2, 1e-5, False), expected, atol=5e-3)


def test_what_is_no_number_stays_none_through_the_rectifier() -> None:
    images = torch.full((1, 4, 3, 3), torch.nan)
    assert normalise_groups(images, torch.ones(4), torch.zeros(4), None, 2, 1e-5, True).isnan().all()


@pytest.mark.parametrize("side", [3, 7, 13])
def test_an_image_has_the_same_bits_among_any_others(side: int) -> None:
    images, weight = draw(9, 16, side, side, dtype=torch.float32).detach(), draw(32, 16, 3, 3, dtype=torch.float32)
    with torch.no_grad():
        convolved = convolve_by_winograd(images, weight, None, 1)
        normalised = normalise_groups(convolved, torch.ones(32), torch.zeros(32), convolved, 4, 1e-5, True)
        for place in (0, 5, 8):
            own = convolve_by_winograd(images[place : place + 1], weight, None, 1)
            assert torch.equal(own[0], convolved[place])
            assert torch.equal(
                normalise_groups(own, torch.ones(32), torch.zeros(32), own, 4, 1e-5, True)[0], normalised[place]
            )


@pytest.mark.parametrize(
    ("settings", "fits"),
    [
        ({}, True),
        ({"padding": 0}, True),
        ({"padding": 3}, False),
        ({"padding": "same"}, False),
        ({"stride": 2}, False),
        ({"dilation": 2}, False),
        ({"groups": 2}, False),
        ({"kernel_size": 5}, False),
        ({"padding_mode": "circular"}, False),
        ({"in_channels": 8}, False),
        ({"out_channels": 24}, False),
        ({"in_channels": 512, "out_channels": 256}, False),
    ],
)
def test_winograd_serves_the_convolutions_that_it_is_made_for(settings: dict[str, Any], fits: bool) -> None:
    layer = nn.Conv2d(**{"in_channels": 16, "out_channels": 32, "kernel_size": 3, "padding": 1} | settings)
    images = draw(2, layer.in_channels, 9, 9, dtype=torch.float32).detach()
    expected = layer(images)
    layer.__class__ = WinogradConv2d
    found = layer(images)
    assert torch.allclose(found, expected, atol=1e-4)
    assert (type(found.grad_fn).__name__ == "WinogradBackward") == fits


class Block(nn.Module):
    """Convolutions, normalisations and rectifiers, followed by `end`."""

    def __init__(self, end: Any) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(16, 16, 3, padding=1), nn.GroupNorm(4, 16)
        self.second, self.second_norm = nn.Conv2d(16, 16, 3, padding=1), nn.GroupNorm(2, 16)
        self.rectifier, self.quick_rectifier = nn.ReLU(), nn.ReLU(inplace=True)
        self.end = end

    def forward(self, images: Tensor) -> Tensor:
        made: Tensor = self.end(self, images)
        return made


def in_place(block: Block, images: Tensor) -> Tensor:
    made: Tensor = block.norm(block.first(images))
    made += images
    made = block.quick_rectifier(made)
    return made


def by_training(block: Block, images: Tensor) -> Tensor:
    made = block.norm(images)
    return torch.relu(made) if block.training else made


@pytest.mark.parametrize(
    ("end", "fused"),
    [
        (lambda block, images: block.rectifier(block.norm(block.first(images))), 1),
        (lambda block, images: torch.relu(block.norm(images)) + block.second_norm(images).relu(), 2),
        (lambda block, images: nn.functional.relu(images + block.norm(block.first(images))), 1),
        (lambda block, images: torch.relu(block.norm(images) + block.second_norm(block.second(images))), 1),
        (in_place, 1),
        (lambda block, images: block.quick_rectifier(block.first(images)), 0),
        (lambda block, images: torch.relu(made := block.norm(images)) + made, 0),  # used twice
        (lambda block, images: torch.relu(made := block.norm(images) + images) + made, 0),
        (lambda block, images: torch.relu(torch.add(block.norm(images), images, alpha=2)), 0),
        (lambda block, images: torch.relu(block.norm(images) + 1), 0),
        (lambda block, images: torch.relu(block.norm(images) * images), 0),
        (by_training, 0),
        (lambda block, images: torch.relu(block.norm(images)) if images.sum() > 0 else images, 0),
    ],
)
def test_shortcuts_and_rectifiers_are_fused_where_nothing_else_sees_what_is_between(end: Any, fused: int) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        plain = Block(end)
    ours = copy.deepcopy(plain)
    ours.norm.__class__ = ours.second_norm.__class__ = ChannelsLastGroupNorm
    module = fuse(ours)
    nodes: Any = module.graph.nodes if isinstance(module, torch.fx.GraphModule) else []
    assert sum(node.op == "call_module" and len(node.args) == 3 for node in nodes) == fused
    images = draw(2, 16, 6, 6, dtype=torch.float32).detach()
    for one, other in zip(slopes_of(plain, plain, images), slopes_of(module or ours, ours, images), strict=True):
        assert torch.allclose(one, other, atol=1e-3)


def slopes_of(module: nn.Module, owner: nn.Module, images: Tensor) -> list[Tensor]:
    """Outputs, and what a step would change."""
    made = module.train()(images)
    owner.zero_grad()
    made.square().sum().backward()
    return [made, *(own.grad for own in owner.parameters() if own.grad is not None)]


def hastened(kind: str, precision: str = "float32") -> Network:
    config = world(kind=kind, precision=precision).config.model
    network = build_network(config, seed=1, features=64, classes=10, device=torch.device("cpu"))
    assert layers.hasten(network, config, 64, 10) is None
    return network


@pytest.mark.usefixtures("wide")
def test_a_module_of_convolutions_agrees_with_the_loop_and_repeats_to_the_bit() -> None:
    network = hastened(CONVOLVING)
    kinds = {type(layer) for layer in network.module.modules()}
    assert {WinogradConv2d, ChannelsLastGroupNorm, ChannelsLastMaxPool2d} <= kinds
    assert isinstance(network.body, torch.fx.GraphModule)
    scenario = world(kind=CONVOLVING)
    together = TorchEngine("layers").train(scenario, JOBS)
    for job, one, other in zip(JOBS, TorchEngine("loop").train(scenario, JOBS), together, strict=True):
        assert np.abs(other.model - one.model).max() < 1e-4 * np.abs(one.model).max()
        (trained,) = TorchEngine("layers").train(scenario, [job])
        assert trained.model.tobytes() == other.model.tobytes()
    engine, models = TorchEngine("layers"), [result.model for result in together]
    scored = list(engine.scores(scenario, models))
    for model, own, looped in zip(models, scored, TorchEngine("loop").scores(scenario, models), strict=True):
        (single,) = engine.scores(scenario, [model])
        assert [share.tobytes() for share in single] == [share.tobytes() for share in own]
        assert np.allclose(np.concatenate(own), np.concatenate(looped), atol=1e-3)


@pytest.mark.usefixtures("wide")
def test_a_module_with_hooks_is_not_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "_hooked", lambda layer: isinstance(layer, nn.GroupNorm))
    network = hastened(CONVOLVING)
    assert not isinstance(network.body, torch.fx.GraphModule)
    assert ChannelsLastGroupNorm in {type(layer) for layer in network.module.modules()}


@pytest.mark.usefixtures("wide")
def test_double_precision_is_left_to_torch() -> None:
    kinds = {type(layer) for layer in hastened(CONVOLVING, "float64").module.modules()}
    assert ContiguousGroupNorm in kinds
    assert not {WinogradConv2d, ChannelsLastGroupNorm} & kinds


@pytest.mark.parametrize("missing", ["numba", "wide vectors", "agreement"])
def test_without_what_they_need_compiled_layers_are_left_out(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winograd, "has_wide_vectors", lambda: missing != "wide vectors")
    if missing == "numba":
        monkeypatch.setitem(sys.modules, "fedelect.federation.torch.images.winograd", None)
        monkeypatch.delattr("fedelect.federation.torch.images.winograd")
    if missing == "agreement":
        monkeypatch.setattr(winograd, "convolve", lambda *given: given[-1].fill(0))
    network = hastened(CONVOLVING)
    kinds = {type(layer) for layer in network.module.modules()}
    assert not {WinogradConv2d, ChannelsLastGroupNorm} & kinds
    assert not isinstance(network.body, torch.fx.GraphModule)


class Counting(nn.Module):
    """Counts its training passes in a buffer that follows no input, and leaves its block out once there were two."""

    seen: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.block = Block(lambda block, images: torch.relu(block.norm(images)))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, images: Tensor) -> Tensor:
        """Maps of images."""
        if self.training:
            self.seen = self.seen + 1
        return self.block(images) if self.seen < 3 else images


class Skipping(Counting):
    """Leaves its block out by chance."""

    def forward(self, images: Tensor) -> Tensor:
        """Maps of images."""
        return self.block(images) if not self.training or torch.rand(()) >= 0.1 else images


class Remembering(Counting):
    """Keeps a number of the pass before."""

    mean: Tensor | None = None

    def forward(self, images: Tensor) -> Tensor:
        """Maps of images."""
        made: Tensor = self.block(images)
        self.mean = made.mean().detach()
        return made


class ByName(Counting):
    """Names the argument of its rectifier."""

    def forward(self, images: Tensor) -> Tensor:
        """Maps of images."""
        return torch.relu(input=self.block.norm(images))


@pytest.mark.parametrize("kind", [Counting, Skipping, Remembering, ByName])
def test_a_module_that_does_more_than_its_graph_says_is_not_fused_and_not_touched(kind: type[Counting]) -> None:
    module, drawn = kind(), torch.get_rng_state()
    module.block.norm.__class__ = module.block.second_norm.__class__ = ChannelsLastGroupNorm
    assert fuse(module.block) is not None and fuse(module) is None
    assert float(module.seen) == 0.0 and getattr(module, "mean", None) is None
    assert torch.equal(torch.get_rng_state(), drawn)


@pytest.mark.parametrize(
    "change",
    [
        lambda images: torch.ones(1).expand(images.shape),
        lambda images: images.contiguous(memory_format=torch.channels_last)[:, ::2],
        lambda images: images[:, :16, :5, 2:],
        lambda images: images[:1, :16],
    ],
)
def test_winograd_reads_images_with_gaps_as_torch_does(change: Any) -> None:
    images = change(draw(2, 32, 8, 8, dtype=torch.float32).detach())
    weight = draw(16, images.shape[1], 3, 3, dtype=torch.float32).detach()
    if images.shape[1] != 16:
        images, weight = images[:, :16], weight[:, :16]
    expected = nn.functional.conv2d(images, weight, padding=1)
    assert torch.allclose(convolve_by_winograd(images, weight, None, 1), expected, atol=1e-4)


def test_slopes_that_are_one_number_everywhere_go_through_winograd() -> None:
    images, weight = draw(1, 16, 8, 8), draw(16, 16, 3, 3)
    found = torch.autograd.grad(convolve_by_winograd(images, weight, None, 1).sum(), (images, weight))
    expected = torch.autograd.grad(nn.functional.conv2d(images, weight, padding=1).sum(), (images, weight))
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-9)


def test_a_normalisation_with_weights_and_no_biases_is_computed() -> None:
    norm, images = nn.GroupNorm(4, 16), draw(2, 16, 5, 5, dtype=torch.float32)
    norm.bias = None  # type: ignore[assignment]
    expected = norm(images)
    norm.__class__ = ChannelsLastGroupNorm
    assert torch.allclose(norm(images), expected, atol=1e-5)
