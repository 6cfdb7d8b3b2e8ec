"""Absurd numbers are refused before anything is built, with an estimate and a way to insist."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.sample_runs import sample_header
from tests.worlds import digits, tiny

import fedelect
from fedelect import _machine
from fedelect._front import read_config
from fedelect.atlas import AtlasPlan, build_atlas
from fedelect.errors import ConfigurationError, RunError
from fedelect.records import open_run, read_table
from fedelect.scenario import change_scenario, parse_scenario
from fedelect.scenario.size import estimate_world_bytes
from fedelect.selectors import RandomCohort

GIB = 2**30

ABSURD: list[tuple[dict[str, Any], dict[str, int], str]] = [
    ({"clients": 10**6}, {}, "memory"),
    ({"clients": 10**9}, {}, "memory"),
    ({"model": {"epochs": 10**15}}, {}, "days of one core"),
    ({"rounds_per_slot": 10**15}, {}, "days of one core"),
    ({}, {"slots": 10**12}, "memory .* and .* days of one core"),
    ({}, {"trials": 10**12}, "memory .* and .* days of one core"),
    ({}, {"trials": 10**200}, "memory"),
]


@pytest.fixture(autouse=True)
def a_machine_of_8_gib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_machine, "memory_bytes", lambda: 8 * GIB)


@pytest.mark.parametrize(("changes", "options", "says"), ABSURD)
def test_absurd_numbers_are_refused_before_anything_is_written(
    tmp_path: Path, changes: dict[str, Any], options: dict[str, int], says: str
) -> None:
    config = fedelect.load_scenario("digits", **changes)
    with pytest.raises(
        ConfigurationError, match=f"would take at least .*{says}.*nothing was started.*allow_large=True"
    ):
        fedelect.simulate(config, selectors="random", out=tmp_path / "run", workers=1, progress=False, **options)  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


def test_belief_rounds_count_under_democratized_analytics(tmp_path: Path) -> None:
    config = fedelect.load_scenario("digits", beliefs={"rounds": 10**15})
    with pytest.raises(ConfigurationError, match="days of one core"):
        fedelect.simulate(config, framework="da", out=tmp_path / "run", workers=1, progress=False)


def test_the_limit_can_be_overruled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_machine, "memory_bytes", lambda: 1000)
    options: dict[str, Any] = {"selectors": "random", "slots": 1, "workers": 1, "progress": False}
    with pytest.raises(ConfigurationError, match="half of this machine's is 500 bytes"):
        fedelect.simulate("digits", out=tmp_path / "run", **options)
    assert fedelect.simulate("digits", out=tmp_path / "run", allow_large=True, **options).complete


def test_the_command_line_refuses_and_names_the_option(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "fedelect",
        "run",
        "digits",
        "--slots",
        str(10**12),
        "--out",
        str(tmp_path / "run"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "--allow-large" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_every_preset_and_ordinary_size_is_far_below_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    data = digits()
    for name in ("digits", "users-small", "users-hard", "paper"):
        assert estimate_world_bytes(fedelect.load_scenario(name), data) < GIB / 4
    ten_thousand = change_scenario(tiny(), {"clients": 10_000})
    assert estimate_world_bytes(ten_thousand, data) < GIB


def test_a_million_clients_are_no_trouble_for_a_selector_alone() -> None:
    selector = RandomCohort(clients=10**6, budget=10, seed=1)
    assert len(selector.ask().cohort) == 10


def test_an_atlas_of_absurd_trainings_is_refused(tmp_path: Path) -> None:
    for changes in ({"clients": 10**9}, {"model": {"epochs": 10**15}}):
        plan = AtlasPlan(config=change_scenario(tiny(), changes), seed=1)
        with pytest.raises(ConfigurationError, match=r"an atlas of .* would take at least"):
            build_atlas(plan, digits(), tmp_path / "a.npz", workers=1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 5000 + "]" * 5000,
        "x = " + "{a = " * 5000 + "1" + "}" * 5000,
        "a" + ".a" * 5000 + " = 1",
        "[" + "'a' . " * 5000 + "a]",
    ],
)
def test_deeply_nested_toml_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ConfigurationError, match="nested too deeply"):
        parse_scenario(text)


def test_a_long_list_of_numbers_is_no_long_key() -> None:
    with pytest.raises(ConfigurationError, match="unknown key"):
        parse_scenario("x = [" + "0.5, 1.5," * 5000 + "]")


def test_dotted_words_in_a_value_are_no_long_key() -> None:
    assert parse_scenario('name = "' + "w." * 60 + '"').name == "w." * 60


def test_a_number_of_thousands_of_digits_is_refused_in_a_sentence() -> None:
    with pytest.raises(ConfigurationError, match=r"the scenario cannot be read: .*digits"):
        parse_scenario("clients = " + "9" * 5000)


def test_a_file_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    with open(tmp_path / "s.toml", "wb") as file:
        file.truncate(2**24)
    with pytest.raises(ConfigurationError, match="longer than 10,000,000 characters"):
        read_config(tmp_path / "s.toml")


def test_a_header_of_a_run_too_large_for_a_table_is_refused_in_a_sentence(tmp_path: Path) -> None:
    open_run(tmp_path, sample_header(slots=10**12)).close()
    with pytest.raises(RunError, match=r"takes .* TiB, more than this machine's memory .*iterate over the records"):
        read_table(tmp_path)
