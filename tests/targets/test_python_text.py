"""Expressions as Python text: the same value, and no bracket too many."""

from __future__ import annotations

import ast
import math
import operator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gradspec.plan.arrays import Expr, Literal, Name, Op, Where
from gradspec.plan.operations import Types, translate
from gradspec.plan.sharing import Known, Namer, share
from gradspec.primitives.lookup import formula
from gradspec.targets.expressions import Scope, numeral, render
from gradspec.targets.numpy.dialect import DIALECT
from gradspec.targets.target import Page

PAGE = Page("rules.py", ())
SCOPE = Scope(DIALECT, PAGE, frozenset({"k"}), frozenset({"n"}))
VALUES = {"x": 0.7, "y": -1.3, "z": 2.1}

_BINARY = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "lt": operator.lt,
    "ge": operator.ge,
}


def leaves() -> st.SearchStrategy[Expr]:
    numbers = [
        Fraction(2),
        Fraction(-3),
        Fraction(1, 2),
        Fraction(1, 3),
        Fraction(-1, 3),
    ]
    return st.sampled_from([*map(Name, VALUES), *map(Literal, numbers)])


def extend(parts: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    pair = st.tuples(parts, parts)
    return st.one_of(
        st.builds(Op, st.sampled_from(["add", "sub", "mul", "div"]), pair),
        st.builds(Op, st.sampled_from(["neg", "exp", "abs"]), st.tuples(parts)),
        st.builds(lambda base: Op("pow", (base, Literal(Fraction(3)))), parts),
        st.builds(lambda test, a, b: Where(Op("lt", test), a, b), pair, parts, parts),
    )


EXPRESSIONS = st.recursive(leaves(), extend, max_leaves=12)


def value(expr: Expr) -> float:
    match expr:
        case Name(id=name):
            return VALUES[name]
        case Literal(value=number):
            return float(number)
        case Op(primitive="pow", args=(base, _)):
            return float(np.float64(value(base)) ** 3)
        case Op(primitive="neg", args=(arg,)):
            return -value(arg)
        case Op(primitive=op, args=(arg,)):
            return float({"exp": np.exp, "abs": np.abs}[op](value(arg)))
        case Op(primitive=op, args=(a, b)):
            return _BINARY[op](value(a), value(b))
        case Where(condition=condition, then=then, other=other):
            return value(then) if value(condition) else value(other)
    raise AssertionError(expr)


@given(EXPRESSIONS)
def test_the_text_has_the_value_of_the_tree(expr: Expr) -> None:
    try:
        expected = value(expr)
    except (ZeroDivisionError, OverflowError):
        assume(False)
    assume(math.isfinite(expected))
    names = {name: np.float64(number) for name, number in VALUES.items()}
    with np.errstate(all="ignore"):
        found = eval(render(expr, SCOPE), {"np": np, "math": math, **names})
    assert found == pytest.approx(expected, rel=1e-12)


@given(EXPRESSIONS)
def test_every_bracket_is_needed(expr: Expr) -> None:
    text = render(expr, SCOPE)
    whole = ast.dump(ast.parse(text, mode="eval"))
    for start, end in groups(text):
        without = f"{text[:start]} {text[start + 1 : end]} {text[end + 1 :]}"
        try:
            changed = ast.dump(ast.parse(without.strip(), mode="eval"))
        except SyntaxError:
            continue
        # The brackets of -(x**3) are for readers.
        assert changed != whole or text[start - 1] == "-", text


def groups(text: str) -> list[tuple[int, int]]:
    """Bracket pairs that are not those of a call."""
    found, stack = [], []
    for position, char in enumerate(text):
        if char == "(":
            stack.append(position)
        elif char == ")":
            start = stack.pop()
            if not (start and (text[start - 1].isalnum() or text[start - 1] == "_")):
                found.append((start, position))
    return found


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("x * y * z", "x * y * z"),
        ("x * (y * z)", "x * (y * z)"),
        ("x - (y - z)", "x - (y - z)"),
        ("-(x * y)", "-x * y"),
        ("-(x / y)", "-x / y"),
        ("-(x + y)", "-(x + y)"),
        ("-x**2.5", "-(x**2.5)"),
        ("(-x)**2.5", "(-x) ** 2.5"),
        ("x**(y + 1)", "x ** (y + 1.0)"),
        ("x**-y", "x**-y"),
        ("x**5", "x**5"),
        ("x**2", "x * x"),
        ("x**3", "x * x * x"),
        ("(x + 1)**2", "np.square(x + 1.0)"),
        ("1 / x**2", "1.0 / (x * x)"),
        ("x + -y", "x - y"),
        ("x - -2", "x + 2.0"),
        ("x + -3 * y", "x - 3.0 * y"),
        ("0.5 * y / sqrt(x)", "0.5 * y / np.sqrt(x)"),
        ("x / 3", "x / 3.0"),
        ("x * (1 / 3)", "x * (1.0 / 3.0)"),
        ("x > 0 and y < 1", "(x > 0.0) & (y < 1.0)"),
        ("not x > 0", "~(x > 0.0)"),
        ("x if y > 0 else 1", "np.where(y > 0.0, x, 1.0)"),
        ("x if k > 0 else y", "x if k > 0.0 else y"),
        ("(x if k > 0 else y) * z", "(x if k > 0.0 else y) * z"),
        ("1 if x > 0 else 0", "(x > 0.0).astype(x.dtype)"),
        ("2 if x > 0 else 1", "np.where(x > 0.0, 2.0, 1.0).astype(x.dtype)"),
        ("x == n", "x == n"),
    ],
)
def test_as_an_engineer_writes_it(text: str, printed: str) -> None:
    types = Types(frozenset({"k"}), frozenset({"n"}), frozenset())
    known = Known({}, {}, {}, frozenset({"k"}))
    _, (value,) = share((translate(formula(text), types),), known, Namer(()))
    assert render(value, SCOPE) == printed


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("2", "2.0"),
        ("0.1", "0.1"),
        ("-0.044715", "-0.044715"),
        ("1/3", "1.0 / 3.0"),
        ("-2/3", "-2.0 / 3.0"),
        ("1e-5", "1e-5"),
        ("1e16", "1e16"),
        ("1e-320", "1e-320"),
        ("1e400", "1e999"),
        ("1.6732632423543772", "1.6732632423543772"),
        ("123456789012345678901234567890", "1.2345678901234568e29"),
    ],
)
def test_numbers(number: str, text: str) -> None:
    assert numeral(Fraction(number))[0] == text


@given(st.fractions())
def test_numbers_are_rounded_once(number: Fraction) -> None:
    assert eval(numeral(number)[0]) == float(number)


def test_what_the_text_needs() -> None:
    types = Types(frozenset(), frozenset(), frozenset())
    page = Page("deep/rules.py", ["erf"])
    scope = Scope(DIALECT, page)
    assert render(translate(formula("erf(x) * sqrt(2)"), types), scope)
    assert page.relative == ("from .._special import erf as erf_",)


def test_a_sum_of_thousands_of_terms() -> None:
    total: Expr = Name("x")
    for _ in range(3000):
        total = Op("add", (total, Name("y")))
    assert render(total, SCOPE).count("+") == 3000
