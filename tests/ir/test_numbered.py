"""Equal nodes have one key, for as long as there are such nodes."""

from __future__ import annotations

import copy
import pickle

import pytest

from gradspec.ir import expr
from gradspec.ir.expr import Apply, Expr, Idx, Ref, Select, Size, apply, const
from gradspec.plan import arrays
from gradspec.source import Span


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (const(1), const(2)),
        (Ref("n"), Idx("n")),
        (Idx("n"), Size("n")),
        (Ref("x"), Ref("x", (const(0),))),
        (apply("add", Ref("x"), Ref("y")), apply("add", Ref("y"), Ref("x"))),
        (apply("add", Ref("x"), Ref("y")), apply("mul", Ref("x"), Ref("y"))),
        (Select(Ref("c"), Ref("x"), Ref("y")), apply("c", Ref("x"), Ref("y"))),
    ],
)
def test_what_differs_is_not_equal(one: Expr, other: Expr) -> None:
    assert one != other
    assert one.key is not other.key


def test_spans_take_no_part() -> None:
    assert Ref("x", span=Span(0, 1)) == Ref("x", span=Span(5, 6))


def test_copies_are_equal() -> None:
    whole = apply("exp", apply("mul", Ref("x", span=Span(0, 1)), const("1/3")))
    for twin in (copy.deepcopy(whole), pickle.loads(pickle.dumps(whole))):
        assert twin == whole
        assert twin.args[0].args[0].span == Span(0, 1)


def test_array_expressions_are_numbered_as_well() -> None:
    one, other = (
        arrays.Op("add", (arrays.Name("a"), arrays.Name("b"))) for _ in range(2)
    )
    assert one == other
    assert one != arrays.Op("add", (arrays.Name("b"), arrays.Name("a")))


def test_numbers_are_given_up_with_the_nodes() -> None:
    """However deep the tree is: a process that compiles for hours does not grow."""
    expr._sweep()
    before = len(expr._keys)
    tree: Expr = Ref("deep")
    for number in range(20_000):
        tree = Apply("add", (tree, const(10_000_000 + number)))
    assert len(expr._keys) >= before + 40_000
    del tree
    expr._sweep()
    assert len(expr._keys) <= before
