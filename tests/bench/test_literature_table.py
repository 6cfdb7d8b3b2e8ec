"""The table of docs/results/literature.md is what the figures say, and every method had the same budget."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.literature import page
from benchmarks.literature.plan import GRIDS, PLAYED, SETTINGS, TUNING, TUNING_TRIALS
from benchmarks.literature.play import RESULTS, choose, needs_validation

from fedelect.equations.intervals import mean_interval, student_t_quantile
from fedelect.selectors import selector_families

FIGURES: dict[str, Any] = json.loads(RESULTS.read_text())
DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_holds_the_table_of_the_figures() -> None:
    assert page.make_section(FIGURES) in (DOCS / "results/literature.md").read_text(encoding="utf-8")
    assert page.make_table(FIGURES) == (DOCS / "data" / page.TABLE).read_text(encoding="utf-8")
    assert page.make_wins(FIGURES) == (DOCS / "data" / page.WINS).read_text(encoding="utf-8")


@pytest.mark.parametrize("method", ["oort", "greedyfed", "oracle"])
def test_where_a_method_wins_and_loses_is_worked_out_by_hand(method: str) -> None:
    ending = "+validation" if needs_validation(method) else ""
    above, below = set[str](), set[str]()
    for kind, worlds in PLAYED.items():
        for world in worlds:
            kept = FIGURES["played"][kind].get(world.name + ending, {})
            if method not in kept:
                continue
            pairs = zip(kept[method]["final"], kept["random"]["final"], strict=False)
            differences = [own - random for own, random in pairs]
            if len(differences) > 1:
                mean, spread = np.mean(differences), np.std(differences, ddof=1) / len(differences) ** 0.5
                reach = student_t_quantile(0.975, len(differences) - 1) * spread
                above |= {world.name} if mean > reach else set()
                below |= {world.name} if mean < -reach else set()
    assert tuple(map(set, page.find_clear(FIGURES, method))) == (above, below)


def test_every_method_of_the_literature_has_a_line_and_a_paragraph() -> None:
    literature = {
        name for family, kinds in selector_families().items() if family.startswith("literature") for name in kinds
    }
    assert literature <= GRIDS.keys()
    described = " ".join(re.findall(r"\*\*(`.*?`)\*\*", (DOCS / "LITERATURE.md").read_text(encoding="utf-8")))
    for name in literature:
        assert f"\n{name}," in page.make_table(FIGURES) and f"`{name}`" in described, name
    others = {"random", "cycle", "sound-cycle", "set-gp", "quick-init-ucb", "oracle"}
    assert GRIDS.keys() - literature == others


def test_no_world_of_the_table_was_tuned_in() -> None:
    for kind, worlds in TUNING.items():
        assert {world.name for world in worlds}.isdisjoint(world.name for world in PLAYED[kind])
        assert {world.seed for world in worlds}.isdisjoint(world.seed for world in PLAYED[kind])
    assert all(len(grid) <= SETTINGS and grid[0] == "" for grid in GRIDS.values())


def test_what_was_played_is_the_best_of_settings_that_were_tried_alike() -> None:
    for kind, table in FIGURES["played"].items():
        tried = {world.name for world in TUNING[kind]}
        for methods in table.values():
            for method, row in methods.items():
                if len(GRIDS[method]) > 1:
                    kept = FIGURES["tuning"][kind][method]
                    assert kept.keys() == set(GRIDS[method])
                    assert all(scores.keys() == tried for scores in kept.values())
                    assert all(len(one) == TUNING_TRIALS for scores in kept.values() for one in scores.values())
                    means = {setting: np.mean(list(scores.values())) for setting, scores in kept.items()}
                    assert means[row["setting"]] == max(means.values())
                assert row["setting"] == choose(FIGURES, kind, method)


@pytest.mark.parametrize("method", ["oort", "s-fedavg"])
def test_a_line_is_worked_out_by_hand(method: str) -> None:
    ending = "+validation" if needs_validation(method) else ""
    flawed, everything = [], []
    for world in PLAYED["users"]:
        kept = FIGURES["played"]["users"].get(world.name + ending, {})
        if method not in kept:
            continue
        everything += kept[method]["final"]
        if world.name not in ("unflawed", "rare-classes", "hard-clients"):
            pairs = zip(kept[method]["final"], kept["random"]["final"], strict=True)
            flawed += [own - random for own, random in pairs]
    (cells,) = [cells for cells in csv.reader(page.make_table(FIGURES).splitlines()) if cells[0] == method]
    interval = mean_interval(flawed)
    assert interval.half_width is not None and len(cells) == 13
    assert cells[1] == f"{100 * np.mean(everything):.1f}"
    assert cells[2] == f"{100 * interval.mean:+.1f} ± {100 * interval.half_width:.1f}"
