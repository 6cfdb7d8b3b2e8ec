"""The code blocks of the documentation, found in the pages.

Two marks, invisible on the site, may stand in the line above a block: `<!-- not run: REASON -->` and
`<!-- setup: PYTHON -->`, lines that the block needs and a reader does not.
"""

import re
from dataclasses import dataclass

from tools.site.links import PAGES, ROOT

FENCE = re.compile(r"^(`{3,})(\w*)$")
NOT_RUN = re.compile(r"^<!-- not run: (.+?) -->$", re.DOTALL)
SETUP = re.compile(r"^<!-- setup:\s*(.+?)\s*-->$", re.DOTALL)
SAVED = re.compile(r"[Ss]ave (?:this|it) as `([\w.]+)`")
ELSEWHERE = {
    "docs/FLOWER.md": "needs a running Flower federation; tests/flower and examples/flower play it",
}
"""Page -> why its Python is compiled and its imports are tried, but it is not run."""
NO_CODE = ("text", "mermaid")
"""Languages of blocks that are drawings, formulas or output."""


@dataclass(frozen=True)
class Block:
    """One block of code.

    Attributes:
        page: Its page, a path in the repository.
        line: Number of the line in which its code begins.
        language: "python", "pycon", "toml", "sh", "json", "diff", "text" or "mermaid".
        code: What is in it.
        reason: Why it is not run; empty if it is.
        setup: Python that it needs before it.
        saved: Name of the file that the page tells the reader to save it as; empty if none.
    """

    page: str
    line: int
    language: str
    code: str
    reason: str = ""
    setup: str = ""
    saved: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def list_pages() -> list[str]:
    """All written pages of the site, as paths in the repository."""
    pages = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")]
    return sorted([*pages, *PAGES])


def read_page(page: str) -> str:
    """The text of a page."""
    return (ROOT / page).read_text(encoding="utf-8")


def find_blocks(page: str, text: str | None = None) -> list[Block]:
    """The blocks of a page, fenced and indented, in order."""
    lines = (read_page(page) if text is None else text).split("\n")
    found, at = list[Block](), 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        indented = lines[at].startswith("    ") and lines[at - 1] == "" and not _in_list(lines[:at])
        if not fence and not indented:
            at += 1
            continue
        begin = at + 1 if fence else at
        end = lines.index(fence.group(1), begin) if fence else _end_of_indented(lines, begin)
        code = "\n".join(line if fence else line[4:] for line in lines[begin:end])
        language = fence.group(2) if fence else "sh" if re.match(r"[a-zA-Z_.]+[ =]", code) else "text"
        found.append(_make(page, begin + 1, language or "text", code, lines[:at]))
        at = end + 1
    return found


def _make(page: str, line: int, language: str, code: str, above: list[str]) -> Block:
    paragraphs = re.split(r"\n\s*\n", "\n".join(above).strip())
    marks = [mark.strip() for mark in re.findall(r"<!--.*?-->", paragraphs[-1], re.DOTALL)]
    reason = next((found.group(1) for mark in marks if (found := NOT_RUN.match(mark))), "")
    setup = next((found.group(1) for mark in marks if (found := SETUP.match(mark))), "")
    prose = [part for part in paragraphs if not part.startswith("<!--")]
    saved = SAVED.search(prose[-1]) if prose else None
    if not reason and language in ("python", "pycon"):
        reason = ELSEWHERE.get(page, "")
    return Block(page, line, language, code, reason, setup, saved.group(1) if saved else "")


def _in_list(above: list[str]) -> bool:
    before = next((line for line in reversed(above) if line.strip()), "")
    return re.match(r"\s*([-*]|\d+\.) |  ", before) is not None


def _end_of_indented(lines: list[str], begin: int) -> int:
    end = begin
    while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
        end += 1
    return end
