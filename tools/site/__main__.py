"""`python -m tools.site [FOLDER]`: build the documentation site, and name the page to open.

It fails if a public name has no docstring or a link leads nowhere.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml
from tools.site import api
from tools.site.links import ROOT
from tools.site.stage import API, stage


def build(folder: Path) -> Path:
    """Build the site into the subfolder `docs` of a folder; return its first page."""
    missing = api.find_undocumented()
    if missing:
        sys.exit(f"public names without a docstring: {', '.join(missing)}; write one where each is defined")
    for name in ("docs", "docs-source", ".cache"):
        shutil.rmtree(folder / name, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    stage(folder / "docs-source")
    settings = folder / "mkdocs.yml"
    settings.write_text(make_settings(), encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(settings)]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])  # it imports tools.site.doctests
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths})
    if done.returncode:
        sys.exit("the site was not built: mend what is said above")
    return folder / "docs" / "index.html"


def make_settings() -> str:
    """mkdocs.yml with the packages of the API in its navigation, and the place of the sources."""
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    pages: list[object] = [{"Overview": f"{API}/index.md"}]
    for heading, packages in api.find_packages().items():
        pages.append({heading: [{package: f"{API}/{package}.md"} for package in packages]})
    settings["nav"] = [{"Python API": pages} if "Python API" in entry else entry for entry in settings["nav"]]
    for plugin in settings["plugins"]:
        if "mkdocstrings" in plugin:
            plugin["mkdocstrings"]["handlers"]["python"]["paths"] = [str(ROOT / "src")]
    return str(yaml.safe_dump(settings, sort_keys=False))


if __name__ == "__main__":
    page = build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build")
    print(f"\nopen {page.relative_to(ROOT) if page.is_relative_to(ROOT) else page}")
