"""Oort and PyramidFL's ranking against their original code, and by hand."""

import math
from typing import Any

import numpy as np
import pytest
from tests.selectors.literature.vectors import ScriptedDraws, as_signal, load_vectors, script_draws

from fedelect.errors import ConfigurationError
from fedelect.selectors import Oort, PyramidFl
from fedelect.vocabulary import Feedback

VECTORS, PYRAMID = load_vectors("oort"), load_vectors("pyramid_fl")


@pytest.mark.parametrize("run", VECTORS["runs"], ids=["all", "blacklist"])
def test_oort_draws_with_the_chances_of_the_original_code(run: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    compare_with_original(Oort, run, monkeypatch, "most_elections")


@pytest.mark.parametrize("run", PYRAMID["runs"])
def test_pyramid_fl_draws_with_the_chances_of_the_original_code_and_elects_the_fastest(
    run: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    compare_with_original(PyramidFl, run, monkeypatch)
    assert len({entry["percent"] for entry in run["slots"][1:]}) >= 2  # the pacer moved
    assert any(entry.get("explore") for entry in run["slots"]) and any(entry.get("fill") for entry in run["slots"])


def compare_with_original(
    kind: type[Oort] | type[PyramidFl], run: dict[str, Any], monkeypatch: pytest.MonkeyPatch, *more: str
) -> None:
    def draw(name: str, slot: int) -> ScriptedDraws:
        entry = run["slots"][slot - 1]
        if name in ("first", "fill"):
            return ScriptedDraws(None, entry[name])
        return ScriptedDraws(*entry[name])

    script_draws(monkeypatch, ["fedelect.selectors.base", "fedelect.selectors.literature.oort"], draw)
    settings = {name: run[name] for name in ("clients", "budget", "penalty", "window", *more)}
    selector = kind(**settings, seed=1)
    for entry in run["slots"]:
        selection = selector.ask(entry["available"])
        assert list(selection.cohort) == entry["cohort"]
        if "percent" in entry:
            assert selector.state()["memory"]["percent"] == entry["percent"]  # of the pacer
        selector.tell(
            selection,
            Feedback(
                loss_rms=as_signal(entry["loss_rms"]),
                sizes=run["sizes"],
                seconds=as_signal(entry["seconds"]),
                training_s=np.array(run["durations"]) - 0.25,
                upload_s=np.full(run["clients"], 0.25),
            ),
        )


def test_the_vectors_of_oort_reach_every_part_of_it() -> None:
    slots = [entry for run in VECTORS["runs"] for entry in run["slots"]]
    assert len({entry["percent"] for entry in slots if "percent" in entry}) >= 3  # the pacer moved both ways
    assert any(entry.get("explore") for entry in slots) and any(entry.get("fill") for entry in slots)
    assert any(len(entry["available"]) < 14 for entry in slots)


def test_oorts_utility_is_worked_out_by_hand() -> None:
    selector = Oort(clients=4, budget=4, penalty=2.0, seed=1)
    selector.tell(
        selector.ask(),
        Feedback(loss_rms=[0.5, 1.0, 2.0, 0.1], sizes=[10, 20, 10, 30], seconds=[1.0, 2.0, 4.0, 3.0]),
    )
    rewards = [5.0, 20.0, 20.0, 3.0]
    stale = math.sqrt(0.1 * math.log(5) / 1)  # all were elected last in slot 1
    low, high = 0.999 * 3.0, 20.0
    preferred = 2.0  # place int(4 * 0.3) of the sorted durations
    late = [1.0, 1.0, (preferred / 4.0) ** 2, (preferred / 3.0) ** 2]
    expected = [((r - low) / (high - low) + stale) * factor for r, factor in zip(rewards, late, strict=True)]
    assert selector.utilities(5) == pytest.approx(expected)


def test_oort_prefers_fast_and_large_clients_among_those_never_tried() -> None:
    explored = np.zeros(40)
    for seed in range(200):
        selector = Oort(clients=40, budget=2, seed=seed)
        selection = selector.ask()
        slow = np.arange(40) >= 20
        feedback = Feedback(
            loss_rms=np.ones(40),
            sizes=np.where(np.arange(40) % 20 < 10, 10.0, 40.0),
            seconds=np.ones(40),
            training_s=np.where(slow, 3.0, 1.0),
            upload_s=np.zeros(40),
        )
        selector.tell(selection, feedback)
        explored[list(selector.ask().cohort)] += 1
    fast_large, slow_small = explored[10:20].sum(), explored[20:30].sum()
    assert fast_large > 300 > slow_small  # the window of ten by utility holds fast and large clients alone


def test_an_unknown_duration_is_not_punished() -> None:
    selector = Oort(clients=4, budget=2, seed=1)
    selector.tell(selector.ask(), Feedback(loss_rms=np.ones(4), sizes=np.ones(4), seconds=[np.nan] * 4))
    assert selector.ask().slot == 2 and not np.isnan(selector.utilities(2)).all()


def test_pyramid_fl_elects_the_fastest_of_those_drawn() -> None:
    counts = np.zeros(10)
    for seed in range(100):
        selector = PyramidFl(clients=10, budget=4, overcommit=2.5, seed=seed)
        told: dict[str, Any] = {"loss_rms": np.ones(10), "sizes": np.ones(10), "upload_s": np.zeros(10)}
        selector.tell(selector.ask(), Feedback(seconds=np.arange(10.0), training_s=np.arange(10.0), **told))
        counts[list(selector.ask().cohort)] += 1
    assert counts.tolist() == [100] * 4 + [0] * 6  # all ten are drawn, and the forecasts decide
    plain = PyramidFl(clients=10, budget=4, overcommit=1.0, seed=1)
    assert len(plain.ask([1, 3, 5, 7]).cohort) == 4
    with pytest.raises(ConfigurationError, match="overcommit"):
        PyramidFl(clients=10, budget=4, overcommit=0.9, seed=1)
