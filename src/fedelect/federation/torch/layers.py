"""Known layers computed faster, for the path "layers"; every other layer is left as it is.

- Leading layers of a `Sequential` without parameters see each input once, when the data is loaded.
- A `Sequential` of linear layers and rectifiers is trained by batched matrix products, without autograd (see `dense`).
- Convolutions, max pooling and group normalisation work in the channels-last layout, compiled where the processor and
  what is installed allow it (see `images`). Elsewhere, where there is a `GroupNorm`, only the pooling does: torch's own
  `GroupNorm` is as much slower in that layout as its pooling is faster.

All else trains one client after the other.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import msgspec
import numpy as np
import torch
from torch import Tensor, nn

from fedelect.errors import ConfigurationError
from fedelect.federation.linear.model import Model
from fedelect.federation.torch.dense import ROWS, DenseStack
from fedelect.federation.torch.images.channels_last import (
    ChannelsLastConv2d,
    ChannelsLastMaxPool2d,
    ContiguousGroupNorm,
)
from fedelect.federation.torch.linear import ways_for
from fedelect.federation.torch.local_training import LocalTraining, put_gradient
from fedelect.federation.torch.network import Network, seed_generator
from fedelect.federation.torch.shares import DataTensors, pad, padded_width
from fedelect.scenario import ModelConfig

AGREEMENT = 1e-3
"""How far, relative to the largest entry, gradients and scores may be from those of the module as it was."""

TRIAL_INPUTS = 4


def hasten(network: Network, config: ModelConfig, features: int, classes: int) -> DenseStack | None:
    """Let the network use what is faster for its layers; it stays as it was where that gives other numbers.

    Found out by trying, on a few made-up inputs: a module may, for example, draw for each pixel (dropout between
    convolutions) or take the layout of its own images for granted.

    Args:
        network: The network; its module's layers may change their class.
        config: How it is trained.
        features: F.
        classes: C.

    Returns:
        What trains the network in stacks, where it is of that kind.
    """
    inputs = _make_inputs(TRIAL_INPUTS, features).to(network.flat)
    labels = torch.arange(TRIAL_INPUTS, device=inputs.device) % classes
    model = network.read()
    try:
        expected = _try_out(network, inputs, labels)
    except ConfigurationError:  # said again, with more to say, where it is trained
        network.load(model)
        return None
    before = [(layer, type(layer)) for layer in network.module.modules()]
    try:
        _change_layers(network.module, network.flat)
        _part_leading(network)
        _fuse_layers(network)
        found = _try_out(network, inputs, labels)
        agree = all(_is_near(one, other) for one, other in zip(found, expected, strict=True))
    except Exception:  # whatever it is that the module does with its images
        agree = False
    if not agree:
        for layer, kind in before:
            layer.__class__ = kind
        network.leading, network.body = nn.Sequential(), network.module
    network.load(model)
    plain = config.optimiser == "sgd" and not config.momentum and not config.weight_decay
    if plain and network.loss is nn.functional.cross_entropy and _is_dense(network):
        for linear in ways_for(network.flat):
            stack = DenseStack(list(cast(nn.Sequential, network.body)), classes, linear)
            if _stack_agrees(stack, network, config, inputs, expected):
                return stack
    return None


def _make_inputs(count: int, features: int) -> Tensor:
    return torch.linspace(-1.0, 1.0, count * features).mul_(1e4).sin_().view(count, features)


def _is_near(found: Tensor, expected: Tensor) -> bool:
    return bool((found - expected).abs().max() <= AGREEMENT * expected.abs().max())


def _try_out(network: Network, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Gradient (T,) and scores (B, C) of the trial inputs."""
    start = network.read()
    seed_generator(network.flat.device, 0)
    network.module.train()
    prepared = network.prepare(inputs)
    put_gradient(network, prepared, labels)
    network.load(start)
    network.module.eval()
    with torch.no_grad():
        scores = network.body(prepared)
    return network.gradient.clone(), scores


@dataclass(slots=True)
class _Share:
    """Trial data of one client, as `Shares`."""

    padded_inputs: Tensor
    labels: Tensor
    starts: list[int]
    products: Tensor | None


def _make_share(network: Network, inputs: Tensor, classes: int, span: int) -> _Share:
    labels = torch.arange(len(inputs), device=inputs.device) % classes
    products = inputs.new_zeros((1, span, span)) if span else None
    return _Share(pad(network.prepare(inputs)), labels, [0, len(inputs)], products)


def _stack_agrees(
    stack: DenseStack, network: Network, config: ModelConfig, inputs: Tensor, expected: tuple[Tensor, Tensor]
) -> bool:
    """Whether a step, both ways, and scores are those of the loop, `expected` as from `_try_out`."""
    gradient, scores = expected
    classes = scores.shape[1]
    model = network.read()
    once = msgspec.structs.replace(config, epochs=1, batch=len(inputs), step=1.0)
    training = LocalTraining(client=0, model=model, orders=np.arange(len(inputs))[None], seed=0)
    found = []
    try:
        for span in (0, padded_width(len(inputs), inputs.dtype)):
            (trained,) = stack.train(once, _make_share(network, inputs, classes, span), [training])
            found.append((torch.tensor(model - trained).to(gradient), gradient))
        with torch.inference_mode():
            found.append((stack.score([model], network.prepare(inputs), len(inputs))[0], scores))
    except RuntimeError:  # an operator that is not there, or not for these tensors
        return False
    return all(_is_near(one, other) for one, other in found)


def repeats(
    stack: DenseStack, network: Network, config: ModelConfig, data: DataTensors, features: int, classes: int
) -> bool:
    """Whether the bits of a row do not depend on its place in the stack, nor on how many and which others are there.

    Tried with every number of inputs in a batch that training will see, once for each.

    Args:
        stack: What trains the network.
        network: The network, which is left as it is.
        config: How it is trained.
        data: What it is trained on.
        features: F.
        classes: C.
    """
    sizes = sorted((end - start for start, end in pairwise(data.starts)), reverse=True)
    span = 0 if data.products is None else data.products.shape[1]
    for size in {size % config.batch: size for size in sizes}.values():  # the smallest share with this last batch
        shapes = (size % config.batch, size >= config.batch, span)
        if shapes not in stack.tried:
            share = _make_share(network, _make_inputs(size, features).to(network.flat), classes, span)
            stack.tried[shapes] = _repeats_on(stack, network.read(), config, share)
        if not stack.tried[shapes]:
            return False
    return True


def _repeats_on(stack: DenseStack, model: Model, config: ModelConfig, share: _Share) -> bool:
    twice = msgspec.structs.replace(config, epochs=2)
    forth = np.arange(len(share.labels))
    orders = np.stack([forth, forth[::-1]])
    row, other = (LocalTraining(client=0, model=own, orders=orders, seed=0) for own in (model, model * 0.5))
    (alone,) = stack.train(twice, share, [row])
    together = [*stack.train(twice, share, [row] * ROWS), stack.train(twice, share, [other, row])[1]]
    return all(own.tobytes() == alone.tobytes() for own in together)


def _change_layers(module: nn.Module, like: Tensor) -> None:
    grouped = any(isinstance(layer, nn.GroupNorm) for layer in module.modules())
    faster: dict[type[nn.Module], type[nn.Module]] = {nn.MaxPool2d: ChannelsLastMaxPool2d}
    if compiled := _compiled_layers(module, like):
        faster |= compiled
    else:
        faster |= {nn.GroupNorm: ContiguousGroupNorm} if grouped else {nn.Conv2d: ChannelsLastConv2d}
    for layer in module.modules():
        layer.__class__ = faster.get(type(layer), type(layer))


def _compiled_layers(module: nn.Module, like: Tensor) -> dict[type[nn.Module], type[nn.Module]]:
    """Layers for tensors like this one, compiled by numba; none where it or the processor does not offer that."""
    fits = any(isinstance(layer, nn.Conv2d | nn.GroupNorm) for layer in module.modules())
    if not fits or like.dtype != torch.float32 or like.device.type != "cpu":
        return {}
    try:
        from fedelect.federation.torch.images import group_norm, winograd
    except (ImportError, OSError):  # without the extra `lab` there is no numba, or its library cannot be loaded
        return {}
    if not winograd.has_wide_vectors():
        return {}
    return {nn.Conv2d: winograd.WinogradConv2d, nn.GroupNorm: group_norm.ChannelsLastGroupNorm}


def _fuse_layers(network: Network) -> None:
    """Let compiled layers do what follows them, where the module's code says so."""
    if _compiled_layers(network.module, network.flat) and not any(_hooked(layer) for layer in network.body.modules()):
        from fedelect.federation.torch.images.fusing import fuse

        network.body = fuse(network.body) or network.body


def _part_leading(network: Network) -> None:
    """Tell the leading layers that need no training from the body."""
    if type(network.module) is nn.Sequential and not _hooked(network.module):
        layers = list(network.module)
        count = next((place for place, layer in enumerate(layers) if not _prepares(layer)), len(layers))
        network.leading, network.body = nn.Sequential(*layers[:count]), nn.Sequential(*layers[count:])


def _is_dense(network: Network) -> bool:
    """Whether the body is linear layers, all trained, at most one rectifier between two of them, and nothing else."""
    if type(network.body) is not nn.Sequential:
        return False
    layers = list(network.body)
    kinds = [type(layer) for layer in layers]
    own = [parameter for layer in layers for parameter in layer.parameters()]
    return (
        kinds[-1:] == [nn.Linear]
        and all(
            kind is nn.Linear or (kind is nn.ReLU and before is nn.Linear) for before, kind in pairwise([None, *kinds])
        )
        and not any(_hooked(layer) for layer in [network.body, *layers])
        and all(parameter.requires_grad for parameter in own)
        and len({id(parameter) for parameter in own}) == len(own)
    )


def _prepares(layer: nn.Module) -> bool:
    """Whether a layer does the same to each input alone, whatever is trained."""
    plain = type(layer) in (nn.Flatten, nn.Unflatten, nn.Identity)
    normalises = type(layer) is nn.LayerNorm and not layer.elementwise_affine
    return (plain or normalises) and not _hooked(layer)


def _hooked(layer: nn.Module) -> bool:
    return bool(layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks or layer._backward_pre_hooks)
