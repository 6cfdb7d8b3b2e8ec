"""The guide to scenarios: its Python runs, its TOML parses, its numbers are those of the code."""

import importlib.util
import re
import sys
import types
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from fedelect.datasets.own_shares import HELD_OUT
from fedelect.scenario import PRESETS, FlawsConfig, parse_scenario, preset

GUIDE = (Path(__file__).parents[1] / "docs/SCENARIOS.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
TOML = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)


class StandIn:
    """Partitions as flwr-datasets hands them out, for machines where it is not installed."""

    def __init__(self, *, num_partitions: int, partition_by: str, alpha: float, seed: int) -> None:
        self.num_partitions, self.partition_by, self.dataset = num_partitions, partition_by, StandInData({})

    def load_partition(self, number: int) -> "StandInData":
        return StandInData({key: column[number :: self.num_partitions] for key, column in self.dataset.columns.items()})


class StandInData:
    def __init__(self, columns: dict[str, Any]) -> None:
        self.columns = columns

    @classmethod
    def from_dict(cls, columns: dict[str, Any]) -> "StandInData":
        return cls({key: list(column) for key, column in columns.items()})

    def with_format(self, kind: str) -> "StandInData":
        assert kind == "numpy"
        return StandInData({key: np.array(column) for key, column in self.columns.items()})

    def __getitem__(self, rows: slice) -> dict[str, Any]:
        return {key: column[rows] for key, column in self.columns.items()}


def test_clients_by_name_are_simulated_and_keep_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    exec(PYTHON[0], {})
    assert capsys.readouterr().out == "('north', 'south', 'east', 'west')\n"


def test_partitions_of_flwr_datasets_become_clients(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if importlib.util.find_spec("flwr_datasets") is None:
        partitioner = types.SimpleNamespace(DirichletPartitioner=StandIn)
        for name, module in (
            ("datasets", types.SimpleNamespace(Dataset=StandInData)),
            ("flwr_datasets", types.SimpleNamespace(partitioner=partitioner)),
            ("flwr_datasets.partitioner", partitioner),
        ):
            monkeypatch.setitem(sys.modules, name, module)
    exec(PYTHON[1], {})
    sizes = [int(size) for size in re.findall(r"\d+", capsys.readouterr().out)]
    assert len(sizes) == 10 and abs(sum(sizes) - (1 - HELD_OUT) * 1797) <= 5  # the rest is held out


@pytest.mark.parametrize("text", TOML)
def test_the_tables_in_the_guide_are_scenarios(text: str) -> None:
    config = parse_scenario(text)
    tables = re.findall(r"^\[(\w+)", text, re.MULTILINE)
    assert tables and all(getattr(config, table) is not msgspec.UNSET for table in tables)


def test_the_guide_lists_all_presets_with_their_sizes() -> None:
    for name in PRESETS:
        config = preset(name)
        assert f"| `{name}` | {config.clients} | {config.budget} |" in GUIDE


def test_the_guide_lists_all_kinds_of_flaws_with_the_defaults_of_their_keys() -> None:
    rows = {row.split("|")[1].strip(" `"): row for row in GUIDE.splitlines() if row.startswith("| `")}
    for field in msgspec.structs.fields(FlawsConfig):
        (table,) = (kind for kind in field.type.__args__ if kind is not msgspec.UnsetType)
        for key in msgspec.structs.fields(table):
            if key.name == "clean_test":
                assert "`clean_test`" in rows[field.name]
            elif key.name not in ("share", "clients"):
                assert f"`{key.name}` ({key.default})" in rows[field.name]
