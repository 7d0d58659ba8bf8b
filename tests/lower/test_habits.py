"""What users write who come from other libraries, and how they are told to write it."""

from __future__ import annotations

import pytest

from gradspec.api import CompileError, compile_text

HABITS = [
    ("x", "ln(x)", "GS202", "write `log(x)`"),
    ("x", "where(x > 0, x, 0)", "GS202", "write `x if x > 0 else 0`"),
    ("x", "np.where(x > 0, x, 0)", "GS202", "write `x if x > 0 else 0`"),
    ("x", "np.maximum(x, 0)", "GS202", "write `max(x, 0)`"),
    ("x", "torch.clamp(x, 0, 1)", "GS202", "write `clip(x, 0, 1)`"),
    ("x", "torch.tanh(x)", "GS202", "write `tanh(x)`"),
    ("x", "torch.nn.functional.softplus(x)", "GS119", "write `softplus(…)`"),
    ("x", "tf.math.log1p(x)", "GS119", "write `log1p(…)`"),
    ("x", "x * np.pi", "GS119", "write `pi`"),
    ("x", "x.exp()", "GS202", "write `exp(x)`"),
    ("x", "x.detach()", "GS202", "import stop_gradient"),
    ("x", "e**x", "GS201", "write `exp(x)`"),
    ("x", "pow(x, 2)", "GS202", "write `x**2`"),
    ("x", "power(x + 1, 2)", "GS202", "write `(x + 1)**2`"),
    ("x", "arctan2(x, 2)", "GS202", "write `atan2(x, 2)`"),
    ("x", "sin x", "GS125", "`sin(x)`"),
    ("x", r"\frac{x}{1 + x}", "GS114", "write `(x) / (1 + x)`"),
    ("x", r"\sqrt{x}", "GS114", "write `sqrt(x)`"),
    ("x", r"\alpha * x", "GS114", "write `alpha`"),
    ("x[n]", "sum(exp(x[j]))", "GS202", "write `sum(exp(x[j]) for j)`"),
    ("x[n]", "sum(x)", "GS202", "write `sum(x[i] for i)`"),
    ("x[n]", "max(x)", "GS202", "write `max(x[i] for i)`"),
    ("x[n, m]", "x.mean()", "GS202", "write `mean(x[i, j] for i, j)`"),
    ("x[n]", "np.sum(x)", "GS202", "write `sum(x[i] for i)`"),
    ("x[n]", "norm(x)", "GS202", "write `sqrt(sum(x[i]**2 for i))`"),
    ("x[n]", "x.shape", "GS119", "of `x[n]` it is `n`"),
    ("x", "clamp(x, min=0)", "GS202", "write `max(x, 0)`"),
    ("x", "x.clamp(max=6)", "GS202", "write `min(x, 6)`"),
    ("x", "torch.clamp(x, min=-1, max=x**2)", "GS202", "write `clip(x, -1, x**2)`"),
    ("x", "clip(x, min=0)", "GS203", "write `max(x, 0)`"),
    ("x", "pow(x, exponent=3)", "GS202", "write `x**3`"),
    ("x", "trigamma(x)", "GS202", "write `polygamma(1, x)`"),
    ("x", "np.rint(x)", "GS202", "write `round(x)`"),
    ("x", "x + (round(x) - x).detach()", "GS119", "import stop_gradient"),
    ("x", "(x + 1).exp()", "GS119", "write `exp(…)`"),
    ("x", "gelu(x)", "GS202", 'from "gradspec:activations/smooth" import gelu'),
    ("x", "F.mish(x)", "GS202", 'from "gradspec:activations/smooth" import mish'),
    ("x", "log1mexp(x)", "GS202", 'from "gradspec:stable/logs" import log1mexp'),
    ("x", "geluu(x)", "GS202", 'For `gelu` write `from "gradspec:activations/smooth"'),
    ("x, t", "hubr(x, t, delta=1)", "GS202", 'from "gradspec:losses/regression"'),
    ("logits[n]", "sum(logit[i] for i)", "GS201", "did you mean `logits`?"),
    ("x[..., n]", "mean(x[b, i] for b, i)", "GS232", "declare `x[b, n]`"),
    ("x[n]", "sum(x[k] for k in N)", "GS201", "write `for k` alone"),
    ("x[n]", "sum(x[k] for k in range(n))", "GS238", "write `k in n`"),
    ("x[n]", "1 if x[0] in x else 0", "GS119", "numbers are compared"),
    ("x[n]", "sum(x, axis=-1)", "GS202", "write `sum(x[i] for i)`"),
    ("x[n]", "max(x, dim=-1)", "GS202", "write `max(x[i] for i)`"),
    ("x[n], w[m, n]", "einsum('ij,j->i', w, x)", "GS119", "sum(w[i, j] * x[j] for j)"),
]


def faults(text: str) -> list[tuple[str, str]]:
    with pytest.raises(CompileError) as found:
        compile_text(text, target="numpy")
    return [(d.code, d.help) for d in found.value.diagnostics]


@pytest.mark.parametrize(("inputs", "formula", "code", "help"), HABITS)
def test_one_error_says_how_to_write_it(
    inputs: str, formula: str, code: str, help: str
) -> None:
    found = faults(f"rule f({inputs}) -> y:\n    y = {formula}\n")
    assert [c for c, _ in found] == [code] and help in found[0][1]


@pytest.mark.parametrize("name", ["grad_y", "grad_output", "gy", "upstream"])
def test_the_upstream_gradient_by_another_name(name: str) -> None:
    found = faults(f"rule f(x) -> y:\n    y = x**2\n    dx = {name} * 2 * x\n")
    assert found == [("GS201", "the upstream gradient of `y` is called `dy`")]


LINES = [
    ("x[..., n]) -> y[..., n", "y[..., i] = exp(x[i])", "GS119", "write `y[i]`"),
    ("x[n]) -> y[n", "for i in range(3):", "GS119", "an index runs over its axis"),
    ("x[n]) -> y[n", "y: float = x", "GS119", "write `y = …`"),
    ("x[n], w[m, n]) -> y[m", "y[i] = sum(w[j, i] * x[j] for j)", "GS230", "`w[i, j]`"),
]


@pytest.mark.parametrize(("head", "line", "code", "help"), LINES)
def test_lines(head: str, line: str, code: str, help: str) -> None:
    found = faults(f"rule f({head}]:\n    {line}\n")
    assert [c for c, _ in found][:1] == [code] and help in found[0][1]
