"""Calls of rules with axes: definitions are those of the formulas written out."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from textwrap import indent

import pytest

from gradspec.derive.scopes import Fresh, refresh
from gradspec.diagnostics import Outcome
from gradspec.ir.expr import Expr, Idx
from gradspec.lower.lowering import lower
from gradspec.lower.module import LoweredModule
from tests.lower.grad_text import guilt, parsed

RULES = Path(__file__).parents[2] / "rules"
SHIPPED = {
    "tensor/softmax": ("softmax", "log_sum_exp", "softmax_temperature"),
    "tensor/algebra": ("matmul", "embedding"),
    "tensor/norms": ("layer_norm", "l2_norm"),
    "tensor/sequences": ("cumulative_sum", "average_pool"),
    "sequences/linear": ("linear_rnn",),
    "sequences/networks": ("elman",),
}
OWN = """\
rule pair(x[n]) -> (u[], v[n]):
    u = sum(x[i]**2 for i)
    v[i] = u * x[i]

rule own_gradient(x[n]) -> y:
    y = sum(x[i] for i)
    override dx[i] = dy because "it"

rule cholesky(a[..., n, n]) -> l[..., n, n]:
    solve l[i, j] if j <= i: sum(l[i, k] * l[j, k] for k) == a[i, j]
    assume l[i, i] > 0

rule lagged(x[..., n], k: static int, c: static = 0.5) -> y[..., n]:
    assume k > 0
    y[t] = x[t] + (c * y[t - k] if t >= k else 0)

rule triple(a[3]) -> y:
    y = a[0] * a[1] * a[2]

rule spread(x, m: static int) -> y[..., m]:
    y[i] = x * i / m

"""

CASES = (  # the head, the body with calls, the body written out
    (
        "f(x[m, n]) -> y[m, n]",
        "y = softmax(x)",
        "y[i, j] = exp(x[i, j]) / sum(exp(x[i, l]) for l)",
    ),
    (
        "f(x[m, n]) -> y[m, n]",
        "y[i, j] = softmax(x[:, j])[i]",
        "softmax[j, i] = exp(x[i, j]) / sum(exp(x[l, j]) for l)\n"
        "y[i, j] = softmax[j, i]",
    ),
    (
        "f(x[..., n]) -> y[..., n]",
        "y[j] = softmax(x)[j]",
        "y[i] = exp(x[i]) / sum(exp(x[j]) for j)",
    ),
    (
        "f(x[m, n], t: static) -> y[m]",
        "y[i] = 2 * softmax_temperature(x, t=3 * t)[i, 0]",
        "softmax_temperature[i, j] = exp(x[i, j] / (3 * t))"
        " / sum(exp(x[i, l] / (3 * t)) for l)\n"
        "y[i] = 2 * softmax_temperature[i, 0]",
    ),
    (
        "f(a[..., m, k], b[..., k, n]) -> c[..., m, n]",
        "c = matmul(a, b)",
        "c[i, j] = sum(a[i, l] * b[l, j] for l)",
    ),
    (
        "f(q[..., m, k], r[..., k, n], v[..., n, h]) -> y[..., m, h]",
        "s[i, j] = matmul(q, r)[i, j] / sqrt(k)\ny = matmul(softmax(s), v)",
        "matmul[i, j] = sum(q[i, l] * r[l, j] for l)\n"
        "s[i, j] = matmul[i, j] / sqrt(k)\n"
        "softmax[i, j] = exp(s[i, j]) / sum(exp(s[i, l]) for l)\n"
        "y[i, j] = sum(softmax[i, l] * v[l, j] for l)",
    ),
    (
        "f(x[..., n], g[n], b[n]) -> y[..., n]",
        "y[i] = x[i] + layer_norm(x, g, b, eps=0.5)[i]",
        "m = mean(x[j] for j)\nc[i] = x[i] - m\n"
        "r = 1 / sqrt(mean(c[j]**2 for j) + 0.5)\nz[i] = c[i] * r\n"
        "layer_norm[i] = g[i] * z[i] + b[i]\n"
        "y[i] = x[i] + layer_norm[i]",
    ),
    (
        "f(x[m, n]) -> y[m]",
        "y[i] = l2_norm(x[i, :]) + l2_norm(x[0, :])",
        "l2_norm[i] = sqrt(sum(x[i, j]**2 for j))\n"
        "l2_norm2 = sqrt(sum(x[0, j]**2 for j))\n"
        "y[i] = l2_norm[i] + l2_norm2",
    ),
    (
        "f(x[..., n], w[n]) -> y",
        "y = sum(exp(cumulative_sum(x)[i]) * w[i] for i)",
        "cumulative_sum[i] = sum(x[j] for j if j <= i)\n"
        "y = sum(exp(cumulative_sum[i]) * w[i] for i)",
    ),
    (
        "f(x[..., n], k: static int, p: static int) -> y[..., p]",
        "y[i] = average_pool(x, k=k, s=2, m=p)[i]**2",
        "average_pool[i in p] = mean(x[2 * i + j] for j in k)\n"
        "y[i] = average_pool[i]**2",
    ),
    (
        "f(a[..., n], x[..., n]) -> y[..., n]",
        "y[i] = tanh(linear_rnn(a, x, 0)[i])",
        "linear_rnn[t] = a[t] * (linear_rnn[t - 1] if t > 0 else 0) + x[t]\n"
        "y[i] = tanh(linear_rnn[i])",
    ),
    (
        "f(w[d, d], x[n, d], v[d]) -> y[n]",
        "y[t] = sum(elman(w, x)[t, i] * v[i] for i)",
        "elman[t, i] ="
        " tanh((sum(w[i, j] * elman[t - 1, j] for j) if t > 0 else 0) + x[t, i])\n"
        "y[t] = sum(elman[t, i] * v[i] for i)",
    ),
    (
        "f(x[m, n]) -> y[m, n]",
        "y = lagged(x, k=2)",
        "y[i, t] = x[i, t] + (0.5 * y[i, t - 2] if t >= 2 else 0)",
    ),
    (
        "f(x[n, d], h0[d]) -> h[n, d]",
        "b[t, i] = h[t - 1, i] if t > 0 else h0[i]\nh[t, i] = softmax(b[t, :])[i] + x[t, i]",
        "b[t, i] = h[t - 1, i] if t > 0 else h0[i]\n"
        "softmax[t, i] = exp(b[t, i]) / sum(exp(b[t, j]) for j)\n"
        "h[t, i] = softmax[t, i] + x[t, i]",
    ),
    (
        "f(x[n]) -> (u[], y[n])",
        "u = pair.u(x)\ny[i] = pair.v(x)[i] / (1 + pair.u(x))",
        "u = sum(x[i]**2 for i)\npair_v[i] = u * x[i]\ny[i] = pair_v[i] / (1 + u)",
    ),
    (
        "f(a[m, n, n]) -> y[m]",
        "y[p] = prod(cholesky(a)[p, i, i] for i)",
        "solve cholesky[p, i, j] if j <= i:"
        " sum(cholesky[p, i, k] * cholesky[p, j, k] for k in n) == a[p, i, j]\n"
        "assume cholesky[p, i, i] > 0\n"
        "y[p] = prod(cholesky[p, i, i] for i)",
    ),
    (
        "f(a[n, n]) -> b[n, n]",
        "b = cholesky(a)",
        "solve b[i, j] if j <= i: sum(b[i, k] * b[j, k] for k) == a[i, j]\n"
        "assume b[i, i] > 0",
    ),
    (
        "f(w[m, k], t[n]: int) -> y[n, k]",
        "y = embedding(w, t)",
        "y[i, j] = w[t[i], j]",
    ),
    (
        "f(x[..., n], t) -> y[..., n]",
        "y[i] = x[i] * spread(t, m=n)[i]",
        "spread[i in n] = t * i / n\ny[i] = x[i] * spread[i]",
    ),
)


@cache
def _imports() -> dict[str, LoweredModule]:
    made = {path: (RULES / f"{path}.grad").read_text("utf-8") for path in SHIPPED}
    lowered = {path: lower(parsed(text), {}).value for path, text in made.items()}
    return {f"gradspec:{path}.grad": one for path, one in lowered.items() if one}


def _lowered(text: str) -> Outcome[LoweredModule]:
    """A file that may call some shipped rules, and those above."""
    lines = (f'from "gradspec:{p}" import {", ".join(n)}\n' for p, n in SHIPPED.items())
    return lower(parsed("".join((*lines, OWN, text))), _imports())


def _stated(head: str, body: str) -> dict[str, object]:
    """All that a rule states, by name, with numbers for indices."""
    found = _lowered(f"rule {head}:\n{indent(body, '    ')}\n")
    assert found.value is not None
    assert found.diagnostics == ()
    rule, made = found.value.rules[-1], dict[str, object]()
    for let in rule.definitions:
        value = _numbered(let.value, let.indices)
        made[let.name] = replace(let, value=value, indices=())
    for one in rule.assumes:
        names = tuple(name for name, _ in one.indices)
        axes = tuple(axis for _, axis in one.indices)
        made[f"assume {len(made)}"] = _numbered(one.condition, names), axes
    return made


def _numbered(expr: Expr, indices: tuple[str, ...]) -> Expr:
    places: dict[str, Expr] = {old: Idx(f"{p}") for p, old in enumerate(indices)}
    return refresh(expr, places, Fresh())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[1].replace("\n", "; "))
def test_definitions_are_those_of_the_formulas_written_out(
    case: tuple[str, str, str],
) -> None:
    head, called, written = case
    assert _stated(head, called) == _stated(head, written)


@pytest.mark.parametrize(
    ("body", "code", "guilty", "says"),
    [
        (
            "y = softmax(s)",
            "GS219",
            "softmax",
            "`x` of `softmax` has axes (..., n), and",
        ),
        (
            "y = own_gradient(x[0, :])",
            "GS219",
            "own_gradient",
            "overrides the gradient",
        ),
        ("y = pair.u(x)", "GS219", "pair.u", "axes (n), and the argument axes (m, n)"),
        ("y = matmul(x, x)[0, 0]", "GS219", "matmul", "the sizes `n` and `m`"),
        ("y = triple(x[0, :])", "GS219", "triple", "axis of size 3, and here"),
        ("y = spread(s, m=0)[0]", "GS219", "spread", "is the size of an axis"),
        ("y = softmax(x)", "GS219", "softmax(x)", "has no axes, and this result has"),
        ("y = 2 * softmax(x)", "GS232", "softmax(x)", "has 2 axes (m, n), and here it"),
        ("y = softmax(x)[0]", "GS232", "softmax(x)[0]", "has 2 axes (m, n), and here"),
        ("y = softmax(x)[0, 1.5]", "GS241", "1.5", "an index must be an integer"),
        ("y = exp(s)[0]", "GS232", "exp(s)[0]", "is a number, and has no indices"),
        ("y = pair.w(x[0, :])", "GS218", "pair.w", "has no output `w`"),
        ("y = pair(x[0, :])", "GS218", "pair", "has 2 outputs: say which one"),
        ("y = softmax(x, x)[0, 0]", "GS203", "x", "takes 1 argument, and 2 are given"),
        ("y = f(x)", "GS225", "f", "calls itself"),
        ("y = sum(x[:, j] for j)", "GS119", ":", "an index stands for a whole axis"),
        ("assume softmax(x)[0, 0] > 0\ny = s", "GS219", "softmax", "in the body of"),
        ("y = softmax(z)[0]", "GS201", "z", "unknown name `z`"),
        ("y = softmax(x[i, :])[0]", "GS231", "i", "index `i` is not bound"),
        (
            "y = sum(lagged(x, k=k)[0, j] for j)",
            "GS208",
            "lagged(x, k=k)[0, j]",
            "`lagged`, a value of the called rule, is used in its own",
        ),
    ],
)
def test_faults_of_calls(body: str, code: str, guilty: str, says: str) -> None:
    text = f"rule f(x[m, n], s, k: static int) -> y:\n{indent(body, '    ')}\n"
    (found,) = _lowered(text).diagnostics
    assert guilt(found) == (code, guilty)
    assert says in found.headline
