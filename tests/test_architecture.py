"""Guards: the pure core stays pure, exports are what they claim, importing is light."""

import ast
import importlib
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import fedelect

SOURCE = Path(fedelect.__file__).parent
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
