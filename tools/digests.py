"""Check that a change of shape changed no number: digests of small runs of every kind, compared with those on file.

    python tools/digests.py            # run all, compare with tools/digests.json; exit 1 if any differs
    python tools/digests.py --update   # write tools/digests.json anew

Each job is a command that a user could type. What is digested are the records, cohorts and arrays that come out,
without timings, versions, paths and command lines. Digests hold for the versions in constraints.txt on one kind of
processor; on another machine compare two commits with each other instead.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
ON_FILE = Path(__file__).with_suffix(".json")
FEDELECT = [sys.executable, "-m", "fedelect"]

SMALL_WORLD = """
name = "small"
clients = 8
budget = 3
slots = 12
rounds_per_slot = 2

[data]
source = "digits"
iid_clients = 3
skew = "labels"
classes_per_client = 3
samples = [40, 80]
"""

LATER_FIELDS = ("mean_opinion", "available", "candidates", "failed", "left_out", "joined", "measures", "checksum")
"""Fields of a record that came after the digests were made; left out, so that those of cold runs stay comparable."""

RENAMED = {"quick-init-ucb:exploration=1.0": "quick-init-ucb"}
"""Selectors under the names that they had when the digests were made: this setting was the default then."""

CATALOGUE = [
    "additive-thompson",
    "client-thompson",
    "client-ucb",
    "context-ucb",
    "data-size",
    "fedcs",
    "loss-gp",
    "oort",
    "power-of-choice",
    "proportional-fair",
    "quick-init-ucb:exploration=1.0",
    "random",
    "rbcs-f",
    "round-robin",
    "set-gp",
    "subset-ucb",
    "tifl",
]


def call(*command: str, cwd: Path = ROOT) -> str:
    """Run a command to its end and return what it printed."""
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout


def digest(values: Iterable[Any]) -> str:
    """Short hash of JSON-able values."""
    text = json.dumps(list(values), sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def records(folder: Path) -> str:
    """Digest of a run's records, in the order of selector, trial and slot, without what was measured by a clock."""
    lines = [json.loads(line) for line in (folder / "slots.jsonl").read_text().splitlines()]
    for line in lines:
        line["selector"] = RENAMED.get(line["selector"], line["selector"])
        for key in [key for key in line if key.endswith(("_s", "timings", "seconds")) or key in LATER_FIELDS]:
            del line[key]
    return digest(sorted(lines, key=lambda line: (line["selector"], line["trial"], line["slot"])))


def demo(folder: Path) -> dict[str, str]:
    """Both runs of the demo."""
    call(*FEDELECT, "demo", "--out", str(folder), "--trials", "4")
    return {framework: records(folder / framework) for framework in ("fa", "da")}


def catalogue(folder: Path) -> dict[str, str]:
    """Every selector under FL&FA, cold and warm, and those of FL&DA."""
    found = {}
    for start in ("cold", "warm"):
        world = folder / f"{start}.toml"
        world.write_text(SMALL_WORLD.replace("clients = 8", f'start = "{start}"\nclients = 8'))
        run(world, folder / f"{start}-fa", "fa", CATALOGUE)
        run(world, folder / f"{start}-da", "da", ["bp-ucb", "bp-gp", "random"])
        found |= {f"{start}-{name}": records(folder / f"{start}-{name}") for name in ("fa", "da")}
    return found


def run(world: Path | str, out: Path, framework: str, selectors: Iterable[str]) -> None:
    """`fedelect run` of a few slots."""
    named = [part for name in selectors for part in ("--selector", name)]
    options = ["--framework", framework, "--slots", "24", "--trials", "2", "--seed", "3", "--out", str(out)]
    call(*FEDELECT, "run", str(world), *options, *named)


def peers(folder: Path) -> dict[str, str]:
    """Elections among simulated peers over links that lose messages."""
    run("digits", folder, "da", ["bp-ucb", "peers:loss=0.2", "peers:rule=bp-gp,loss=0.1"])
    return {"records": records(folder)}


def chaos(folder: Path) -> dict[str, str]:
    """Elections in which peers crash and misbehave."""
    byzantine = "--byzantine" if "--byzantine" in call(*FEDELECT, "chaos", "--help") else "--liars"
    return {
        rule: call(*FEDELECT, "chaos", "--seeds", "0:25", byzantine, "1", "--rule", rule).strip().splitlines()[-1]
        for rule in ("bp-ucb", "bp-gp")
    }


def real_peers(folder: Path) -> dict[str, str]:
    """Cohorts that real processes elect over TLS."""
    call(*FEDELECT, "peers", "demo", "--clients", "6", "--slots", "8", "--out", str(folder / "peers"))
    lines = [json.loads(line) for line in (folder / "peers/fed/peer00/slots.jsonl").read_text().splitlines()]
    return {"cohorts": digest((line["slot"], line["cohort"]) for line in lines)}


def flower(folder: Path) -> dict[str, str]:
    """A run on Flower's simulation engine."""
    app, settings = ROOT / "examples/flower", ("start=cold", "rounds-per-slot=5")
    call(
        sys.executable,
        "simulate.py",
        "--out",
        str(folder / "run"),
        "slots=3",
        "clients=8",
        "budget=3",
        *settings,
        cwd=app,
    )
    return {"records": records(folder / "run")}


def atlas(folder: Path) -> dict[str, str]:
    """An atlas of a small world, array by array."""
    (folder / "small.toml").write_text(SMALL_WORLD)
    options = ["--seeds", "2", "--contenders", "5", "--fresh", "4", "--losses", "1", "--out", str(folder / "a.npz")]
    call(*FEDELECT, "atlas", "build", str(folder / "small.toml"), *options)
    with np.load(folder / "a.npz", allow_pickle=False) as arrays:
        about = json.loads(arrays["about"].tobytes())  # has a time in it; its own digest leaves that out
        names = sorted(name for name in arrays.files if name != "about" and arrays[name].dtype.kind in "fiub")
        found = {name: digest([arrays[name].shape, arrays[name].tobytes().hex()]) for name in names}
        return {"digest": about["digest"]} | found


def paper(folder: Path) -> dict[str, str]:
    """One block of the paper's reproduction, trained, and one read off the atlas."""
    command = [sys.executable, "-m", "paper"] if (ROOT / "paper").is_dir() else [*FEDELECT, "reproduce"]
    call(*command, "cen_performance", "--preset", "quick", "--on-atlas", "--results", str(folder / "atlas"))
    return {"atlas": blocks(folder / "atlas")}


def blocks(folder: Path) -> str:
    """Digest of the arrays of all result files in a folder."""
    found = []
    for path in sorted(folder.rglob("*.npz")):
        with np.load(path, allow_pickle=False) as arrays:
            numeric = [name for name in sorted(arrays.files) if arrays[name].dtype.kind in "fiub"]
            found.append([path.stem, [[name, arrays[name].tobytes().hex()] for name in numeric]])
    return digest(found)


JOBS: dict[str, Callable[[Path], dict[str, str]]] = {
    "demo": demo,
    "catalogue": catalogue,
    "peers": peers,
    "chaos": chaos,
    "real-peers": real_peers,
    "flower": flower,
    "atlas": atlas,
    "paper": paper,
}


def main() -> int:
    """Run the jobs; 0 if all digests are those on file."""
    parser = argparse.ArgumentParser(description="Compare digests of small runs with those on file.")
    parser.add_argument("--update", action="store_true", help="write the digests instead of comparing")
    parser.add_argument("--only", choices=JOBS, action="append", help="only this job; may be repeated")
    given = parser.parse_args()
    kept: dict[str, dict[str, str]] = json.loads(ON_FILE.read_text()) if ON_FILE.exists() else {}
    different = 0
    for name in given.only or JOBS:
        with tempfile.TemporaryDirectory() as scratch:
            found = JOBS[name](Path(scratch))
        if given.update:
            kept[name] = found
            ON_FILE.write_text(json.dumps(kept, indent=2) + "\n")
        for part, value in found.items():
            same = kept.get(name, {}).get(part) == value
            different += not same
            print(f"{'same ' if same else 'OTHER'} {name} {part}: {value}", flush=True)
    print(f"{different} digests differ" if different else "all digests are the same")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
