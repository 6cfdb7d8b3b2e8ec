"""A plain PyTorch loop for any module: FedAvg as a tutorial would write it; and the residual network it is tried on."""

from collections.abc import Sequence

import torch
from benchmarks.contenders.work import Visit, Work, build_world
from torch import Tensor, nn

from fedelect.federation.torch.network import build_network, load_factory
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
    """One client after the other by autograd and optim.SGD, one slot after the other, from our engine's first weights.

    A model is a vector of all parameters; the modules here have no buffers.
    """

    versions = f"torch {torch.__version__}"

    def __init__(self, scenario: Scenario, threads: int = 1) -> None:
        torch.set_num_threads(threads)
        self._settings = scenario.config.model
        sizes = {"features": scenario.features, "classes": scenario.classes}
        network = build_network(self._settings, seed=scenario.config.seed, device=torch.device("cpu"), **sizes)
        self.first = network.flat.clone()
        self.module = load_factory(self._settings.kind)(scenario.features, scenario.classes)
        shares = zip(scenario.train_inputs, scenario.train_labels, strict=True)
        self.shares = [(torch.tensor(inputs), torch.tensor(labels)) for inputs, labels in shares]
        tests = zip(scenario.test_inputs, scenario.test_labels, strict=True)
        self._tests = [(torch.tensor(inputs), torch.tensor(labels)) for inputs, labels in tests]

    def run(self, visits: Sequence[Visit]) -> list[float]:
        """One slot after the other."""
        return [self.survey(self.train(visit.cohort)) for visit in visits]

    def train(self, cohort: tuple[int, ...]) -> Tensor:
        """One slot of one round."""
        return torch.stack([self.train_client(self.first, client) for client in cohort]).mean(dim=0)

    def train_client(self, start: Tensor, client: int) -> Tensor:
        """What one client uploads."""
        nn.utils.vector_to_parameters(start.clone(), self.module.parameters())
        self.module.train()
        optimiser = torch.optim.SGD(self.module.parameters(), lr=self._settings.step)
        all_inputs, all_labels = self.shares[client]
        for _ in range(self._settings.epochs):
            order = torch.randperm(len(all_labels))
            inputs, labels = all_inputs[order], all_labels[order]
            for begin in range(0, len(order), self._settings.batch):
                own = inputs[begin : begin + self._settings.batch]
                wanted = labels[begin : begin + self._settings.batch]
                optimiser.zero_grad()
                loss = nn.functional.cross_entropy(self.module(own), wanted)
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
        return nn.utils.parameters_to_vector(self.module.parameters()).detach()

    def survey(self, model: Tensor) -> float:
        """Mean over clients of a model's accuracy on their test shares."""
        nn.utils.vector_to_parameters(model.clone(), self.module.parameters())
        self.module.eval()
        with torch.no_grad():
            right = [(self.module(inputs).argmax(1) == labels).double().mean() for inputs, labels in self._tests]
        return float(torch.stack(right).mean())


def plain(work: Work, threads: int) -> PlainModule:
    """The baseline of all ratios of `modules.py`."""
    return PlainModule(build_world(work), threads)
