"""What is already stable stays as good as it is, forward and derived gradient, in
float32 and in float64; and what was chosen is chosen again."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from gradspec.ir.expr import show
from gradspec.ir.rule import Chosen, Judged, Rule
from gradspec.ir.walk import closed_cotangents, closed_outputs
from gradspec.stabilise.accuracy_model import Trial
from gradspec.stabilise.stabilise import stabilise
from gradspec.symbolic.arithmetic_model import Machine
from gradspec.symbolic.points.measured import Points, as_points, points
from gradspec.symbolic.points.strata import points as audited
from tests.derive.rules import completed

STABLE = {
    "softplus by |x|": "log1p(exp(-abs(x))) + max(x, 0)",
    "sigmoid by |x|": "exp(min(x, 0)) / (1 + exp(-abs(x)))",
    "silu by tanh": "0.5 * x * (1 + tanh(x / 2))",
    "x tanh(x/2)": "x * tanh(x / 2)",
    "tanh by expm1": "-expm1(-2 * x) / (1 + exp(-2 * x))",
    "expm1 quotient": "expm1(x) / (2 + expm1(x))",
    "sinh by expm1": "0.5 * (expm1(x) + expm1(x) / (expm1(x) + 1))",
    "1 - exp(-x)": "-expm1(-x)",
    "log cosh": "abs(x) + log1p(exp(-2 * abs(x))) - log(2)",
    "haversine": "2 * square(sin(x / 2))",
    "softsign": "x / (1 + abs(x))",
    "norm of (x, 1)": "hypot(x, 1)",
    "x over hypot": "x / hypot(x, 1)",
    "root difference": "1 / (sqrt(x + 1) + sqrt(x))",
    "reciprocal difference": "1 / (x * (x + 1))",
    "log of a quotient": "log1p(1 / x)",
    "entropy at both ends": "-(xlogy(x, x) + xlog1py(1 - x, -x))",
    "atanh by log1p": "0.5 * log1p(2 * x / (1 - x))",
    "2 atanh": "2 * atanh(x / (2 + x))",
    "asin slope": "x / (sqrt(1 - x) * sqrt(1 + x))",
    "Kahan's acosh": "2 * log(sqrt((x + 1) / 2) + sqrt((x - 1) / 2))",
    "acosh by log1p": "log1p((x - 1) + sqrt((x - 1) * (x + 1)))",
    "asinh by log1p": "log1p(x + square(x) / (1 + sqrt(1 + square(x))))",
    "Horner": "((2 * x - 3) * x + 5) * x + 1",
    "rational": "(1 + x * (0.5 + x * 0.125)) / (1 - x * (0.5 - x * 0.125))",
    "scaled erfc": "exp(-x * x) * erfcx(x)",
    "log of erfc": "log_ndtr(-x)",
    "complement": "erfc(x / sqrt(2)) / 2",
    "cubic root": "x / (square(cbrt(x + 1)) + cbrt(x + 1) + 1)",
    "exact difference": "(x - 1) * (x + 1)",
    "difference of squares": "(a - b) * (a + b)",
    "shifted logsumexp": "max(a, b) + log1p(exp(-abs(a - b)))",
    "scaled norm": "max(abs(a), abs(b)) * sqrt(1 + square(min(abs(a), abs(b)) / max(abs(a), abs(b))))",
    "Heron by Kahan": "sqrt((a + (b + 1)) * (1 - (a - b)) * (1 + (a - b)) * (a + (b - 1))) / 4",
    "weighted mean": "a + x * (b - a)",
    "relative change": "(a - b) / b",
}
ASSUMED = {
    "root difference": "x > 0",
    "reciprocal difference": "x > 0",
    "log of a quotient": "x > 0",
    "entropy at both ends": "0 < x, x < 1",
    "atanh by log1p": "0 <= x, x < 1",
    "2 atanh": "x > -1",
    "asin slope": "-1 < x, x < 1",
    "Kahan's acosh": "x > 1",
    "acosh by log1p": "x > 1",
    "asinh by log1p": "x >= 0",
    "rational": "abs(x) < 1",
    "scaled erfc": "x > 0",
    "cubic root": "x > 0",
    "scaled norm": "a > 0, b > 0",
    "Heron by Kahan": "a >= b, b >= 1, a - b < 1",
    "weighted mean": "0 <= x, x <= 1",
    "relative change": "b > 0",
}
POINTS = 250


def text(name: str) -> str:
    form = STABLE[name]
    inputs = [v for v in ("x", "a", "b") if re.search(rf"\b{v}\b", form)]
    assume = f"    assume {ASSUMED[name]}\n" if name in ASSUMED else ""
    return f"rule f({', '.join(inputs)}) -> y:\n{assume}    y = {form}\n"


@cache
def before_and_after(name: str) -> tuple[Rule, Chosen]:
    rule = completed(text(name))
    return rule, stabilise(Judged(rule, ()))


def trials(rule: Rule, dtype: str) -> tuple[Points, Machine]:
    """Points of the audit, which the choice has not seen; the upstream gradient is 1."""
    work = np.dtype(dtype).type
    rows = [dict(row) for row in audited(rule, dtype, POINTS).rows()]
    sample = as_points(rule, rows, work)
    return sample, Machine(sample.columns, work)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", STABLE)
def test_no_measure_gets_worse(name: str, dtype: str) -> None:
    before, done = before_and_after(name)
    sample, machine = trials(before, dtype)
    old = closed_outputs(before) | closed_cotangents(before)
    new = closed_outputs(done.rule) | closed_cotangents(done.rule)
    for value, meaning in old.items():
        trial = Trial(meaning, sample, machine)
        written, chosen = trial.score(meaning), trial.score(new[value])
        found = f"{value}: {show(new[value])}: {chosen} of {written}"
        assert chosen.bad <= written.bad and chosen.core <= written.core, found


@pytest.mark.parametrize("name", STABLE)
def test_what_was_chosen_is_chosen_again(name: str) -> None:
    _, once = before_and_after(name)
    again = stabilise(Judged(once.rule, ()))
    assert again.wide == once.wide
    assert again.rule == once.rule


def test_the_choice_is_the_same_the_next_time() -> None:
    name = "2 atanh"
    points.cache_clear()
    assert stabilise(Judged(completed(text(name)), ())) == before_and_after(name)[1]
