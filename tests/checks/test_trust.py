"""What is proved, sampled and reported of rules that are close to the edge."""

from __future__ import annotations

import pytest

from gradspec.ir.rule import Status
from tests.checks.written import checked, codes

DENSE = """
rule dense(x[n, k], w[k, m], b[m]) -> y[n, m]:
    y[i, j] = {f}(sum(x[i, l] * w[l, j] for l) + b[j])
    g[i, j] = dy[i, j] * {slope}
    dx[i, l] = sum(g[i, j] * w[l, j] for j)
    dw[l, j] = sum(g[i, j] * x[i, l] for i)
    db[j] = sum(g[i, j] for i)
"""
WRITTEN = "tanh(sum(x[i, a] * w[a, j] for a) + b[j])"


@pytest.mark.parametrize(
    ("f", "slope"),
    [
        ("tanh", "(1 - y[i, j]**2)"),
        ("tanh", "(1 - y[i, j]) * (1 + y[i, j])"),
        ("tanh", f"(1 - {WRITTEN}**2)"),
        ("sigmoid", "y[i, j] * (1 - y[i, j])"),
        ("sigmoid", "(y[i, j] - y[i, j]**2)"),
    ],
)
def test_a_dense_layer_is_proved_for_every_size(f: str, slope: str) -> None:
    outcome = checked(DENSE.format(f=f, slope=slope))
    assert outcome.diagnostics == ()
    assert outcome.value is not None
    assert {v.status for v in outcome.value.verdicts} == {Status.PROVED}
    assert {v.sizes for v in outcome.value.verdicts} == {"every size"}


@pytest.mark.parametrize("slope", ["(1 + y[i, j]**2)", "(1 - y[i, j])", "y[i, j]**2"])
def test_a_dense_layer_with_another_slope_is_refuted(slope: str) -> None:
    found = codes(DENSE.format(f="tanh", slope=slope))
    assert found == ("GS401", "GS401", "GS401")


ON_A_SURFACE = """
rule f(x[n]) -> y[]:
    assume {surface}
    y = {value}
    dx[i] = {gradient}
"""
SQUARES = "sum(x[i]**2 for i)"


@pytest.mark.parametrize(
    ("surface", "value", "right", "wrong"),
    [
        (
            "x[i] > 0, sum(x[i] for i) == 1",
            "-sum(x[i] * log(x[i]) for i)",
            "-dy * (log(x[i]) + sum(x[j] for j))",
            "-dy * (log(x[i]) + 2 * sum(x[j] for j))",
        ),
        (
            "n > 1, x[0] == x[1]",
            SQUARES,
            "2 * dy * (x[1] if i == 0 else x[i])",
            "2 * dy * (x[1] if i == 0 else x[0])",
        ),
        (
            f"{SQUARES} == 1",
            "sum(x[i]**4 for i)",
            f"4 * dy * x[i]**3 * {SQUARES.replace('i', 'j')}",
            "4 * dy * x[i]**3 * sum(x[j] for j)",
        ),
        (
            "n > 1, x[0] == 2 * x[1]",
            "x[0] * x[1]",
            "dy * (x[1] if i == 0 else 2 * x[1] if i == 1 else 0)",
            "dy * (x[1] if i == 0 else x[1] if i == 1 else 0)",
        ),
        (
            "mean(x[i] for i) == 0",
            "mean((x[i] - mean(x[j] for j))**2 for i)",
            "2 * dy * x[i] / n",
            "2 * dy * x[i]",
        ),
    ],
)
def test_equalities_among_elements_are_sampled_on(
    surface: str, value: str, right: str, wrong: str
) -> None:
    """Right on the surface is right, wrong on it is wrong, whatever holds beside it."""

    def seen(gradient: str) -> tuple[str, ...]:
        text = ON_A_SURFACE.format(surface=surface, value=value, gradient=gradient)
        return codes(text)

    assert seen(right) == ()
    assert seen(wrong) == ("GS401",)


def test_lints_look_at_the_surface() -> None:
    text = ON_A_SURFACE.format(
        surface="x[i] > 0, sum(x[i] for i) == 1",
        value="log(sum(x[i] for i) - {})",
        gradient="dy / (sum(x[j] for j) - {0})",
    )
    assert codes(text.replace("{}", "0.5").replace("{0}", "0.5")) == ()
    assert "GS440" in codes(text.replace("{}", "2").replace("{0}", "2"))


SMOOTH = """
rule smooth_l1(x, t, beta: static = 1.0) -> loss:
    assume beta {op} 0
    d = abs(x - t)
    loss = 0.5 * d**2 / beta if d < beta else d - 0.5 * beta
    dx = dloss * ((x - t) / beta if d {within} beta else sign(x - t))
"""
SMOOTH_OF_VECTORS = """
rule smooth_l1(x[n], t[n], beta: static = 1.0) -> loss[]:
    assume beta {op} 0
    d[i] = abs(x[i] - t[i])
    loss = sum(0.5 * d[i]**2 / beta if d[i] < beta else d[i] - 0.5 * beta for i)
    dx[i] = dloss * ((x[i] - t[i]) / beta if d[i] {within} beta else sign(x[i] - t[i]))
"""


@pytest.mark.parametrize("text", [SMOOTH, SMOOTH_OF_VECTORS])
def test_a_form_that_has_no_value_at_the_end_of_a_parameter(text: str) -> None:
    assert codes(text.format(op=">=", within="<=")) == ("GS403",)
    assert codes(text.format(op=">=", within="<")) == ()
    assert codes(text.format(op=">", within="<=")) == ()


CLAMPED = """
rule quantised(x, s: param = 1.0) -> y:
    assume s > 0
    r = {step}
    y = clip(r, -8, 7) * s
    override dx = dy if {low} and {high} else 0 because "straight through"
"""


@pytest.mark.parametrize("step", ["round(x / s)", "floor(x / s)", "ceil(x / s)"])
@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        ("-8 < r", "r < 7", ("GS435",)),
        ("-8 <= r", "r < 7", ("GS435",)),
        ("-8 <= r", "r <= 7", ()),
        ("-8 < x / s", "x / s < 7", ()),
    ],
)
def test_a_strict_clamp_after_a_step_loses_an_interval(
    step: str, low: str, high: str, found: tuple[str, ...]
) -> None:
    assert codes(CLAMPED.format(step=step, low=low, high=high)) == found


def test_of_a_derived_gradient_it_is_a_warning() -> None:
    text = """
        rule ste(x) -> y:
            y = round(x)
            override dx = dy because "straight through"

        rule quantised(x) -> y:
            r = ste(x)
            y = -8 if r {less} -8 else 7 if r {more} 7 else r
    """
    (found,) = checked(text.format(less="<=", more=">=")).diagnostics
    assert (found.code, found.is_error) == ("GS435", False)
    assert found.severity.value == "warning"
    assert codes(text.format(less="<", more=">")) == ()
