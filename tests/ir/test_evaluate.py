"""The interpreter of expressions, with an algebra that keeps a record."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import Any

import pytest

from gradspec.ir.evaluate import Steps, evaluate
from gradspec.ir.expr import Apply, Expr, Idx, Ref, Select, const
from gradspec.primitives.lookup import formula


class Texts:
    """Values are texts; ``unknown`` conditions are not decided."""

    def __init__(self, unknown: bool = False) -> None:
        self.seen: list[str] = []
        self.unknown = unknown

    def constant(self, value: Fraction) -> str:
        return str(value)

    def variable(self, name: str) -> str:
        self.seen.append(name)
        return name

    def operation(self, op: str) -> Callable[..., str]:
        def apply(*args: str) -> str:
            self.seen.append(op)
            return f"{op}({', '.join(args)})"

        return apply

    def truth_of(self, condition: str) -> bool | None:
        return None if self.unknown else "gt" in condition

    def select(self, condition: str, then: str, other: str) -> str:
        return f"({then} if {condition} else {other})"


@pytest.mark.parametrize(
    ("text", "value", "unseen"),
    [
        ("a if x > 0 else log(b)", "a", {"log", "b"}),
        ("log(a) if x < 0 else b", "b", {"log", "a"}),
        ("a if x < 0 and log(b) > 0 else c", "c", {"log", "b", "a"}),
        ("a if x > 0 or log(b) > 0 else c", "a", {"log", "b", "c"}),
        ("a if x > 0 and y > 0 else c", "a", {"c"}),
    ],
)
def test_what_is_not_taken_is_not_looked_at(
    text: str, value: str, unseen: set[str]
) -> None:
    algebra = Texts()
    assert evaluate(formula(text), algebra, {}) == value
    assert unseen.isdisjoint(algebra.seen)


def test_an_undecided_condition_has_both_branches() -> None:
    found = evaluate(formula("a if x > 0 else b"), Texts(unknown=True), {})
    assert found == "(a if gt(x, 0) else b)"


def test_shared_nodes_are_evaluated_once_also_for_the_next_expression() -> None:
    algebra, known = Texts(), {}  # type: ignore[var-annotated]
    evaluate(formula("sin(x) * sin(x) + sin(x)"), algebra, known)
    evaluate(formula("cos(y) - sin(x)"), algebra, known)
    assert algebra.seen.count("sin") == algebra.seen.count("x") == 1


def test_depth_is_no_matter() -> None:
    deep: Expr = reduce(lambda a, b: Apply("add", (a, b)), [Ref("x")] * 20_000)
    assert evaluate(deep, Counts(), {}) == 20_000


class Counts(Texts):
    """Numbers of variables."""

    def variable(self, name: str) -> Any:
        return 1

    def operation(self, op: str) -> Callable[..., Any]:
        return lambda *args: sum(args)


def test_an_index_has_no_value() -> None:
    with pytest.raises(NotImplementedError):
        evaluate(Apply("add", (Idx("i"), Ref("x"))), Texts(), {})
    with pytest.raises(NotImplementedError):
        Steps((Idx("i"),), Texts().operation, Texts().select)


def test_steps_run_in_order_and_lose_what_fails() -> None:
    x = Ref("x")
    inner = Apply("div", (const(1), x))
    root = Select(Apply("gt", (x, const(0))), inner, Apply("neg", (inner,)))
    table: dict[str, Callable[..., Any]] = {
        "div": lambda a, b: a / b,
        "neg": lambda a: -a,
        "gt": lambda a, b: a > b,
    }
    steps = Steps((root, inner), table.__getitem__, lambda c, t, o: t if c else o)
    for value, expected in ((2, [0.5, 0.5]), (-4, [0.25, -0.25]), (0, [None, "lost"])):
        values: list[Any] = [None] * len(steps.slots)
        for slot, constant in steps.constants:
            values[slot] = constant
        values[steps.names["x"]] = Fraction(value)
        steps.run(values, (ArithmeticError, TypeError), "lost")
        assert [values[r] for r in steps.roots][1] == expected[1]
        if expected[0] is not None:
            assert values[steps.roots[0]] == expected[0]
