"""Settings that fill in what the paper leaves open, for the pre-registered run: skew, sizes and the gradient.

The paper states a step of 1e-7 and batches of 100, but not whether the gradient of a batch is the mean or the sum over
its samples. The engines take the mean. The sum is the same as a step that is B times as long, but for the last batch
of an epoch, which is shorter: it would weigh less under the sum. That difference is left out.
"""

import itertools
from typing import Literal

import msgspec

from fedelect.scenario import DataConfig, ModelConfig, ScenarioConfig

Gradient = Literal["mean", "sum"]

STEP = 1e-7
"""Step of the paper's SGD."""


class Setting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to fill in what the paper leaves open; all else is the paper's.

    Attributes:
        skew: "labels" or "dirichlet".
        degree: Classes that a client holds, or the concentration alpha.
        samples: Smallest and largest training size of a client.
        gradient: Of a batch: "mean" or "sum" over its samples.
    """

    skew: Literal["labels", "dirichlet"]
    degree: float
    samples: tuple[int, int]
    gradient: Gradient = "mean"

    @property
    def name(self) -> str:
        """A line that identifies it."""
        return f"{self.skew}({self.degree:g}), {self.samples[0]} to {self.samples[1]} samples, {self.gradient}"

    def config(self, drawing: int) -> ScenarioConfig:
        """The scenario of one drawing of data and places; `drawing` is its seed."""
        if self.skew == "labels":
            data = DataConfig(skew="labels", classes_per_client=int(self.degree), samples=self.samples)
        else:
            data = DataConfig(skew="dirichlet", alpha=self.degree, samples=self.samples)
        batch = ModelConfig().batch
        step = STEP * batch if self.gradient == "sum" else STEP
        return ScenarioConfig(seed=drawing, data=data, model=ModelConfig(shuffle="slot", step=step))


Skew = tuple[Literal["labels", "dirichlet"], float]

SKEWS: dict[Gradient, tuple[Skew, ...]] = {
    "mean": (
        ("dirichlet", 0.05),
        ("dirichlet", 0.1),
        ("dirichlet", 0.15),
        ("dirichlet", 0.2),
        ("dirichlet", 0.3),
        ("labels", 2.0),
        ("labels", 3.0),
    ),
    # With a sum random cohorts come nearer to the optimal one: only the strongest skews are of use.
    "sum": (("dirichlet", 0.05), ("dirichlet", 0.1), ("labels", 2.0)),
}
SIZES: dict[Gradient, tuple[tuple[int, int], ...]] = {
    "mean": ((200, 900), (400, 1200), (400, 1600)),
    "sum": ((200, 900), (400, 1200)),
}

SETTINGS = tuple(
    Setting(skew=skew, degree=degree, samples=samples, gradient=gradient)
    for gradient in SKEWS
    for samples, (skew, degree) in itertools.product(SIZES[gradient], SKEWS[gradient])
)
"""What the calibration tries."""
