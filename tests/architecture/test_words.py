"""Docstrings and pages name what exists, and docstrings have a subject of their own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from gradspec.targets import TARGETS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "gradspec"
NAME = re.compile(r"(?<!`)`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\([^`]*\))?`(?!`)")
FILE = re.compile(r"`((?:\w+/)+\w+\.py)`")
OBJECTS = {*TARGETS, "module", "page", "rule"}
"""First words that are frameworks and values, though files are called so too."""

PARTICIPLES = frozenset(
    "bound built chosen drawn found given held hidden kept known lost made meant met"
    " said seen shown taken told written".split()
)
"""Participles that do not end in -ed."""


def test_no_docstring_begins_as_another_does() -> None:
    begin = [(p, t[:60]) for p, t in _docstrings() if t.lstrip().startswith("The same")]
    assert begin == []


def test_names_in_docstrings_and_pages_exist() -> None:
    missing = [
        f"{path}: {name}"
        for path, text in (*_docstrings(), *_pages())
        for name in NAME.findall(text)
        if _is_ours(name) and not _exists(name)
    ]
    assert missing == []


def test_files_in_docstrings_and_pages_exist() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    missing = [
        f"{path}: {name}"
        for path, text in (*_docstrings(), *_pages())
        for name in FILE.findall(text)
        for first in [name.split("/")[0]]
        if first in folders | {"gradspec", "tests", "benchmarks"}
        and not ((PACKAGE / name).is_file() or (ROOT / name).is_file())
    ]
    assert missing == []


@cache
def _docstrings() -> tuple[tuple[Path, str], ...]:
    return tuple(
        (path, node.value.value)
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node.value.value, str)
    )


def _pages() -> Iterator[tuple[Path, str]]:
    for path in sorted((ROOT / "docs").rglob("*.md")):
        yield path, path.read_text("utf-8")


@cache
def _modules() -> dict[str, set[str]]:
    """The names in a module, by each end of its dotted path: several files may have
    one."""
    modules: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        names = set(_names(ast.parse(path.read_text("utf-8"))))
        for start in range(len(parts)):
            modules.setdefault(".".join(parts[start:]), set()).update(names)
    return modules


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name


def _is_ours(name: str) -> bool:
    first = name.split(".", maxsplit=1)[0]
    return first not in OBJECTS and any(first in m.split(".") for m in _modules())


def _exists(name: str) -> bool:
    """True of a module or its file, or of a name or a class's attribute in one."""
    name = name.removesuffix(".py")
    parts = name.split(".")
    return name in _modules() or any(
        {*parts[end:]} <= _modules().get(".".join(parts[:end]), set())
        for end in range(1, len(parts))
    )


def test_few_functions_are_named_by_a_bare_participle() -> None:
    """A function has the name of what it returns, or of what it does."""
    names = [
        node.name.strip("_")
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
        and not any("property" in ast.unparse(d) for d in node.decorator_list)
    ]
    bare = [n for n in names if "_" not in n and (n.endswith("ed") or n in PARTICIPLES)]
    assert len(bare) <= 0.015 * len(names), sorted(bare)
