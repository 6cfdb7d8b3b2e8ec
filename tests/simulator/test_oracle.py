"""The oracle: random cohorts of the unflawed, made with the scenario, which no selector sees."""

import dataclasses
from pathlib import Path

import pytest
from tests.worlds import digits, plan, tiny

from fedelect.errors import ConfigurationError
from fedelect.records import read_run
from fedelect.scenario import build_scenario
from fedelect.selectors import RandomAmong
from fedelect.simulator import simulate, specify_selectors
from fedelect.vocabulary import Feedback


def test_the_oracle_draws_among_the_unflawed_and_is_random_otherwise() -> None:
    world = build_scenario(tiny(), digits())
    flawed = dataclasses.replace(world, flaws={"copies": (1,), "free_riders": (0, 4)})
    work = plan("oracle", "random")
    oracle, random = (work.build_selector(spec, flawed, 3) for spec in work.selectors)
    assert isinstance(oracle, RandomAmong) and oracle.parameters["among"] == [2, 3, 5]
    assert oracle.seed == random.seed
    elected = set()
    for _ in range(20):
        selection = oracle.ask()
        elected |= set(selection.cohort)
        oracle.tell(selection, Feedback())
    assert elected == {2, 3, 5}


def test_where_nobody_is_flawed_the_oracle_plays_what_random_plays(tmp_path: Path) -> None:
    simulate(plan("oracle", "random"), digits(), tmp_path / "run", workers=1)
    run = read_run(tmp_path / "run")
    assert run.complete
    cohorts = {
        label: [record.cohort for record in run.records if record.selector == label] for label in ("oracle", "random")
    }
    assert cohorts["oracle"] == cohorts["random"]


def test_the_oracle_has_no_parameters() -> None:
    with pytest.raises(ConfigurationError, match="unknown parameter 'among'; random_unflawed takes none"):
        specify_selectors(["oracle:among=0,1"])
