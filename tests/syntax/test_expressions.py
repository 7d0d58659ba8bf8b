"""Expressions: Python's operators with Python's precedence, exact numbers."""

from __future__ import annotations

import ast
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gradspec.source import Span
from gradspec.syntax import nodes
from gradspec.syntax.parse import parse_expression

AT = Span(0, 0)
OPERATORS = "+ - * / % ** < <= > >= == != and or if else".split()


def of_python(tree: ast.expr) -> nodes.Expr:
    """The same expression as Python reads it."""
    match tree:
        case ast.Constant(value=int(value)):
            return nodes.Number(Fraction(value), str(value), span=AT)
        case ast.Name(id=name):
            return nodes.Name(name, span=AT)
        case ast.UnaryOp(op=op, operand=operand):
            return nodes.Unary(SIGNS[type(op)], of_python(operand), span=AT)
        case ast.BinOp(left=left, op=op, right=right):
            return nodes.Binary(
                BINARY[type(op)], of_python(left), of_python(right), span=AT
            )
        case ast.Compare(left=left, ops=ops, comparators=others):
            operands = tuple(map(of_python, (left, *others)))
            return nodes.Compare(
                operands, tuple(COMPARE[type(op)] for op in ops), span=AT
            )
        case ast.BoolOp(op=op, values=values):
            word = "and" if isinstance(op, ast.And) else "or"
            return nodes.Logical(word, tuple(map(of_python, values)), span=AT)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            parts = map(of_python, (body, test, orelse))
            return nodes.Conditional(*parts, span=AT)
    raise AssertionError(ast.dump(tree))


SIGNS = {ast.USub: "-", ast.UAdd: "+", ast.Not: "not"}
BINARY = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Mod: "%",
    ast.Pow: "**",
}
COMPARE = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}

pieces = st.sampled_from(
    [*OPERATORS, *OPERATORS, "not", "-", "+", "(", ")", "x", "y", "2"]
)
chains = st.lists(
    st.tuples(
        st.sampled_from(["", "", "", "-", "not ", "- +", "("]),
        st.sampled_from(["x", "y", "3", "(x)", "(x < y)"]),
        st.sampled_from(["", "", "", ")"]),
        st.sampled_from(OPERATORS),
    ),
    min_size=1,
    max_size=7,
).map(
    lambda parts: " ".join(word for part in parts for word in part)[
        : -len(parts[-1][-1])
    ]
)


@example("x ** -y")
@given(chains | st.lists(pieces, max_size=8).map(" ".join))
@settings(max_examples=600, deadline=None)
def test_what_python_reads_is_read_as_python_does(text: str) -> None:
    try:
        expected = of_python(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, AssertionError):  # not an expression; or x(y), which is a call
        expected = None
    if expected is not None:
        assert parse_expression(text) == expected
    elif "x (" not in text and "y (" not in text and "2 (" not in text:
        with pytest.raises(ValueError):
            parse_expression(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", Fraction(1, 10)),
        ("1_000", Fraction(1000)),
        (".5", Fraction(1, 2)),
        ("2.", Fraction(2)),
        ("1e3", Fraction(1000)),
        ("1.5E-3", Fraction(15, 10000)),
        ("6.02_2e+2_3", Fraction(6022, 1000) * 10**23),
        ("123456789012345678901234567890", Fraction(123456789012345678901234567890)),
        ("1e308", Fraction(10**308)),
        ("0e999", Fraction(0)),
        ("007", Fraction(7)),
    ],
)
def test_numbers_are_exact(text: str, value: Fraction) -> None:
    number = parse_expression(text)
    assert isinstance(number, nodes.Number)
    assert (number.value, number.text) == (value, text)


@pytest.mark.parametrize(
    "text", ["1e999999999", "1e309", "1e-400", "1" * 2000, "1e" + "9" * 50]
)
def test_numbers_that_nothing_can_hold(text: str) -> None:
    with pytest.raises(ValueError, match="the number"):
        parse_expression(text)


def test_calls() -> None:
    call = parse_expression("f(x, y + 1, k=2, s=-x)")
    assert isinstance(call, nodes.Call)
    assert call.function == "f"
    assert call.output is None
    assert len(call.args) == 2
    assert [word.name for word in call.keywords] == ["k", "s"]
    picked = parse_expression("polar.y(r, t)")
    assert isinstance(picked, nodes.Call)
    assert (picked.function, picked.output) == ("polar", "y")
    assert parse_expression("f()") == nodes.Call(
        "f", None, (), (), span=AT, function_span=AT
    )


def test_indices() -> None:
    indexed = parse_expression("x[i, j + 1]")
    assert isinstance(indexed, nodes.Indexed)
    assert len(indexed.indices) == 2
    assert parse_expression("x[]") == nodes.Indexed("x", (), span=AT)


def test_comprehensions() -> None:
    found = parse_expression("logsumexp(x[i, j] if i < n else 0 for i, j if j <= i)")
    assert isinstance(found, nodes.Comprehension)
    assert found.op == "logsumexp"
    assert [index.id for index in found.indices] == ["i", "j"]
    assert isinstance(found.body, nodes.Conditional)
    assert isinstance(found.condition, nodes.Compare)
    assert isinstance(parse_expression("max(x, y)"), nodes.Call)


@pytest.mark.parametrize(
    "word",
    "rule assume solve surrogate override because save recompute example nograd int bool static".split(),
)
def test_words_of_the_language_are_names_too(word: str) -> None:
    assert parse_expression(word) == nodes.Name(word, span=AT)
    assert parse_expression(f"{word}({word}, {word}={word}[{word}])") is not None


def test_an_expression_may_stand_on_several_lines() -> None:
    assert parse_expression("x +\n  y  # more") == parse_expression("x + y")


@pytest.mark.parametrize(
    "text", ["", "x y", "x +", "(x", "x)", "x = y", "x for j", "f(x for j)", "×"]
)
def test_what_is_no_expression_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        parse_expression(text)
