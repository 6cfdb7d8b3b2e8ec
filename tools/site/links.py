"""Links between files of the repository, made to fit the site.

Pages link to each other by their paths in the repository, so that they can be read there as well. On the site the pages
outside `docs/` have places of their own, and other files of the repository are copied so that every link has a target.
"""

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "examples/README.md": "tutorials/examples.md",
    "examples/flower/README.md": "tutorials/flower-example.md",
    "paper/RECORD.md": "results/paper-record.md",
    "paper/PREREGISTRATION.md": "results/paper-preregistration.md",
}
"""Page of the repository outside docs/ -> its place on the site."""
COPIES = "files"
"""Folder of the site for other files that pages link to."""
LINK = re.compile(r"(?<!\\)(\]\()([^)\s]+?)(#[^)\s]*)?(\))")
CODE = re.compile(r"^(`{3,}|~{3,}).*?^\1[^\S\n]*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def find_links(markdown: str) -> list[str]:
    """Targets of all links of a page, code left out."""
    return [found.group(2) + (found.group(3) or "") for found in LINK.finditer(CODE.sub("", markdown))]


def fit_links(markdown: str, source: str, place: str) -> tuple[str, set[str]]:
    """A page with its links changed for the site, and the files of the repository that have to be copied.

    Args:
        markdown: The page.
        source: Its path in the repository.
        place: Its path on the site.

    Raises:
        FileNotFoundError: A link leads nowhere.
    """
    copied = set[str]()

    def fit(found: re.Match[str]) -> str:
        target, anchor = found.group(2), found.group(3) or ""
        if re.match(r"[a-z]+:|#", target):
            return found.group(0)
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        there = _place(path, source)
        if there.startswith(f"{COPIES}/"):
            copied.add(path)
            anchor = ""
        return "](" + posixpath.relpath(there, posixpath.dirname(place) or ".") + f"{anchor})"

    parts, end = list[str](), 0
    for code in CODE.finditer(markdown):
        parts += [LINK.sub(fit, markdown[end : code.start()]), code.group(0)]
        end = code.end()
    return "".join([*parts, LINK.sub(fit, markdown[end:])]), copied


def _place(path: str, source: str) -> str:
    """Where a file of the repository is on the site."""
    if path in PAGES:
        return PAGES[path]
    if path == "README.md":
        return "index.md"
    if (ROOT / path).is_dir() and f"{path}/README.md" in PAGES:
        return PAGES[f"{path}/README.md"]
    if not (ROOT / path).is_file():
        raise FileNotFoundError(f"{source} links to {path}, which is no file of the repository; mend the link")
    return path.removeprefix("docs/") if path.startswith("docs/") else f"{COPIES}/{path}"
