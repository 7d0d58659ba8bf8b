"""Branches, calls, surrogates, overrides; and sizes that must not blow up."""

from __future__ import annotations

from fractions import Fraction

from gradspec.derive.chain import is_linear
from gradspec.derive.complete import complete
from gradspec.derive.vjp import cotangents
from gradspec.ir.expr import Apply, Const, Expr, Ref, Select, apply, const
from gradspec.ir.rule import Origin
from gradspec.ir.walk import nodes, size
from gradspec.primitives.lookup import formula
from gradspec.symbolic.enclose import enclose
from tests.derive.rules import completed, derived, of, rules

X = Ref("x")


# --- branches ------------------------------------------------------------------------


def value(expr: Expr, **point: object) -> float:
    return float(enclose(expr, {"dy": 1, **point}).mid())


def test_a_branch_not_taken_does_not_leak() -> None:
    """The other branch's derivative is never multiplied by 0."""
    found = of(formula("sqrt(x) if x > 0 else 0"))["x"]
    assert isinstance(found, Select)
    assert value(found, x=0) == 0
    assert value(found, x=-1) == 0
    assert value(found, x=4) == 0.25


def test_nor_through_a_local_of_one_branch() -> None:
    """``r = sqrt(x)`` is used by the condition too, and has no slope at 0."""
    found = of(formula("sin(sqrt(x)) / sqrt(x) if sqrt(x) > 0 else 1"))["x"]
    assert value(found, x=0) == 0


def test_nor_through_a_maximum() -> None:
    found = of(formula("max(sqrt(x), 1)"))["x"]
    assert value(found, x=0) == 0


def test_ties_share_and_kinks_give_zero() -> None:
    assert value(of(formula("max(x, 2)"))["x"], x=2) == 0.5
    assert value(of(formula("min(x, 2 * x)"))["x"], x=0) == 1.5
    assert value(of(formula("abs(x)"))["x"], x=0) == 0


# --- surrogates and calls ------------------------------------------------------------


def test_a_surrogate_replaces_its_own_output_only() -> None:
    found = derived(
        """
        rule f(x) -> (s, w):
            s = 1 if x > 0 else 0
            w = s * x
            surrogate s = tanh(2 * x)
        """
    )
    own, other = "8 * ds * sigmoid(4 * x) * sigmoid(-4 * x)", "(dw if x > 0 else 0)"
    assert found == {"dx": f"{own} + {other}"}


def test_a_call_uses_the_declared_cotangent() -> None:
    """Three times the derivative: the marker shows which one was used."""
    text = """
        rule marker(x) -> y:
            y = sin(x)
            override dx = 3 * cos(x) * dy because "a marker"

        rule f(x) -> y:
            y = marker(2 * x) * x
        """
    assert derived(text) == {"dx": "dy * (6 * x * cos(2 * x) + marker(2 * x))"}


def test_a_call_of_a_rule_that_is_not_complete_yet() -> None:
    text = """
        rule inner(x) -> y:
            y = sin(x)

        rule f(x) -> y:
            y = inner(x**2)
        """
    assert derived(text) == {"dx": "2 * dy * cos(square(x)) * x"}


def test_a_call_with_a_surrogate() -> None:
    text = """
        rule step(x) -> y:
            y = 1 if x > 0 else 0
            surrogate y = sin(x)

        rule f(x) -> y:
            y = 3 * step(2 * x)
        """
    assert derived(text) == {"dx": "6 * dy * cos(2 * x)"}


def test_an_override_that_is_not_linear_gets_the_whole_upstream_gradient() -> None:
    text = """
        rule clipped(x) -> y:
            y = x
            override dx = clip(dy, -1, 1) because "bounded"

        rule f(x) -> y:
            y = 5 * clipped(sin(x)) + clipped(sin(x))
        """
    assert derived(text) == {"dx": "clip(6 * dy, -1, 1) * cos(x)"}


def test_and_so_do_calls_within_calls_and_several_outputs() -> None:
    text = """
        rule pair(x) -> (a, b):
            a = x
            b = 2 * x
            override dx = sign(da + db) because "its direction"

        rule f(x) -> y:
            y = pair.a(pair.b(x)) + 3 * pair.b(pair.b(x)) + pair.a(x)
        """
    assert derived(text) == {"dx": "sign(dy + sign(dy + 3 * dy))"}


def test_a_nograd_argument_stops_the_gradient() -> None:
    text = """
        rule scaled(x, t: nograd) -> y:
            y = t * x

        rule f(x) -> y:
            y = scaled(x, x)
        """
    assert derived(text) == {"dx": "dy * x"}


# --- complete ------------------------------------------------------------------------


def test_what_is_declared_stays_and_the_rest_is_derived() -> None:
    rule = completed(
        """
        rule f(x, t: nograd, k: static = 2) -> y:
            y = k * t * x
        """
    )
    assert [(d.name, d.origin) for d in rule.backward] == [("dx", Origin.DERIVED)]


def test_a_ranked_rule_has_a_cotangent_with_indices() -> None:
    rule = rules(
        """
        rule total(x[..., n]) -> y:
            y = sum(x[i] for i)
        """
    )["total"]
    assert rule.backward == ()
    (entry,) = complete(rule).value.backward
    assert (entry.value, entry.indices, entry.is_derived) == (Ref("dy"), ("i",), True)


def test_complete_is_idempotent() -> None:
    rule = completed("rule f(x) -> y:\n    y = x * sin(x)\n")
    assert complete(rule).value == rule


def test_a_local_used_twice_stays_shared() -> None:
    rule = completed(
        """
        rule f(x) -> y:
            e = exp(sin(x))
            y = e * e + e
        """
    )
    (entry,) = rule.backward
    assert entry.is_derived
    exps = [n for n in nodes(entry.value) if isinstance(n, Apply) and n.op == "exp"]
    assert len(exps) == 1
    assert cotangents(rule)["x"] == entry.value


# --- sizes ---------------------------------------------------------------------------


def test_a_sum_of_a_thousand_terms() -> None:
    expr: Expr = X
    for k in range(1000):
        expr = apply("add", expr, apply("sin", apply("mul", const(k), X)))
    assert size(of(expr)["x"]) < 8000


def test_a_function_of_a_function_four_hundred_times() -> None:
    expr: Expr = X
    for _ in range(400):
        expr = apply("sin", expr)
    assert size(of(expr)["x"]) < 2000


def test_a_value_used_again_and_again() -> None:
    """2**60 paths from the output to x."""
    expr: Expr = X
    for _ in range(60):
        expr = apply("mul", expr, apply("sin", expr))
    assert size(of(expr)["x"]) < 1000


def test_a_hundred_pieces() -> None:
    expr: Expr = const(0)
    for k in range(100):
        piece = apply("sin", apply("mul", const(k), X))
        expr = Select(apply("lt", X, const(k)), piece, expr)
    assert size(of(expr)["x"]) < 2000


def test_pieces_of_pieces() -> None:
    """Each piecewise function is applied to the one before, in both branches."""
    expr: Expr = X
    for k in range(60):
        condition = apply("gt", expr, const(k))
        expr = Select(condition, apply("sin", expr), apply("mul", const(3), expr))
    assert size(of(expr)["x"]) < 3000


def test_linear_by_form() -> None:
    upstream = frozenset(["dy"])
    for text in (
        "dy * x",
        "x / 2 * dy",
        "-dy / x",
        "dy if x > 0 else 0",
        "dy + 2 * dy",
    ):
        assert is_linear(formula(text), upstream), text
    for text in ("x", "dy * dy", "abs(dy)", "x / dy", "dy + 1", "x if dy > 0 else dy"):
        assert not is_linear(formula(text), upstream), text
    assert is_linear(Const(Fraction(0)), upstream)


def test_a_local_that_is_zero_is_no_factor_of_others() -> None:
    text = """
        rule f(x[..., n], a[..., n], b[..., n], k: static = 2) -> y[..., n]:
            h[i] = ((-1 - -1) / max(a[i], k))
            y[i] = max(0.5, (2 * (b[i] * 0.5) + (max(h[j] for j) - (k + 1e30))))
        """
    assert derived(text)["db"].startswith("dy[i] if b[i] + ")
