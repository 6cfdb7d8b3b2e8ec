"""Put all pages of the site into one folder: those of docs/, others of the repository, those made from the code."""

import shutil
from pathlib import Path

from tools.site import api, commands
from tools.site.diagrams import draw_states
from tools.site.links import COPIES, PAGES, ROOT, fit_links
from tools.site.tables import expand_tables

API, COMMANDS = "api", "commands.md"


def stage(folder: Path) -> None:
    """Write every page and file of the site into an empty folder.

    Links fit their new places, state diagrams and data files are tables. Files of the repository that a page links to
    are copied.
    """
    docs = ROOT / "docs"
    shutil.copytree(docs, folder, ignore=shutil.ignore_patterns("*.md"))
    copies = set[str]()
    sources = {path.relative_to(ROOT).as_posix(): path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    for source, place in (sources | PAGES).items():
        text, linked = fit_links((ROOT / source).read_text(encoding="utf-8"), source, place)
        write_page(folder, place, expand_tables(draw_states(text), (docs / place).parent))
        copies |= linked
    for path in copies:
        (folder / COPIES / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, folder / COPIES / path)
    for place, text in make_pages().items():
        write_page(folder, place, text)


def make_pages() -> dict[str, str]:
    """Place -> Markdown of the pages that are made from the code."""
    packages = [package for group in api.find_packages().values() for package in group]
    pages = {f"{API}/{package}.md": api.make_page(package) for package in packages}
    return pages | {f"{API}/index.md": api.make_index(), COMMANDS: commands.make_index()}


def write_page(folder: Path, place: str, text: str) -> None:
    """Write one page of the site."""
    (folder / place).parent.mkdir(parents=True, exist_ok=True)
    (folder / place).write_text(text, encoding="utf-8")
