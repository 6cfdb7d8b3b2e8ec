"""Apple's pfl: federated averaging of a PyTorch model on its SimulatedBackend.

Its Dataset keeps one order for all epochs; the work is the same.
"""

import os

os.environ.setdefault("PFL_PYTORCH_DEVICE", "cpu")

import copy
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, final

import numpy as np
import torch
from benchmarks.contenders.plain_module import PlainModule
from benchmarks.contenders.work import Visit, Work, build_world, mean_opinion, signs
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.internal.ops import pytorch_ops
from pfl.internal.ops.selector import set_framework_module
from pfl.model.pytorch import PyTorchModel


class _Svm(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(784, 10)
        torch.nn.init.zeros_(self.linear.weight)
        torch.nn.init.zeros_(self.linear.bias)

    def loss(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """One-vs-rest hinge."""
        return torch.relu(1 - targets * self.linear(inputs)).sum(dim=1).mean()

    def metrics(self, inputs: torch.Tensor, targets: torch.Tensor) -> dict[str, Any]:
        """None: opinions are taken outside."""
        return {}


class _Classifier(torch.nn.Module):
    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def loss(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Cross-entropy."""
        return torch.nn.functional.cross_entropy(self.inner(inputs), targets)

    def metrics(self, inputs: torch.Tensor, targets: torch.Tensor) -> dict[str, Any]:
        """None: opinions are taken outside."""
        return {}


@final
class Pfl:
    """`FederatedAveraging` with the server's step 1; every round takes the whole cohort."""

    versions = f"pfl {version('pfl')}, torch {torch.__version__}"

    def __init__(self, work: Work, threads: int) -> None:
        torch.set_num_threads(threads)
        set_framework_module(pytorch_ops)
        self._world = build_world(work)
        self._plain = PlainModule(self._world, threads) if work.module else None
        if self._plain:
            self._shares = self._plain.shares
            return
        shares = zip(self._world.train_inputs, self._world.train_labels, strict=True)
        self._shares = [(torch.from_numpy(np.array(x)), torch.from_numpy(signs(y))) for x, y in shares]

    def run(self, visits: Sequence[Visit]) -> list[float]:
        """One slot after the other."""
        return [self._opinion(self._slot(visit)) for visit in visits]

    def _opinion(self, module: torch.nn.Module) -> float:
        if self._plain:
            return self._plain.survey(torch.nn.utils.parameters_to_vector(module.parameters()).detach())
        weights, bias = (parameter.detach().numpy() for parameter in module.parameters())
        return mean_opinion(self._world, np.vstack([weights.T, bias]))

    def _make_module(self) -> torch.nn.Module:
        if not self._plain:
            return _Svm()
        module = _Classifier(copy.deepcopy(self._plain.module))
        torch.nn.utils.vector_to_parameters(self._plain.first.clone(), module.parameters())
        return module

    def _slot(self, visit: Visit) -> torch.nn.Module:
        config = self._world.config
        module = self._make_module()
        model = PyTorchModel(
            module,
            local_optimizer_create=torch.optim.SGD,
            central_optimizer=torch.optim.SGD(module.parameters(), lr=1.0),
        )
        users = FederatedDataset(
            lambda client: Dataset(self._shares[client], user_id=str(client)),
            get_user_sampler("minimize_reuse", list(visit.cohort)),
        )
        FederatedAveraging().run(
            algorithm_params=NNAlgorithmParams(
                central_num_iterations=config.rounds_per_slot,
                evaluation_frequency=10**6,
                train_cohort_size=len(visit.cohort),
                val_cohort_size=0,
            ),
            backend=SimulatedBackend(training_data=users, val_data=users, postprocessors=[WeightByDatapoints()]),
            model=model,
            model_train_params=NNTrainHyperParams(
                local_num_epochs=config.model.epochs,
                local_learning_rate=config.model.step,
                local_batch_size=config.model.batch,
            ),
            model_eval_params=NNEvalHyperParams(local_batch_size=None),
            callbacks=[],
        )
        return module
