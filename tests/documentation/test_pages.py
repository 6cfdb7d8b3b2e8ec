"""The pages of the documentation: short, plain, linked, complete."""

import csv
import importlib
import statistics
from collections import Counter
from pathlib import Path

import pytest
from tests.documentation.blocks import list_pages, read_page
from tests.documentation.prose import count_words, find_sentences
from tools.site import api, commands
from tools.site.diagrams import draw_states
from tools.site.links import PAGES, ROOT, fit_links
from tools.site.tables import expand_tables

from fedelect.protocol.transitions import TRANSITIONS, mermaid

WORDS = 2000
"""Most words of a page: about ten minutes."""
README_WORDS = 900
"""Most words of the README, code and tables included."""
LONG = {
    "docs/FLOWER.md": "the guide for users of Flower, still one page",
    "paper/RECORD.md": "every claim of the paper, made by a program, to look things up",
}
"""Page -> why it may be longer."""
WORDY = {"docs/ENGINE.md": "measurements"}
"""Page -> why its sentences may be longer."""


@pytest.mark.parametrize("page", [page for page in list_pages() if page not in LONG])
def test_a_page_is_read_in_ten_minutes(page: str) -> None:
    assert count_words(read_page(page)) <= WORDS


@pytest.mark.parametrize("page", [page for page in list_pages() if page not in WORDY])
def test_half_of_the_sentences_of_a_page_have_fewer_than_eighteen_words(page: str) -> None:
    assert statistics.median(count_words(sentence) for sentence in find_sentences(read_page(page))) < 18


def test_the_readme_is_short_plain_and_linked() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= README_WORDS
    assert statistics.median(count_words(sentence) for sentence in find_sentences(text)) < 18
    fit_links(text, "README.md", "README.md")


def test_a_long_sentence_counts_and_code_and_tables_do_not() -> None:
    text = "# Title\n\nOne two three. Four\nfive [six](x.md).\n\n| a | b |\n\n```python\nx = 1\n```\n- Seven eight\n"
    assert [count_words(sentence) for sentence in find_sentences(text)] == [3, 3, 2]


@pytest.mark.parametrize("page", list_pages())
def test_every_link_of_a_page_leads_to_a_file(page: str) -> None:
    fit_links(read_page(page), page, PAGES.get(page, page.removeprefix("docs/")))


def test_a_link_that_leads_nowhere_is_refused_and_others_fit_the_site() -> None:
    with pytest.raises(FileNotFoundError, match=r"docs/a.md links to docs/none.md"):
        fit_links("[x](none.md)", "docs/a.md", "a.md")
    same = "`[c](none.md)` [d](https://example.org) [e](#here)"
    fitted, copied = fit_links(f"[a](../ARCHITECTURE.md#layers) [b](../Makefile) {same}", "docs/a.md", "a.md")
    assert fitted == f"[a](project/architecture.md#layers) [b](files/Makefile) {same}"
    assert copied == {"Makefile"}


def test_every_page_is_in_the_navigation_once() -> None:
    yaml = pytest.importorskip("yaml")
    named = Counter[str]()

    def walk(entry: object) -> None:
        if isinstance(entry, str):
            named[entry] += 1
        elif isinstance(entry, dict):
            for value in entry.values():
                walk(value)
        elif isinstance(entry, list):
            for value in entry:
                walk(value)

    walk(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    written = {PAGES.get(page, page.removeprefix("docs/")) for page in list_pages()}
    assert named == Counter(written | {"api/index.md", "commands.md"})


@pytest.mark.parametrize("package", [package for group in api.find_packages().values() for package in group])
def test_every_public_name_of_a_package_is_on_its_page_with_a_docstring(package: str) -> None:
    page = api.make_page(package)
    names = {name.name: name for name in api.list_names(package)}
    assert names.keys() == set(getattr(importlib.import_module(package), "__all__", names))
    for name in names.values():
        assert f"\n::: {name.path}\n" in page
        assert name.documented, f"{name.path} has no docstring"


def test_a_function_in_a_module_of_its_name_is_shown_and_not_the_module() -> None:
    paths = {name.name: name.path for name in api.list_names("fedelect.selectors")}
    assert paths["recommended"] == "fedelect.selectors.recommended.recommended"
    assert paths["SetGp"] == "fedelect.selectors.SetGp"
    for package in (package for group in api.find_packages().values() for package in group):
        for name in api.list_names(package):
            assert not (ROOT / "src" / f"{name.path.replace('.', '/')}.py").exists(), name


def test_a_value_without_a_string_below_it_is_undocumented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '__all__ = ["BARE", "SAID", "Kind", "make"]\nSAID = 1\n"""A value."""\nBARE = 2\n\n\nclass Kind:\n    pass\n'
    (tmp_path / "sample_names.py").write_text(text + '\n\ndef make() -> None:\n    """Make."""\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    found = {name.name: (name.kind, name.documented) for name in api.list_names("sample_names")}
    assert found == {
        "Kind": ("class", False),
        "make": ("function", True),
        "BARE": ("value", False),
        "SAID": ("value", True),
    }


def test_every_command_and_option_is_on_the_page_of_the_command_line() -> None:
    page = commands.make_index()
    for name, command in commands.list_commands():
        section = page.split(f"\n## fedelect {name}\n")[1].split("\n## ")[0]
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert f"`{parameter.opts[0]}`" in section, (name, parameter.name)


@pytest.mark.parametrize("path", sorted((ROOT / "docs/data").glob("*.csv")), ids=lambda path: str(path.name))
def test_a_data_file_has_rows_of_equal_length_and_a_page_that_shows_it(path: Path) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert rows and {len(row) for row in rows} == {len(head)}
    assert any(f"data/{path.name})\n" in read_page(page) for page in list_pages())


def test_a_link_to_a_data_file_that_stands_alone_becomes_a_table(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/x.csv").write_text("name,value\n<a>,1\n", encoding="utf-8")
    text = expand_tables("In [line](data/x.csv).\n\n[All](data/x.csv)\n", tmp_path)
    assert text.count("<table>") == 1 and "<td>&lt;a&gt;</td><td>1</td>" in text
    assert "[All, as a file](data/x.csv)" in text


def test_the_table_of_states_has_every_transition() -> None:
    table = draw_states(f"```mermaid\n{mermaid()}```\n")
    assert table.count("\n| ") == sum(map(len, TRANSITIONS.values())) + 1 and "mermaid" not in table
