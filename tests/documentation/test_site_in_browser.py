"""The built site in a real browser, opened as files, with a wide window and with a phone's."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser import Browser, browsing
from tools.site import api
from tools.site.links import ROOT

pytest.importorskip("zensical", reason="zensical is not installed (the extra docs)")
pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed (the extra docs)")

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("browser")]

DESKTOP, PHONE = 1400, 390
VISITED = (
    "index.html",
    "concepts.html",
    "SELECTORS.html",
    "FLOWER.html",
    "PROTOCOL.html",
    "SELECTOR_REPORT.html",
    "theory/protocol-messages.html",
    "results/literature.html",
    "results/users.html",
    "tutorials/your-data.html",
    "commands.html",
    "api/index.html",
    "api/fedelect.selectors.html",
    "project/architecture.html",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built anew."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "tools.site", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith(f"open {folder}/docs/index.html")
    return folder / "docs"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_pages_load_without_complaint_and_never_scroll_sideways(site: Path, browser: Browser, width: int) -> None:
    browser.look(width=width)
    for page in VISITED:
        browser.open(site / page)
        assert browser.text("h1")
        wide = browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{page} is {wide} pixels too wide at {width}"
        assert browser.complaints() == [], page


def test_pages_fetch_nothing_from_the_network(site: Path, browser: Browser) -> None:
    for page in VISITED:
        browser.open(site / page)
        names = browser.run("return performance.getEntriesByType('resource').map(entry => entry.name)")
        assert [name for name in names if not name.startswith(("file:", "data:", "blob:"))] == []
    fetched = re.compile(r"<(?:script|img|iframe|link)[^>]+(?:src|href)=\"?(https?:)?//")
    for path in site.rglob("*.html"):
        assert not fetched.search(path.read_text(encoding="utf-8")), path


def test_search_finds_a_page_without_a_server(site: Path, browser: Browser) -> None:
    browser.look(width=DESKTOP)
    browser.open(site / "index.html")
    inside = "const root = [...document.querySelectorAll('div')].map(one => one.shadowRoot).find(Boolean); "
    browser.wait(lambda: browser.run(inside + "return root"), "the search is there")
    browser.click("button.md-search__button")
    browser.wait(
        lambda: browser.run(inside + "return root.activeElement?.tagName === 'INPUT'"), "its box has the focus"
    )
    browser.driver.switch_to.active_element.send_keys("Byzantine")
    hits = inside + "return [...root.querySelectorAll('a')].map(found => found.href)"
    browser.wait(lambda: any("PROTOCOL.html" in found for found in browser.run(hits)), "the protocol's page is found")
    assert browser.complaints() == []


def test_the_navigation_opens_on_a_phone(site: Path, browser: Browser) -> None:
    browser.look(width=PHONE)
    browser.open(site / "index.html")
    seen = "const box = document.querySelector('.md-sidebar--primary').getBoundingClientRect(); return box.right > 50"
    browser.wait(lambda: not browser.run(seen), "the drawer is closed")
    browser.click("label.md-header__button[for=__drawer]")
    browser.wait(lambda: browser.run(seen), "the drawer is open")
    assert "Tutorials" in browser.text(".md-sidebar--primary")


def test_a_table_sorts_by_number_and_filters_by_text(site: Path, browser: Browser) -> None:
    browser.look(width=DESKTOP)
    browser.open(site / "SELECTOR_REPORT.html")
    column = (
        "return [...document.querySelectorAll('.data-table tbody tr')].filter(row => !row.hidden)"
        ".map(row => row.cells[arguments[0]].textContent)"
    )
    heads = browser.run("return [...document.querySelectorAll('.data-table th')].map(head => head.textContent)")
    gap, world = heads.index("final gap %"), heads.index("world")
    sort = "document.querySelectorAll('.data-table th')[arguments[0]].click()"
    for order in (False, True):
        browser.run(sort, gap)
        values = [float(text.split(" ± ")[0]) for text in browser.run(column, gap)]
        assert len(values) > 300 and values == sorted(values, reverse=order)
    browser.driver.find_element("css selector", ".data-table input").send_keys("r-lossy")
    browser.wait(lambda: set(browser.run(column, world)) == {"r-lossy-N12-K4"}, "one world is left")


def test_every_public_name_is_on_the_built_pages_with_a_docstring(site: Path) -> None:
    for packages in api.find_packages().values():
        for package in packages:
            page = (site / "api" / f"{package}.html").read_text(encoding="utf-8")
            for name in api.list_names(package):
                _, found, rest = page.partition(f'<h3 id="{name.path}"')
                contents = rest.partition("<h3 id=")[0].partition('<div class="doc doc-contents')[2]
                assert found and re.search(r"<p>\s*\S", contents), name.path


def test_a_page_with_a_broken_link_is_not_built(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    for part in ("docs", "tools", "src", "examples", "paper"):
        shutil.copytree(ROOT / part, clone / part, ignore=shutil.ignore_patterns("__pycache__", "*.parts"))
    for file in [*ROOT.glob("*.md"), ROOT / "mkdocs.yml"]:
        shutil.copyfile(file, clone / file.name)
    page = clone / "docs/concepts.md"
    page.write_text(page.read_text(encoding="utf-8") + "\n[x](SELECTORS.md#no-such-heading)\n", encoding="utf-8")
    command = [sys.executable, "-m", "tools.site", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True, timeout=600)
    assert done.returncode != 0 and "anchor does not exist" in done.stdout + done.stderr
