"""Gradients that cancel about roots in float64, too: mended, wherever the signs are."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from gradspec.ir import closed
from gradspec.ir.expr import Expr
from gradspec.stabilise.model import Machine
from gradspec.symbolic.truth import nearest
from tests.derive.rules import completed
from tests.stabilise.rules import stable

ROOTS = "rule f(x, t) -> y:\n    y = cbrt(x + t) - cbrt(x)\n"
SHEAR = """rule f(p, r, q) -> y:
    y = (abs(p) + abs(r) - sqrt((p - r)**2.0 + 4.0 * q**2.0)) / 2
"""
TRIANGLE = """rule f(a, b, c) -> y:
    assume a > 0, b > 0, 0 <= c, c <= pi
    y = sqrt(a**2 + b**2 - 2 * a * b * cos(c))
"""
HERON = """rule f(a, b, c) -> y:
    assume a > 0, b > 0, c > 0, a < b + c, b < a + c, c < a + b
    s = (a + b + c) / 2
    y = sqrt(s * (s - a) * (s - b) * (s - c))
"""
PARALLELOGRAM = TRIANGLE.replace(" - 2", " + 2")
ERROR = "rule f(x) -> y:\n    y = erf(x) / x\n"


kept = lru_cache(stable)


def test_a_gradient_of_flat_triangles_keeps_the_shortest_side() -> None:
    """The sides' sum holds nothing of it."""
    done = kept(HERON)
    point = {"a": 2.0**33, "b": 2.0**33, "c": 2.0**-20, "dy": 1.0}
    (true,) = nearest(closed.cotangents(completed(HERON))["dc"], [point], "float64")
    chosen = closed.cotangents(done.rule)["dc"]
    assert in_double(chosen, **point) == pytest.approx(true, rel=1e-9)


def in_double(form: Expr, **point: float) -> float:
    columns = {name: np.array([value]) for name, value in point.items()}
    return float(Machine(columns, np.float64).run(form)[0])


@pytest.mark.parametrize(
    ("text", "name", "point"),
    [
        (ROOTS, "dx", {"x": 93051496.0, "t": 9.7e-11}),
        (ROOTS, "dx", {"x": -93051496.0, "t": 9.7e-11}),
        (SHEAR, "dp", {"p": -2.25, "r": 4914246.0, "q": 2.0**-28}),
        (SHEAR, "dp", {"p": 4914246.0, "r": -2.25, "q": 2.0**-28}),
        (SHEAR, "dr", {"p": -(2.0**-16), "r": -20.25, "q": 2.0**-26}),
        (TRIANGLE, "da", {"a": 2.0**-60, "b": 2.0**-60, "c": 2.0**-48}),
        (TRIANGLE, "dc", {"a": 2.0**-60, "b": 2.0**-60, "c": 2.0**-48}),
        (PARALLELOGRAM, "dc", {"a": 0.75, "b": 0.75, "c": 3.1415925}),
        (ERROR, "dx", {"x": 2.0**-28}),
        (ERROR, "dx", {"x": -(2.0**-100)}),
    ],
)
def test_float64_keeps_the_digits(
    text: str, name: str, point: dict[str, float]
) -> None:
    done = kept(text)
    assert name in done.wide
    given = {**point, "dy": 1.0}
    (true,) = nearest(closed.cotangents(completed(text))[name], [given], "float64")
    found = closed.cotangents(done.rule)[name]
    assert in_double(found, **given) == pytest.approx(true, rel=1e-9)
