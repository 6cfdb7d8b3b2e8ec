"""Every command without the extras: it works, or names what to install before it makes anything."""

import json
import subprocess
import sys

import click
import pytest

from fedelect.cli.main import COMMANDS, load_command

Outcomes = dict[str, tuple[int, str, list[str]]]

LACKS = {
    "demo": "lab",
    "run digits": "lab",
    "run mine.toml --ray local --out ray": "ray",
    "run torch.toml --out torch": "torch",
    "figures run": "lab",
    "peer nowhere": "peer",
    "peers init --out federation": "peer",
    "peers key folder": "peer",
    "peers renew peer00 --ca ca --folder folder": "peer",
    "peers demo --out demo": "lab,peer",
    "peers demo --scenario mine.toml --out demo": "peer",
    "bench users": "lab",
    "atlas build digits": "lab",
    "atlas build torch.toml": "torch",
}
"""Command -> the extras that its message names."""

WORKS = (
    "run mine.toml --out run --workers 1",
    "chaos --seeds 0:1 --clients 4 --slots 1",
    "show run",
    "report run",
    "selectors",
    "scenario list",
    "scenario show paper",
    "atlas build mine.toml --seeds 1 --fresh 4 --contenders 2 --workers 1",
    "atlas show atlas.npz",
    "bench selectors atlas.npz --slots 2 --trials 1 --workers 1",
)
ENDLESS = ("live", "data fetch")
"""Commands that are not tried: one waits for Ctrl-C, one for the network. Neither needs an extra."""

SCENARIO = """
clients = 4
budget = 2
slots = 2
rounds_per_slot = 1
[data]
source = "mine.npz"
iid_clients = 2
samples = [10, 20]
[model]
epochs = 1
batch = 10
"""

CHILD = """
import contextlib, io, json, os, pathlib, sys

BLOCKED = {"sklearn", "matplotlib", "numba", "torch", "ray", "flwr", "opendp", "cryptography", "pandas"}

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
import numpy as np
labels = np.arange(400) % 4
inputs = np.random.default_rng(0).random((400, 6))
np.savez("mine.npz", X=inputs, y=labels, X_test=inputs[:60], y_test=labels[:60])
from fedelect.cli import main

def files():
    return sorted(str(path) for path in pathlib.Path().rglob("*"))

for command in json.loads(sys.argv[1]):
    out, err, before = io.StringIO(), io.StringIO(), files()
    sys.argv[1:] = command.split()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    made = [path for path in files() if path not in before]
    print(json.dumps([command, code, err.getvalue(), made]))
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Command -> exit code, standard error, files made; all in one process in which no extra can be imported."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "mine.toml").write_text(SCENARIO)
    (folder / "torch.toml").write_text(SCENARIO.replace("[model]", '[model]\nkind = "my_model:Model"'))
    (folder / "my_model.py").write_text("import torch\nclass Model(torch.nn.Module): ...\n")
    commands = json.dumps([*WORKS, *LACKS])
    done = subprocess.run(
        [sys.executable, "-c", CHILD, commands], cwd=folder, capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stderr
    return {row[0]: (row[1], row[2], row[3]) for row in map(json.loads, done.stdout.splitlines())}


@pytest.mark.xdist_group("extras")
@pytest.mark.parametrize("command", LACKS)
def test_what_lacks_an_extra_names_it_and_makes_nothing(command: str, outcomes: Outcomes) -> None:
    code, err, made = outcomes[command]
    assert code == 1 and f"pip install 'fedelect[{LACKS[command]}]'" in err and err.count("\n") == 1
    assert made == []


@pytest.mark.xdist_group("extras")
@pytest.mark.parametrize("command", WORKS)
def test_what_needs_no_extra_works_without(command: str, outcomes: Outcomes) -> None:
    code, err, _ = outcomes[command]
    assert code == 0, err


def test_every_command_is_tried() -> None:
    def leaves(name: str, command: click.Command) -> list[str]:
        if not isinstance(command, click.Group):
            return [name]
        return [leaf for each in command.commands.values() for leaf in leaves(f"{name} {each.name}", each)]

    offered = {leaf for name in COMMANDS for leaf in leaves(name, load_command(name))}
    tried = [*LACKS, *WORKS, *ENDLESS]
    assert offered == {name for name in offered if any(command.startswith(name) for command in tried)}
