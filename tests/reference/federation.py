"""A slot of FedAvg written out with Python loops over samples and classes."""

import numpy as np

from fedelect.scenario import Scenario
from fedelect.seeds import stream
from fedelect.vocabulary import Floats


def hinge_gradient(model: Floats, inputs: Floats, labels: list[int]) -> Floats:
    """Mean over samples of the gradient of the sum over classes of max(0, 1 - y s)."""
    total = np.zeros_like(model)
    for features, label in zip(inputs, labels, strict=True):
        extended = np.append(features, 1.0)
        for column in range(model.shape[1]):
            sign = 1.0 if column == label else -1.0
            if sign * float(extended @ model[:, column]) < 1.0:
                total[:, column] -= sign * extended
    return total / len(labels)


def svm_slot(scenario: Scenario, cohort: tuple[int, ...], *, seed: int, trial: int, slot: int) -> Floats:
    """The model after a slot in which every upload arrives."""
    config = scenario.config
    model = np.zeros((scenario.features + 1, scenario.classes))
    for round_ in range(config.rounds_per_slot):
        weighted = np.zeros_like(model)
        for client in cohort:
            inputs, labels = scenario.train_inputs[client], scenario.train_labels[client]
            rng = stream(seed, "training", trial, slot, round_, client)
            local = model.copy()
            for _ in range(config.model.epochs):
                order = rng.permutation(len(labels)).tolist()
                while order:
                    batch, order = order[: config.model.batch], order[config.model.batch :]
                    step = hinge_gradient(local, inputs[batch], [int(labels[sample]) for sample in batch])
                    local = local - config.model.step * step
            weighted += len(labels) * local
        model = weighted / sum(len(scenario.train_labels[client]) for client in cohort)
    return model
