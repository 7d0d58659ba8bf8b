"""Private functions of emitted modules: one name, one text.

A module takes each function that it needs once, by name: of two with one name and
different texts, one would be called in the other's place.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

import pytest

from gradspec import targets
from gradspec.primitives.row import Helper
from gradspec.targets.skeleton import table_helpers
from tests.targets.emission import planned

TARGETS = ("numpy", "torch", "tf", "jax")

ALTERNATIVES = {"torch": ["_applied", "_applied", "_applied_natively"]}
"""Names of which a module takes one text or the other as a whole (`targets/torch.py`: by
size where anything goes in blocks, and by type where anything goes in float64)."""


def _modules(target: str) -> Iterator[ModuleType]:
    for found in pkgutil.iter_modules(targets.__path__):
        if found.name.split("_")[0] == target:
            yield importlib.import_module(f"gradspec.targets.{found.name}")


def _helpers(target: str) -> dict[Helper, None]:
    """Those of the table, and all that a target's own files hold."""
    found = dict.fromkeys(table_helpers(target))
    for module in _modules(target):
        for value in vars(module).values():
            for one in value if isinstance(value, tuple | list) else (value,):
                if isinstance(one, Helper):
                    found |= dict.fromkeys(one.whole())
    return found


def _defined(helper: Helper) -> list[str]:
    """The names that its text gives at the top of a module."""
    names = []
    for node in ast.parse(helper.text).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.append(name)
            case ast.Assign(targets=[ast.Name(id=name)]):
                names.append(name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.append(name)
    return names


def _clashes(helpers: dict[Helper, None]) -> list[str]:
    texts: dict[str, str] = {}
    return [
        name
        for helper in helpers
        for name in _defined(helper)
        if texts.setdefault(name, helper.text.strip()) != helper.text.strip()
    ]


@pytest.mark.parametrize("target", TARGETS)
def test_no_two_private_functions_share_a_name(target: str) -> None:
    helpers = _helpers(target)
    assert len(helpers) > 20
    assert _clashes(helpers) == ALTERNATIVES.get(target, [])
    for helper in helpers:
        assert helper.name in _defined(helper), helper.name


def test_a_clash_is_seen() -> None:
    one = Helper("_f", "def _f(x: float) -> float:\n    return x\n")
    same = Helper("_f", "def _f(x: float) -> float:\n    return x\n", ("import math",))
    other = Helper("_g", "def _f(x: float) -> float:\n    return 2 * x\n")
    assert _clashes(dict.fromkeys((one, same))) == []
    assert _clashes(dict.fromkeys((one, other))) == ["_f"]


LIKE_PRIVATE_FUNCTIONS = """
rule fence(x) -> y:
    y = 2 * x

rule vanishing(x, y) -> z:
    z = x + 3 * y

rule exp_down(x) -> y:
    y = 5 * x

rule power_of(x, n: static int = 2) -> y:
    y = x**n

rule swish(x, beta: static = 1.0) -> y:
    y = x / (1 + exp(-beta * x))

rule LONG(x) -> y:
    y = 2 * x
"""


@pytest.mark.parametrize("target", TARGETS)
def test_a_rule_takes_no_private_function_s_name(target: str) -> None:
    """Also not of what users have no words for: the rule would be called in its place."""
    module = importlib.import_module(f"gradspec.targets.{target}")
    text = module.module(planned(LIKE_PRIVATE_FUNCTIONS))
    body = ast.parse(text).body
    given = [n.name for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    for node in body:
        if isinstance(node, ast.Assign):
            given += [t.id for t in node.targets if isinstance(t, ast.Name)]
    assert len(given) == len({*given})
