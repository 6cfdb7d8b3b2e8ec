"""A plain PyTorch loop: nn.Linear, autograd, optim.SGD; the data of an epoch is shuffled once and then sliced."""

from collections.abc import Sequence
from typing import Any, final

import numpy as np
import torch
from benchmarks.contenders.work import Visit, Work, build_world, mean_opinion, signs
from numpy.typing import NDArray


@final
class TorchLoop:
    """FedAvg as a tutorial would write it."""

    versions = f"torch {torch.__version__}"

    def __init__(self, work: Work, threads: int) -> None:
        torch.set_num_threads(threads)
        self._world = build_world(work)
        self._inputs = [torch.from_numpy(np.array(inputs)) for inputs in self._world.train_inputs]
        self._signs = [torch.from_numpy(signs(labels)) for labels in self._world.train_labels]
        self._linear = torch.nn.Linear(784, 10)

    def run(self, visits: Sequence[Visit]) -> list[float]:
        """One slot after the other."""
        return [mean_opinion(self._world, self._slot(visit)) for visit in visits]

    def _slot(self, visit: Visit) -> NDArray[Any]:
        torch.manual_seed(visit.trial)
        model = [torch.zeros(10, 784), torch.zeros(10)]
        for _ in range(self._world.config.rounds_per_slot):
            uploads = [self._train(model, client) for client in visit.cohort]
            model = [torch.stack(parts).mean(dim=0) for parts in zip(*uploads, strict=True)]
        return np.vstack([model[0].numpy().T, model[1].numpy()])

    def _train(self, model: list[torch.Tensor], client: int) -> list[torch.Tensor]:
        settings = self._world.config.model
        parameters = list(self._linear.parameters())
        with torch.no_grad():
            for parameter, value in zip(parameters, model, strict=True):
                parameter.copy_(value)
        optimiser = torch.optim.SGD(parameters, lr=settings.step)
        for _ in range(settings.epochs):
            order = torch.randperm(len(self._inputs[client]))
            inputs, targets = self._inputs[client][order], self._signs[client][order]
            for first in range(0, len(order), settings.batch):
                own, wanted = inputs[first : first + settings.batch], targets[first : first + settings.batch]
                optimiser.zero_grad()
                loss = torch.relu(1 - wanted * self._linear(own)).sum(dim=1).mean()
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
        return [parameter.detach().clone() for parameter in parameters]
