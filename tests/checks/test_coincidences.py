"""Findings at points at which several inputs coincide, in one table: equal points given by
scalars, elements in fixed places that vanish together, moments of few elements."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.checks.test_boundaries import diagnostics

CASES = [
    # a conditional patched with a value that is right for one radius only
    (
        "a, b, w",
        "s = sqrt(a**2 + b**2)\ny = (tanh(s * w) / s if s > 0 else 1) * a",
        "GS434",
    ),
    (
        "q[3]",
        "s = hypot(q[1], q[2])\ny = (atan(s / q[0]) / s if s > 0 else 1) * q[1]",
        "GS434",
    ),
    (
        "q[4]",
        "s = q[1]**2 + q[3]**2\ny = (sin(s * q[0]) / s if s > 0 else 1) * q[1]",
        "GS434",
    ),
    ("q[..., 3]", "s = q[0]**2 + q[1]**2\ny = q[2] * (s if s != 0 else 1)", "GS432"),
    ("q[2]", "y = hypot(q[0], q[1])", ""),
    # two points of a plane, two boxes, two angles
    ("a, b, c, d", "v = (a - c)**2 + (b - d)**2\ny = v**2 / (v + abs(a - c))", "GS433"),
    ("a, c, b, d", "v = (a - c)**2 + (b - d)**2\ny = expm1(v) / v", "GS433"),
    ("a, b, c, d", "y = sqrt((a - c)**2 + (b - d)**2)", ""),
    (
        "a, b, c, d",
        "v = (atan(a / b) - atan(c / d))**2\ny = v**2 / (v + (a - c)**2)",
        "GS433",
    ),
    ("a, b, c, d", "y = a**2 - 2 * a * c + c**2 + b**2 - 2 * b * d + d**2", "GS441"),
    (
        "a, b, c, d",
        "y = acos(clip(sin(a) * sin(c) + cos(a) * cos(c) * cos(b - d), -1, 1))",
        "GS441",
    ),
    # smooth at a face of a box, though its pieces have a tip and a tie there
    (
        "a, b, c, d",
        "p = a - c\nq = b - d\n"
        "y = sqrt(max(p, 0)**2 + max(q, 0)**2) + min(max(p, q), 0)",
        "GS434",
    ),
    # digits that the gradient loses, over axes
    (
        "x[..., n]",
        "m = mean(x[i] for i)\n"
        "y = mean(x[i]**3 for i) - 3 * mean(x[i]**2 for i) * m + 2 * m**3",
        "GS441",
    ),
    # symmetric in two elements, not in more
    ("x[..., n]", "m = mean(x[i] for i)\ny = sum((x[i] - m)**3 for i)", ""),
    (
        "x[..., n]",
        "m = mean(x[i] for i)\n"
        "y = mean((x[i] - m)**4 for i) / mean((x[i] - m)**2 for i)**2",
        "",
    ),
    ("x[..., n]", "m = mean(x[i] for i)\ny = sum(x[i] - m for i)", "GS448"),
]


@pytest.mark.parametrize(("inputs", "body", "code"), CASES)
def test_what_is_found(inputs: str, body: str, code: str) -> None:
    """Once for each code, or nothing."""
    domain = "assume a > 0, b > 0, c > 0, d > 0\n" if inputs.count(",") == 3 else ""
    found = diagnostics(inputs, dedent(domain) + body)
    codes = [one.code for one in found]
    assert codes.count(code) == (code != "") and (code or not codes)


@pytest.mark.parametrize(
    ("inputs", "body", "told"),
    [
        ("x", "y = tanh(x)\ndx = dy * (1 - tanh(x))**2", "`1 - tanh(x)**2`"),
        ("x", "y = atan(x)\ndx = dy / (1 + x)**2", "`1 + x**2`"),
        ("x", "y = sin(x**2)\ndx = dy * 2 * x * cos(x)**2", "`cos(x**2)`"),
        (
            "x[n]",
            "y = sum(tanh(x[i]) for i)\ndx[i] = dy * (1 - tanh(x[i]))**2",
            "(x[i])**2`",
        ),
        ("x", "y = sigmoid(x)\ndx = dy * y - y**2", "`dy * (y - y**2)`"),
    ],
)
def test_a_bracket_in_the_wrong_place(inputs: str, body: str, told: str) -> None:
    (found,) = diagnostics(inputs, body)
    assert found.code == "GS401" and any(told in note for note in found.notes)


def test_numbers_that_differ_are_shown_to_differ() -> None:
    wrong = diagnostics("a, w", "y = (sin(a * w) / a if a != 0 else 1.00000001 * w)")
    assert [one.code for one in wrong] == ["GS430"]
    told = wrong[0].labels[0].message
    value, limit = (
        text.split(" ")[0] for text in (told[6:], told.split("limit is ")[1])
    )
    assert value != limit
