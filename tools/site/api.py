"""The pages of the Python API: one for each public package, with every name of its `__all__`, from docstrings."""

import ast
import importlib
import inspect
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import fedelect

VALUES = ("fedelect.vocabulary", "fedelect.errors", "fedelect.seeds")
"""Modules without an `__all__` whose public names users need as well."""
GROUPS = {
    "Every day": (
        "fedelect",
        "fedelect.selectors",
        "fedelect.selectors.literature",
        "fedelect.selectors.gaussian_process",
        "fedelect.scenario",
        "fedelect.datasets",
        "fedelect.flower",
        "fedelect.flower.legacy",
        "fedelect.testing",
        *VALUES,
    ),
    "Look at runs": (
        "fedelect.records",
        "fedelect.report",
        "fedelect.report.live",
        "fedelect.bench",
        "fedelect.atlas",
    ),
}
"""Heading -> packages; every other package is under `REST`."""
REST = "Inside"


@dataclass(frozen=True)
class Name:
    """One public name.

    Attributes:
        package: Where it is exported.
        name: Its name there.
        kind: "class", "function" or "value".
        documented: Whether its definition has a docstring.
    """

    package: str
    name: str
    kind: str
    documented: bool

    @property
    def path(self) -> str:
        """Its full name; where a module has the same, the one in that module, for the other would be the module."""
        whole = f"{self.package}.{self.name}"
        value = getattr(importlib.import_module(self.package), self.name)
        return f"{whole}.{self.name}" if getattr(value, "__module__", None) == whole else whole


def find_packages() -> dict[str, tuple[str, ...]]:
    """Heading -> public packages: those that have an `__all__`, and `VALUES`."""
    source = Path(fedelect.__file__).parent
    exporting = list[str]()
    for path in sorted(source.rglob("__init__.py")):
        defined = [name for node in ast.parse(path.read_text(encoding="utf-8")).body for name in _defined(node)]
        if "__all__" in defined:
            exporting.append(".".join(path.parent.relative_to(source.parent).parts))
    grouped = {name for group in GROUPS.values() for name in group}
    return {**GROUPS, REST: tuple(name for name in exporting if name not in grouped)}


def list_names(package: str) -> list[Name]:
    """The public names of a package: classes, then functions, then values, each in the order of its `__all__`."""
    module = importlib.import_module(package)
    names: list[str] = getattr(module, "__all__", None) or _own_names(module)
    found = [Name(package, name, _kind(getattr(module, name)), _documented(module, name)) for name in names]
    order = {"class": 0, "function": 1, "value": 2}
    return sorted(found, key=lambda one: order[one.kind])


def find_undocumented() -> list[str]:
    """Full names of public names without a docstring; the build and a test refuse any."""
    packages = [package for group in find_packages().values() for package in group]
    return [name.path for package in packages for name in list_names(package) if not name.documented]


def make_page(package: str) -> str:
    """Markdown of one package: its own docstring, then each name for mkdocstrings to fill in."""
    module = importlib.import_module(package)
    lines = [f"# {package}", "", inspect.getdoc(module) or "", ""]
    headings = {"class": "Classes", "function": "Functions", "value": "Values and types"}
    before = ""
    for name in list_names(package):
        if name.kind != before:
            lines += [f"## {headings[name.kind]}", ""]
            before = name.kind
        lines += [f"::: {name.path}", "    options:", "      heading_level: 3", ""]
    return "\n".join(lines)


def make_index() -> str:
    """Markdown of the overview: every package with its first sentence and its names."""
    lines = [
        "# Python API",
        "",
        "Every public name, from its docstring. A name is public if its package exports it.",
        "",
    ]
    for heading, packages in find_packages().items():
        lines += [f"## {heading}", "", "| package | what it is for |", "|---|---|"]
        for package in packages:
            first = (inspect.getdoc(importlib.import_module(package)) or "").split("\n")[0]
            lines.append(f"| [`{package}`]({package}.md) | {first} |")
        lines.append("")
    return "\n".join(lines)


def _own_names(module: ModuleType) -> list[str]:
    """Public names that a module defines itself, in the order of its source."""
    tree = ast.parse(inspect.getsource(module))
    return [name for node in tree.body for name in _defined(node) if not name.startswith("_")]


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def _kind(value: object) -> str:
    if inspect.isclass(value):
        return "class"
    return "function" if inspect.isfunction(value) else "value"


def _documented(module: ModuleType, name: str) -> bool:
    value = getattr(module, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        return bool((value.__doc__ or "").strip())
    return _has_string_below(module, name)


def _has_string_below(module: ModuleType, name: str) -> bool:
    """Whether a string stands below the assignment of a value, here or where it is imported from."""
    body = ast.parse(inspect.getsource(module)).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if name in _defined(node):
            return isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _has_string_below(importlib.import_module(node.module), alias.name)
    return False
