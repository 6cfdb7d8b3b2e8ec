"""Known layers computed faster, for the path "layers"; every other layer is left as it is.

- Leading layers of a `Sequential` without parameters see each input once, when the data is loaded.
- A `Sequential` of linear layers and rectifiers takes its gradient by matrix products written out, without autograd.
- Convolutions and max pooling work in the channels-last layout, where torch's pooling is ten times as fast. Where there
  is a `GroupNorm`, which is as much slower in that layout, only the pooling does.

Clients are trained one after the other, so that a result cannot depend on what else is in the call. On one core this
costs nothing: stacks of 4 to 64 trainings were no faster than one with the same matrix products.
"""

from typing import cast, final

import torch
from torch import Tensor, nn

from fedelect.errors import ConfigurationError
from fedelect.federation.torch.local_training import put_gradient
from fedelect.federation.torch.network import Loss, Network, seed_generator

AGREEMENT = 1e-3
"""How far, relative to the largest entry, gradients and scores may be from those of the module as it was."""

TRIAL_INPUTS = 4
PIXELS = 4  # dimensions of a batch of images: (B, C, H, W)


class ChannelsLastConv2d(nn.Conv2d):
    """A convolution whose inputs and outputs are channels-last."""

    def forward(self, input: Tensor) -> Tensor:
        """Convolve."""
        return super().forward(_channels_last(input))


class ChannelsLastMaxPool2d(nn.MaxPool2d):
    """Max pooling whose inputs and outputs are channels-last."""

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        return cast(Tensor, super().forward(_channels_last(input)))


class ContiguousGroupNorm(nn.GroupNorm):
    """A group normalisation whose inputs and outputs are in the usual layout."""

    def forward(self, input: Tensor) -> Tensor:
        """Normalise."""
        return super().forward(input.contiguous())


def _channels_last(images: Tensor) -> Tensor:
    if images.ndim != PIXELS:
        return images
    if images.shape[1] == 1 and images.is_contiguous():  # either layout; the strides tell torch which one is meant
        height, width = images.shape[2:]
        return images.as_strided(images.shape, (height * width, 1, width, 1), images.storage_offset())
    return images.contiguous(memory_format=torch.channels_last)


@final
class DenseGradient:
    """The gradient of linear layers and rectifiers, by hand.

    Args:
        layers: Linear layers, each with parameters of its own that are all trained, and rectifiers.
        loss: The loss of a batch.
    """

    def __init__(self, layers: list[nn.Module], loss: Loss) -> None:
        self._layers, self._loss = layers, loss

    def __call__(self, inputs: Tensor, labels: Tensor) -> None:
        """Put the gradient for inputs (B, F) and labels (B,) into the parameters' `grad`."""
        with torch.no_grad():
            kept = [inputs]
            for layer in self._layers:
                kept.append(layer(kept[-1]))
            slopes = self._slopes(kept.pop(), labels)
            for place in reversed(range(len(self._layers))):
                slopes = _step_back(self._layers[place], kept[place], slopes, first=place == 0)

    def _slopes(self, scores: Tensor, labels: Tensor) -> Tensor:
        """(B, C) the slopes of the loss by the scores."""
        if self._loss is nn.functional.cross_entropy:
            slopes = torch.softmax(scores, dim=1)
            slopes[torch.arange(len(labels), device=labels.device), labels] -= 1.0
            return slopes.div_(len(labels))
        with torch.enable_grad():
            scores.requires_grad_()
            return torch.autograd.grad(self._loss(scores, labels), scores)[0]


def _step_back(layer: nn.Module, inputs: Tensor, slopes: Tensor, *, first: bool) -> Tensor:
    """Put the layer's gradient where it belongs; return the slopes by its inputs, for which the first has no use."""
    if isinstance(layer, nn.ReLU):
        passed: Tensor = torch.ops.aten.threshold_backward(slopes, inputs, 0)
        return passed
    for parameter in layer.parameters():
        assert parameter.grad is not None
        if parameter.ndim == 1:
            torch.sum(slopes, 0, out=parameter.grad)
        else:
            torch.mm(slopes.t(), inputs, out=parameter.grad)
    return slopes if first else slopes.mm(cast(Tensor, layer.weight))


def hasten(network: Network, features: int, classes: int) -> None:
    """Let the network use what is faster for its layers; it stays as it was where that gives other numbers.

    Found out by trying, on a few made-up inputs: a module may, for example, draw for each pixel (dropout between
    convolutions) or take the layout of its own images for granted.

    Args:
        network: The network; its module's layers may change their class.
        features: F.
        classes: C.
    """
    inputs = torch.linspace(-1.0, 1.0, TRIAL_INPUTS * features).sin().view(TRIAL_INPUTS, features)
    inputs = inputs.to(network.flat)
    labels = torch.arange(TRIAL_INPUTS, device=inputs.device) % classes
    model = network.read()
    try:
        expected = _try_out(network, inputs, labels)
    except ConfigurationError:  # said again, with more to say, where it is trained
        network.load(model)
        return
    before = [(layer, type(layer)) for layer in network.module.modules()]
    _change_layers(network.module)
    _split(network)
    try:
        agree = all(
            (one - other).abs().max() <= AGREEMENT * one.abs().max()
            for one, other in zip(expected, _try_out(network, inputs, labels), strict=True)
        )
    except Exception:  # whatever it is that the module does with its images
        agree = False
    if not agree:
        for layer, kind in before:
            layer.__class__ = kind
        network.leading, network.body, network.dense = nn.Sequential(), network.module, None
    network.load(model)


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


def _change_layers(module: nn.Module) -> None:
    grouped = any(isinstance(layer, nn.GroupNorm) for layer in module.modules())
    faster: dict[type[nn.Module], type[nn.Module]] = {nn.MaxPool2d: ChannelsLastMaxPool2d}
    faster |= {nn.GroupNorm: ContiguousGroupNorm} if grouped else {nn.Conv2d: ChannelsLastConv2d}
    for layer in module.modules():
        layer.__class__ = faster.get(type(layer), type(layer))


def _split(network: Network) -> None:
    """Tell the leading layers from the body, and take the body's gradient by hand if it can be."""
    if type(network.module) is not nn.Sequential or _hooked(network.module):
        return
    layers = list(network.module)
    count = next((place for place, layer in enumerate(layers) if not _prepares(layer)), len(layers))
    body = layers[count:]
    network.leading, network.body = nn.Sequential(*layers[:count]), nn.Sequential(*body)
    own = [parameter for layer in body for parameter in layer.parameters()]
    if (
        all(type(layer) in (nn.Linear, nn.ReLU) and not _hooked(layer) for layer in body)
        and all(parameter.requires_grad for parameter in own)
        and len({id(parameter) for parameter in own}) == len(own)
        and not any(isinstance(layer, nn.ReLU) and layer.inplace for layer in body)
    ):
        network.dense = DenseGradient(body, network.loss)


def _prepares(layer: nn.Module) -> bool:
    """Whether a layer does the same to each input alone, whatever is trained."""
    plain = type(layer) in (nn.Flatten, nn.Unflatten, nn.Identity)
    normalises = type(layer) is nn.LayerNorm and not layer.elementwise_affine
    return (plain or normalises) and not _hooked(layer)


def _hooked(layer: nn.Module) -> bool:
    return bool(layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks)
