"""Measured regret under the bounds of Theorems 1 and 3: in the paper's world, and in one where they say something.

Both worlds are atlases, so that the optimum, the gaps and the regret are exact. The small one has two clients with
i.i.d. data and four with one class each: few arms, wide gaps, and a million slots are played in minutes.
"""

import functools
import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from fedelect.analytics import democratized
from fedelect.atlas import Atlas, AtlasPlan, build_atlas, load_atlas, table_truth
from fedelect.bench import Player as BenchPlayer
from fedelect.equations import theory
from fedelect.equations.intervals import mean_band
from fedelect.loop import FrameworkName
from fedelect.reproduce.catalogue import TRIALS
from fedelect.reproduce.measurements.context import Context
from fedelect.scenario import DataConfig, ScenarioConfig
from fedelect.seeds import derive, stream
from fedelect.selectors import AbstractSelector, BpUcb, QuickInitUcb
from fedelect.vocabulary import Feedback, Floats, Ints

MAIN_SLOTS = 500
POINTS = 60
"""Slots at which a curve is kept, spread evenly on a logarithmic scale."""

ROOT_TWO = math.sqrt(2.0)


class RegretCurve(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One selector's regret and its bound.

    Attributes:
        selector: "Quick-Init UCB" or "BP-UCB".
        exploration: mu.
        theorem: Whose bound it is.
        trials: Monte Carlo trials.
        slots: Where the curve is kept.
        mean: Mean pseudo-regret over trials at these slots.
        half_width: Half of its 95 % interval.
        bound: The theorem's bound there.
        ceiling: T R_max there: a bound at or above it is vacuous.
        violated: The theorem's conditions that this run violates.
    """

    selector: str
    exploration: float
    theorem: str
    trials: int
    slots: list[int]
    mean: list[float]
    half_width: list[float]
    bound: list[float]
    ceiling: list[float]
    violated: list[str]

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing even at the last slot."""
        return self.bound[-1] >= self.ceiling[-1]


class RegretWorld(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One world and the curves in it.

    Attributes:
        name: What it is called.
        clients: N.
        budget: K.
        optimum: Mean opinion of the best cohort.
        smallest_gap: R_min.
        largest_gap: R_max.
        curves: One for each selector and exploration.
    """

    name: str
    clients: int
    budget: int
    optimum: float
    smallest_gap: float
    largest_gap: float
    curves: list[RegretCurve]


class Regret(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Both worlds."""

    worlds: list[RegretWorld]


@dataclass(frozen=True)
class Player:
    """A selector whose regret is measured.

    Attributes:
        selector: Which.
        exploration: mu.
    """

    selector: Literal["Quick-Init UCB", "BP-UCB"]
    exploration: float

    @property
    def framework(self) -> FrameworkName:
        """Where it can be played."""
        return "fa" if self.selector == "Quick-Init UCB" else "da"

    def make(self, clients: int, budget: int, seed: int) -> AbstractSelector:
        """The selector itself."""
        kind = QuickInitUcb if self.selector == "Quick-Init UCB" else BpUcb
        return kind(clients=clients, budget=budget, exploration=self.exploration, seed=seed)

    def bound(self, atlas: Atlas, slots: int) -> theory.RegretBound:
        """The bound of its theorem, with the exact gaps of the atlas."""
        truth = table_truth(atlas)
        gaps = {"smallest_gap": truth.smallest_gap, "largest_gap": truth.largest_gap}
        config = atlas.config
        if self.selector == "Quick-Init UCB":
            return theory.quick_init_regret_bound(clients=config.clients, budget=config.budget, slots=slots, **gaps)
        return theory.bp_ucb_regret_bound(clients=config.clients, slots=slots, **gaps)

    @property
    def violated(self) -> list[str]:
        """Conditions that a cold start on an atlas does not meet; the others hold, or are the theorem's own."""
        wrong = []
        if not math.isclose(self.exploration, ROOT_TWO):
            wrong.append(theory.EXPLORATION_IS_ROOT_TWO)
        if self.selector == "Quick-Init UCB":
            wrong.append(theory.EVERY_ARM_PLAYED_ONCE)
        else:
            wrong.append(theory.REWARDS_IGNORE_COHORT)
        return wrong


@dataclass(frozen=True, eq=False)
class Sampled:
    """Regret at some slots.

    Attributes:
        points: (P,) the slots, from 1.
        regret: (trials, P).
    """

    points: Ints
    regret: Floats


MAIN_PLAYERS = (
    Player("Quick-Init UCB", 1.0),
    Player("Quick-Init UCB", ROOT_TWO),
    Player("BP-UCB", 0.01),
    Player("BP-UCB", ROOT_TWO),
)
SMALL_PLAYERS = {Player("Quick-Init UCB", ROOT_TWO): (200_000, 4), Player("BP-UCB", ROOT_TWO): (1_000_000, 2)}
"""With slots and trials: so many slots that the bound of its theorem is no longer vacuous."""

QUICK_SLOTS = 500
"""Slots in the small world under a preset that cuts slots short."""


def measure_regret(context: Context) -> Regret:
    """Play on the atlas of the main world, and on one of a small world that is built first."""
    trials = min(TRIALS, context.preset.trials or TRIALS)
    main_slots = min(MAIN_SLOTS, context.preset.slots or MAIN_SLOTS)
    main_path, seed = context.atlas_path(), context.library.seed
    small_path = context.library.folder / "measurements" / "small-world.npz"
    small_path.parent.mkdir(parents=True, exist_ok=True)
    plan = AtlasPlan(config=small_world(context.library.base), seed=seed, seeds=20)
    small_atlas = build_atlas(plan, context.dataset, small_path, workers=1)
    with ProcessPoolExecutor(context.workers, mp_context=get_context("spawn")) as pool:
        small = {}
        for player, (slots, runs) in SMALL_PLAYERS.items():
            cut = slots if context.preset.slots is None else QUICK_SLOTS
            small[player] = [pool.submit(_long, small_path, player, trial, cut, seed) for trial in range(runs)]
        main = {player: pool.submit(_short, main_path, player, trials, main_slots, seed) for player in MAIN_PLAYERS}
        return Regret(
            worlds=[
                _world(load_atlas(main_path), {player: task.result() for player, task in main.items()}),
                _world(
                    small_atlas, {player: _stacked([one.result() for one in runs]) for player, runs in small.items()}
                ),
            ]
        )


def _stacked(runs: list[Sampled]) -> Sampled:
    return Sampled(runs[0].points, np.concatenate([run.regret for run in runs]))


def small_world(base: ScenarioConfig) -> ScenarioConfig:
    """N = 6, K = 2: two clients with i.i.d. data, four with one class each; all else as in `base`."""
    data = DataConfig(
        source=base.data.source,
        iid_clients=2,
        skew="labels",
        classes_per_client=1,
        samples=base.data.samples,
        test_share=base.data.test_share,
    )
    return msgspec.structs.replace(base, name="small", clients=6, budget=2, data=data)


def _sampled(regret: Floats) -> Sampled:
    """Some columns of (trials, T) regrets, spread evenly on a logarithmic scale."""
    points = np.unique(np.rint(np.geomspace(1, regret.shape[1], POINTS)).astype(np.int64))
    return Sampled(points, regret[:, points - 1])


def _world(atlas: Atlas, regrets: dict[Player, Sampled]) -> RegretWorld:
    truth = table_truth(atlas)
    return RegretWorld(
        name=atlas.config.name,
        clients=atlas.config.clients,
        budget=atlas.config.budget,
        optimum=truth.optimum.mean,
        smallest_gap=truth.smallest_gap,
        largest_gap=truth.largest_gap,
        curves=[_curve(atlas, player, sampled) for player, sampled in regrets.items()],
    )


def _curve(atlas: Atlas, player: Player, sampled: Sampled) -> RegretCurve:
    band = mean_band(sampled.regret)
    bounds = [player.bound(atlas, slots) for slots in sampled.points.tolist()]
    return RegretCurve(
        selector=player.selector,
        exploration=player.exploration,
        theorem=bounds[0].theorem,
        trials=len(sampled.regret),
        slots=sampled.points.tolist(),
        mean=np.round(band.mean, 6).tolist(),
        half_width=np.round(np.nan_to_num(band.half_width), 6).tolist(),
        bound=[round(bound.value, 3) for bound in bounds],
        ceiling=[round(bound.ceiling, 6) for bound in bounds],
        violated=player.violated,
    )


def _short(path: Path, player: Player, trials: int, slots: int, seed: int) -> Sampled:
    """Regret in the main world, played by the loop itself."""
    atlas = load_atlas(path)
    name = "quick-init-ucb" if player.selector == "Quick-Init UCB" else "bp-ucb"
    bench = BenchPlayer(atlas, slots=slots, trials=trials, seed=seed)
    played = bench.elections(f"{name}:exploration={player.exploration}")
    return _sampled(table_truth(atlas).regret(played.cohorts))


def _long(path: Path, player: Player, trial: int, slots: int, seed: int) -> Sampled:
    """Regret of one trial in the small world: asks and tells alone, for the feedback of all 15 arms is known."""
    atlas = load_atlas(path)
    truth = table_truth(atlas)
    config = atlas.config
    selector = player.make(config.clients, config.budget, derive(seed, "selection", trial))
    seeds = stream(seed, "regret", trial).integers(atlas.seeds, size=slots).tolist()
    known = functools.cache(functools.partial(_feedback, atlas, player.framework))
    ranks = {atlas.cohort(rank): rank for rank in range(atlas.cohorts)}
    losses = (truth.optimum.mean - truth.values).tolist()
    regret = np.empty(slots)
    total = 0.0
    for slot in range(slots):
        ask = selector.ask()
        rank = ranks[ask.cohort]
        selector.tell(ask, known(rank, seeds[slot]))
        total += losses[rank]
        regret[slot] = total
    return _sampled(regret[np.newaxis])


def _feedback(atlas: Atlas, framework: FrameworkName, rank: int, training_seed: int) -> Feedback:
    opinions = atlas.opinions(rank, training_seed)
    return Feedback(opinions=opinions) if framework == "fa" else democratized(atlas.world, opinions).feedback
