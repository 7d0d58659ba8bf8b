"""The order of dependencies of docs/architecture.md, held by parsing the imports."""

from __future__ import annotations

import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from gradspec.targets import TARGETS

PACKAGE = Path(__file__).parents[2] / "gradspec"
ORDER = (
    "version runtime source diagnostics options syntax ir primitives lower symbolic"
    " derive checks stabilise plan targets mend pipeline driver measure"
    " lift report arguments editor notebook api cli hatch"
).split()
NEVER = {
    "checks": "syntax lower",
    "stabilise": "checks",
    "plan": "checks stabilise",
    "targets": "checks stabilise symbolic derive",
}
"""Parts below a stage that it does not ask, types included."""

ONLY_IN = {
    "lark": ("syntax",),
    "sympy": ("symbolic",),
    "flint": ("symbolic",),
    "scipy": ("measure/frameworks", "runtime/numpy"),
    "numpy": (
        *(
            "stabilise",
            "symbolic/truth",
            "symbolic/points",
            "symbolic/arithmetic_model",
        ),
        *("measure", "runtime/numpy", "notebook/plot"),
        *("runtime/jax/_foreign", "runtime/tf/_foreign"),
    ),
    "rich": ("report", "notebook/page"),
    "click": ("cli", "arguments", "report", "api", "notebook"),
    "hatchling": ("hatch",),
    "pygls": ("editor/server",),
    "lsprotocol": ("editor/server",),
    "IPython": (),
    "matplotlib": ("notebook/plot", "report/audit"),
    "torch": ("measure/frameworks", "runtime/torch"),
    "tensorflow": ("measure/frameworks", "runtime/tf"),
    "jax": ("measure/frameworks", "runtime/jax"),
}
FILES = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if path.parent != PACKAGE or path.name not in ("__init__.py", "__main__.py")
)

MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(
        ".__init__"
    ): path
    for path in PACKAGE.rglob("*.py")
}


def _part(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


@cache
def _nodes(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a file, which is parsed once for all tests."""
    return tuple(ast.walk(ast.parse(path.read_text("utf-8"))))


@cache
def _imports(path: Path) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            found.extend((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found.extend((node.lineno, name) for name in names)
    return found


def test_every_part_has_a_place_in_the_order() -> None:
    assert FILES and {_part(path) for path in FILES} <= {*ORDER}


def test_no_stage_reaches_back() -> None:
    found = []
    for path in FILES:
        mine = ORDER.index(_part(path))
        for line, name in _imports(path):
            other = name.split(".")[1] if name.startswith("gradspec.") else ""
            if other in ORDER and ORDER.index(other) > mine:
                found.append((path, line, name))
    assert _at_run_time(found) == []


def test_no_two_modules_import_one_another() -> None:
    """Nor by way of others; an import inside a function, or for types, counts."""
    graph = {
        name: {
            other
            for _, imported in _imports(path)
            for other in (imported, imported.rpartition(".")[0])
            if other in MODULES and other != name
        }
        for name, path in MODULES.items()
    }
    TopologicalSorter(graph).prepare()


def test_libraries_stay_where_they_belong() -> None:
    found = []
    for path in FILES:
        place = path.relative_to(PACKAGE).as_posix().removesuffix(".py")
        for line, name in _imports(path):
            allowed = ONLY_IN.get(name.split(".")[0])
            if allowed is not None and not place.startswith(allowed):
                found.append((path, line, name))
    assert _at_run_time(found) == []


def test_targets_do_not_know_one_another() -> None:
    found = []
    for path in (path for path in FILES if _part(path) == "targets"):
        mine = path.relative_to(PACKAGE / "targets").parts[0]
        for line, name in _imports(path) if mine in TARGETS else ():
            parts = name.split(".")
            if parts[:2] == ["gradspec", "targets"] and parts[2] in {*TARGETS} - {mine}:
                found.append((path, line, name))
    assert found == []


def test_targets_have_the_same_files() -> None:
    own = {"__init__.py", "dialect.py", "rule.py"}
    for target in TARGETS:
        files = {path.name for path in (PACKAGE / "targets" / target).glob("*.py")}
        assert files == own, target


def test_no_stage_imports_the_runtimes() -> None:
    """But for a trial, which calls foreign functions as emitted modules do."""
    found = [
        (path, line, name)
        for path in FILES
        for line, name in _imports(path)
        if name.startswith("gradspec.runtime") and path.stem != "foreign"
    ]
    assert found == []


@pytest.mark.parametrize("part", NEVER)
def test_stages_that_are_apart(part: str) -> None:
    forbidden = tuple(f"gradspec.{other}." for other in NEVER[part].split())
    mine = [path for path in FILES if _part(path) == part]
    assert mine
    assert not [n for p in mine for _, n in _imports(p) if n.startswith(forbidden)]


def test_files_stay_short() -> None:
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in FILES}
    long = {p: n for p, n in lengths.items() if n > 700}
    assert long == {}


def test_nothing_of_a_rule_is_executed() -> None:
    """No call of eval, exec, sympify or parse_expr, and no pickles, in the package."""
    banned = {"eval", "exec", "sympify", "parse_expr"}
    for path in PACKAGE.rglob("*.py"):
        for node in _nodes(path):
            if isinstance(node, ast.Call):
                called = node.func
                name = getattr(called, "id", None) or getattr(called, "attr", "")
                assert name not in banned, f"{path}:{node.lineno} calls {name}"
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names]
                assert "pickle" not in names, f"{path}:{node.lineno}"


def _at_run_time(found: list[tuple[Path, int, str]]) -> list[str]:
    """Those imports that do not stand under ``if TYPE_CHECKING``."""
    return [
        f"{path.relative_to(PACKAGE)}:{line} imports {name}"
        for path, line, name in found
        if not any(first < line <= last for first, last in _type_blocks(path))
    ]


@cache
def _type_blocks(path: Path) -> tuple[tuple[int, int], ...]:
    return tuple(
        (node.lineno, node.body[-1].end_lineno or node.body[-1].lineno)
        for node in _nodes(path)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
