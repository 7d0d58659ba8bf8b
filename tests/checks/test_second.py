"""Second order: proved where the first is, and found out where a patched value lies."""

from __future__ import annotations

from fractions import Fraction
from textwrap import dedent
from typing import Any

import pytest

from gradspec import api
from gradspec.checks.check import check
from gradspec.checks.gradients import Judgement
from gradspec.checks.second_order import _slopes, _true, judge
from gradspec.driver.run import compile_source
from gradspec.ir.rule import Rule, Status
from gradspec.options import Options
from gradspec.source import Source
from gradspec.symbolic.enclose import enclose, is_defined
from tests.checks.written import written

PATCHED = """
    rule f(x) -> y:
        y = sin(x) / x if x != 0 else 1
        dx = dy * ((x * cos(x) - sin(x)) / x**2 if x != 0 else {value})
    """


def judged(text: str) -> dict[str, Judgement]:
    rule = written(text)
    first = check(rule, 3.0)
    assert first.value is not None
    assert not first.failed, first.diagnostics
    return {j.verdict.input: j for j in judge(rule, first.value.verdicts, 2.0)}


def test_what_is_patched_in_is_a_constant_to_the_second_derivative() -> None:
    (found,) = judged(PATCHED.format(value=0)).values()
    assert found.verdict.status is Status.REFUTED
    (told,) = found.found
    assert told.code == "GS462"
    assert "is 0 at x = 0" in told.labels[0].message
    assert "should be -0.3333333333" in told.labels[0].message
    assert "first-order term in x" in told.help


def test_a_taylor_polynomial_cures_it() -> None:
    (found,) = judged(PATCHED.format(value="-x / 3")).values()
    assert found.verdict.status is Status.PROVED
    assert not found.found


@pytest.mark.parametrize(
    "body",
    [
        "y = x * abs(x)",
        "y = relu(x)",
        "y = abs(x)",
        "y = x**2 if x > 1 else 2 * x - 1\n    dx = dy * 2 * max(x, 1)",
        "y = x**3\n    dx = 3 * dy * x * x if x != 0 else 0",
        "y = clip(x, -1, 1)",
        "y = floor(x) * x",
        "y = sinc(x)",
        "y = exp(-1 / x**2) if x != 0 else 0",
    ],
)
def test_kinks_and_harmless_patches_are_no_lies(body: str) -> None:
    text = "rule f(x) -> y:\n    " + body
    found = judged(text.replace("\\\n", "\n"))
    assert found["x,x"].verdict.status is Status.PROVED


def test_several_inputs_are_looked_at_pair_by_pair() -> None:
    found = judged("rule f(x, z) -> y:\n    y = x * exp(z)\n    dx = dy * exp(z)")
    assert set(found) == {"x,x", "x,z", "z,x", "z,z"}
    assert all(j.verdict.status is Status.PROVED for j in found.values())


def test_a_static_exponent_of_0_hides_a_derivative_by_it() -> None:
    """``z * x**(z - 1) if z != 0 else 0``, as the table of primitives has it."""
    found = judged("rule f(x, z) -> y:\n    assume x > 0\n    y = x**z")
    assert found["x,z"].verdict.status is Status.REFUTED
    assert "at x = 1, z = 0" in found["x,z"].found[0].labels[0].message
    assert found["z,z"].verdict.status is Status.PROVED


def test_surrogates_and_overrides_say_what_their_second_order_is() -> None:
    spike = """
        rule f(v) -> s:
            s = heaviside(v, 0)
            surrogate s = v / (1 + abs(v))
        """
    (found,) = judged(spike).values()
    assert found.verdict.status is Status.PROVED
    assert found.verdict.through_surrogate
    (found,) = judged(
        'rule f(x) -> y:\n    y = x\n    override dx = -dy * x because "so"'
    ).values()
    assert found.verdict.status is Status.OVERRIDE
    assert "derivative of the override" in found.verdict.method


def test_ranked_rules() -> None:
    softmax = """
        rule f(x[..., n]) -> y[..., n]:
            e[i] = exp(x[i] - max(x[j] for j))
            y[i] = e[i] / sum(e[j] for j)
            dx[i] = y[i] * (dy[i] - sum(dy[j] * y[j] for j))
        """
    (found,) = judged(softmax).values()
    assert found.verdict.status is Status.PROVED
    assert found.verdict.sizes == "every size"


def test_the_command_and_its_document() -> None:
    source = Source("f.grad", dedent(PATCHED.format(value=0)).strip() + "\n")
    result, _ = compile_source(source, "f.grad", Options(order=2))
    assert [d.code for d in result.diagnostics] == ["GS462"]
    assert result.rules[0].second[0].status is Status.REFUTED
    result, _ = compile_source(source, "f.grad", Options())
    assert not result.diagnostics
    assert result.rules[0].second == ()


# --- against numbers ---------------------------------------------------------------------

SAMPLE = {
    "softplus": "y = softplus(x)",
    "declared tanh": "y = tanh(x)\n    dx = dy * (1 - y**2)",
    "gelu": "y = 0.5 * x * (1 + erf(x / sqrt(2)))",
    "square root loss": "y = sqrt(x * x + 1) - 1\n    dx = dy * x / (y + 1)",
    "log-cosh": "y = log(cosh(x))\n    dx = dy * tanh(x)",
    "cubed": "y = abs(x)**3\n    dx = 3 * dy * x * abs(x)",
    "mish": "y = x * tanh(softplus(x))",
    "a taylor patch": "y = sin(x) / x if x != 0 else 1\n"
    "    dx = dy * ((x * cos(x) - sin(x)) / x**2 if x != 0 else -x / 3)",
    "a surrogate": "y = 1 if x > 0 else 0\n    surrogate y = x / (1 + x * x)",
}


def _seconds(rule: Rule) -> Any:
    """The second derivative in balls."""
    (slope,) = _slopes(_true(rule)["x"], ("x",)).values()
    return slope


@pytest.mark.parametrize("name", SAMPLE)
def test_emitted_second_derivatives_are_those_of_balls(
    name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("GRADSPEC_CACHE_DIR", str(tmp_path / "cache"))
    text = f"rule f(x) -> y:\n    {SAMPLE[name]}\n"
    (tmp_path / "f.grad").write_text(text, "utf-8")
    module = api.load(tmp_path / "f.grad", "torch")
    places = [0.0, 0.5, -0.75, 1.5, -3.0, 4.25]
    x = torch.tensor(places, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(module.f(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(slope.sum(), x)
    expected = _seconds(written(text))
    for place, value in zip(places, second.tolist(), strict=True):
        point = {"x": Fraction(place) or Fraction(1, 2**40), "dy": Fraction(1)}
        ball = enclose(expected, point, 512)
        assert is_defined(ball)
        assert value == pytest.approx(float(ball.mid()), rel=1e-9, abs=1e-9), place
