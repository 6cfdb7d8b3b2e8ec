"""The wheel builds, installs into an empty environment, and says which extra is missing."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration  # builds, and fills an environment from PyPI

ROOT = Path(__file__).parents[1]


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=1800
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source distribution that is built from this clone."""
    folder = tmp_path_factory.mktemp("wheel")
    built = run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("fedelect-*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """The scripts folder of a fresh environment that holds the wheel and its core dependencies only."""
    folder = wheel.parent
    venv.create(folder / "empty", with_pip=True)
    scripts = folder / "empty" / ("Scripts" if os.name == "nt" else "bin")
    pip = (scripts / "python", "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt")
    done = run(*pip, wheel, cwd=folder)
    assert done.returncode == 0, done.stderr
    return scripts


def test_the_wheel_holds_the_package_and_nothing_of_the_paper_beside_it(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"fedelect"}
    kept = {name.removeprefix("fedelect/") for name in names}
    assert not kept & {str(path.relative_to(ROOT / "paper")) for path in (ROOT / "paper/results").rglob("*.*")}
    assert [name for name in names if name.endswith(".npz")] == [
        f"fedelect/{path.relative_to(ROOT / 'src/fedelect').as_posix()}"
        for path in sorted((ROOT / "src/fedelect").rglob("*.npz"))
    ]


def test_the_source_distribution_installs_and_holds_what_a_packager_needs(wheel: Path, tmp_path: Path) -> None:
    (sdist,) = wheel.parent.glob("fedelect-*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "tests/test_packaging.py", "Makefile"} <= names
    assert not [name for name in names if name.startswith((".venv", "runs/"))]
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path / "there")
    done = run(*pip, sdist, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'there')!r}); import fedelect; print(fedelect.__file__)"
    assert run(sys.executable, "-c", code, cwd=tmp_path).stdout.startswith(str(tmp_path / "there"))


def test_the_wheel_works_in_an_empty_environment(installed: Path, tmp_path: Path) -> None:
    code = "import fedelect, pathlib; print((pathlib.Path(fedelect.__file__).parent / 'py.typed').exists())"
    assert run(installed / "python", "-c", code, cwd=tmp_path).stdout.strip() == "True"
    shown = run(installed / "fedelect", "selectors", cwd=tmp_path)
    assert shown.returncode == 0 and "quick-init-ucb" in shown.stdout


def test_the_atlases_come_with_the_wheel_and_need_no_extra(installed: Path, tmp_path: Path) -> None:
    done = run(installed / "fedelect", "bench", "selectors", "--trials", "2", "--slots", "5", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "paper: 5 of 20 clients" in done.stdout and "bp-ucb" in done.stdout


def test_a_missing_extra_prints_its_install_line(installed: Path, tmp_path: Path) -> None:
    done = run(installed / "fedelect", "run", "digits", cwd=tmp_path)
    assert done.returncode == 1
    assert "pip install 'fedelect[lab]'" in done.stderr and done.stderr.count("\n") == 1


def test_flower_names_its_extra(installed: Path, tmp_path: Path) -> None:
    done = run(installed / "python", "-c", "import fedelect.flower", cwd=tmp_path)
    assert done.returncode == 1 and "pip install 'fedelect[flower]'" in done.stderr


def test_a_run_on_ones_own_data_needs_no_extra(installed: Path, tmp_path: Path) -> None:
    code = (
        "import numpy as np; rng = np.random.default_rng(0); y = np.arange(400) % 4;"
        "np.savez('d.npz', X=rng.random((400, 6)), y=y, X_test=rng.random((60, 6)), y_test=y[:60])"
    )
    assert run(installed / "python", "-c", code, cwd=tmp_path).returncode == 0
    (tmp_path / "s.toml").write_text(
        'clients = 6\nbudget = 2\nslots = 4\n[data]\nsource = "d.npz"\nsamples = [10, 20]\n[model]\nepochs = 1\n'
    )
    done = run(installed / "fedelect", "run", "s.toml", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = run(installed / "fedelect", "report", "out", cwd=tmp_path)
    assert report.returncode == 0, report.stderr
    assert "Apache ECharts" in (tmp_path / "out" / "report.html").read_text()
    figures = run(installed / "fedelect", "figures", "out", cwd=tmp_path)
    assert figures.returncode == 1 and "pip install 'fedelect[lab]'" in figures.stderr
