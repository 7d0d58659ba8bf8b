"""The order of dependencies of docs/architecture.md, held by parsing the imports."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "gradspec"
ORDER = (
    "source diagnostics options syntax ir primitives lower symbolic derive checks"
    " stabilise plan targets trial audit pipeline driver report arguments api cli"
).split()
ONLY_IN = {
    "lark": ("syntax",),
    "sympy": ("symbolic",),
    "flint": ("symbolic",),
    "egglog": ("stabilise",),
    "scipy": ("audit/runners",),
    "numpy": ("stabilise", "trial/runners", "audit"),
    "rich": ("report",),
    "click": ("cli", "arguments", "report", "api"),
    "torch": ("trial/runners", "audit/runners"),
    "tensorflow": ("trial/runners", "audit/runners"),
    "jax": ("trial/runners", "audit/runners"),
}
FILES = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if path.parent != PACKAGE or path.name not in ("__init__.py", "__main__.py")
)


def _part(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


def _imports(path: Path) -> list[tuple[int, str]]:
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found.extend((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found.extend((node.lineno, name) for name in names)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_no_stage_reaches_back(path: Path) -> None:
    mine = _part(path)
    assert mine in ORDER, f"{mine} has no place in the order"
    for line, name in _imports(path):
        if name.startswith("gradspec."):
            other = name.split(".")[1]
            if other in ORDER and not _only_types(path, line):
                assert ORDER.index(other) <= ORDER.index(mine), (
                    f"{path.name}:{line} imports {name}"
                )


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_libraries_stay_where_they_belong(path: Path) -> None:
    place = path.relative_to(PACKAGE).as_posix()
    for line, name in _imports(path):
        allowed = ONLY_IN.get(name.split(".")[0])
        if allowed is not None and not _only_types(path, line):
            assert place.removesuffix(".py").startswith(allowed), (
                f"{place}:{line} imports {name}"
            )


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_targets_do_not_know_one_another(path: Path) -> None:
    names = ("numpy", "torch", "tf", "jax")
    if _part(path) != "targets" or path.stem.split("_")[0] not in names:
        return
    mine = path.stem.split("_")[0]
    for line, name in _imports(path):
        parts = name.split(".")
        if parts[:2] == ["gradspec", "targets"] and len(parts) > 2:
            other = parts[2].split("_")[0]
            assert other not in names or other == mine, f"{path.name}:{line} {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_files_stay_short(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 400


def test_nothing_of_a_rule_is_executed() -> None:
    """No call of eval, exec, sympify or parse_expr, and no pickles, in the package."""
    banned = {"eval", "exec", "sympify", "parse_expr"}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                called = node.func
                name = getattr(called, "id", None) or getattr(called, "attr", "")
                assert name not in banned, f"{path}:{node.lineno} calls {name}"
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names]
                tries_it = path.name.startswith("conforming")  # a feature to be tried
                assert tries_it or "pickle" not in names, f"{path}:{node.lineno}"


def _only_types(path: Path, line: int) -> bool:
    """The import stands under ``if TYPE_CHECKING``."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            last = node.body[-1].end_lineno or node.body[-1].lineno
            if node.lineno < line <= last:
                return True
    return False
