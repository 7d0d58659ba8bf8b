"""Rewrite rules for equality saturation alone (`egraph.py`).

``SHAPE`` moves terms and factors about: in a search that takes one rewrite after the
other it would lead nowhere, in an e-graph it brings together what the named identities
match. ``IDENTITIES`` are those that help in few places. Each row is put to the proof by
balls, as those of `rules.py`.
"""

from __future__ import annotations

from gradspec.stabilise.row import Row
from gradspec.stabilise.rules_joint import JOINT
from gradspec.stabilise.rules_mixtures import MIXTURES

_CANCELLED = (
    Row("difference of equal terms", "(a + b) - (a + c)", "b - c"),
    Row("difference of equals", "(c - b) - (c - a)", "a - b"),
    Row("next less itself", "a - (a + b)", "-b"),
    Row("itself less next", "a - (a - b)", "b"),
    Row("added and taken off", "(a - b) + b", "a"),
    Row("cancelled", "a * b / b", "a", when="b != 0"),
    Row("cancelled below", "b / (a * b)", "1 / a", when="b != 0"),
    Row("cancelled product", "(a / b) * b", "a", when="b != 0"),
    Row("cancelled factor", "(a * b) / (c * b)", "a / c", when="b != 0"),
    Row("nothing", "a - a", "0"),
    Row("one", "a / a", "1", when="a != 0"),
    Row("twice", "a + a", "2 * a"),
    Row("itself and a multiple", "b * a + a", "(b + 1) * a"),
    Row("over its root", "a / sqrt(a)", "sqrt(a)"),
    Row("root over itself", "sqrt(a) / a", "1 / sqrt(a)"),
    Row("times its root", "a * sqrt(a)", "a**1.5"),
)

_TURNED = (
    Row("sum, turned", "a + b", "b + a"),
    Row("product, turned", "a * b", "b * a"),
)

_SIGNS = (
    Row("minus as a difference", "-(a - b)", "b - a"),
    Row("minus of a sum", "-(a + b)", "-a - b"),
    Row("plus a minus", "-a + b", "b - a"),
    Row("minus of a product", "-(a * b)", "(-a) * b"),
    Row("product with a minus", "a * -b", "-(a * b)"),
    Row("quotient of a minus", "(-a) / b", "-(a / b)"),
    Row("quotient by a minus", "a / -b", "-(a / b)"),
    Row("minus of a quotient", "-(a / b)", "(-a) / b"),
    Row("square of a minus", "square(-a)", "square(a)"),
)

_SUMS = (
    Row("sum, regrouped", "(a + b) + c", "a + (b + c)"),
    Row("sum of a difference", "(a - b) + c", "a + (c - b)"),
    Row("sum of a difference, turned", "(a - b) + c", "(a + c) - b"),
    Row("difference of a sum", "(a + b) - c", "a + (b - c)"),
    Row("difference of a sum, subtracted", "a - (b + c)", "(a - b) - c"),
    Row("difference of a difference", "a - (b - c)", "(a + c) - b"),
    Row("difference, twice", "(a - b) - c", "a - (b + c)"),
    Row("difference, turned", "a - b", "-(b - a)"),
)

_FACTORS = (
    Row("product, regrouped", "(a * b) * c", "a * (b * c)"),
    Row("common factor", "a * b + a * c", "a * (b + c)"),
    Row("common factor of a difference", "a * b - a * c", "a * (b - c)"),
    Row("common factor, one", "a + a * b", "a * (1 + b)"),
    Row("common factor, one less", "a - a * b", "a * (1 - b)"),
    Row("common factor, less one", "a * b - a", "a * (b - 1)"),
    Row("common divisor", "a / c + b / c", "(a + b) / c"),
    Row("common divisor of a difference", "a / c - b / c", "(a - b) / c"),
)

_FRACTIONS = (
    Row("quotient of a like sum", "(a + b) / a", "1 + b / a", when="a != 0"),
    Row("quotient of a like difference", "(a - b) / a", "1 - b / a", when="a != 0"),
    Row("one denominator", "a / b - c / d", "(a * d - c * b) / (b * d)"),
    Row("one denominator of a sum", "a / b + c / d", "(a * d + c * b) / (b * d)"),
    Row("whole less quotient", "a - b / c", "(a * c - b) / c"),
    Row("quotient less whole", "b / c - a", "(b - a * c) / c"),
    Row("whole plus quotient", "a + b / c", "(a * c + b) / c"),
    Row("quotient of a quotient", "a / b / c", "a / (b * c)"),
    Row("quotient by a product", "a / (b * c)", "a / b / c"),
    Row("quotient by a quotient", "a / (b / c)", "a * c / b", when="c != 0"),
    Row("product with a quotient", "a * (b / c)", "a * b / c"),
    Row("quotient of a product", "a * b / c", "a * (b / c)"),
    Row("quotient of products", "(a * b) / (c * d)", "(a / c) * (b / d)"),
    Row("product of quotients", "(a / b) * (c / d)", "(a * c) / (b * d)"),
)

_SQUARES = (
    Row("square", "a * a", "square(a)"),
    Row("square, written out", "square(a)", "a * a"),
    Row("square of a product", "square(a * b)", "square(a) * square(b)"),
    Row("square of a quotient", "square(a / b)", "square(a) / square(b)"),
    Row("product of squares", "square(a) * square(b)", "square(a * b)"),
    Row("quotient of squares", "square(a) / square(b)", "square(a / b)"),
    Row("square of a root", "square(sqrt(a))", "a"),
    Row("product of roots", "sqrt(a) * sqrt(b)", "sqrt(a * b)"),
    Row("quotient of roots", "sqrt(a) / sqrt(b)", "sqrt(a / b)"),
    Row(
        "root of a product",
        "sqrt(a * b)",
        "sqrt(a) * sqrt(b)",
        when="a >= 0 and b >= 0",
    ),
    Row("root of a quotient", "sqrt(a / b)", "sqrt(a) / sqrt(b)", when="b > 0"),
)

_DISTRIBUTED = (
    Row("product of a sum", "a * (b + c)", "a * b + a * c"),
    Row("product of a difference", "a * (b - c)", "a * b - a * c"),
    Row("quotient of a sum", "(a + b) / c", "a / c + b / c"),
    Row("quotient of a difference", "(a - b) / c", "a / c - b / c"),
)

SHAPE = (
    _CANCELLED,
    _TURNED,
    _SIGNS,
    _SUMS,
    _FACTORS,
    _FRACTIONS,
    _SQUARES,
    _DISTRIBUTED,
)
"""In groups, which take turns: between them the growth is looked at."""

_POWERS = (
    Row("power of a root", "a**0.5", "sqrt(a)"),
    Row("power of a root, below", "a**-0.5", "1 / sqrt(a)"),
    Row("power of three halves", "a**1.5", "a * sqrt(a)"),
    Row("power of three halves, below", "a**-1.5", "1 / (a * sqrt(a))"),
    Row("cube", "a**3", "a * square(a)"),
    Row("cube of a product", "a * square(a)", "a**3"),
    Row("fourth power", "a**4", "square(square(a))"),
    Row("cubic root", "a**(1 / 3)", "cbrt(a)", when="a >= 0"),
    Row("square of a cubic root", "a**(2 / 3)", "square(cbrt(a))", when="a >= 0"),
    Row("below a cubic root", "a**(-1 / 3)", "1 / cbrt(a)", when="a > 0"),
    Row("below its square", "a**(-2 / 3)", "1 / square(cbrt(a))", when="a > 0"),
    Row("product of powers", "a**b * a**c", "a**(b + c)", when="a > 0"),
    Row("quotient of powers", "a**b / a**c", "a**(b - c)", when="a > 0"),
    Row("times a power", "a * a**b", "a**(b + 1)", when="a > 0"),
    Row("power of a product", "a**c * b**c", "(a * b)**c", when="a > 0 and b > 0"),
    Row("power of a quotient", "a**c / b**c", "(a / b)**c", when="a > 0 and b > 0"),
    Row("power of a reciprocal", "(1 / a)**b", "a**-b", when="a > 0"),
    Row("one over a power", "1 / a**b", "a**-b", when="a > 0"),
    Row("power below", "a**-b", "1 / a**b", when="a > 0"),
    Row("power of a power", "(a**b)**c", "a**(b * c)", when="a > 0"),
    Row("power as exponential", "a**b", "exp(b * log(a))", when="a > 0"),
    Row("exponential of a log", "exp(b * log(a))", "a**b", when="a > 0"),
    Row("power of exp", "exp(a)**b", "exp(a * b)"),
    Row("difference of cubes", "a**3 - b**3", "(a - b) * (square(a + b) - a * b)"),
    Row(
        "difference of three halves",
        "a * sqrt(a) - b * sqrt(b)",
        "(a - b) * (a + sqrt(a) * sqrt(b) + b) / (sqrt(a) + sqrt(b))",
        when="a > 0 and b > 0",
    ),
    Row(
        "difference of cubic roots",
        "cbrt(a) - cbrt(b)",
        "(a - b) / (square(cbrt(a)) + cbrt(a) * cbrt(b) + square(cbrt(b)))",
        when="a > 0 and b > 0",
    ),
    Row(
        "difference of squares of cubic roots",
        "square(cbrt(a)) - square(cbrt(b))",
        "(cbrt(a) + cbrt(b)) * (a - b)"
        " / (square(cbrt(a)) + cbrt(a) * cbrt(b) + square(cbrt(b)))",
        when="a > 0 and b > 0",
    ),
    Row("cubic root of a quotient", "cbrt(a) / cbrt(b)", "cbrt(a / b)"),
    Row("product of cubic roots", "cbrt(a) * cbrt(b)", "cbrt(a * b)"),
    Row("square of a sum", "square(a + b)", "square(a) + 2 * a * b + square(b)"),
    Row("square of a sum less one", "square(a + b) - square(a)", "b * (2 * a + b)"),
    Row("cubic root of a cube", "cbrt(a**3)", "a"),
)

_ROOTS = (
    Row("root less a number", "sqrt(a) - b", "(a - square(b)) / (sqrt(a) + b)"),
    Row("number less a root", "b - sqrt(a)", "(square(b) - a) / (b + sqrt(a))"),
    Row(
        "hypot less a part",
        "hypot(a, b) - a",
        "b * (b / (hypot(a, b) + a))",
        when="b != 0",
    ),
    Row(
        "a part less hypot",
        "a - hypot(a, b)",
        "-b * (b / (hypot(a, b) + a))",
        when="b != 0",
    ),
    Row("square of hypot", "square(hypot(a, b))", "square(a) + square(b)"),
    Row("squares as hypot", "square(a) + square(b)", "square(hypot(a, b))"),
    Row("hypot of a minus", "hypot(-a, b)", "hypot(a, b)"),
    Row(
        "root of a difference of squares",
        "sqrt(square(a) - square(b))",
        "sqrt(abs(a) - abs(b)) * sqrt(abs(a) + abs(b))",
    ),
    Row(
        "root of a square less one",
        "sqrt(square(a) - 1)",
        "sqrt(a - 1) * sqrt(a + 1)",
        when="a >= 1",
    ),
    Row(
        "root of one less a square",
        "sqrt(1 - square(a))",
        "sqrt((1 - a) * (1 + a))",
    ),
    Row(
        "root of a square and more",
        "sqrt(square(a) + b)",
        "hypot(a, sqrt(b))",
        when="b >= 0",
    ),
    Row(
        "root of a square and less",
        "sqrt(square(a) - b)",
        "sqrt(abs(a) - sqrt(b)) * sqrt(abs(a) + sqrt(b))",
        when="b >= 0",
    ),
    Row("size of a product", "abs(a) * abs(b)", "abs(a * b)"),
    Row("size, known", "abs(a)", "a", when="a >= 0"),
    Row("size of a minus", "abs(-a)", "abs(a)"),
    Row("square of a size", "square(abs(a))", "square(a)"),
)

_LOGARITHMS = (
    Row("difference of logs", "log(a) - log(b)", "log(a / b)", when="a > 0 and b > 0"),
    Row(
        "difference of logs, near",
        "log(a) - log(b)",
        "log1p((a - b) / b)",
        when="a > 0 and b > 0",
    ),
    Row("sum of logs", "log(a) + log(b)", "log(a * b)", when="a > 0 and b > 0"),
    Row("log of a quotient", "log(a / b)", "log1p((a - b) / b)", when="b != 0"),
    Row("log of a ratio", "log(a / b)", "log(a) - log(b)", when="a > 0 and b > 0"),
    Row("log of a product", "log(a * b)", "log(a) + log(b)", when="a > 0 and b > 0"),
    Row("log of a power", "log(a**b)", "b * log(a)", when="a > 0"),
    Row("log near one", "log(a)", "log1p(a - 1)", detour=True),
    Row("log of one more", "log1p(a)", "log(1 + a)"),
    Row("log of a root", "log(sqrt(a))", "0.5 * log(a)"),
    Row("minus a log", "-log(a)", "log(1 / a)"),
    Row("log of one over", "log(1 / a)", "-log(a)"),
    Row(
        "difference of two log1p",
        "log1p(a) - log1p(b)",
        "log1p((a - b) / (1 + b))",
        when="b > -1",
    ),
    Row("atanh of a quotient", "log((1 - a) / (1 + a))", "-2 * atanh(a)"),
    Row("atanh of two logs", "log1p(a) - log1p(-a)", "2 * atanh(a)"),
    Row("softplus of a log", "log(1 + 1 / a)", "log1p(1 / a)", when="a != 0"),
    Row(
        "log of two squares",
        "log(square(a) + square(b))",
        "2 * log(hypot(a, b))",
    ),
)

_EXPONENTIALS = (
    Row(
        "two hyperbolic cosines less two",
        "exp(a) - 2 + exp(-a)",
        "4 * square(sinh(0.5 * a))",
    ),
    Row("sinh, doubled", "exp(a) - exp(-a)", "2 * sinh(a)"),
    Row("cosh, doubled", "exp(a) + exp(-a)", "2 * cosh(a)"),
    Row("cosh less one", "cosh(a) - 1", "2 * square(sinh(0.5 * a))"),
    Row("difference of exponentials", "exp(a) - exp(b)", "exp(b) * expm1(a - b)"),
    Row("exponential of a sum", "exp(a + b)", "exp(a) * exp(b)", detour=True),
    Row("exponential of a difference", "exp(a - b)", "exp(a) / exp(b)", detour=True),
    Row("exponential of a multiple", "exp(2 * a)", "square(exp(a))"),
    Row("one over exp", "1 / exp(a)", "exp(-a)"),
    Row("exp of a minus", "exp(-a)", "1 / exp(a)"),
    Row("product with exp of a minus", "exp(a) * exp(-a)", "1"),
    Row("root of exp", "sqrt(exp(a))", "exp(0.5 * a)"),
    Row("expm1 and one", "expm1(a) + 1", "exp(a)"),
    Row("expm1 of a double", "expm1(2 * a)", "expm1(a) * (exp(a) + 1)"),
    Row("square of exp less one", "square(exp(a)) - 1", "expm1(2 * a)"),
    Row("expm1, turned", "expm1(-a)", "-expm1(a) / exp(a)"),
    Row("expm1 over exp", "expm1(a) / exp(a)", "-expm1(-a)"),
    Row("exp over expm1", "exp(a) / expm1(a)", "-1 / expm1(-a)", when="a != 0"),
    Row(
        "exp over the square of expm1",
        "exp(a) / square(expm1(a))",
        "0.25 / square(sinh(0.5 * a))",
        when="a != 0",
    ),
    Row("expm1 over its sum", "expm1(a) / (exp(a) + 1)", "tanh(0.5 * a)"),
    Row("sinh and cosh", "square(cosh(a)) - square(sinh(a))", "1"),
    Row("square of cosh less one", "square(cosh(a)) - 1", "square(sinh(a))"),
    Row("square of sinh and one", "square(sinh(a)) + 1", "square(cosh(a))"),
    Row("sigmoid, mirrored", "sigmoid(-a)", "1 - sigmoid(a)", detour=True),
    Row("sigmoid as a quotient", "sigmoid(a)", "1 / (1 + exp(-a))"),
    Row("power of sigmoid", "sigmoid(a)**b", "exp(b * logsigmoid(a))"),
    Row("quotient of sigmoids", "sigmoid(a) / sigmoid(-a)", "exp(a)"),
    Row("log of two exponentials less one", "logaddexp(a, b) - a", "softplus(b - a)"),
)

_ANGLES = (
    Row("tangent", "sin(a) / cos(a)", "tan(a)"),
    Row("cotangent", "cos(a) / sin(a)", "1 / tan(a)"),
    Row("tangent, written out", "tan(a)", "sin(a) / cos(a)"),
    Row("tangent of a half", "(1 - cos(a)) / sin(a)", "tan(0.5 * a)"),
    Row("tangent of a half, below", "sin(a) / (1 + cos(a))", "tan(0.5 * a)"),
    Row(
        "square of that tangent", "(1 - cos(a)) / (1 + cos(a))", "square(tan(0.5 * a))"
    ),
    Row("one plus cos", "1 + cos(a)", "2 * square(cos(0.5 * a))"),
    Row("cos less one", "cos(a) - 1", "-2 * square(sin(0.5 * a))"),
    Row("one plus a squared tangent", "1 + square(tan(a))", "1 / square(cos(a))"),
    Row("squared sine and cosine", "square(sin(a)) + square(cos(a))", "1"),
    Row(
        "one less a squared tangent",
        "1 - square(tan(a))",
        "cos(2 * a) / square(cos(a))",
    ),
    Row("sine of a double", "sin(a) * cos(a)", "0.5 * sin(2 * a)"),
    Row("sine, halved", "sin(a)", "2 * sin(0.5 * a) * cos(0.5 * a)", detour=True),
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
    Row(
        "difference of squared tangents",
        "square(tan(a)) - square(tan(b))",
        "sin(a - b) * sin(a + b) / square(cos(a) * cos(b))",
    ),
    Row(
        "difference of squared secants",
        "1 / square(cos(a)) - 1 / square(cos(b))",
        "sin(a - b) * sin(a + b) / square(cos(a) * cos(b))",
    ),
    Row(
        "difference of squared sines",
        "square(sin(a)) - square(sin(b))",
        "sin(a - b) * sin(a + b)",
    ),
    Row(
        "difference of squared cosines",
        "square(cos(a)) - square(cos(b))",
        "sin(b - a) * sin(a + b)",
    ),
    Row(
        "sine of a sum", "sin(a + b)", "sin(a) * cos(b) + cos(a) * sin(b)", detour=True
    ),
    Row(
        "cosine of a sum",
        "cos(a + b)",
        "cos(a) * cos(b) - sin(a) * sin(b)",
        detour=True,
    ),
    Row("sine of a difference", "sin(a) * cos(b) - cos(a) * sin(b)", "sin(a - b)"),
    Row("cosine of a difference", "cos(a) * cos(b) + sin(a) * sin(b)", "cos(a - b)"),
    Row("sine, gathered", "sin(a) * cos(b) + cos(a) * sin(b)", "sin(a + b)"),
    Row("cosine, gathered", "cos(a) * cos(b) - sin(a) * sin(b)", "cos(a + b)"),
    Row("sine of a minus", "sin(-a)", "-sin(a)"),
    Row("cosine of a minus", "cos(-a)", "cos(a)"),
    Row(
        "difference of arctangents",
        "atan(a) - atan(b)",
        "atan2(a - b, 1 + a * b)",
    ),
    Row(
        "arctangents a step apart",
        "atan(a + b) - atan(a)",
        "atan2(b, 1 + a * (a + b))",
    ),
    Row("sine of an arc", "cos(asin(a))", "sqrt((1 - a) * (1 + a))"),
    Row("cosine of an arc", "sin(acos(a))", "sqrt((1 - a) * (1 + a))"),
    Row("quarter less an arc", "pi / 2 - asin(a)", "acos(a)"),
    Row("quarter less a cosine's arc", "pi / 2 - acos(a)", "asin(a)"),
    Row(
        "quarter less the double arc",
        "pi / 2 - 2 * asin(sqrt((1 - a) / 2))",
        "asin(a)",
    ),
)

IDENTITIES = _POWERS + _ROOTS + _LOGARITHMS + _EXPONENTIALS + MIXTURES + _ANGLES + JOINT
