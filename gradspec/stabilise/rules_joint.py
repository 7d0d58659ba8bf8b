"""Rewrite rules for what two or three inputs have to do with each other: angles of
vectors, arcs on a sphere, differences of one function at two places.

``STRAIGHT`` are tried wherever they match, ``JOINT`` in the e-graph alone. Each row is put
to the proof by balls, as those of `rules.py`.
"""

from __future__ import annotations

from gradspec.stabilise.row import Row

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

STRAIGHT = _ANGLES + _COSINES + _ROOTS

JOINT = (
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
