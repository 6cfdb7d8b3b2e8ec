"""What mkdocs calls: pages made from the code, pages of the repository outside docs/, data files as tables.

The build fails if a public name has no docstring; mkdocs itself fails on a broken link (`--strict`).
"""

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tools.site import api, commands
from tools.site.diagrams import draw_states
from tools.site.links import COPIES, PAGES, ROOT, find_links, fit_links
from tools.site.tables import expand_tables

API, COMMANDS = "api", "commands.md"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Refuse undocumented names, and put the packages of the API into the navigation."""
    missing = api.find_undocumented()
    if missing:
        raise PluginError(f"public names without a docstring: {', '.join(missing)}; write one where each is defined")
    pages: list[Any] = [{"Overview": f"{API}/index.md"}]
    for heading, packages in api.find_packages().items():
        pages.append({heading: [{package: f"{API}/{package}.md"} for package in packages]})
    for entry in config.nav or []:
        if isinstance(entry, dict) and entry.get("Python API") == f"{API}/index.md":
            entry["Python API"] = pages
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages made from the code, and the files of the repository that pages link to."""
    made = {f"{API}/index.md": api.make_index(), COMMANDS: commands.make_index()}
    for packages in api.find_packages().values():
        made |= {f"{API}/{package}.md": api.make_page(package) for package in packages}
    for source, place in PAGES.items():
        made[place] = (ROOT / source).read_text(encoding="utf-8")
    for place, text in made.items():
        files.append(File.generated(config, place, content=text))
    for path in sorted(_find_copies()):
        files.append(File.generated(config, f"{COPIES}/{path}", abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fit links, draw state diagrams, expand data files."""
    place = page.file.src_uri
    sources = {there: path for path, there in PAGES.items()}
    if place.startswith(f"{API}/") or place == COMMANDS:
        return markdown
    fitted, _ = fit_links(markdown, sources.get(place, f"docs/{place}"), place)
    return expand_tables(draw_states(fitted), Path(config.docs_dir) / Path(place).parent)


def _find_copies() -> set[str]:
    """Files of the repository that some page links to and that are no pages."""
    found = set[str]()
    for path in [*(ROOT / "docs").rglob("*.md"), *(ROOT / source for source in PAGES)]:
        text = path.read_text(encoding="utf-8")
        if find_links(text):
            source = path.relative_to(ROOT).as_posix()
            found |= fit_links(text, source, PAGES.get(source, source.removeprefix("docs/")))[1]
    return found
