"""`python -m tools.site`: build the documentation site, and name the page to open.

It fails if a public name has no docstring or a link leads nowhere.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from tools.site import api
from tools.site.links import ROOT
from tools.site.stage import API, stage

BUILD = ROOT / "build"


def main() -> None:
    """Build the site into build/docs."""
    missing = api.find_undocumented()
    if missing:
        sys.exit(f"public names without a docstring: {', '.join(missing)}; write one where each is defined")
    shutil.rmtree(BUILD / "docs-source", ignore_errors=True)
    stage(BUILD / "docs-source")
    settings = write_settings(BUILD / "mkdocs.yml")
    done = subprocess.run([sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", settings])
    if done.returncode:
        sys.exit(done.returncode)
    print(f"\nopen {BUILD.relative_to(ROOT)}/docs/index.html")


def write_settings(path: Path) -> Path:
    """mkdocs.yml with the packages of the API in its navigation."""
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    pages: list[object] = [{"Overview": f"{API}/index.md"}]
    for heading, packages in api.find_packages().items():
        pages.append({heading: [{package: f"{API}/{package}.md"} for package in packages]})
    settings["nav"] = [{"Python API": pages} if "Python API" in entry else entry for entry in settings["nav"]]
    path.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
