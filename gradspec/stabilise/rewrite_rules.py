"""The rewrite rules: one row each, ``left -> right``, where a condition holds.

Over the reals the right side equals the left wherever the left is defined; it may be
defined at more points (``xlogy`` at 0). A test puts each row to the proof by balls at
random points. Whether a rewrite is used is decided by measurement alone, so a row may
lose accuracy in some regime: it only proposes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from gradspec.ir.expr import Apply, Expr
from gradspec.ir.tidy import tidy
from gradspec.primitives.formula import formula


@dataclass(frozen=True, slots=True)
class Row:
    """``left -> right`` over the variables ``a``, ``b``, ``c``; ``when`` is the condition
    under which the sides are equal.

    ``detour``: no improvement by itself, or not nearly always, so that it is not taken on
    the straight way of a search (it would hide ``log(1 + exp(x))`` from the rows that
    know it).
    """

    name: str
    left: str
    right: str
    when: str = ""
    detour: bool = False


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
    Row("tanh from expm1", "expm1(a) / (1 + exp(a))", "tanh(0.5 * a)"),
    Row("tanh from expm1, mirrored", "-expm1(a) / (1 + exp(a))", "-tanh(0.5 * a)"),
    Row("tanh from expm1 alone", "expm1(a) / (2 + expm1(a))", "tanh(0.5 * a)"),
    Row("tanh from two", "(exp(a) - exp(-a)) / (exp(a) + exp(-a))", "tanh(a)"),
    Row("tanh from sinh", "sinh(a) / cosh(a)", "tanh(a)"),
    Row("inverse of tanh from sinh", "cosh(a) / sinh(a)", "1 / tanh(a)"),
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
    # in two factors, each in range
    Row(
        "log1p of a square",
        "log1p(square(a))",
        "log1p(square(min(abs(a), 1e9))) + 2 * log(max(abs(a) / 1e9, 1))",
        detour=True,
    ),
    Row(
        "log1p of a square over",
        "log1p(square(a) / b)",
        "log1p(square(a / sqrt(b)))",
        when="b > 0",
        detour=True,
    ),
    Row(
        "log of a quotient of positive numbers",
        "log(a / b)",
        "2 * log(sqrt(a) / sqrt(b))",
        when="a > 0",
        detour=True,
    ),
    Row("log gamma", "log(gamma(a))", "lgamma(a)"),
    Row("xlogy", "a * log(b)", "xlogy(a, b)", detour=True),
    Row("xlog1py", "a * log(1 + b)", "xlog1py(a, b)", detour=True),
    Row("xlog1py, mirrored", "a * log(1 - b)", "xlog1py(a, -b)", detour=True),
    Row("xlog1py from log1p", "a * log1p(b)", "xlog1py(a, b)", detour=True),
    Row("xlogy near one", "xlogy(a, 1 + b)", "xlog1py(a, b)"),
    Row("xlogy of sigmoid", "xlogy(a, sigmoid(b))", "a * logsigmoid(b)"),
    Row("xlog1py of sigmoid", "xlog1py(a, -sigmoid(b))", "a * logsigmoid(-b)"),
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
    Row("times its sign", "a * sign(a)", "abs(a)"),
    Row("times its sign, scaled", "b * a * sign(a)", "b * abs(a)"),
    Row("quotient of squares", "square(a) / square(b)", "square(a / b)", detour=True),
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
    Row(
        "inverse root less one",
        "1 / sqrt(1 - square(a)) - 1",
        "square(a) / (sqrt(1 - square(a)) * (1 + sqrt(1 - square(a))))",
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
    Row("power times its base", "a**(b - 1) * a", "a**b"),
    Row("power times its base, scaled", "c * a**(b - 1) * a", "c * a**b"),
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

_ANGLES = (
    Row(
        "polar angle",
        "acos(a / sqrt(square(a) + b))",
        "atan2(sqrt(b), a)",
        when="b >= 0",
    ),
    Row(
        "polar angle of three",
        "acos(a / sqrt(square(a) + b + c))",
        "atan2(sqrt(b + c), a)",
        when="b >= 0 and c >= 0",
    ),
    Row("polar angle from hypot", "acos(a / hypot(a, b))", "atan2(abs(b), a)"),
    Row(
        "elevation",
        "asin(a / sqrt(square(a) + b))",
        "atan2(a, sqrt(b))",
        when="b >= 0",
    ),
    Row(
        "elevation of three",
        "asin(a / sqrt(square(a) + b + c))",
        "atan2(a, sqrt(b + c))",
        when="b >= 0 and c >= 0",
    ),
    Row("elevation from hypot", "asin(a / hypot(a, b))", "atan2(a, abs(b))"),
    # R. W. Sinnott, Virtues of the haversine, 1984, and the same for the antipode
    Row(
        "arc on a sphere",
        "acos(sin(a) * sin(b) + cos(a) * cos(b) * cos(c))",
        "2 * atan2(sqrt(square(sin(0.5 * (a - b))) + cos(a) * cos(b) * square(sin(0.5 * c))),"
        " sqrt(square(sin(0.5 * (a + b))) + cos(a) * cos(b) * square(cos(0.5 * c))))",
    ),
)

_COSINES = (
    Row(
        "one plus a cosine",
        "1 + a / sqrt(square(a) + b)",
        "b / sqrt(square(a) + b) / (sqrt(square(a) + b) - a) if a < 0"
        " else 1 + a / sqrt(square(a) + b)",
        when="b >= 0",
    ),
    Row(
        "one minus a cosine",
        "1 - a / sqrt(square(a) + b)",
        "b / sqrt(square(a) + b) / (sqrt(square(a) + b) + a) if a > 0"
        " else 1 - a / sqrt(square(a) + b)",
        when="b >= 0",
    ),
    Row(
        "one plus a cosine, hypot",
        "1 + a / hypot(a, b)",
        "b / hypot(a, b) * (b / (hypot(a, b) - a)) if a < 0 else 1 + a / hypot(a, b)",
    ),
    Row(
        "one minus a cosine, hypot",
        "1 - a / hypot(a, b)",
        "b / hypot(a, b) * (b / (hypot(a, b) + a)) if a > 0 else 1 - a / hypot(a, b)",
    ),
)

_ROOTS = (
    # 1 - cos(c) is twice the square of the half-angle's sine
    Row(
        "third side of a triangle",
        "square(a) + square(b) - 2 * a * b * cos(c)",
        "square(a - b) + 4 * a * b * square(sin(0.5 * c))",
    ),
    Row(
        "diagonal of a parallelogram",
        "square(a) + square(b) + 2 * a * b * cos(c)",
        "square(a - b) + 4 * a * b * square(cos(0.5 * c))",
    ),
    Row("hypot of a double", "sqrt(4 * square(a) + square(b))", "hypot(2 * a, b)"),
    Row("hypot of a double, apart", "sqrt(4 * a * a + square(b))", "hypot(2 * a, b)"),
)

_JOINT = (
    # what is left of 1 - tanh(a) * tanh(b) is a sum of two products, which cancels
    # nowhere and does not overflow
    Row(
        "difference of hyperbolic tangents",
        "tanh(a) - tanh(b)",
        "2 * tanh(a - b)"
        " * (sigmoid(2 * a) * sigmoid(-2 * b) + sigmoid(2 * b) * sigmoid(-2 * a))",
    ),
    Row(
        "sum of hyperbolic tangents",
        "tanh(a) + tanh(b)",
        "2 * tanh(a + b)"
        " * (sigmoid(2 * a) * sigmoid(2 * b) + sigmoid(-2 * a) * sigmoid(-2 * b))",
    ),
    Row(
        "difference of sigmoids",
        "sigmoid(a) - sigmoid(b)",
        "tanh(0.5 * (a - b)) * (sigmoid(a) * sigmoid(-b) + sigmoid(b) * sigmoid(-a))",
    ),
    Row(
        "difference of slopes of sigmoids",
        "sigmoid(a) * sigmoid(-a) - sigmoid(b) * sigmoid(-b)",
        "tanh(0.5 * (b - a)) * tanh(0.5 * (a + b))"
        " * (sigmoid(a) * sigmoid(-b) + sigmoid(b) * sigmoid(-a))"
        " * (sigmoid(a) * sigmoid(b) + sigmoid(-a) * sigmoid(-b))",
    ),
    Row(
        "difference of slopes of hyperbolic tangents",
        "sigmoid(2 * a) * sigmoid(-2 * a) - sigmoid(2 * b) * sigmoid(-2 * b)",
        "tanh(b - a) * tanh(a + b)"
        " * (sigmoid(2 * a) * sigmoid(-2 * b) + sigmoid(2 * b) * sigmoid(-2 * a))"
        " * (sigmoid(2 * a) * sigmoid(2 * b) + sigmoid(-2 * a) * sigmoid(-2 * b))",
    ),
    Row("xlogy of a positive", "xlogy(a, b)", "a * log(b)", when="b > 0"),
    Row(
        "exponential of a power",
        "a**b * exp(c)",
        "exp(b * log(a) + c)",
        when="a > 0",
    ),
    Row(
        "exponential of a power, below",
        "exp(c) / a**b",
        "exp(c - b * log(a))",
        when="a > 0",
    ),
)

_GUDERMANN = (
    Row("inverse Gudermannian", "log(tan(pi / 4 + a))", "asinh(tan(2 * a))"),
    Row("inverse Gudermannian, less", "log(tan(pi / 4 - a))", "-asinh(tan(2 * a))"),
    Row("integral of the secant", "log(tan(a) + 1 / cos(a))", "asinh(tan(a))"),
    Row("Gudermannian", "atan(exp(a)) - pi / 4", "0.5 * atan(sinh(a))"),
    Row("Gudermannian, twice", "2 * atan(exp(a)) - pi / 2", "atan(sinh(a))"),
    Row("Gudermannian, from above", "pi / 2 - 2 * atan(exp(a))", "-atan(sinh(a))"),
    Row("arc less an eighth", "atan(a) - pi / 4", "atan2(a - 1, a + 1)"),
    Row("eighth less an arc", "pi / 4 - atan(a)", "atan2(1 - a, a + 1)"),
    Row("two arcs less a quarter", "2 * atan(a) - pi / 2", "2 * atan2(a - 1, a + 1)"),
    Row("quarter less two arcs", "pi / 2 - 2 * atan(a)", "2 * atan2(1 - a, a + 1)"),
    Row(
        "tangent and secant", "b / tan(a) * (1 + square(tan(a)))", "2 * b / sin(2 * a)"
    ),
    Row(
        "secant and tangent", "b * (1 + square(tan(a))) / tan(a)", "2 * b / sin(2 * a)"
    ),
    Row(
        "secant squared over secant",
        "b / hypot(tan(a), 1) * (1 + square(tan(a)))",
        "b / abs(cos(a))",
    ),
    Row(
        "secant of its square",
        "b * (1 + square(tan(a))) / hypot(tan(a), 1)",
        "b / abs(cos(a))",
    ),
    Row(
        "tangent an eighth further",
        "tan(pi / 4 + a)",
        "(1 + sin(2 * a)) / cos(2 * a) if sin(2 * a) > 0"
        " else cos(2 * a) / (1 - sin(2 * a))",
        detour=True,
    ),
    Row(
        "tangent an eighth back",
        "tan(pi / 4 - a)",
        "cos(2 * a) / (1 + sin(2 * a)) if sin(2 * a) > 0"
        " else (1 - sin(2 * a)) / cos(2 * a)",
        detour=True,
    ),
    Row("sine of a quarter more", "sin(2 * (pi / 4 + a))", "cos(2 * a)"),
    Row("sine of a quarter less", "sin(2 * (pi / 4 - a))", "cos(2 * a)"),
)

_MIXTURES = (
    Row(
        "log of a mixture",
        "log(b * exp(a) + c)",
        "a + log(b + c * exp(-a))",
        detour=True,
    ),
    Row(
        "log1p of a part of expm1",
        "log1p(b * expm1(a))",
        "a + log(b + (1 - b) * exp(-a)) if a > 80 else log1p(b * expm1(a))",
        detour=True,
    ),
)

_DIFFERENCES = (
    # of one function at two places: the difference of the places is exact, or rewritten
    Row(
        "difference of sines",
        "sin(a) - sin(b)",
        "2 * sin(0.5 * (a - b)) * cos(0.5 * (a + b))",
    ),
    Row(
        "difference of cosines",
        "cos(a) - cos(b)",
        "-2 * sin(0.5 * (a - b)) * sin(0.5 * (a + b))",
    ),
    Row("difference of tangents", "tan(a) - tan(b)", "sin(a - b) / (cos(a) * cos(b))"),
    Row("difference of arctangents", "atan(a) - atan(b)", "atan2(a - b, 1 + a * b)"),
    Row(
        "difference of logarithms",
        "log(a) - log(b)",
        "log1p((a - b) / b)",
        when="a > 0",
    ),
    Row(
        "quotient of logarithms",
        "log(a) - log(b)",
        "log(a / b)",
        when="a > 0",
        detour=True,
    ),
    Row(
        "difference of exponentials",
        "exp(a) - exp(b)",
        "exp(b) * expm1(a - b)",
        detour=True,
    ),
    Row("twice a hyperbolic sine", "exp(a) - exp(-a)", "2 * sinh(a)"),
    Row("minus twice a hyperbolic sine", "exp(-a) - exp(a)", "-2 * sinh(a)"),
    Row(
        "second difference of exp", "exp(a) - 2 + exp(-a)", "4 * square(sinh(0.5 * a))"
    ),
    Row(
        "second difference of exp, from cosh",
        "cosh(a) - 1",
        "2 * square(sinh(0.5 * a))",
    ),
    Row("difference of reciprocals", "1 / a - 1 / b", "(b - a) / (a * b)"),
    Row(
        "difference of quotients",
        "c / a - d / b",
        "(c * b - d * a) / (a * b)",
        detour=True,
    ),
    Row("sum of quotients", "c / a + d / b", "(c * b + d * a) / (a * b)", detour=True),
    Row("difference from a quotient", "c - d / b", "(c * b - d) / b", detour=True),
    Row(
        "difference of inverse roots",
        "rsqrt(a) - rsqrt(b)",
        "(sqrt(b) - sqrt(a)) / sqrt(a * b)",
    ),
    Row(
        "difference of cube roots",
        "cbrt(a) - cbrt(b)",
        "(a - b) / (square(cbrt(a)) + cbrt(a) * cbrt(b) + square(cbrt(b)))",
    ),
    Row(
        "difference of powers",
        "a**c - b**c",
        "-(a**c) * expm1(c * log1p((b - a) / a)) if 2 * b > a else a**c - b**c",
        when="a > 0 and b >= 0",
    ),
    Row("log of a symmetric quotient", "log((a + b) / (a - b))", "2 * atanh(b / a)"),
    Row(
        "log of a symmetric quotient, mirrored",
        "log((a + b) / (b - a))",
        "2 * atanh(a / b)",
    ),
    Row(
        "arcsine from a half angle",
        "pi / 2 - 2 * asin(sqrt((1 - a) / 2))",
        "asin(a)",
    ),
    Row("log of a sum over a part", "log((a + b) / a)", "log1p(b / a)"),
    Row(
        "difference of squares of neighbours",
        "(a + b) * (a + b) - a * a",
        "b * (2 * a + b)",
    ),
    Row(
        "square of a sum less a square", "square(a + b) - square(a)", "b * (2 * a + b)"
    ),
    Row(
        "sine of a sum", "sin(a + b)", "sin(a) * cos(b) + cos(a) * sin(b)", detour=True
    ),
    Row("half angle", "(1 - cos(a)) / sin(a)", "tan(0.5 * a)"),
    Row("half angle, from squares", "2 * square(sin(a)) / sin(2 * a)", "tan(a)"),
    Row("over one less exp", "exp(a) / expm1(a)", "-1 / expm1(-a)"),
    Row("over one less exp, scaled", "b * exp(a) / expm1(a)", "-b / expm1(-a)"),
    Row("expm1 of the double", "expm1(2 * a) / expm1(a)", "exp(a) + 1"),
    Row(
        "double over, of exponentials", "(exp(2 * a) - 1) / (exp(a) - 1)", "exp(a) + 1"
    ),
    Row(
        "reciprocal of a hyperbolic tangent",
        "1 / tanh(a)",
        "1 + 2 / expm1(2 * a)",
        detour=True,
    ),
)

_ORDER = (
    Row("difference added back", "a + (b - a)", "b"),
    Row("difference less the first", "(a - b) - a", "-b"),
    Row("less a sum with itself", "a - (a + b)", "-b"),
    Row("less a difference with itself", "a - (a - b)", "b"),
    Row("factor of a square", "b * square(a)", "b * a * a", detour=True),
    Row("product over", "b * c / d", "b * (c / d)", detour=True),
    Row("product over, swapped", "b * c / d", "b / d * c", detour=True),
    Row("divided twice, times", "a / b / b * c", "a / b * (c / b)", detour=True),
)

_STEPS = (
    # of trigonometric functions far out, where the sum of the places is rounded
    Row(
        "sine of the middle",
        "sin(0.5 * (a + b + a))",
        "sin(a) * cos(0.5 * b) + cos(a) * sin(0.5 * b)",
        detour=True,
    ),
    Row(
        "cosine of the middle",
        "cos(0.5 * (a + b + a))",
        "cos(a) * cos(0.5 * b) - sin(a) * sin(0.5 * b)",
        detour=True,
    ),
    Row(
        "sine of the middle, below",
        "sin(0.5 * (a - b + a))",
        "sin(a) * cos(0.5 * b) - cos(a) * sin(0.5 * b)",
        detour=True,
    ),
    Row(
        "cosine of the middle, below",
        "cos(0.5 * (a - b + a))",
        "cos(a) * cos(0.5 * b) + sin(a) * sin(0.5 * b)",
        detour=True,
    ),
    Row(
        "cosine of a sum",
        "cos(a + b)",
        "cos(a) * cos(b) - sin(a) * sin(b)",
        detour=True,
    ),
    Row(
        "cosine of a difference",
        "cos(a - b)",
        "cos(a) * cos(b) + sin(a) * sin(b)",
        detour=True,
    ),
    Row("secant squared", "1 + square(tan(a))", "1 / square(cos(a))", detour=True),
    Row("arccosine near one", "acos(1 - a)", "2 * asin(sqrt(0.5 * a))"),
    Row("cube root", "a**(1 / 3)", "cbrt(a)", when="a >= 0"),
    Row("square of a cube root", "a**(2 / 3)", "square(cbrt(a))", when="a >= 0"),
    Row(
        "over a square of a cube root",
        "a**(-2 / 3)",
        "1 / square(cbrt(a))",
        when="a > 0",
    ),
    Row(
        "difference of inverse squares",
        "1 / square(a) - 1 / square(b)",
        "(b - a) / square(a) * (b + a) / square(b)",
        detour=True,
    ),
    Row(
        "difference of cubes",
        "a**3 - b**3",
        "(a - b) * (square(a) + a * b + square(b))",
    ),
    Row(
        "step of x log x",
        "(a + 1) * log(a + 1) - a * log(a)",
        "log1p(a) + a * log1p(1 / a)",
        when="a > 0",
    ),
    Row(
        "step of x log x, from log1p",
        "(a + 1) * log1p(a) - a * log(a)",
        "log1p(a) + a * log1p(1 / a)",
        when="a > 0",
    ),
    Row("difference of squares taken off", "-a * a - -b * b", "(b - a) * (a + b)"),
    Row(
        "difference of exponentials, the larger outside",
        "exp(a) - exp(b)",
        "-exp(a) * expm1(b - a) if a > b else exp(b) * expm1(a - b)",
        detour=True,
    ),
    Row("less a sum of three with itself", "a - (a - b + c)", "b - c"),
    Row("less a sum and a difference", "a - (a + b - c)", "c - b"),
    Row("less a part of itself", "a - a * b", "a * (1 - b)", detour=True),
    Row(
        "root of a square and a factor",
        "sqrt(b * square(a))",
        "sqrt(b) * abs(a)",
        when="b >= 0",
        detour=True,
    ),
    Row(
        "root of an inverse square and one",
        "sqrt(1 / square(a) + 1)",
        "hypot(a, 1) / abs(a)",
        detour=True,
    ),
    Row(
        "root of an inverse square less one",
        "sqrt(1 / square(a) - 1)",
        "sqrt((1 - a) * (1 + a)) / abs(a)",
        detour=True,
    ),
)

_EXPM1 = (
    Row(
        "expm1 of a sum over both",
        "d * expm1((a + b) * c) / (expm1(a * c) * expm1(b * c))",
        "d * (1 / expm1(a * c) - 1 / expm1(-(b * c)))",
    ),
    Row(
        "slope of an inverse of expm1",
        "b * exp(a) / square(expm1(a))",
        "-b / expm1(a) / expm1(-a)",
        detour=True,
    ),
    Row(
        "difference of logarithms of sigmoids",
        "logsigmoid(a) - logsigmoid(b)",
        "log1p(sigmoid(-a) * expm1(a - b)) if abs(a - b) < 1"
        " else logsigmoid(a) - logsigmoid(b)",
    ),
    Row(
        "ratio of the likelihoods of two logits",
        "sigmoid(a)**c * sigmoid(-a)**d / (sigmoid(b)**c * sigmoid(-b)**d)",
        "exp(c * (logsigmoid(a) - logsigmoid(b)) + d * (logsigmoid(-a) - logsigmoid(-b)))",
    ),
    Row(
        "logistic slope over",
        "exp(a) / (b * (1 + exp(a)) * (1 + exp(a)))",
        "sigmoid(a) * sigmoid(-a) / b",
    ),
    Row(
        "inverse of tanh from two",
        "(exp(a) + exp(-a)) / (exp(a) - exp(-a))",
        "1 / tanh(a)",
    ),
    Row(
        "sech from exponentials",
        "b / (exp(a) + exp(-a))",
        "b * exp(-abs(a)) / (1 + exp(-2 * abs(a)))",
    ),
    Row(
        "twice a hyperbolic sine, below",
        "b * exp(-a) / c - b * exp(a) / c",
        "-2 * b * sinh(a) / c",
    ),
    Row(
        "tanh and sech, doubled",
        "b * sinh(a) / square(2 * cosh(a))",
        "0.25 * b / cosh(a) * tanh(a)",
    ),
    Row("twice a hyperbolic cosine", "exp(a) + exp(-a)", "2 * cosh(a)"),
    Row("tanh and sech", "b * sinh(a) / square(cosh(a))", "b / cosh(a) * tanh(a)"),
    Row("asinh of an inverse", "log(1 / a + sqrt(1 / square(a) + 1))", "asinh(1 / a)"),
    Row(
        "acosh of an inverse",
        "log(1 / a + sqrt(1 / square(a) - 1))",
        "acosh(1 / a)",
        when="a > 0",
    ),
    Row("asinh of a size", "log(abs(a) + sqrt(square(a) + 1))", "asinh(abs(a))"),
    Row("asinh of a size, hypot", "log(abs(a) + hypot(a, 1))", "asinh(abs(a))"),
)

_PAIRS = (
    Row(
        "difference of hyperbolic cosines",
        "cosh(a) - cosh(b)",
        "2 * sinh(0.5 * (a + b)) * sinh(0.5 * (a - b))",
    ),
    Row(
        "difference of hyperbolic sines",
        "sinh(a) - sinh(b)",
        "2 * cosh(0.5 * (a + b)) * sinh(0.5 * (a - b))",
    ),
    Row(
        "difference of inverse hyperbolic tangents",
        "atanh(a) - atanh(b)",
        "atanh((a - b) / (1 - a * b))",
    ),
    Row(
        "difference of arctangents, far out",
        "atan(a) - atan(b)",
        "atan2((a - b) / b, a + 1 / b)",
        when="a > 0 and b > 0",
        detour=True,
    ),
    Row("difference of log1p of both signs", "log1p(a) - log1p(-a)", "2 * atanh(a)"),
    Row(
        "hypot less a size",
        "hypot(a, b) - abs(a)",
        "b / (hypot(a, b) + abs(a)) * b if a != 0 else abs(b)",
    ),
    Row(
        "hypot less a part",
        "hypot(a, b) - a",
        "b / (hypot(a, b) + a) * b if a > 0 else hypot(a, b) - a",
    ),
    Row(
        "cosine less its sign",
        "a / hypot(a, b) - sign(a)",
        "-sign(a) * (b / hypot(a, b)) * (b / (hypot(a, b) + abs(a)))",
    ),
    Row(
        "norm of three",
        "sqrt(square(a) + square(b) + square(c))",
        "hypot(hypot(a, b), c)",
        detour=True,
    ),
    Row(
        "hypot with one, scaled",
        "sqrt(1 + b * square(a))",
        "hypot(1, sqrt(b) * a)",
        when="b >= 0",
        detour=True,
    ),
    Row("sigmoid less a half", "sigmoid(a) - 0.5", "0.5 * tanh(0.5 * a)"),
    Row("sums with a common part", "(a + b) - (a + c)", "b - c"),
    Row("differences with a common part", "(a - b) - (a - c)", "c - b"),
    Row("differences from a common part", "(b - a) - (c - a)", "b - c"),
    Row("sum less a difference", "(a + b) - (a - c)", "b + c"),
    Row("difference less a sum", "(a - b) - (a + c)", "-(b + c)"),
    Row(
        "sine of a difference, joined",
        "sin(a) * cos(b) - cos(a) * sin(b)",
        "sin(a - b)",
        detour=True,
    ),
    Row(
        "cosine of a difference, joined",
        "cos(a) * cos(b) + sin(a) * sin(b)",
        "cos(a - b)",
        detour=True,
    ),
    Row(
        "cosine of a sum, joined",
        "cos(a) * cos(b) - sin(a) * sin(b)",
        "cos(a + b)",
        detour=True,
    ),
)

ROWS = (
    *(_LOGISTIC + _EXPONENTIALS + _LOGARITHMS + _ALGEBRA + _ERROR_FUNCTIONS),
    *(
        _ANGLES
        + _COSINES
        + _ROOTS
        + _GUDERMANN
        + _JOINT
        + _DIFFERENCES
        + _MIXTURES
        + _ORDER
        + _STEPS
        + _EXPM1
        + _PAIRS
    ),
)


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
