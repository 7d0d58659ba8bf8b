"""Printing: what is printed parses to the same tree, and prints the same again."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings

from gradspec.source import Source
from gradspec.syntax import nodes
from gradspec.syntax.parse import parse, parse_expression
from gradspec.syntax.printer import print_expression, print_module
from gradspec.syntax.tokens import number_text
from tests.syntax import trees

SHIPPED = sorted((Path(__file__).parents[2] / "rules").rglob("*.grad"))


def module_of(text: str) -> nodes.Module:
    outcome = parse(Source("a.grad", text))
    assert not outcome.diagnostics
    assert outcome.value is not None
    return outcome.value


@given(trees.expressions)
@settings(max_examples=300, deadline=None)
def test_a_printed_expression_parses_to_the_same_tree(expr: nodes.Expr) -> None:
    text = print_expression(expr)
    assert parse_expression(text) == expr
    assert print_expression(parse_expression(text)) == text


@given(trees.modules.filter(lambda module: module.items))
@settings(max_examples=100, deadline=None)
def test_a_printed_module_parses_to_the_same_tree(module: nodes.Module) -> None:
    text = print_module(module)
    again = module_of(text)
    assert again.items == module.items
    assert print_module(again) == text


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_rules_are_in_the_canonical_layout(path: Path) -> None:
    module = module_of(path.read_text("utf-8"))
    again = module_of(print_module(module))
    assert again.items == module.items
    assert [c.text for c in again.comments] == [c.text for c in module.comments]
    assert print_module(module) == path.read_text("utf-8")


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("((a + b)) + c", "a + b + c"),
        ("a + (b + c)", "a + (b + c)"),
        ("a - (b - c)", "a - (b - c)"),
        ("-(x ** 2)", "-x**2"),
        ("(-x) ** 2", "(-x)**2"),
        ("x ** (-y)", "x**-y"),
        ("(a ** b) ** c", "(a**b)**c"),
        ("a ** (b ** c)", "a**b**c"),
        (
            "(a if b else c) if d else (e if f else g)",
            "(a if b else c) if d else (e if f else g)",
        ),
        ("not (a and b)", "not (a and b)"),
        ("(not a) and b", "not a and b"),
        ("(a < b) < c", "(a < b) < c"),
        ("f( x ,k = 2, )", "f(x, k=2)"),
        ("sum( x[ j,] for j if j<=i )", "sum(x[j] for j if j <= i)"),
        ("1_000 + 0.10", "1_000 + 0.10"),
    ],
)
def test_no_more_brackets_than_needed(written: str, printed: str) -> None:
    assert print_expression(parse_expression(written)) == printed


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(12), "12"),
        (Fraction(1, 8), "0.125"),
        (Fraction(-0), "0"),
        (Fraction(1001, 10), "100.1"),
    ],
)
def test_the_literal_of_a_value(value: Fraction, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(-1)])
def test_a_value_without_a_literal(value: Fraction) -> None:
    with pytest.raises(ValueError, match="no literal"):
        number_text(value)


LONG = """\
rule long(first, second, third: static = 1.0, fourth: static = 2.0, fifth: nograd) -> out:
    out = first * second + exp(first) * third - log1p(second**2) * fourth + fifth * first
    step = -2 * (first * second + exp(first) * third - log1p(second**2) * fourth + fifth)
    kind = first * second + third if first > second else exp(first) * third if second > 0 else fifth
    most = max(first * second + exp(first) * third, log1p(second**2) * fourth, fifth * first)
    override dfirst = dout * (second + exp(first) * third + fifth) because "of the reason"
"""


def test_long_lines_are_broken_at_their_weakest_operators() -> None:
    assert (
        print_module(module_of(LONG))
        == """\
rule long(
    first,
    second,
    third: static = 1.0,
    fourth: static = 2.0,
    fifth: nograd,
) -> out:
    out = (
        first * second + exp(first) * third - log1p(second**2) * fourth + fifth * first
    )
    step = -2 * (
        first * second + exp(first) * third - log1p(second**2) * fourth + fifth
    )
    kind = (
        first * second + third if first > second
        else exp(first) * third if second > 0
        else fifth
    )
    most = max(
        first * second + exp(first) * third,
        log1p(second**2) * fourth,
        fifth * first,
    )
    override dfirst = dout * (
        second + exp(first) * third + fifth
    ) because "of the reason"
"""
    )


def test_comments_stay_where_they_stood() -> None:
    text = """\
# A file.

# About f.
def f(t) = t  # beside it
rule g(
    x,  # from inside the head
) -> y:  # beside the head
    # above y

    y = (f(x)  # from inside
         + 1)
    dx = dy
    # the last of g


# the end
"""
    assert (
        print_module(module_of(text))
        == """\
# A file.

# About f.
def f(t) = t  # beside it

# from inside the head
rule g(x) -> y:  # beside the head
    # above y

    # from inside
    y = f(x) + 1
    dx = dy
    # the last of g

# the end
"""
    )


def test_layout_is_made_regular() -> None:
    text = 'from  "a.grad" import  ( u,v )\nfrom "b.grad" import w\nrule g(x):\n  y=x\n'
    text = text.replace("g(x):", "g( x )->( y ):")
    assert print_module(module_of(text)) == (
        'from "a.grad" import u, v\nfrom "b.grad" import w\n\nrule g(x) -> y:\n    y = x\n'
    )
