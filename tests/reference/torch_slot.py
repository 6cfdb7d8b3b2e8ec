"""One slot of FedAvg with a PyTorch module, written out with `torch.optim` and state dictionaries."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from fedelect.federation.train import batch_orders
from fedelect.scenario import Scenario, draw_arrivals


def torch_slot(
    scenario: Scenario,
    module: nn.Module,
    cohort: tuple[int, ...],
    optimiser: Callable[[nn.Module], torch.optim.Optimizer],
    *,
    seed: int,
    slot: int = 1,
) -> dict[str, Tensor]:
    """The floats of the state dictionary after the slot."""
    config = scenario.config
    arrivals = draw_arrivals(scenario, cohort, seed=seed, trial=0, slot=slot)
    for round_ in range(config.rounds_per_slot):
        uploads, weights = [], []
        for place, client in enumerate(cohort):
            if not arrivals[round_, place]:
                continue
            local = copy.deepcopy(module).train()
            steps = optimiser(local)
            inputs = torch.tensor(scenario.train_inputs[client])
            labels = torch.tensor(scenario.train_labels[client])
            orders = batch_orders(
                len(labels), config.model.epochs, seed=seed, trial=0, slot=slot, round_=round_, client=client
            )
            for order in orders:
                for start in range(0, len(order), config.model.batch):
                    chosen = torch.tensor(order[start : start + config.model.batch])
                    steps.zero_grad()
                    loss = nn.functional.cross_entropy(local(inputs[chosen]), labels[chosen])
                    loss.backward()  # type: ignore[no-untyped-call]
                    steps.step()
            uploads.append(local.state_dict())
            weights.append(len(labels))
        if uploads:
            averaged = module.state_dict()
            for name, value in averaged.items():
                if value.is_floating_point():
                    parts = [weight * upload[name] for weight, upload in zip(weights, uploads, strict=True)]
                    averaged[name] = sum(parts, torch.zeros_like(value)) / sum(weights)
            module.load_state_dict(averaged)
    return {name: value for name, value in module.state_dict().items() if value.is_floating_point()}
