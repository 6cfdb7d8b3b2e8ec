"""A plain PyTorch loop for any module: FedAvg as a tutorial would write it; and the residual network it is tried on."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from fedelect.federation.torch.network import load_factory
from fedelect.scenario import Scenario

SIDE = 28


class Residual(nn.Module):
    """Two convolutions with group normalisation, and a shortcut."""

    def __init__(self, channels: int, made: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, made, 3, stride, 1, bias=False)
        self.first_norm = nn.GroupNorm(8, made)
        self.second = nn.Conv2d(made, made, 3, 1, 1, bias=False)
        self.second_norm = nn.GroupNorm(8, made)
        same = channels == made and stride == 1
        self.shortcut = nn.Identity() if same else nn.Conv2d(channels, made, 1, stride, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        """(B, C, H, W) maps of images."""
        inner = torch.relu(self.first_norm(self.first(images)))
        return torch.relu(self.shortcut(images) + self.second_norm(self.second(inner)))


def residual(features: int, classes: int) -> nn.Module:
    """A residual network of 77,562 weights for images of 28 x 28 in ten classes."""
    assert features == SIDE * SIDE
    return nn.Sequential(
        nn.LayerNorm(features, elementwise_affine=False),
        nn.Unflatten(1, (1, SIDE, SIDE)),
        nn.Conv2d(1, 16, 3, 1, 1, bias=False),
        nn.GroupNorm(8, 16),
        nn.ReLU(),
        Residual(16, 16, 1),
        Residual(16, 32, 2),
        Residual(32, 64, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, classes),
    )


class PlainModule:
    """One client after the other by autograd and optim.SGD, one slot after the other."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario, self._settings = scenario, scenario.config.model
        torch.manual_seed(1)
        self._module = load_factory(self._settings.kind)(scenario.features, scenario.classes)
        self._first = {name: value.clone() for name, value in self._module.state_dict().items()}
        self._inputs = [torch.tensor(inputs) for inputs in scenario.train_inputs]
        self._labels = [torch.tensor(labels) for labels in scenario.train_labels]
        self._tests = [
            (torch.tensor(inputs), torch.tensor(labels))
            for inputs, labels in zip(scenario.test_inputs, scenario.test_labels, strict=True)
        ]

    def train(self, cohorts: Sequence[tuple[int, ...]]) -> list[dict[str, Tensor]]:
        """One slot of one round for each cohort."""
        return [self._average([self._train(client) for client in cohort]) for cohort in cohorts]

    def survey(self, models: Sequence[dict[str, Tensor]]) -> list[float]:
        """Mean accuracy of each model over the clients' test shares."""
        return [self._survey(model) for model in models]

    def _train(self, client: int) -> dict[str, Tensor]:
        self._module.load_state_dict(self._first)
        self._module.train()
        optimiser = torch.optim.SGD(self._module.parameters(), lr=self._settings.step)
        for _ in range(self._settings.epochs):
            order = torch.randperm(len(self._labels[client]))
            inputs, labels = self._inputs[client][order], self._labels[client][order]
            for start in range(0, len(order), self._settings.batch):
                own = inputs[start : start + self._settings.batch]
                wanted = labels[start : start + self._settings.batch]
                optimiser.zero_grad()
                loss = nn.functional.cross_entropy(self._module(own), wanted)
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
        return {name: value.clone() for name, value in self._module.state_dict().items()}

    def _average(self, uploads: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        return {name: torch.stack([upload[name] for upload in uploads]).mean(dim=0) for name in uploads[0]}

    def _survey(self, model: dict[str, Tensor]) -> float:
        self._module.load_state_dict(model)
        self._module.eval()
        with torch.no_grad():
            right = [(self._module(inputs).argmax(1) == labels).double().mean() for inputs, labels in self._tests]
        return float(torch.stack(right).mean())
