"""The worlds selectors are tuned in, and the worlds they are compared in: fixed before anything was tuned.

A selector's parameters, and the design of our own, may be chosen by what happens in `TUNING`; figures are published for
`REPORTING` only, of which no selector was run before its parameters were settled. The two share no seed and no draw of
data. Every selector gets the same budget: at most `SETTINGS` settings of its parameters, each played in every cold
tuning world for `SLOTS` slots in `TRIALS` trials; that with the smallest mean running gap to the best cohort is taken
(`benchmarks/tune_selectors.py`). The warm one, in which no cohort is best by itself, serves to choose what fades.
"""

from dataclasses import dataclass
from typing import Literal

from fedelect.atlas import AtlasPlan
from fedelect.scenario import ChannelConfig, DataConfig, ModelConfig, ScenarioConfig

SETTINGS, SLOTS, TRIALS = 12, 200, 4
"""Tuning budget of each selector."""


@dataclass(frozen=True, kw_only=True)
class BenchWorld:
    """A world of `TUNING` or of `REPORTING`.

    Attributes:
        config: The world.
        seeds: Trainings of every cohort in its atlas; 0 if it has none: too many cohorts, or a warm start.
        losses: Of how many of them the clients' losses are kept.
    """

    config: ScenarioConfig
    seeds: int = 0
    losses: int = 1

    @property
    def name(self) -> str:
        """The scenario's name, unique."""
        return self.config.name

    @property
    def plan(self) -> AtlasPlan | None:
        """Its atlas; None if it has none."""
        if not self.seeds:
            return None
        return AtlasPlan(config=self.config, seeds=self.seeds, contenders=20, fresh=4, losses=self.losses)


def _digits(
    name: str,
    seed: int,
    clients: int,
    budget: int,
    data: DataConfig,
    *,
    start: Literal["cold", "warm"] = "cold",
    upload_probability: float = 1.0,
    seeds: int = 0,
    losses: int = 1,
) -> BenchWorld:
    config = ScenarioConfig(
        name=name,
        seed=seed,
        clients=clients,
        budget=budget,
        slots=SLOTS,
        rounds_per_slot=5,
        start=start,
        data=data,
        model=ModelConfig(step=5e-4, epochs=5, batch=10, shuffle="slot"),
        channel=ChannelConfig(upload_probability=upload_probability),
    )
    return BenchWorld(config=config, seeds=seeds, losses=losses)


def _labels(classes: int, iid: int, *, samples: tuple[int, int] = (20, 60), own: bool = False) -> DataConfig:
    share: Literal["global", "own"] = "own" if own else "global"
    return DataConfig(
        source="digits",
        skew="labels",
        classes_per_client=classes,
        iid_clients=iid,
        samples=samples,
        test_share=share,
    )


def _dirichlet(alpha: float, iid: int, *, samples: tuple[int, int] = (20, 60), own: bool = False) -> DataConfig:
    share: Literal["global", "own"] = "own" if own else "global"
    return DataConfig(
        source="digits", skew="dirichlet", alpha=alpha, iid_clients=iid, samples=samples, test_share=share
    )


TUNING = (
    _digits("t-labels2-N12-K4", 11, 12, 4, _labels(2, 3)),
    _digits("t-dir02-N12-K4", 12, 12, 4, _dirichlet(0.2, 0)),
    _digits("t-dir05-own-N12-K3", 13, 12, 3, _dirichlet(0.5, 4, own=True)),
    _digits("t-labels1-N15-K5", 14, 15, 5, _labels(1, 0)),
    _digits("t-labels2-N20-K5", 15, 20, 5, _labels(2, 5)),
    _digits("t-dir02-N20-K5", 16, 20, 5, _dirichlet(0.2, 5)),
    _digits("t-lossy-N12-K4", 17, 12, 4, _labels(2, 3), upload_probability=0.6),
    _digits("t-warm-N12-K4", 18, 12, 4, _labels(2, 3), start="warm"),
)
"""Worlds for tuning: digits only, cheap enough to train every cohort."""


def mnist_world(name: str, seed: int, clients: int, budget: int, data: DataConfig) -> BenchWorld:
    """A cold world of MNIST, whose cohorts are trained when they are elected."""
    config = ScenarioConfig(
        name=name,
        seed=seed,
        clients=clients,
        budget=budget,
        slots=SLOTS,
        data=data,
        model=ModelConfig(shuffle="slot"),
    )
    return BenchWorld(config=config)


REPORTING = (
    _digits("r-labels2-N12-K4", 101, 12, 4, _labels(2, 3), seeds=6),
    _digits("r-labels3-N12-K4", 102, 12, 4, _labels(3, 0), seeds=6),
    _digits("r-dir01-N12-K4", 103, 12, 4, _dirichlet(0.1, 2), seeds=6),
    _digits("r-dir05-own-N15-K3", 104, 15, 3, _dirichlet(0.5, 4, own=True), seeds=6),
    _digits("r-labels2-N20-K5", 105, 20, 5, _labels(2, 5), seeds=3),
    _digits("r-dir02-N20-K5", 106, 20, 5, _dirichlet(0.2, 5), seeds=3),
    _digits("r-unequal-N15-K5", 107, 15, 5, _dirichlet(0.3, 3, samples=(10, 90)), seeds=4),
    _digits("r-lossy-N12-K4", 108, 12, 4, _dirichlet(0.2, 3), upload_probability=0.6, seeds=12, losses=12),
    _digits("r-warm-N20-K5", 109, 20, 5, _labels(2, 5), start="warm"),
    mnist_world("r-mnist-N20-K5", 201, 20, 5, DataConfig(skew="dirichlet", alpha=0.2, samples=(400, 1200))),
    mnist_world("r-mnist-labels2-N20-K5", 202, 20, 5, DataConfig(skew="labels", samples=(200, 900))),
    mnist_world("r-mnist-labels2-N100-K5", 203, 100, 5, DataConfig(skew="labels", samples=(200, 300))),
)
"""Worlds that figures are published for."""

SMALL = 5000
"""Most cohorts of a world whose atlas comes with fedelect."""
