"""Guards: the pure core stays pure, exports are what they claim, importing is light."""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import fedelect

SOURCE = Path(fedelect.__file__).parent
ROOT = Path(__file__).parents[1]
PURE = (
    "equations",
    "rules",
    "protocol",
    "selectors",
    "scenario",
    "federation",
    "analytics",
    "loop",
    "measurement",
    "slot_memory",
    "backoff",
)
BANNED = {"asyncio", "socket", "time", "threading", "random", "logging", "pathlib", "os", "secrets"}
DRAWS_ALLOWED = {"Generator", "PCG64"}


def modules(*packages: str) -> Iterator[Path]:
    for package in packages:
        single = SOURCE / f"{package}.py"
        yield from [single] if single.exists() else sorted((SOURCE / package).rglob("*.py"))


@pytest.mark.parametrize("path", list(modules(*PURE)), ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_core_has_no_clock_files_sockets_or_hidden_chance(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert not {name.name.split(".")[0] for name in node.names} & BANNED
        if isinstance(node, ast.ImportFrom) and node.module:
            assert node.module.split(".")[0] not in BANNED


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_draws_from_numpys_global_randomness(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Attribute)
            and node.value.attr == "random"
            and isinstance(node.value.value, ast.Name)
            and node.value.value.id in ("np", "numpy")
        ):
            assert node.attr in DRAWS_ALLOWED, f"np.random.{node.attr}"


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_package_never_imports_the_paper_beside_it(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        assert "paper" not in {name.split(".")[0] for name in names}


def packages() -> list[str]:
    return sorted(
        ".".join(("fedelect", *path.parent.relative_to(SOURCE).parts)) for path in SOURCE.rglob("__init__.py")
    )


@pytest.mark.parametrize("name", packages())
def test_exports_exist(name: str) -> None:
    module = importlib.import_module(name)
    exported = getattr(module, "__all__", [])
    assert len(set(exported)) == len(exported)
    assert all(hasattr(module, item) for item in exported)


def test_importing_fedelect_and_its_selectors_loads_numpy_and_nothing_heavier() -> None:
    code = "import sys, fedelect, fedelect.selectors; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "numpy" in loaded
    assert not {"msgspec", "typer", "rich", "sklearn", "matplotlib", "scipy", "numba", "torch"} & set(loaded)


def test_no_two_test_files_have_the_same_name() -> None:
    # pytest imports them by their bare names, and finds the second of two only when both are collected; but for
    # conftest.py, of which every folder may have one. The Flower apps in tests/flower/apps are not imported by pytest.
    root = Path(__file__).parents[1]
    paths = [path for folder in ("tests", "paper/tests") for path in (root / folder).rglob("*.py")]
    names = Counter(path.name for path in paths if "apps" not in path.parts)
    assert [name for name, count in names.items() if count > 1 and name not in ("__init__.py", "conftest.py")] == []


def page() -> str:
    return (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_the_page_on_architecture_has_the_layers_that_are_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    (block,) = re.findall(r"```\n(__main__\n.*?)\n```", page(), re.DOTALL)
    assert [line.partition("   ")[0] for line in block.split("\n")] == layers


def test_everything_that_the_page_on_architecture_names_is_there() -> None:
    text = re.sub(r"```.*?```", "", page(), flags=re.DOTALL)
    files = [path for top in ("src", "paper", "benchmarks", "tools", "tests") for path in (ROOT / top).rglob("*.py")]
    words = set(
        re.findall(r"\w+", " ".join(path.read_text(encoding="utf-8") for path in files if "tests" not in path.parts))
    )
    paths = {f"/{part}" for path in files for part in (path.relative_to(ROOT), path.parent.relative_to(ROOT))}
    for name in re.findall(r"`([^`\n]+)`", text):
        if re.fullmatch(r"[\w/]+(/|\.py)", name):
            wanted = f"/{name.rstrip('/')}"
            assert any(path.endswith(wanted) for path in paths) or (ROOT / name).is_dir(), name
        elif re.fullmatch(r"[\w.]+(\(.*\))?", name):
            assert set(re.findall(r"\w+", name.partition("(")[0])) <= words, name


def test_the_sizes_on_the_page_on_architecture_are_those_of_the_files() -> None:
    package = list(SOURCE.rglob("*.py"))
    paper = [path for path in (ROOT / "paper").rglob("*.py") if "tests" not in path.parts]
    lines = [sum(path.read_bytes().count(b"\n") for path in paths) for paths in (package, paper)]
    (found,) = re.findall(r"says ([\d,]+) lines, in (\d+) files; `paper/` has ([\d,]+)", page())
    told = [int(number.replace(",", "")) for number in found]
    assert told == pytest.approx([lines[0], len(package), lines[1]], rel=0.03)
