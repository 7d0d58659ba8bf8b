"""What is known of a built-in stands in its row: few other files name it."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from gradspec.primitives.lookup import function_names

PACKAGE = Path(__file__).parents[2] / "gradspec"
MOST = 5
"""Files that may quote a name, that of its row among them."""

ELSEWHERE = ("runtime/", "measure/frameworks/", "stabilise/rewriting.py")
"""The runtimes are the functions themselves, the runners name those of frameworks with
which rules are compared, and rewrite rules are data."""

WRITTEN = {"abs", "exp", "log", "max", "min", "rsqrt", "sqrt", "square"}
"""The functions in which the compiler itself writes what it derives: norms, exponents,
extremes and their reductions, as it does operators."""


def test_few_files_name_a_builtin() -> None:
    names = frozenset(function_names()) - WRITTEN
    files: dict[str, set[str]] = defaultdict(set)
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        if not place.startswith(ELSEWHERE):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Constant) and node.value in names:
                    files[str(node.value)].add(place)
    assert all(name in files for name in names)
    crowded = {name: sorted(f) for name, f in files.items() if len(f) > MOST}
    assert crowded == {}
