"""Rewrite rules about an eighth of a turn: the Gudermannian function and its inverse, as
map projections and the theory of lines have them, and arcs less their value at 1.

``log(tan(pi / 4 + x / 2))`` loses all digits about 0, where its argument is about 1; the
inverse hyperbolic sine of the tangent loses none (Abramowitz and Stegun, 4.3.117). Each row
is put to the proof by balls, as those of `rules.py`.
"""

from __future__ import annotations

from gradspec.stabilise.row import Row

EIGHTHS = (
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
