"""Selectors in the users' worlds: the worlds are what they say, and the figures are those of the records."""

import math
from pathlib import Path

import numpy as np
import pytest
from tests.reference import metrics as literal
from tests.sample_runs import measured_run
from tests.worlds import digits

from fedelect.bench import USER_WORLDS, UsersBenchmark, bench_users, judge_worlds
from fedelect.bench.user_worlds import CLIENTS, RARE_CLASSES, RARE_HOLDERS, deal_rare_classes
from fedelect.errors import ConfigurationError
from fedelect.records import Measured, read_run, tabulate
from fedelect.scenario import build_scenario

LABELS = ("mine", "random", "oracle")
SMALL = ("swapped-labels", "unflawed")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, UsersBenchmark]:
    """Two worlds, two trials of 12 slots."""
    folder = tmp_path_factory.mktemp("users")
    return folder, bench_users(folder, selectors=["random", "cycle"], worlds=SMALL, trials=2, slots=12, workers=1)


@pytest.mark.parametrize("name", USER_WORLDS)
def test_every_world_is_warm_and_flawed_as_it_says(name: str) -> None:
    world = USER_WORLDS[name]
    config, data = world.config(3), world.load()
    assert (config.name, config.seed, config.start, config.rounds_per_slot) == (name, 3, "warm", 1)
    assert (config.redraw_every, config.clients) == (1, CLIENTS)
    first, second = (build_scenario(config, data, draw=draw) for draw in (0, 1))
    assert first.flawed.any() == second.flawed.any() == world.flawed
    if world.flawed:
        assert first.flaws != second.flaws, "each trial has other flawed clients"
        shares = [kind["share"] for kind in world.changes["flaws"].values()]
        assert first.flawed.sum() == round(CLIENTS * sum(shares))
    assert "%" not in world.what or f"{100 * _first_share(world.changes):.0f} %" in world.what


def _first_share(changes: object) -> float:
    """The first share that a world's keys mention."""
    if isinstance(changes, dict):
        for key, value in changes.items():
            found = float(value) if key == "share" else _first_share(value)
            if not math.isnan(found):
                return found
    return math.nan


def test_rare_classes_are_held_by_few_and_everything_is_dealt_once() -> None:
    dealt = deal_rare_classes(digits())
    for labels, owners in ((dealt.labels, dealt.owners), (dealt.test_labels, dealt.test_owners)):
        assert owners is not None and owners.size == labels.size
        holders = {client for client in range(CLIENTS) if set(labels[owners == client].tolist()) & set(RARE_CLASSES)}
        assert holders == set(range(RARE_HOLDERS))
        assert set(labels[owners < RARE_HOLDERS].tolist()) == set(RARE_CLASSES)
        sizes = np.bincount(owners, minlength=CLIENTS)
        assert np.ptp(sizes[:RARE_HOLDERS]) <= 1 and np.ptp(sizes[RARE_HOLDERS:]) <= 1
    assert deal_rare_classes(digits()).digest == dealt.digest != digits().digest


def test_the_figures_are_those_of_the_records(small: tuple[Path, UsersBenchmark]) -> None:
    folder, found = small
    assert [world.name for world in found.worlds] == list(SMALL)
    assert (found.slots, found.trials, found.seed) == (12, 2, 1)
    for world in found.worlds:
        assert list(world.selectors) == ["random", "cycle", "oracle"]
        (path,) = folder.glob(f"{world.name}-*")
        run = read_run(path)
        assert run.complete and run.header.scenario["name"] == world.name
        finals: dict[str, list[float]] = {}
        for label in world.selectors:
            curves = [[math.nan] * 12 for _ in range(2)]
            for record in run.records:
                if record.selector == label and record.measures is not None and record.measures.accuracy is not None:
                    curves[record.trial][record.slot - 1] = record.measures.accuracy
            assert not np.isnan(curves).any()
            finals[label] = [literal.final_mean(curve, 12) for curve in curves]
            assert world.selectors[label].final_accuracy.mean == pytest.approx(sum(finals[label]) / 2)
        gap = [a - b for a, b in zip(finals["oracle"], finals["random"], strict=True)]
        assert world.oracle_gap.mean == pytest.approx(sum(gap) / 2)
        shares = {label: one.flawed_share.mean for label, one in world.selectors.items()}
        assert shares["oracle"] == 0.0 and (shares["random"] > 0) == world.flawed


def test_where_nobody_is_flawed_the_oracle_is_random(small: tuple[Path, UsersBenchmark]) -> None:
    (unflawed,) = [world for world in small[1].worlds if world.name == "unflawed"]
    assert (unflawed.oracle_gap.mean, unflawed.oracle_gap.half_width, unflawed.clear) == (0.0, 0.0, False)


def test_the_same_call_plays_nothing_again_and_workers_change_nothing(
    small: tuple[Path, UsersBenchmark], tmp_path: Path
) -> None:
    folder, found = small
    before = {path: path.read_bytes() for path in folder.rglob("slots.jsonl")}
    told: list[tuple[int, int]] = []
    again = bench_users(
        folder,
        selectors=["random", "cycle"],
        worlds=SMALL,
        trials=2,
        slots=12,
        workers=1,
        progress=lambda finished, total: told.append((finished, total)),
    )
    assert again == found and told == [(0, 2), (1, 2), (2, 2)]
    assert {path: path.read_bytes() for path in folder.rglob("slots.jsonl")} == before and len(before) == 2
    apart = bench_users(tmp_path, selectors=["random", "cycle"], worlds=SMALL[::-1], trials=2, slots=12, workers=2)
    assert apart == found, "in the order of the list, whatever the order asked for"


def test_the_mean_closure_is_over_clear_worlds_and_the_others_are_named() -> None:
    clear, unclear = tabulate(measured_run()).measured, tabulate(measured_run(trials=1)).measured
    runs = {"mixed": clear, "copies": unclear, "random-labels": _of_seed(9), "hard-clients": _of_seed(4)}
    found = judge_worlds(runs, LABELS)
    assert (found.averaged, found.unclear) == (("mixed", "random-labels"), ("copies",))
    mine, random, oracle = found.verdicts
    one, other = (runs[name].closure("mine") for name in found.averaged)
    assert mine.closure is not None and one is not None and other is not None
    assert mine.closure.value == pytest.approx((one.value + other.value) / 2)
    assert mine.closure.low <= mine.closure.value <= mine.closure.high
    assert random.closure is None and oracle.closure is None and random.harm is None


def test_harm_is_the_lowest_difference_to_random_where_nobody_is_flawed() -> None:
    runs = {"mixed": _of_seed(1), "unflawed": _of_seed(2), "hard-clients": _of_seed(4), "rare-classes": _of_seed(5)}
    found = judge_worlds(runs, LABELS)
    honest = {}
    for name in ("unflawed", "hard-clients", "rare-classes"):
        summary = runs[name].summary("mine")
        assert summary is not None and summary.difference is not None
        honest[name] = summary.difference
    worst = min(honest, key=lambda name: honest[name].mean)
    assert (found.verdicts[0].harm_world, found.verdicts[0].harm) == (worst, honest[worst])
    alone = judge_worlds({"mixed": _of_seed(1)}, LABELS).verdicts[0]
    assert alone.harm is None and alone.harm_world is None


def _of_seed(seed: int) -> Measured:
    return tabulate(measured_run(seed=seed)).measured


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"worlds": ["moon"]}, "there is no users' world 'moon'; there are random-labels, "),
        ({"selectors": ["nobody"]}, "unknown selector 'nobody'"),
        ({"selectors": ["bp-ucb"]}, "bp-ucb"),
        ({"trials": 0}, "trials must be at least 1"),
        ({"workers": 0}, "workers must be at least 1"),
    ],
)
def test_what_cannot_be_played_is_refused_before_anything_is_written(
    options: dict[str, list[str]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        bench_users(tmp_path / "runs", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "runs").exists()


def test_worlds_have_samples_at_the_server_only_for_selectors_by_contribution(tmp_path: Path) -> None:
    bench_users(tmp_path, selectors=["greedyfed"], worlds=["rare-classes"], trials=1, slots=4, workers=1)
    bench_users(tmp_path, selectors=["favor"], worlds=["rare-classes"], trials=1, slots=4, workers=1)
    tables = {
        "greedyfed" in [entry.label for entry in run.header.selectors]: run.header.scenario.get("validation")
        for run in map(read_run, sorted(tmp_path.iterdir()))
    }
    assert tables == {True: {"share": 0.1, "score": "accuracy"}, False: None}
