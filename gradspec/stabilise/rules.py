"""The rewrite rules: one named row each, ``left -> right`` (``when`` a condition holds).

Over the reals the right side equals the left wherever the left is defined; it may be
defined at more points (``xlogy`` at 0). A test puts each row to the proof by balls at
random points. Whether a rewrite is used is decided by measurement alone, so a row may
do harm in some regime: it only proposes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from gradspec.ir.expr import Apply, Expr
from gradspec.ir.tidy import tidy
from gradspec.primitives.formula import formula
from gradspec.stabilise.row import Row
from gradspec.stabilise.rules_eighths import EIGHTHS
from gradspec.stabilise.rules_joint import STRAIGHT

_LOGISTIC = (
    Row("logistic", "b / (1 + exp(a))", "b * sigmoid(-a)"),
    Row("logistic quotient", "exp(a) / (1 + exp(a))", "sigmoid(a)"),
    Row("logistic product", "b * exp(a) / (1 + exp(a))", "b * sigmoid(a)"),
    Row("logistic slope", "exp(a) / square(1 + exp(a))", "sigmoid(a) * sigmoid(-a)"),
    Row(
        "logistic slope, scaled",
        "b * exp(a) / square(1 + exp(a))",
        "b * sigmoid(a) * sigmoid(-a)",
    ),
    Row("logistic complement", "1 - sigmoid(a)", "sigmoid(-a)"),
    Row("logistic complement in a sum", "b + sigmoid(a) - 1", "b - sigmoid(-a)"),
    Row("softmax of two", "exp(a) / (exp(a) + exp(b))", "sigmoid(a - b)"),
    Row("tanh from sigmoid", "2 * sigmoid(a) - 1", "tanh(0.5 * a)"),
    Row("tanh from exp", "(exp(a) - 1) / (exp(a) + 1)", "tanh(0.5 * a)"),
    Row("tanh from exp, mirrored", "(1 - exp(a)) / (1 + exp(a))", "tanh(-0.5 * a)"),
    Row("tanh from two", "(exp(a) - exp(-a)) / (exp(a) + exp(-a))", "tanh(a)"),
    Row("tanh from sinh", "sinh(a) / cosh(a)", "tanh(a)"),
    Row("tanh from sinh, scaled", "b * sinh(a) / cosh(a)", "b * tanh(a)"),
    Row("one plus tanh", "1 + tanh(a)", "2 * sigmoid(2 * a)"),
    Row("one minus tanh", "1 - tanh(a)", "2 * sigmoid(-2 * a)"),
    Row("slope of tanh", "1 - square(tanh(a))", "4 * sigmoid(2 * a) * sigmoid(-2 * a)"),
    Row(
        "slope of tanh, scaled",
        "b / square(cosh(a))",
        "4 * b * sigmoid(2 * a) * sigmoid(-2 * a)",
    ),
    Row("sech", "b / cosh(a)", "2 * b * exp(-abs(a)) / (1 + exp(-2 * abs(a)))"),
    Row("atanh", "log((1 + a) / (1 - a))", "2 * atanh(a)"),
    Row("asinh", "log(a + sqrt(square(a) + 1))", "asinh(a)"),
    Row("asinh from hypot", "log(a + hypot(a, 1))", "asinh(a)"),
    Row("acosh", "log(a + sqrt(square(a) - 1))", "acosh(a)", when="a >= 1"),
    Row("sinh", "0.5 * (exp(a) - exp(-a))", "sinh(a)"),
    Row("sinh, halved", "(exp(a) - exp(-a)) / 2", "sinh(a)"),
    Row("cosh", "0.5 * (exp(a) + exp(-a))", "cosh(a)"),
    Row("cosh, halved", "(exp(a) + exp(-a)) / 2", "cosh(a)"),
)

_EXPONENTIALS = (
    Row("expm1", "exp(a) - 1", "expm1(a)"),
    Row("expm1, mirrored", "1 - exp(a)", "-expm1(a)"),
    Row("expm1 in a sum", "b + exp(a) - 1", "b + expm1(a)"),
    Row("expm1 in a difference", "exp(a) - b - 1", "expm1(a) - b"),
    Row("divided by expm1", "b / expm1(a)", "b * exp(-a) / -expm1(-a)", detour=True),
    Row("power minus one", "a**b - 1", "expm1(b * log(a))", when="a > 0"),
    Row(
        "power of one more, minus one",
        "(1 + a)**b - 1",
        "expm1(b * log1p(a)) if a > -1 else (1 + a)**b - 1",
    ),
    Row(
        "one minus a power of one more",
        "1 - (1 + a)**b",
        "-expm1(b * log1p(a)) if a > -1 else 1 - (1 + a)**b",
    ),
    Row(
        "power of one less, minus one",
        "(1 - a)**b - 1",
        "expm1(b * log1p(-a)) if a < 1 else (1 - a)**b - 1",
    ),
    Row(
        "one minus a power of one less",
        "1 - (1 - a)**b",
        "-expm1(b * log1p(-a)) if a < 1 else 1 - (1 - a)**b",
    ),
    Row("quotient of exponentials", "exp(a) / exp(b)", "exp(a - b)"),
    Row("product of exponentials", "exp(a) * exp(b)", "exp(a + b)", detour=True),
    Row("divided by exp", "b / exp(a)", "b * exp(-a)", detour=True),
    Row("square of exp", "square(exp(a))", "exp(2 * a)", detour=True),
    Row("square of a bell", "exp(-square(a))", "exp_neg_square(a)", detour=True),
    Row("bell", "exp(-0.5 * square(a))", "exp_neg_half_square(a)", detour=True),
    Row("bell, halved", "exp(-square(a) / 2)", "exp_neg_half_square(a)", detour=True),
    Row(
        "bell, halved before",
        "exp(-(square(a) / 2))",
        "exp_neg_half_square(a)",
        detour=True,
    ),
    Row("exp of log", "exp(log(a))", "a"),
    Row("exp of softplus", "exp(-softplus(a))", "sigmoid(-a)"),
    Row("exp of logsigmoid", "exp(logsigmoid(a))", "sigmoid(a)"),
    # exp(a) overflows in both; what is left of the quotient does not
    Row(
        "exponential over a mixture",
        "exp(a) / (b * exp(a) + c)",
        "1 / (b + c * exp(-a))",
        detour=True,
    ),
    Row(
        "expm1 over a mixture",
        "expm1(a) / (b * exp(a) + c)",
        "-expm1(-a) / (b + c * exp(-a))",
        detour=True,
    ),
)

_LOGARITHMS = (
    Row("softplus", "log(1 + exp(a))", "softplus(a)"),
    Row("softplus from log1p", "log1p(exp(a))", "softplus(a)"),
    Row("logaddexp", "log(exp(a) + exp(b))", "logaddexp(a, b)"),
    Row("logaddexp, shifted", "a + softplus(b - a)", "logaddexp(a, b)"),
    Row(
        "log of a difference of exponentials",
        "log(exp(a) - exp(b))",
        "a + log(1 - exp(b - a))",
    ),
    Row(
        "log of expm1",
        "log(exp(a) - 1)",
        "log(expm1(a)) if a < 1 else a + log1p(-exp(-a))",
    ),
    Row("log of the slope of tanh", "log(1 - square(tanh(a)))", "-2 * log(cosh(a))"),
    Row("log of sigmoid times", "log(sigmoid(a) * b)", "logsigmoid(a) + log(b)"),
    Row("logsigmoid", "log(sigmoid(a))", "logsigmoid(a)"),
    Row("softplus, mirrored", "softplus(a) - a", "softplus(-a)"),
    Row("logsigmoid from softplus", "a - softplus(a)", "logsigmoid(a)"),
    Row("log1p", "log(1 + a)", "log1p(a)"),
    Row("log1p, mirrored", "log(1 - a)", "log1p(-a)"),
    Row("log1p of a sum", "log(1 + a + b)", "log1p(a + b)"),
    Row("log1p of a difference", "log(1 + a - b)", "log1p(a - b)"),
    Row("log of exp", "log(exp(a))", "a"),
    Row("logit", "log(a / (1 - a))", "logit(a)"),
    Row("logit of two logs", "log(a) - log(1 - a)", "logit(a)"),
    # Mächler, Accurately computing log(1 - exp(-|a|)), 2012
    Row(
        "log1mexp",
        "log(1 - exp(a))",
        "log(-expm1(a)) if a > -log(2) else log1p(-exp(a))",
    ),
    Row(
        "log cosh",
        "log(cosh(a))",
        "0.5 * log1p(square(sinh(a))) if abs(a) < 1"
        " else abs(a) + log1p(exp(-2 * abs(a))) - log(2)",
    ),
    Row(
        "log sinh",
        "log(sinh(a))",
        "log(sinh(a)) if a < 1 else a + log1p(-exp(-2 * a)) - log(2)",
        detour=True,
    ),
    Row(
        "log sinh, by size",
        "log(abs(sinh(a)))",
        "log(abs(sinh(a))) if abs(a) < 1"
        " else abs(a) + log1p(-exp(-2 * abs(a))) - log(2)",
        detour=True,
    ),
    Row(
        "log1p of a square",
        "log1p(square(a))",
        "log1p(square(a)) if abs(a) < 1e16 else 2 * log(abs(a))",
        detour=True,
    ),
    Row(
        "log1p of a squared quotient",
        "log1p(square(a / b))",
        "log1p(square(a / b)) if abs(a) < 1e16 * abs(b)"
        " else 2 * (log(abs(a)) - log(abs(b)))",
        detour=True,
    ),
    Row(
        "log1p of a squared quotient over a number",
        "log1p(square(a / b) / c)",
        "log1p(square(a / b) / c) if abs(a) < 1e16 * abs(b)"
        " else 2 * (log(abs(a)) - log(abs(b))) - log(c)",
        detour=True,
    ),
    # a - b is exact where the quotient is near 1; the roots stay in range
    Row(
        "log of a quotient of positive numbers",
        "log(a / b)",
        "log1p((a - b) / b) if b <= a and a < 1e30 * b"
        " else (-log1p((b - a) / a) if a < b and b < 1e30 * a"
        " else 2 * log(sqrt(a) / sqrt(b)))",
        when="a > 0",
        detour=True,
    ),
    Row("log gamma", "log(gamma(a))", "lgamma(a)"),
    Row("xlogy", "a * log(b)", "xlogy(a, b)", detour=True),
    Row("xlog1py", "a * log(1 + b)", "xlog1py(a, b)", detour=True),
    Row("xlog1py, mirrored", "a * log(1 - b)", "xlog1py(a, -b)", detour=True),
    Row("xlog1py from log1p", "a * log1p(b)", "xlog1py(a, b)", detour=True),
    Row("xlogy near one", "xlogy(a, 1 + b)", "xlog1py(a, b)"),
    Row("xlogy near one, mirrored", "xlogy(a, 1 - b)", "xlog1py(a, -b)"),
    Row(
        "power near one",
        "(1 + a)**b",
        "exp(b * log1p(a))",
        when="a > -1",
        detour=True,
    ),
    Row(
        "power near one, mirrored",
        "(1 - a)**b",
        "exp(b * log1p(-a))",
        when="a <= 1",
        detour=True,
    ),
    Row("xlogy of a power", "log(b) * square(a)", "a * xlogy(a, b)", detour=True),
)

_ALGEBRA = (
    Row("hypot", "sqrt(square(a) + square(b))", "hypot(a, b)"),
    Row("hypot with one", "sqrt(1 + square(a))", "hypot(a, 1)"),
    Row("root of a square", "sqrt(square(a))", "abs(a)"),
    Row(
        "clip from magnitudes",
        "(abs(a) - abs(a - b) + b) / 2",
        "clip(a, 0, b)",
        when="b > 0",
    ),
    Row("rsqrt", "1 / sqrt(a)", "rsqrt(a)", detour=True),
    Row(
        "difference of squares",
        "square(a) - square(b)",
        "(a - b) * (a + b)",
        detour=True,
    ),
    Row("one minus a square", "1 - square(a)", "(1 - a) * (1 + a)"),
    Row("a square minus one", "square(a) - 1", "(a - 1) * (a + 1)"),
    Row("difference of roots", "sqrt(a) - sqrt(b)", "(a - b) / (sqrt(a) + sqrt(b))"),
    Row("root over its square", "sqrt(a) / a", "1 / sqrt(a)"),
    Row("root over its square, scaled", "b * sqrt(a) / a", "b / sqrt(a)"),
    Row("root minus one", "sqrt(1 + a) - 1", "a / (1 + sqrt(1 + a))"),
    Row("hypot minus one", "hypot(a, 1) - 1", "a / (1 + hypot(a, 1)) * a"),
    Row(
        "sum with a root",
        "a + sqrt(square(a) + b)",
        "b / (sqrt(square(a) + b) - a) if a < 0 else a + sqrt(square(a) + b)",
    ),
    Row(
        "sum with hypot",
        "a + hypot(a, b)",
        "b / (hypot(a, b) - a) * b if a < 0 else a + hypot(a, b)",
    ),
    Row("divided twice", "a / b / b", "a / square(b)", detour=True),
    Row("divided by a square", "a / square(b)", "a / b / b", detour=True),
    # Squares leave the range though what is made of them does not.
    Row("a square over", "square(a) / b", "a / b * a", detour=True),
    Row(
        "over one and a square",
        "c / (1 + square(a)) * b",
        "c / hypot(a, 1) * (b / hypot(a, 1))",
        detour=True,
    ),
    Row("difference of next", "(a + b) - a", "b"),
    Row("double angle", "square(cos(a)) - square(sin(a))", "cos(2 * a)"),
    Row("one minus cos", "1 - cos(a)", "2 * square(sin(0.5 * a))"),
    Row("one minus cos squared", "1 - square(cos(a))", "square(sin(a))"),
    Row("one minus sin squared", "1 - square(sin(a))", "square(cos(a))"),
    Row("scaled i0", "exp(-abs(a)) * i0(a)", "i0e(a)"),
    Row("scaled i1", "exp(-abs(a)) * i1(a)", "i1e(a)"),
    Row("slope of i0e", "i1e(a) - sign(a) * i0e(a)", "i0e_slope(a)"),
    Row("log of i0", "log(i0(a))", "abs(a) + log(i0e(a))"),
    Row("log of i0, scaled", "log(b * i0(a))", "abs(a) + log(b * i0e(a))"),
    Row("power over base", "a**b / a", "a**(b - 1)", when="a > 0", detour=True),
    # b - 1 is rounded, which costs up to log(a) * b ULP
    Row(
        "power less one",
        "a**(b - 1)",
        "power_less_one(a, b)",
        when="a > 0",
        detour=True,
    ),
    Row("log of a square", "log(square(a))", "2 * log(a)", when="a > 0", detour=True),
)

_ERROR_FUNCTIONS = (
    Row("erfc", "1 - erf(a)", "erfc(a)"),
    Row("erf", "1 - erfc(a)", "erf(a)"),
    Row("ndtr", "1 + erf(a / sqrt(2))", "2 * ndtr(a)"),
    Row("ndtr, root of a half", "1 + erf(a * sqrt(0.5))", "2 * ndtr(a)"),
    Row("ndtr, halves", "0.5 + 0.5 * erf(a / sqrt(2))", "ndtr(a)"),
    Row("ndtr from erfc", "erfc(-a / sqrt(2))", "2 * ndtr(a)"),
    Row("ndtr, mirrored", "1 - erf(a / sqrt(2))", "2 * ndtr(-a)"),
    Row("erfc, mirrored", "1 + erf(a)", "erfc(-a)"),
    Row("ndtr complement", "1 - ndtr(a)", "ndtr(-a)"),
    Row("log_ndtr", "log(ndtr(a))", "log_ndtr(a)"),
    Row("erfcx", "exp(square(a)) * erfc(a)", "erfcx(a)"),
    Row("over erfcx", "exp(-square(a)) / erfc(a)", "1 / erfcx(a)"),
    Row(
        "inverse of Mills' ratio",
        "exp(-0.5 * square(a)) / ndtr(a)",
        "sqrt(2 * pi) * inverse_mills(a)",
    ),
    Row(
        "inverse of Mills' ratio, mirrored",
        "exp(-0.5 * square(a)) / ndtr(-a)",
        "sqrt(2 * pi) * inverse_mills(-a)",
    ),
    Row(
        "inverse of Mills' ratio, doubled",
        "exp(-0.5 * square(a)) / (b * ndtr(a))",
        "sqrt(2 * pi) / b * inverse_mills(a)",
    ),
    Row(
        "inverse of Mills' ratio, doubled and mirrored",
        "exp(-0.5 * square(a)) / (b * ndtr(-a))",
        "sqrt(2 * pi) / b * inverse_mills(-a)",
    ),
    # what cancels far to the left is the slope of erfcx, to the right it overflows
    Row(
        "excess of Mills' inverse",
        "a + inverse_mills(a)",
        "-sqrt(0.5) * erfcx_slope(-sqrt(0.5) * a) / erfcx(-sqrt(0.5) * a)",
        detour=True,
    ),
    Row(
        "slope of erfcx, doubled",
        "b * 2 * (a * erfcx(a) - 1 / sqrt(pi))",
        "b * erfcx_slope(a)",
    ),
    Row("slope of erfcx", "a * erfcx(a) - 1 / sqrt(pi)", "0.5 * erfcx_slope(a)"),
)

_USUAL = _LOGISTIC + _EXPONENTIALS + _LOGARITHMS + _ALGEBRA + _ERROR_FUNCTIONS
ROWS = _USUAL + STRAIGHT + EIGHTHS


@dataclass(frozen=True, slots=True)
class Compiled:
    """A row's patterns; ``when`` is None if there is no condition."""

    row: Row
    left: Expr
    right: Expr
    when: Expr | None


@lru_cache(maxsize=1)
def by_operator() -> dict[str, tuple[Compiled, ...]]:
    """The rows by the operator at the root of their left side, in their order."""
    return compiled(ROWS)


def compiled(rows: tuple[Row, ...]) -> dict[str, tuple[Compiled, ...]]:
    """Rows by the operator at the root of their left side."""
    table: dict[str, tuple[Compiled, ...]] = {}
    for row in rows:
        made = Compiled(
            row,
            tidy(formula(row.left)),
            tidy(formula(row.right)),
            formula(row.when) if row.when else None,
        )
        match made.left:
            case Apply(op=op):
                table[op] = (*table.get(op, ()), made)
            case _:
                raise ValueError(f"{row.name}: a pattern begins with a primitive")
    return table
