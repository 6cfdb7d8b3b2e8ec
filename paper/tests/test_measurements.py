"""What measurements compute, beside literal loops; and when one that is on file is not taken."""

import dataclasses
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fedelect.analytics import democratized_feedback
from fedelect.atlas import Atlas, load_atlas, save_atlas, shipped_atlases, table_truth
from fedelect.atlas.file import digest_of
from fedelect.bench import Player
from fedelect.equations import theory
from fedelect.errors import RunMismatchError
from fedelect.seeds import derive, stream
from fedelect.selectors import BpUcb, QuickInitUcb
from fedelect.vocabulary import Cohort, Feedback
from paper import Context, measure
from paper.measurements import MEASUREMENTS, complexity, convergence, read_measurement, sensitivity
from paper.measurements import regret as regret_module
from paper.measurements.regret import ROOT_TWO, Regret, RegretCurve, elect_on
from paper.measurements.regret import Player as RegretPlayer
from paper.measurements.sensitivity import Sensitivity, Variant
from paper.tests.committed import ROOT, tracked
from paper.tests.small_store import TINY, small_atlas, small_store

SMALL_WORLD = ROOT / "paper/results/trained/measurements/small-world.npz"

pytestmark = pytest.mark.xdist_group("reproduce")


@pytest.fixture
def context(tmp_path: Path) -> Context:
    store = small_store(tmp_path / "results")
    return Context(store=store, preset=TINY, atlas=small_atlas(tmp_path))


def worths(atlas: Atlas) -> dict[tuple[int, ...], float]:
    """What each cohort is worth in the table: the mean over training seeds and clients."""
    clients = atlas.config.clients
    worth: dict[tuple[int, ...], float] = {}
    for rank, cohort in enumerate(itertools.combinations(range(clients), atlas.config.budget)):
        worth[cohort] = float(np.mean([atlas.opinions(rank, seed).mean() for seed in range(atlas.seeds)]))
    return worth


def elect(atlas: Atlas, selector: QuickInitUcb | BpUcb, *, trial: int, slots: int, seed: int) -> list[Cohort]:
    """The cohorts of a selector that is asked and told slot by slot."""
    seeds = stream(seed, "regret", trial).integers(atlas.seeds, size=slots).tolist()
    cohorts: list[Cohort] = list(itertools.combinations(range(6), 2))
    elected = []
    for slot in range(slots):
        selection = selector.ask()
        elected.append(selection.cohort)
        opinions = atlas.opinions(cohorts.index(selection.cohort), seeds[slot])
        feedback = Feedback(opinions=opinions)
        selector.tell(
            selection, democratized_feedback(atlas.world, opinions)[0] if "beliefs" in selector.needs else feedback
        )
    return elected


def check_curve(curve: RegretCurve, worth: dict[tuple[int, ...], float], played: list[list[tuple[int, ...]]]) -> None:
    """Mean and half width of the regret at every slot of the curve, slot by slot."""
    best = max(worth.values())
    assert curve.trials == len(played) and curve.slots[0] == 1 and curve.slots[-1] == len(played[0])
    for place, slot in enumerate(curve.slots):
        lost = [sum(best - worth[cohort] for cohort in trial[:slot]) for trial in played]
        assert curve.mean[place] == pytest.approx(np.mean(lost), abs=1e-6)
        half = stats.t.ppf(0.975, len(lost) - 1) * np.std(lost, ddof=1) / math.sqrt(len(lost))
        assert curve.half_width[place] == pytest.approx(half, abs=1e-6)


@pytest.fixture
def regret(context: Context, monkeypatch: pytest.MonkeyPatch) -> Regret:
    monkeypatch.setattr(regret_module, "SHORT_TRIALS", 1)  # so that trials of a world come in several parts
    measure("regret", context)
    found = read_measurement(context.store, TINY, "regret", Regret)
    assert found is not None
    return found


def test_regret_is_what_the_elected_cohorts_lose_slot_by_slot(regret: Regret, context: Context) -> None:
    main, small = regret.worlds
    atlas = load_atlas(context.atlas_path())
    worth, seed = worths(atlas), context.store.seed
    names = {"Quick-Init UCB": "quick-init-ucb", "BP-UCB": "bp-ucb"}
    for curve in main.curves:
        text = f"{names[curve.selector]}:exploration={curve.exploration}"
        cohorts = Player(atlas, slots=6, trials=2, seed=seed).elections(text).cohorts.tolist()
        assert cohorts[0] != cohorts[1]
        check_curve(curve, worth, [[tuple(cohort) for cohort in trial] for trial in cohorts])
    atlas = load_atlas(context.store.folder / "measurements/small-world.npz")
    worth = worths(atlas)
    for curve in small.curves:
        kind = QuickInitUcb if curve.selector == "Quick-Init UCB" else BpUcb
        played = []
        for trial in range(curve.trials):
            own = kind(clients=6, budget=2, exploration=curve.exploration, seed=derive(seed, "selection", trial))
            played.append(elect(atlas, own, trial=trial, slots=500, seed=seed))
        check_curve(curve, worth, played)
    gaps = [max(worth.values()) - value for value in worth.values()]
    assert small.largest_gap == pytest.approx(max(gaps)) and small.optimum == pytest.approx(max(worth.values()))
    assert small.smallest_gap == pytest.approx(min(gap for gap in gaps if gap > 1e-12))


def test_regret_of_a_long_run_grows_ever_more_slowly() -> None:
    atlas = load_atlas(SMALL_WORLD)
    truth = table_truth(atlas)
    elected = elect_on(atlas, RegretPlayer("Quick-Init UCB", ROOT_TWO), trial=0, slots=20_000, seed=1)
    losses = (truth.optimum.mean - truth.values)[elected]
    assert losses[-5000:].sum() < 0.5 * losses[:5000].sum()


def test_every_curve_has_the_bound_of_its_own_theorem_and_names_what_it_violates(regret: Regret) -> None:
    for world in regret.worlds:
        gaps = {"smallest_gap": world.smallest_gap, "largest_gap": world.largest_gap}
        for curve in world.curves:
            last = curve.slots[-1]
            quick = curve.selector == "Quick-Init UCB"
            bound = (
                theory.quick_init_regret_bound(clients=world.clients, budget=world.budget, slots=last, **gaps)
                if quick
                else theory.bp_ucb_regret_bound(clients=world.clients, slots=last, **gaps)
            )
            assert curve.theorem == bound.theorem and curve.bound[-1] == pytest.approx(bound.value, abs=1e-3)
            assert curve.ceiling[-1] == pytest.approx(last * world.largest_gap, abs=1e-6)
            own = theory.EVERY_ARM_PLAYED_ONCE if quick else theory.REWARDS_IGNORE_COHORT
            root = math.isclose(curve.exploration**2, 2.0)
            assert curve.violated == ([] if root else [theory.EXPLORATION_IS_ROOT_TWO]) + [own]


def test_sensitivity_is_of_relative_gaps_last_slots_and_the_first_five(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sensitivity, "LAST", 2)
    measure("sensitivity", context)
    found = read_measurement(context.store, TINY, "sensitivity", Sensitivity)
    assert found is not None and len(found.variants) == 9
    atlas = load_atlas(context.atlas_path())
    worth = worths(atlas)
    best = max(worth.values())
    texts = {
        ("Quick-Init UCB", "at random"): "quick-init-ucb",
        ("Quick-Init UCB", "by client number"): "paper.measurements.ties:QuickInitByNumber",
        ("BP-UCB", "at random"): "bp-ucb",
    }
    for variant in found.variants:
        text = f"{texts[variant.selector, variant.ties]}:exploration={variant.exploration}"
        cohorts = Player(atlas, slots=6, trials=2, seed=context.store.seed).elections(text).cohorts.tolist()
        gaps = [[1.0 - worth[tuple(cohort)] / best for cohort in trial] for trial in cohorts]
        members = [[sum(member < 5 for member in cohort) / 5 for cohort in trial] for trial in cohorts]
        assert variant.running_gap.mean == pytest.approx(np.mean(gaps))
        assert variant.final_gap.mean == pytest.approx(np.mean([trial[-2:] for trial in gaps]))
        assert variant.share_of_first_five.mean == pytest.approx(np.mean(members))
        assert variant.final_gap.half_width is not None


def test_promises_that_are_not_kept_are_counted(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    config = context.store.base
    kept = convergence._row(1e-3, count=4, config=config, seed=1)
    assert (kept.topologies, kept.theorem_holds, kept.settled, kept.broken_promises) == (4, 4, 4, 0)
    assert kept.settled_in_ten == 4 and kept.median_rounds is not None and kept.median_rounds < 10
    unbound = convergence._row(100.0, count=4, config=config, seed=1)
    assert unbound.theorem_holds == unbound.corollary_holds == unbound.broken_promises == 0
    monkeypatch.setattr(convergence, "ROUNDS", 1)  # nothing settles so soon
    broken = convergence._row(1e-3, count=4, config=config, seed=1)
    assert (broken.settled, broken.broken_promises, broken.median_rounds) == (0, 4, None)
    assert convergence._row(100.0, count=4, config=config, seed=1).broken_promises == 0


class Slow:
    """A selector that takes a second for each ask of the cold start, 2 ms for any other; and its clock."""

    clients, budget, needs = 6, 2, frozenset({"reward"})

    def __init__(self) -> None:
        self.now = 0.0
        self._asked = 0

    def perf_counter(self) -> float:
        return self.now

    def ask(self) -> str:
        self._asked += 1
        self.now += 1.0 if self._asked <= 3 else 0.002
        return "an ask"

    def tell(self, selection: str, feedback: Feedback) -> None:
        self.now += 0.001


def test_the_cost_of_a_decision_is_that_of_asks_and_tells_after_the_cold_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = Slow()
    monkeypatch.setattr(complexity, "time", slow)
    assert complexity._milliseconds(slow, 5, 1) == pytest.approx(3.0)  # type: ignore[arg-type]


def test_each_selectors_time_and_count_stand_under_its_own_name(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = {QuickInitUcb: 1.0, BpUcb: 2.0}
    monkeypatch.setattr(complexity, "_milliseconds", lambda selector, slots, seed: times[type(selector)] + seed / 10)
    measure("complexity", context)
    table = read_measurement(context.store, TINY, "complexity", complexity.ComplexityTable)
    assert table is not None and [row.clients for row in table.rows] == [20, 40, 60, 80, 100, 1000, 10000]
    for row in table.rows:  # the store's seed is 3, and there are two repetitions
        assert row.quick_init_ms == pytest.approx([1.3, 1.4]) and row.bp_ucb_ms == pytest.approx([2.3, 2.4])
        assert row.arms == math.comb(row.clients, 5)
        assert row.quick_init_operations == pytest.approx(6 * float(row.arms) ** 2)
        assert row.bp_ucb_operations == pytest.approx(6 * row.clients**3)


def test_a_measurement_with_other_settings_is_not_taken_for_this_one(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure("convergence", context)
    changed = dataclasses.replace(MEASUREMENTS["convergence"], settings={**convergence.SETTINGS, "rounds": 7})
    monkeypatch.setitem(MEASUREMENTS, "convergence", changed)
    with pytest.raises(RunMismatchError, match=r"convergence\.json was made with other settings \(rounds\)"):
        measure("convergence", context)


def other_atlas(path: Path, folder: Path) -> Path:
    """One of the same scenario in which cohorts have changed places."""
    atlas = load_atlas(path)
    turned = dataclasses.replace(atlas, table=np.roll(atlas.table, 7, axis=2))
    save_atlas(dataclasses.replace(turned, digest=digest_of(turned)), folder / "other.npz")
    return folder / "other.npz"


def test_what_was_read_off_one_atlas_is_not_taken_for_another(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = dataclasses.replace(context, atlas=other_atlas(context.atlas_path(), tmp_path))
    alone = dataclasses.replace(other, store=small_store(tmp_path / "alone"))
    measure("sensitivity", alone)
    stop_at = iter([False] * 4 + [True])
    right = sensitivity._variant

    def interrupted(*arguments: object) -> Variant:
        if next(stop_at):
            raise KeyboardInterrupt
        return right(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(sensitivity, "_variant", interrupted)
        measure("sensitivity", context)
    measure("sensitivity", other)  # does not go on from parts of the first atlas
    values = [read_measurement(one.store, TINY, "sensitivity", Sensitivity) for one in (other, alone)]
    assert values[0] == values[1] is not None
    with pytest.raises(RunMismatchError, match="another atlas"):
        measure("sensitivity", context)


def test_what_is_on_file_was_read_off_the_atlas_that_comes_with_fedelect(tmp_path: Path) -> None:
    kept = tracked(tmp_path) / "paper/results/trained/measurements"
    digest = load_atlas(shipped_atlases()["paper"]).digest
    for name, measurement in MEASUREMENTS.items():
        about = json.loads((kept / f"{name}.json").read_text())["about"]
        assert about["atlas"] == (digest if measurement.on_atlas else None) and about["versions"]
