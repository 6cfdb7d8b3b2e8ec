"""Modules, factories and losses for tests of the PyTorch engine, named in scenarios as "tests.torch_models:..."."""

import torch
from torch import Tensor, nn


def zero_linear(features: int, classes: int) -> nn.Module:
    """Softmax regression once cross-entropy is put on it."""
    layer = nn.Linear(features, classes)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def normalised(features: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(features, 7), nn.BatchNorm1d(7), nn.ReLU(), nn.Linear(7, classes))


def dropping(features: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(features, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, classes))


def grouped(features: int, classes: int) -> nn.Module:
    """Pooling and a group normalisation, which want different layouts."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 4, 3, padding=1),
        nn.GroupNorm(2, 4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 4, 3, padding=1),
        nn.Flatten(),
        nn.Linear(4 * features // 4, classes),
    )


class Branching(nn.Module):
    """Control flow that depends on the data, which cannot be vectorised."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.layer = nn.Linear(features, classes)

    def forward(self, inputs: Tensor) -> Tensor:
        scores: Tensor = self.layer(inputs)
        return scores if scores.sum() > 0 else 2 * scores


class HalfFrozen(nn.Module):
    """A frozen layer, a tied pair, a parameter that nothing reads, and buffers of every sort."""

    constant: Tensor
    table: Tensor
    passing: Tensor
    seen: Tensor

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.frozen = nn.Linear(features, 6)
        self.frozen.requires_grad_(False)
        self.inner = nn.Linear(6, 6)
        self.twin = self.inner
        self.last = nn.Linear(6, classes)
        self.unread = nn.Parameter(torch.ones(3))
        self.register_buffer("constant", torch.full((2,), 0.1))
        self.register_buffer("table", torch.arange(3))
        self.register_buffer("passing", torch.ones(4), persistent=False)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, inputs: Tensor) -> Tensor:
        if self.training:
            self.seen = self.seen + 1  # a new tensor in the buffer's place
            self.table += 1
        hidden = self.twin(torch.tanh(self.inner(self.frozen(inputs))))
        scores: Tensor = self.last(hidden) * self.passing.mean() + self.constant.sum()
        return scores


def of_the_wrong_shape(features: int, classes: int) -> nn.Module:
    return nn.Linear(features, classes + 1)


def for_other_inputs(features: int, classes: int) -> nn.Module:
    return nn.Linear(features + 1, classes)


def without_parameters(features: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.AdaptiveAvgPool1d(classes), nn.Identity())


def no_module(features: int, classes: int) -> int:
    return features * classes


not_a_function = 3


def mean_square(scores: Tensor, labels: Tensor) -> Tensor:
    return ((scores - nn.functional.one_hot(labels, scores.shape[1])) ** 2).sum(dim=1).mean()


def of_each(scores: Tensor, labels: Tensor) -> Tensor:
    """Not one number but one for each sample."""
    return nn.functional.cross_entropy(scores, labels, reduction="none")


class Convolving(nn.Module):
    """A residual block on images of 8 x 8, wide enough for vectors, with pooling."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.unflatten = nn.Unflatten(1, (1, 8, features // 8))
        self.stem, self.stem_norm = nn.Conv2d(1, 16, 3, padding=1), nn.GroupNorm(4, 16)
        self.first, self.first_norm = nn.Conv2d(16, 16, 3, padding=1), nn.GroupNorm(4, 16)
        self.second, self.second_norm = nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.GroupNorm(2, 16)
        self.pool, self.last = nn.MaxPool2d(2), nn.Linear(4 * features, classes)

    def forward(self, inputs: Tensor) -> Tensor:
        images = torch.relu(self.stem_norm(self.stem(self.unflatten(inputs / 16))))
        inner = torch.relu(self.first_norm(self.first(images)))
        made = torch.relu(self.second_norm(self.second(inner)) + images)
        scores: Tensor = self.last(self.pool(made).flatten(1))
        return scores
