"""Every claim of the paper put to a statistical test, those that hold and those that do not, as we found them.

The intervals are computed from the trials on file by another route than fedelect's (`plain_reading`: numpy and scipy,
straight from the files), and decide by themselves; what fedelect makes of the same files must agree: each mean, each
interval, each outcome and the verdict on file. A claim without trials is skipped by name.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import pytest

from fedelect.equations import intervals, metrics
from fedelect.scenario import preset
from fedelect.seeds import stream
from paper import (
    CLAIMS,
    EXPERIMENTS,
    PRESETS,
    Evidence,
    ResultStoreOnFile,
    Series,
    assess,
    committed_results,
    committed_results_on_atlas,
    experiment,
)
from paper.catalogue import quick_init
from paper.claims import Claim
from paper.document import read_verdicts
from paper.measurements import keep_measurement
from paper.measurements.complexity import ComplexityRow, ComplexityTable
from paper.measurements.convergence import ConvergenceRow, ConvergenceTable
from paper.measurements.losses import Losses, RoundLosses
from paper.measurements.optimum import Optimum
from paper.measurements.regret import Regret, RegretCurve, RegretWorld
from paper.registered import read_drawings, read_registration
from paper.registered.run import list_parts
from paper.tests.committed import ROOT, tracked
from paper.tests.made_up_results import put, put_part
from paper.tests.plain_reading import Folder
from paper.tests.recomputed_claims import QUICK, Check
from paper.tests.recomputed_drawings import judged
from paper.tests.recomputed_theory import recomputed, verdict

Again = tuple[dict[str, list[Check]], dict[str, list[Check]]]
"""By claim: its checks as measured in the one drawing, and as judged, over drawings where that is so."""

SOURCES = {"trained": "verdicts.json", "on the atlas": "verdicts-on-atlas.json"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the committed results."""
    return tracked(tmp_path_factory.mktemp("committed"))


def compute_again(folder: Path) -> Again:
    """From a folder of results; the pre-registered run is beside it."""
    checks = recomputed(folder)
    return checks, judged(checks, folder.parent / "registered")


@pytest.fixture(scope="module")
def again(root: Path) -> dict[str, Again]:
    """By source: every claim's checks, recomputed."""
    folders = {"trained": "trained", "on the atlas": "on-atlas"}
    return {source: compute_again(root / "paper/results" / folder) for source, folder in folders.items()}


@pytest.fixture(scope="module")
def evidence(root: Path) -> dict[str, Evidence]:
    """By source: the same files as fedelect reads them."""
    stores = {"trained": committed_results(root), "on the atlas": committed_results_on_atlas(root)}
    drawings = read_drawings(root / "paper/results/registered")
    return {
        source: Evidence(
            store=store,
            preset=PRESETS["paper"] if source == "trained" else PRESETS["paper"].on_atlas(),
            drawings=drawings,
        )
        for source, store in stores.items()
    }


def same(claim: Claim, again: Again, evidence: Evidence) -> None:
    """fedelect finds the same means, intervals, outcomes and verdict."""
    finding = assess(claim, evidence)
    measured, decisive = (checks[claim.key] for checks in again)
    alike(claim, measured, finding.measured)
    alike(claim, decisive, finding.judged)
    for (estimate, low, high, _), outcome in zip(decisive, finding.outcomes, strict=True):
        assert estimate is None or estimate.outcome(low, high) == outcome, claim.key
    assert verdict(decisive) == finding.verdict


def alike(claim: Claim, checks: list[Check], found: Sequence[intervals.Interval | None]) -> None:
    """Each figure and its interval are those recomputed."""
    for (estimate, low, high, decides), check, one in zip(checks, claim.checks, found, strict=True):
        assert (check.claimed.low, check.claimed.high) == pytest.approx((low, high), rel=1e-9), check.name
        assert check.decides == decides and (estimate is None) == (one is None), check.name
        if estimate is not None and one is not None:
            assert one.mean == pytest.approx(estimate.mean, rel=1e-6, abs=1e-9), check.name
            assert (one.low is None) == (estimate.low is None), check.name
            if estimate.low is not None and estimate.high is not None:
                assert one.low == pytest.approx(estimate.low, rel=1e-5, abs=1e-8), check.name
                assert one.high == pytest.approx(estimate.high, rel=1e-5, abs=1e-8), check.name


CASES = [
    pytest.param(claim, source, id=f"{claim.key}, {source}")
    for claim in CLAIMS
    for source in SOURCES
    if source == "trained" or experiment(claim.where).in_main_world
]


@pytest.mark.paper
@pytest.mark.parametrize(("claim", "source"), CASES)
def test_the_trials_on_file_show_what_the_verdict_says(
    claim: Claim, source: str, again: dict[str, Again], evidence: dict[str, Evidence]
) -> None:
    on_file = read_verdicts(ROOT / "paper/results" / SOURCES[source])
    checks = again[source][1][claim.key]
    same(claim, again[source], evidence[source])
    assert verdict(checks) == on_file[claim.key].verdict
    if verdict(checks) == "not measured yet":
        pytest.skip(f"no trials on file, {source}: {claim.key}")
    assert assess(claim, evidence[source]).why


def test_every_claim_is_recomputed(tmp_path: Path) -> None:
    assert set(recomputed(tmp_path)) == {claim.key for claim in CLAIMS}


def everything(folder: Path) -> Evidence:
    """Made-up results of every series and measurement: means, spreads and cohorts at random, but the same each time."""
    store = ResultStoreOnFile(folder=folder, base=preset("paper"), known_digest="none", block=15)
    rng = stream(5, "made up")
    longest: dict[Series, int] = {}
    for request in (request for one in EXPERIMENTS for request in one.requests):
        longest[request.series] = max(request.slots, longest.get(request.series, 0))
    for series, slots in longest.items():
        clients, budget = series.world.clients, series.world.budget
        level = rng.uniform(0.76, 0.88)
        opinions = np.clip(level + rng.normal(0, 0.05, (30, slots)) + rng.normal(0, 0.02, (30, 1)), 0.0, 1.0)
        opinions[3, 7] = np.nan
        cohorts = np.sort(np.argsort(rng.random((30, slots, clients)), axis=2)[:, :, :budget], axis=2)
        shares = rng.uniform(0.04, 0.06, (slots, clients))
        beliefs: dict[str, Any] = {}
        if series.framework == "da":
            beliefs = {"belief_sums": 15 * shares, "belief_squares": 15 * (shares**2 + 1e-7), "residuals": shares[:, 0]}
        put(store, series, opinions, cohorts=cohorts, **beliefs)
    for name, value in made_up_measurements(rng).items():
        keep_measurement(store, PRESETS["paper"], name, value)
    root = folder.parent / "registered"
    for part in list_parts(read_registration()):
        trials, slots = part.series.trials, part.slots
        level = {"fixed": 0.87, "random": 0.74}.get(part.series.role, 0.82) + rng.normal(0, 0.01)
        elected = np.sort(np.argsort(rng.random((trials, slots, 20)), axis=2)[:, :, :5], axis=2)
        put_part(root, part, level + rng.normal(0, 0.03, (trials, slots)), cohorts=elected)
    return Evidence(store=store, preset=PRESETS["paper"], drawings=read_drawings(root))


def made_up_measurements(rng: np.random.Generator) -> dict[str, msgspec.Struct]:
    rows = [
        ComplexityRow(
            clients=clients,
            arms=1,
            quick_init_operations=1.0,
            bp_ucb_operations=1.0,
            quick_init_ms=rng.uniform(0.1, 0.5, 7).tolist(),
            bp_ucb_ms=rng.uniform(0.1, 0.5, 7).tolist(),
        )
        for clients in (20, 100)
    ]
    counts = {name: 40 for name in ("corollary_holds", "theorem_holds", "settled", "settled_in_ten")}
    settled = ConvergenceRow(
        scale=1e-3, topologies=50, theorem_as_printed_holds=3, median_rounds=2.0, broken_promises=1, **counts
    )
    curves = [
        RegretCurve(
            selector=name,
            exploration=1.0,
            theorem="any",
            trials=4,
            slots=[1, 9],
            mean=[0.1, float(rng.uniform(1.0, 9.0))],
            half_width=[0.0, 0.5],
            bound=[2.0, 5.0],
            ceiling=[1.0, float(rng.uniform(4.0, 6.0))],
            violated=[],
        )
        for name in ("Quick-Init UCB", "BP-UCB")
    ]
    gaps = {"optimum": 0.9, "smallest_gap": 0.1, "largest_gap": 0.2}
    world = RegretWorld(name="any", clients=6, budget=2, curves=curves, **gaps)
    losses = {
        budget: [
            RoundLosses(objective=objective, selected=selected)
            for objective, selected in (1.0 + rng.uniform(0, 0.02, (30, 2, 15))).tolist()
        ]
        for budget in (5, 10, 15, 20)
    }
    optimum = Optimum(
        best_other_cohort=(0, 1, 2, 3, 9),
        first_five=rng.normal(0.87, 0.005, 10).tolist(),
        best_other=rng.normal(0.87, 0.005, 10).tolist(),
        others=99,
        not_worse=3,
    )
    return {
        "losses": Losses(losses=losses),
        "optimum": optimum,
        "complexity": ComplexityTable(budget=5, slots=9, rows=rows),
        "convergence": ConvergenceTable(clients=20, tolerance=1e-9, rounds=9, rows=[settled]),
        "regret": Regret(worlds=[world, world]),
    }


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> tuple[Again, Evidence]:
    folder = tmp_path_factory.mktemp("made-up") / "results"
    evidence = everything(folder)
    return compute_again(folder), evidence


def test_the_plain_reading_agrees_with_fedelect_on_every_claim(
    made_up: tuple[Again, Evidence],
) -> None:
    again, evidence = made_up
    for claim in CLAIMS:
        same(claim, again, evidence)
    verdicts = [verdict(own) for own in again[1].values()]
    assert "not measured yet" not in verdicts
    assert all(verdicts.count(kind) for kind in ("holds", "holds in part", "does not hold", "undecided"))


def test_the_plain_reading_on_numbers_worked_by_hand(tmp_path: Path) -> None:
    store = ResultStoreOnFile(folder=tmp_path, base=preset("paper"), known_digest="none", block=2)
    put(store, quick_init(), [[0.9, np.nan, 0.6], [0.5, 0.7, 0.9]], untrained=0.3, cohorts=[0, 1, 2, 3, 9])
    trials = Folder(tmp_path).trials(QUICK, slots=3)
    assert trials is not None
    assert trials.averages[0] == pytest.approx([0.45, 0.45, 0.5])
    assert trials.averages[1] == pytest.approx([0.25, 0.4, 0.525])
    slots, values, reached = trials.first(0.42)
    assert slots == {0: 1.0, 1: 3.0} and values == pytest.approx({0: 0.45, 1: 0.525}) and reached == 2
    assert trials.first(0.6)[0] == {0: 3.0, 1: 3.0} and trials.first(0.6)[2] == 0
    assert trials.elections(9).tolist() == [3.0, 3.0] and trials.elections(4).tolist() == [0.0, 0.0]


WRONG: dict[str, tuple[ModuleType, str, Callable[..., Any]]] = {
    "a running mean without its first term": (
        metrics,
        "running_mean",
        lambda right: lambda curve, untrained=None: right(curve),
    ),
    "a target reached one slot late": (
        metrics,
        "time_to_target",
        lambda right: lambda curve, target: right(curve, target)._replace(slot=right(curve, target).slot + 1),
    ),
    "a target reached by the last slot below it": (
        metrics,
        "time_to_target",
        lambda right: lambda curve, target: right(curve, target + 0.005),
    ),
    "a normal interval in place of Student's": (intervals, "student_t_quantile", lambda right: lambda p, degrees: 1.96),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_formula_would_be_noticed(
    mistake: str, made_up: tuple[Again, Evidence], monkeypatch: pytest.MonkeyPatch
) -> None:
    again, evidence = made_up
    module, name, wrong = WRONG[mistake]
    monkeypatch.setattr(module, name, wrong(getattr(module, name)))
    noticed = 0
    for claim in CLAIMS:
        try:
            same(claim, again, evidence)
        except AssertionError:
            noticed += 1
    assert noticed >= 5
