"""Ranked rules through the stabiliser: what is chosen, and what it computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from gradspec.ir.elements import EVALUATED
from gradspec.ir.rule import Judged, Rule
from gradspec.ir.unroll import unroll
from gradspec.primitives.lookup import primitive
from gradspec.stabilise.names import Names
from gradspec.stabilise.stabilise import stabilise
from gradspec.symbolic.arithmetic_model import Machine
from tests.ir.well_formed import verify
from tests.stabilise.rules import stable, texts


def values(rule: Rule, name: str, given: Mapping[str, Any]) -> list[float]:
    """The elements of an output or cotangent in float32, as a target evaluates them."""
    integers = {k: v for k, v in given.items() if isinstance(v, int)}
    sizes = {"n": len(given["x"]), "k": len(given.get("w", ())), **integers}
    scalars = unroll(rule, sizes, integers, EVALUATED).rule
    columns: dict[str, Any] = {}
    for key, value in given.items():
        if isinstance(value, list):
            columns |= {f"{key}[{i}]": v for i, v in enumerate(value)}
        elif key not in integers:
            columns[key] = value
    dtype = {bool: np.bool_, float: np.float32}
    machine = Machine({k: np.array([v], dtype[type(v)]) for k, v in columns.items()})
    names = Names(scalars)
    every = (*scalars.forward, *scalars.backward)
    lets: dict[str, Any] = {d.name: d.value for d in every}
    wanted = [key for key in lets if key == name or key.startswith(f"{name}[")]
    return [float(machine.run(names.close(lets[key]))[0]) for key in wanted]


SOFTMAX = """
rule f(x[..., n]) -> y[..., n]:
    e[i] = exp(x[i])
    y[i] = e[i] / sum(e[j] for j)
    dx[i] = y[i] * (dy[i] - sum(dy[j] * y[j] for j))
"""

CROSS_ENTROPY = """
rule f(x[..., n], t: int) -> y:
    p[i] = exp(x[i]) / sum(exp(x[j]) for j)
    y = -log(p[t])
    dx[i] = dy * (p[i] - (1 if i == t else 0))
"""

NORM = """
rule f(x[..., n]) -> y:
    y = sqrt(sum(x[i]**2 for i))
    dx[i] = dy * x[i] / y
"""

VARIANCE = """
rule f(x[..., n]) -> y:
    m = mean(x[i] for i)
    y = mean(x[i]**2 for i) - m**2
    dx[i] = dy * 2 * (x[i] - m) / n
"""

NORMALISED = """
rule f(x[..., n]) -> y[..., n]:
    r = sqrt(sum(x[j]**2 for j))
    y[i] = x[i] / r
    dx[i] = (dy[i] - y[i] * sum(dy[j] * y[j] for j)) / r
"""

COSINE = """
rule f(x[..., n], z[..., n]: nograd) -> y:
    r = sqrt(sum(x[i]**2 for i))
    s = sqrt(sum(z[i]**2 for i))
    y = sum(x[i] * z[i] for i) / (r * s)
    dx[i] = dy * (z[i] / s - y * x[i] / r) / r
"""

DIVERGENCE = """
rule f(x[..., n], z[..., n]: nograd) -> y:
    p[i] = exp(x[i]) / sum(exp(x[j]) for j)
    q[i] = exp(z[i]) / sum(exp(z[j]) for j)
    y = sum(p[i] * (log(p[i]) - log(q[i])) for i)
    dx[i] = dy * p[i] * (log(p[i]) - log(q[i]) - y)
"""

MASKED = """
rule f(x[..., n], k[..., n]: bool) -> y[..., n]:
    y[i] = (exp(x[i]) if k[i] else 0) / sum(exp(x[j]) if k[j] else 0 for j)
    dx[i] = y[i] * (dy[i] - sum(dy[j] * y[j] for j))
"""

ALL = [
    SOFTMAX,
    CROSS_ENTROPY,
    NORM,
    VARIANCE,
    NORMALISED,
    COSINE,
    DIVERGENCE,
    MASKED,
]


def test_a_softmax_does_not_overflow() -> None:
    rule = stable(SOFTMAX).rule
    assert texts(rule)["y"] == (
        "exp(x[i] - max(x[j] for j)) / sum(exp(x[j] - max(x[l] for l)) for j)"
    )
    assert [let.name for let in rule.forward] == ["y"]  # nothing needs `e` any more
    assert values(rule, "y", {"x": [1000.0, 1000.0]}) == [0.5, 0.5]


def test_a_masked_entry_has_no_probability_and_no_gradient() -> None:
    given = {"x": [2.0, -float("inf"), 2.0], "dy": [1.0, 5.0, 0.0]}
    rule = stable(SOFTMAX).rule
    assert values(rule, "y", given) == [0.5, 0.0, 0.5]
    assert values(rule, "dx", given) == [0.25, 0.0, -0.25]


def test_an_entry_masked_by_a_condition() -> None:
    given = {"x": [200.0, 900.0, 200.0], "k": [True, False, True]}
    rule = stable(MASKED).rule
    assert values(rule, "y", given) == [0.5, 0.0, 0.5]


def test_a_row_that_is_masked_altogether_is_what_frameworks_give() -> None:
    given = {"x": [-float("inf")] * 2}
    assert np.isnan(values(stable(SOFTMAX).rule, "y", given)).all()
    total = stable("rule f(x[..., n]) -> y:\n    y = log(sum(exp(x[i]) for i))\n")
    assert texts(total.rule)["y"] == "logsumexp(x[i] for i)"


def test_cross_entropy_composed_from_softmax_and_log() -> None:
    rule = stable(CROSS_ENTROPY).rule
    assert texts(rule)["y"] == "logsumexp(x[j] for j) - x[t]"
    given = {"x": [1000.0, 0.0, -1000.0], "t": 2, "dy": 1.0}
    assert values(rule, "y", given) == [2000.0]
    assert values(rule, "dx", given) == [1.0, 0.0, -1.0]


def test_a_variance_keeps_its_digits() -> None:
    rule = stable(VARIANCE).rule
    assert texts(rule)["y"] == "mean((x[j] - m)**2 for j)"
    assert values(rule, "y", {"x": [10000.0, 10001.0, 10002.0]}) == [
        pytest.approx(2 / 3, rel=1e-6)
    ]


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 1e30])
def test_a_norm_neither_overflows_nor_vanishes(scale: float) -> None:
    rule = stable(NORM).rule
    given = {"x": [3.0 * scale, -4.0 * scale], "dy": 2.0}
    assert values(rule, "y", given) == [pytest.approx(5.0 * scale, rel=1e-6)]
    assert values(rule, "dx", given) == [
        pytest.approx(g, rel=1e-6) for g in (1.2, -1.6)
    ]


def test_a_norm_has_no_gradient_at_the_vector_nought() -> None:
    rule = stable(NORM).rule
    given = {"x": [0.0, 0.0], "dy": 1.0}
    assert values(rule, "y", given) == [0.0]
    assert values(rule, "dx", given) == [0.0, 0.0]


@pytest.mark.parametrize("text", [NORMALISED, COSINE])
@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_directions_of_tiny_and_of_large_vectors(text: str, scale: float) -> None:
    rule = stable(text).rule
    given = {"x": [3.0 * scale, 4.0 * scale], "z": [1.0, 0.0]}
    first = values(rule, "y", given)[0]
    assert first == pytest.approx(0.6, rel=1e-6)


def test_what_is_undefined_is_not_made_up() -> None:
    """The direction of the vector 0: not a number, as the rule says."""
    assert np.isnan(values(stable(NORMALISED).rule, "y", {"x": [0.0, 0.0]})).all()


def test_a_divergence_of_distributions_far_apart() -> None:
    rule = stable(DIVERGENCE).rule
    given = {"x": [500.0, 0.0], "z": [0.0, 500.0], "dy": 1.0}
    assert values(rule, "y", given) == [500.0]


@pytest.mark.parametrize("text", ALL)
def test_the_result_is_well_formed_and_stays_as_it_is(text: str) -> None:
    """Every index is bound once; a second run finds nothing to mend."""
    once = stable(text)
    arity = lambda op: len(primitive(op).params)  # noqa: E731
    assert verify(once.rule, arity) == ()
    again = stabilise(Judged(once.rule, ()))
    assert texts(again.rule) == texts(once.rule)


def test_the_reason_names_a_vector() -> None:
    (rewrite,) = (r for r in stable(VARIANCE).rewrites if r.name == "y")
    assert rewrite.reason.startswith("as written, loses digits for x[0] near ")


def test_a_stable_rule_is_left_alone() -> None:
    text = """
    rule f(x[..., n]) -> y[..., n]:
        m = max(x[j] for j)
        e[i] = exp(x[i] - m)
        y[i] = e[i] / sum(e[j] for j)
        dx[i] = y[i] * (dy[i] - sum(dy[j] * y[j] for j))
    """
    assert stable(text).rewrites == ()
