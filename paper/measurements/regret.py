"""Measured regret and the bounds of Theorems 1 and 3: in the paper's world, and in a small one.

Both worlds are atlases, so that the optimum, the gaps and the regret are exact. The small one has two clients with
i.i.d. data and four with one class each: few arms and wide gaps, so that after a million slots the bounds are not
vacuous.
"""

import functools
import math
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from fedelect.analytics import democratized_feedback
from fedelect.atlas import Atlas, AtlasPlan, build_atlas, load_atlas, table_truth
from fedelect.bench import Player as BenchPlayer
from fedelect.equations import theory
from fedelect.equations.intervals import mean_band
from fedelect.records.files import make_folder
from fedelect.scenario import DataConfig, ScenarioConfig
from fedelect.seeds import derive, stream
from fedelect.selectors import BpUcb, QuickInitUcb
from fedelect.vocabulary import Feedback, Floats, Ints
from paper.catalogue import TRIALS
from paper.measurements.context import Context
from paper.measurements.parts import MeasurementParts

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


class Player(msgspec.Struct, frozen=True):
    """A selector whose regret is measured.

    Attributes:
        selector: Which.
        exploration: mu.
    """

    selector: Literal["Quick-Init UCB", "BP-UCB"]
    exploration: float

    @property
    def name(self) -> str:
        """Name of its parts in the measurement."""
        return f"{self.selector}, mu = {self.exploration:g}"

    def make(self, clients: int, budget: int, seed: int) -> QuickInitUcb | BpUcb:
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


class Sampled(msgspec.Struct, frozen=True):
    """Regret at some slots.

    Attributes:
        points: (P,) the slots, from 1.
        regret: (trials, P).
    """

    points: list[int]
    regret: list[list[float]]


MAIN_PLAYERS = (
    Player("Quick-Init UCB", 1.0),
    Player("Quick-Init UCB", ROOT_TWO),
    Player("BP-UCB", 0.01),
    Player("BP-UCB", ROOT_TWO),
)
SMALL_PLAYERS = {Player("Quick-Init UCB", ROOT_TWO): (200_000, 4), Player("BP-UCB", ROOT_TWO): (1_000_000, 2)}
"""With slots and trials; enough slots that the bound of its theorem is not vacuous."""

QUICK_SLOTS = 500
"""Slots in the small world under a preset that cuts slots short."""


class SmallWorld(msgspec.Struct, frozen=True, kw_only=True):
    """Differences of the small world: some clients with i.i.d. data, the others with few classes.

    Attributes:
        clients: N.
        budget: K.
        iid_clients: How many hold i.i.d. data.
        classes_per_client: Classes that each of the others holds.
    """

    clients: int = 6
    budget: int = 2
    iid_clients: int = 2
    classes_per_client: int = 1


SMALL_WORLD = SmallWorld()

SMALL_SEEDS = 20
"""Trainings of every cohort of the small world."""

SETTINGS = {
    "main slots": MAIN_SLOTS,
    "main players": MAIN_PLAYERS,
    "small players": [(player, *played) for player, played in SMALL_PLAYERS.items()],
    "small world": SMALL_WORLD,
    "small seeds": SMALL_SEEDS,
    "short slots": QUICK_SLOTS,
    "trials": TRIALS,
    "points": POINTS,
}
"""What the measurement depends on besides the scenario."""

SHORT_TRIALS = 10
"""Trials of the main world in one part of the measurement."""


def measure_regret(context: Context, parts: MeasurementParts) -> Regret:
    """Play on the atlas of the main world, and on one of a small world that is built first."""
    trials = min(TRIALS, context.preset.trials or TRIALS)
    main_slots = min(MAIN_SLOTS, context.preset.slots or MAIN_SLOTS)
    main_path, seed = context.atlas_path(), context.store.seed
    small_path = context.store.folder / "measurements" / "small-world.npz"
    make_folder(small_path.parent)
    plan = AtlasPlan(config=small_world(context.store.base), seed=seed, seeds=SMALL_SEEDS)
    small_atlas = build_atlas(plan, context.dataset, small_path, workers=1)
    requests: dict[str, tuple[object, ...]] = {}
    names: dict[tuple[str, Player], list[str]] = {}
    for player, (slots, runs) in SMALL_PLAYERS.items():
        cut = slots if context.preset.slots is None else QUICK_SLOTS
        for trial in range(runs):
            name = f"small world, {player.name}, trial {trial}"
            names.setdefault(("small", player), []).append(name)
            requests[name] = ("small", small_path, player, trial, 1, cut, seed)
    for player in MAIN_PLAYERS:
        for first in range(0, trials, SHORT_TRIALS):
            name = f"main world, {player.name}, trials from {first}"
            names.setdefault(("main", player), []).append(name)
            count = min(SHORT_TRIALS, trials - first)
            requests[name] = ("main", main_path, player, first, count, main_slots, seed)
    made = parts.compute(Sampled, _sampled_regret, requests)
    stacked = {key: _stack([made[name] for name in own]) for key, own in names.items()}
    return Regret(
        worlds=[
            _world(load_atlas(main_path), {player: stacked["main", player] for player in MAIN_PLAYERS}),
            _world(small_atlas, {player: stacked["small", player] for player in SMALL_PLAYERS}),
        ]
    )


def _stack(runs: list[Sampled]) -> Sampled:
    return Sampled(runs[0].points, [regret for run in runs for regret in run.regret])


def small_world(base: ScenarioConfig) -> ScenarioConfig:
    """`SMALL_WORLD`; all else as in `base`."""
    data = DataConfig(
        source=base.data.source,
        iid_clients=SMALL_WORLD.iid_clients,
        skew="labels",
        classes_per_client=SMALL_WORLD.classes_per_client,
        samples=base.data.samples,
        test_share=base.data.test_share,
    )
    return msgspec.structs.replace(
        base, name="small", clients=SMALL_WORLD.clients, budget=SMALL_WORLD.budget, data=data
    )


def _sample(regret: Floats) -> Sampled:
    """Some columns of (trials, T) regrets, spread evenly on a logarithmic scale."""
    points = np.unique(np.rint(np.geomspace(1, regret.shape[1], POINTS)).astype(np.int64))
    return Sampled(points.tolist(), regret[:, points - 1].tolist())


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
    band = mean_band(np.array(sampled.regret))
    bounds = [player.bound(atlas, slots) for slots in sampled.points]
    return RegretCurve(
        selector=player.selector,
        exploration=player.exploration,
        theorem=bounds[0].theorem,
        trials=len(sampled.regret),
        slots=sampled.points,
        mean=np.round(band.mean, 6).tolist(),
        half_width=np.round(np.nan_to_num(band.half_width), 6).tolist(),
        bound=[round(bound.value, 3) for bound in bounds],
        ceiling=[round(bound.ceiling, 6) for bound in bounds],
        violated=player.violated,
    )


def _sampled_regret(world: str, path: Path, player: Player, first: int, trials: int, slots: int, seed: int) -> Sampled:
    """Regret of some neighbouring trials in one of the two worlds."""
    atlas = load_atlas(path)
    truth = table_truth(atlas)
    if world == "main":
        return _sample(truth.regret(_main_cohorts(atlas, player, first, trials, slots, seed)))
    losses = truth.optimum.mean - truth.values
    elected = [elect_on(atlas, player, trial=trial, slots=slots, seed=seed) for trial in range(first, first + trials)]
    return _sample(np.cumsum(losses[np.array(elected)], axis=1))


def _main_cohorts(atlas: Atlas, player: Player, first: int, trials: int, slots: int, seed: int) -> Ints:
    """(trials, T, K) clients elected, played by the loop itself."""
    name = "quick-init-ucb" if player.selector == "Quick-Init UCB" else "bp-ucb"
    bench = BenchPlayer(atlas, slots=slots, trials=trials, seed=seed, first_trial=first)
    return bench.elections(f"{name}:exploration={player.exploration}").cohorts


def elect_on(atlas: Atlas, player: Player, *, trial: int, slots: int, seed: int) -> Ints:
    """Play one long trial on a small atlas, all of whose feedback is computed once.

    Returns:
        (T,) numbers of the cohorts elected.
    """
    selector = player.make(atlas.config.clients, atlas.config.budget, derive(seed, "selection", trial))
    training_seeds = stream(seed, "regret", trial).integers(atlas.seeds, size=slots).tolist()
    feedback_on = functools.cache(functools.partial(_feedback_on, atlas, "beliefs" in selector.needs))
    ranks = {atlas.cohort(rank): rank for rank in range(atlas.cohorts)}
    elected = []
    for training_seed in training_seeds:
        selection = selector.ask()
        elected.append(ranks[selection.cohort])
        selector.tell(selection, feedback_on(elected[-1], training_seed))
    return np.array(elected, dtype=np.int64)


def _feedback_on(atlas: Atlas, beliefs: bool, rank: int, training_seed: int) -> Feedback:
    opinions = atlas.opinions(rank, training_seed)
    return democratized_feedback(atlas.world, opinions)[0] if beliefs else Feedback(opinions=opinions)
