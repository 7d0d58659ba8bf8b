"""The table holds together: every row complete, every formula in the language."""

from __future__ import annotations

import ast
import re
from importlib.resources import files

import pytest
import scipy.special

from gradspec.primitives.lookup import (
    ROWS,
    function_names,
    is_function,
    is_primitive,
    primitive,
    rows,
)
from gradspec.primitives.row import Expand, Missing, Primitive, Runtime, Template

TARGETS = ("numpy", "torch", "tf", "jax")

# The language's contract: what a rule may call.
PROMISED = """
exp expm1 exp2 log log1p log2 log10 sqrt rsqrt cbrt sin cos tan asin acos atan atan2 sinh
cosh tanh asinh acosh atanh sigmoid logsigmoid softplus logaddexp relu erf erfc erfinv
lgamma digamma abs sign floor ceil round trunc min max clip heaviside square hypot xlogy
xlog1py sinc gamma polygamma erfcx erfcinv ndtr ndtri log_ndtr i0 i0e i1 i1e
""".split()

each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def _formulas(row: Primitive) -> list[str]:
    expansions = [s.formula for s in row.spellings.values() if isinstance(s, Expand)]
    conditions = [condition for condition, _ in row.kinks]
    texts = [row.meaning, row.domain, *row.partials, *conditions, *expansions]
    return [text for text in texts if text]


def test_every_promised_function_is_there() -> None:
    assert [name for name in PROMISED if not is_function(name)] == []


def test_names_are_unique() -> None:
    names = [row.name for row in ROWS]
    assert sorted(set(names)) == sorted(names)


def test_operators_are_no_functions() -> None:
    assert is_primitive("add")
    assert not is_function("add")
    assert "pi" not in function_names()
    assert list(function_names()) == sorted(function_names())


def test_no_target_lacks_a_primitive() -> None:
    gaps = [
        f"{row.name} on {target}"
        for row in ROWS
        for target in TARGETS
        if isinstance(row.spellings.get(target, Missing("not said")), Missing)
    ]
    assert gaps == []


@each_row
def test_row_is_consistent(row: Primitive) -> None:
    assert row.params == ("x", "y", "z")[: row.arity]
    assert len(row.partials) == row.arity
    assert len(row.argument_types) == row.arity
    assert 0 <= row.least_arity <= row.arity
    for type, text in zip(row.argument_types, row.partials, strict=True):
        assert (text is None) == (type != "real" or row.result == "bool")
    if is_function(row.name):
        assert row.source


@each_row
def test_steps_have_no_slope(row: Primitive) -> None:
    if row.is_step:
        assert row.partials[0] == "0"


@each_row
def test_formulas_use_what_there_is(row: Primitive) -> None:
    for text in _formulas(row):
        tree = ast.parse(text, mode="eval")
        called = {n.func for n in ast.walk(tree) if isinstance(n, ast.Call)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node in called:
                assert is_function(node.id), text
                continue
            if isinstance(node, ast.Name):
                assert node.id in (*row.params, "out", "pi", "inf"), text
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                callee = primitive(node.func.id)
                assert callee.least_arity <= len(node.args) <= callee.arity, text


@each_row
def test_expansions_end(row: Primitive) -> None:
    """No expansion leads back to itself."""
    for target in TARGETS:
        _expand(row.name, target, ())


def _expand(name: str, target: str, above: tuple[str, ...]) -> None:
    assert name not in above, f"{name} on {target} expands to itself"
    spelling = primitive(name).spellings[target]
    if isinstance(spelling, Expand):
        for node in ast.walk(ast.parse(spelling.formula, mode="eval")):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                _expand(node.func.id, target, (*above, name))


@each_row
def test_python_is_said_directly(row: Primitive) -> None:
    """Where it is not, the emitters write out the meaning."""
    assert not isinstance(row.spellings.get("python"), Expand | Runtime | Missing)


@each_row
def test_templates_use_each_argument_once(row: Primitive) -> None:
    for target, spelling in row.spellings.items():
        if isinstance(spelling, Template):
            holes = re.findall(r"{(\w)}", spelling.text)
            assert sorted(holes) == sorted(row.params), target
            filled = re.sub(r"{(\w)}", r"\1", spelling.text)
            ast.parse(filled, mode="eval")


@pytest.mark.parametrize("target", TARGETS)
def test_runtimes_have_the_functions_of_the_rows(target: str) -> None:
    """All that rows name is there, with as many arguments; what is public is named."""
    for module, file in (
        ("special", f"{target}/_special.py"),
        ("core", f"{target}/_gradspec.py"),
    ):
        own = _functions(file)
        there = _functions("_formulas.py") | own if module == "special" else own
        named = _named(target, module)
        for name, row in named.items():
            if name not in there:
                assert (target, getattr(scipy.special, name).nin) == (
                    "numpy",
                    row.arity,
                )
                continue
            arguments = there[name].args
            count = len(arguments.args) - (arguments.args[0].arg == "self")
            assert arguments.vararg or count == row.arity, name
        if module == "special":
            assert {name for name in own if not name.startswith("_")} <= named.keys()


def test_formulas_are_those_of_the_rows() -> None:
    named = set().union(*(_named(target, "special") for target in TARGETS))
    public = {name for name in _functions("_formulas.py") if not name.startswith("_")}
    # `targets/tf/dialect.py` and the runtimes' lgamma call these without a row
    assert public - named == {"reciprocal", "lgamma_middle"}


def _named(target: str, module: str) -> dict[str, Primitive]:
    """The functions of a target's runtime that rows name."""
    spelled = ((row.spellings.get(target), row) for row in rows())
    found = ((how, row) for how, row in spelled if isinstance(how, Runtime))
    return {how.name: row for how, row in found if how.module == module}


def _functions(path: str) -> dict[str, ast.FunctionDef]:
    """The functions or methods of a file of the runtime, by name."""
    text = files("gradspec").joinpath("runtime", path).read_text("utf-8")
    top = ast.parse(text).body
    classes = [node for node in top if isinstance(node, ast.ClassDef)]
    nodes = [*top, *(method for c in classes for method in c.body)]
    return {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
