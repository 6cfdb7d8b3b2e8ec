"""PyTorch modules: presets and the user's own, by name, with their state in one flat tensor.

A factory takes (features, classes) and returns a module that maps inputs (B, features), floats in the scenario's
precision just as the data set holds them (raw pixels stay raw), to scores (B, classes). The presets first
standardise each input by its own mean and deviation, so the range of the pixels does not matter to them.

The flat order is: trainable parameters, frozen parameters, float buffers that the module saves (such as BatchNorm's
running statistics), each in the module's own order. That whole is the model: it is sent, averaged and scored. Any
other buffer, such as a counter of batches, is no part of it and starts every local training at its first value.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from fedelect._imports import import_callable
from fedelect.errors import ConfigurationError
from fedelect.federation.linear.model import Model
from fedelect.scenario import ModelConfig
from fedelect.seeds import derive

Factory = Callable[[int, int], nn.Module]
"""(features, classes) -> module from (B, features) to (B, classes)."""

Loss = Callable[[Tensor, Tensor], Tensor]
"""(scores (B, C), labels (B,) int64) -> scalar, the mean loss of a batch."""

HIDDEN = 64
SMALLEST_SIDE = 4
FREED_AT_ONCE = 31 * 2**20  # bytes; glibc adapts to blocks below 32 MiB


class Part(NamedTuple):
    """Where one parameter or buffer lies: `flat[start:end]`, to be seen as `shape`."""

    name: str
    start: int
    end: int
    shape: torch.Size


class Network:
    """A module with its loss, its state in `flat`.

    Args:
        module: The module; from here on its parameters and saved float buffers are views of `flat`.
        loss: The loss of a batch.

    Attributes:
        module: The module.
        loss: The loss.
        flat: (P,) the model.
        weights: (T,) its trainable part, a view.
        gradient: (T,) where a backward pass adds the gradient.
        trained: Where each trainable parameter lies.
        untrained: Where the rest lies.
        leading: Layers that inputs have been through before they come to `body`; see `prepare`.
        body: The rest of the module, all of it unless `layers.hasten` has parted them.
    """

    def __init__(self, module: nn.Module, loss: Loss) -> None:
        self.module, self.loss = module, loss
        self.leading, self.body = nn.Sequential(), module
        parameters = dict(module.named_parameters())
        saved = module.state_dict().keys()
        buffers = dict(module.named_buffers())
        kept = {name: buffer for name, buffer in buffers.items() if name in saved and buffer.is_floating_point()}
        trainable = {name: tensor for name, tensor in parameters.items() if tensor.requires_grad}
        frozen = {name: tensor for name, tensor in parameters.items() if not tensor.requires_grad}
        tensors = trainable | frozen | kept
        parts = _lay_out(tensors)
        self.trained, self.untrained = parts[: len(trainable)], parts[len(trainable) :]
        self.flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensors.values()])
        end = self.trained[-1].end
        self.weights, self.gradient = self.flat[:end], torch.zeros_like(self.flat[:end])
        self._buffers = buffers
        self._first = {name: buffer.clone() for name, buffer in buffers.items() if name not in kept}
        for part in parts:
            tensors[part.name].data = self.flat[part.start : part.end].view(part.shape)
        for part in self.trained:
            trainable[part.name].grad = self.gradient[part.start : part.end].view(part.shape)

    def prepare(self, inputs: Tensor) -> Tensor:
        """Put inputs (D, F) through the leading layers; once is enough, for they have nothing to train."""
        with torch.no_grad():
            prepared: Tensor = self.leading(inputs)
        return prepared

    @property
    def convolves(self) -> bool:
        """Whether there is a convolution among the layers."""
        return any(isinstance(layer, nn.Conv2d) for layer in self.module.modules())

    def losses(self, scores: Tensor, labels: Tensor) -> Tensor:
        """(D,) the loss of each sample alone; a user's own loss is called once for each, since it returns a number."""
        if self.loss is nn.functional.cross_entropy:
            return nn.functional.cross_entropy(scores, labels, reduction="none")
        return torch.stack([self.loss(scores[i : i + 1], labels[i : i + 1]) for i in range(len(labels))])

    def load(self, model: Model) -> None:
        """Make `model` (P,) the state; every buffer that is no part of a model gets its first value."""
        self.flat.copy_(torch.tensor(model))
        for name, buffer in self._buffers.items():
            owner, _, attribute = name.rpartition(".")
            setattr(self.module.get_submodule(owner), attribute, buffer)  # a forward pass may have put another there
            if name in self._first:
                buffer.copy_(self._first[name])

    def read(self) -> Model:
        """(P,) a copy of the state as it is now."""
        for part in self.untrained:
            if part.name in self._buffers:
                self._buffers[part.name].copy_(self.module.get_buffer(part.name).detach())
        model: Model = self.flat.cpu().numpy().copy()
        return model

    def buffers(self) -> dict[str, Tensor]:
        """A copy of every buffer as it is now."""
        return {name: buffer.detach().clone() for name, buffer in self.module.named_buffers()}


def _lay_out(tensors: dict[str, Tensor]) -> list[Part]:
    parts, start = [], 0
    for name, tensor in tensors.items():
        parts.append(Part(name, start, start + tensor.numel(), tensor.shape))
        start += tensor.numel()
    return parts


def build_network(config: ModelConfig, *, seed: int, features: int, classes: int, device: torch.device) -> Network:
    """Build the module that `config` names, with its initial weights.

    They are drawn on the CPU from the stream ("initial model") of the scenario's seed, whatever the device.

    Raises:
        ConfigurationError: The factory or its module fails, or does not map (B, features) to (B, classes).
    """
    factory = load_factory(config.kind)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.default_generator.manual_seed(derive(seed, "initial model"))
        try:
            module: object = factory(features, classes)
            if not isinstance(module, nn.Module):
                raise ConfigurationError(
                    f"model.kind: got {config.kind!r}, which makes {type(module).__name__}; "
                    f"allowed: a factory (features, classes) -> torch.nn.Module"
                )
            module = module.to(dtype=getattr(torch, config.precision))
            scores = module.eval()(torch.zeros(2, features, dtype=getattr(torch, config.precision)))
        except ConfigurationError:
            raise
        except Exception as error:
            raise ConfigurationError(
                f"model.kind: got {config.kind!r}, which fails on inputs of shape (2, {features}): {error!r}; "
                f"allowed: a factory (features, classes) -> module from (B, features) to (B, classes)"
            ) from error
    _check(config, module, scores, classes)
    return Network(module.to(device), load_loss(config.loss))


def _check(config: ModelConfig, module: nn.Module, scores: object, classes: int) -> None:
    shape = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
    if shape != (2, classes):
        raise ConfigurationError(
            f"model.kind: got {config.kind!r}, which makes {shape} of two inputs; "
            f"allowed: scores of shape (2, {classes})"
        )
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise ConfigurationError(
            f"model.kind: got {config.kind!r}, which has nothing to train; allowed: a module that has"
        )
    if any(tensor.is_complex() for tensor in module.parameters()):
        raise ConfigurationError(f"model.kind: got {config.kind!r} with complex parameters; allowed: real ones")


@contextmanager
def quiet_torch(device: torch.device) -> Iterator[None]:
    """One thread, repeatable kernels and gradients inside; torch's global settings and generators as before after."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    devices = [device] if device.type == "cuda" else []
    repeatable = torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False)
    try:
        with torch.random.fork_rng(devices=devices), repeatable, torch.enable_grad():
            yield
    finally:
        torch.set_num_threads(threads)


def keep_freed_memory() -> None:
    """Let the C library keep what torch frees, up to 64 MiB, where it would give pages back and clear them anew.

    For images that took a third of the time. glibc raises its limits when a large block is freed for the first time
    (`man mallopt`, M_MMAP_THRESHOLD); elsewhere this does nothing.
    """
    torch.empty(FREED_AT_ONCE, dtype=torch.uint8)


def seed_generator(device: torch.device, seed: int) -> None:
    """Let what a module draws (dropout) follow from `seed`; only inside `quiet_torch`."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.default_generators[device.index].manual_seed(seed)


def mlp(features: int, classes: int) -> nn.Module:
    """One hidden layer of 64 rectified units."""
    return nn.Sequential(
        nn.LayerNorm(features, elementwise_affine=False),
        nn.Linear(features, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, classes),
    )


def cnn(features: int, classes: int) -> nn.Module:
    """Two convolutions of 3 x 3 with 8 and 16 channels, each halved by max pooling, then a linear layer.

    Args:
        features: The pixels of a square image of one channel, row by row; its side is at least 4.
        classes: C.

    Raises:
        ConfigurationError: `features` is no such number.
    """
    side = math.isqrt(features)
    if side * side != features or side < SMALLEST_SIDE:
        raise ConfigurationError(
            f'model.kind: got "cnn" for inputs of {features} numbers; it needs a square image of at least '
            f'{SMALLEST_SIDE} x {SMALLEST_SIDE} pixels; allowed: "mlp", or your own "module:factory", for other inputs'
        )
    return nn.Sequential(
        nn.LayerNorm(features, elementwise_affine=False),
        nn.Unflatten(1, (1, side, side)),
        nn.Conv2d(1, 8, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * (side // 4) ** 2, classes),
    )


def load_factory(kind: str) -> Factory:
    """Return the factory that `model.kind` names."""
    presets: dict[str, Factory] = {"mlp": mlp, "cnn": cnn}
    return presets[kind] if kind in presets else import_callable(kind, what="model.kind")


def load_loss(name: str) -> Loss:
    """Return the loss that `model.loss` names."""
    return nn.functional.cross_entropy if name == "cross-entropy" else import_callable(name, what="model.loss")
