"""Outputs with and without batch axes in one rule: what comes from those without counts
once, and is not summed over the batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradspec.lower.lowering import lower
from gradspec.options import Options
from gradspec.pipeline import compile_module
from gradspec.source import Source
from gradspec.syntax.parse import parse
from tests.calling import by_target, called
from tests.targets.emission import module_of

RULES = """
rule both(x[n], w[..., n]) -> (y[..., n], s[]):
    y[i] = x[i] * w[i]
    s = sum(x[i] for i)

rule declared(x[..., n], w[n]) -> (y[...], r[]):
    y = sum(x[i] * w[i] for i)
    r = sum(w[i]**2 for i)
    g[i] = dy * x[i]
    h[i] = g[i] + 2 * dr * w[i]
    dw[i] = h[i]

rule layer(x[..., n], w[m, n], b[m], k[]) -> (y[..., m], r[], z[m]):
    y[i] = k * tanh(sum(x[l] * w[i, l] for l) + b[i])
    r = sum(w[i, j]**2 for i, j) + k * sum(b[i] for i)
    z[i] = k * exp(b[i])

rule chosen(x[..., n], w[..., n], k: static int = 2) -> (y[..., n, n], o[...]):
    y[i, j] = (w[j] if k > 2 else x[j] * w[i])
    o = w[0]

rule chosen_whole(x[..., n], w[..., n], k: static int = 2) -> (y[..., n], o[...]):
    y[i] = x[i] * (sum(w[j] for j) if k > 2 else w[i])
    o = sum(w[i]**2 for i) if k > 1 else 0

rule chosen_peak(x[..., n], w[..., n, m], k: static int = 2) -> (y[..., m], o[..., n, m]):
    y[i] = x[0]
    o[i, j] = max(w[i, l] * (w[i, j] if k == 2 else max(x[p] for p)) for l)

rule chosen_output(x[..., n, m], w[n], k: static int = 2) -> (y[..., m], o[..., m]):
    y[j] = (sum(x[i, j] * w[i] for i) if k > 2 else 0)
    o[j] = (sum(x[i, j] * w[i] for i) if k <= 2 else 0)
    dx[i, j] = (dy[j] if k > 2 else do[j]) * w[i]
"""


PULLED = """
rule pulled(x[n], w[m]) -> y[n, m]:
    y[i, j] = 2 * x[i] * w[j]
    override dx[i] = x[i] because "pulled to 0"

rule each(x, w) -> y:
    y = x * w
    override dx = x because "pulled to 0"
"""


def _layer(x: Any, w: Any, b: Any, k: Any) -> tuple[Any, Any, Any]:
    return k * (x @ w.T + b).tanh(), (w * w).sum() + k * b.sum(), k * b.exp()


REFERENCES = {
    "both": (lambda x, w: (x * w, x.sum()), ((3,), (2, 4, 3))),
    "declared": (lambda x, w: ((x * w).sum(-1), (w * w).sum()), ((2, 3), (3,))),
    "layer": (_layer, ((4, 1, 3), (2, 3), (2,), ())),
    "chosen": (
        lambda x, w: (x[..., None, :] * w[..., None], w[..., 0]),
        ((2, 3), (3,)),
    ),
    "chosen_whole": (lambda x, w: (x * w, (w * w).sum(-1)), ((4, 1, 3), (2, 3))),
    "chosen_peak": (
        lambda x, w: (
            x[..., :1].expand(2, 4),
            (w[..., None] * w[..., None, :]).amax(-1),
        ),
        ((2, 3), (2, 3, 4)),
    ),
    "chosen_output": (
        lambda x, w: (0 * x.sum(-2), (x * w[:, None]).sum(-2)),
        ((2, 3, 4), (3,)),
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", REFERENCES)
def test_gradients_are_those_of_autograd(name: str) -> None:
    torch = pytest.importorskip("torch")
    plain, shapes = REFERENCES[name]
    torch.manual_seed(0)
    given = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes]
    outputs = plain(*given)
    upstream = [torch.randn_like(output) for output in outputs]
    expected = torch.autograd.grad(outputs, given, upstream)
    module = module_of(RULES, "numpy")
    values, pullback = getattr(module, f"{name}_vjp")(
        *(x.detach().numpy() for x in given)
    )
    assert all(np.allclose(v, o.detach()) for v, o in zip(values, outputs, strict=True))
    gradients = pullback(*(u.numpy() for u in upstream))
    assert all(np.allclose(g, t) for g, t in zip(gradients, expected, strict=True))


@pytest.mark.torch
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("used", [0, 1])
def test_one_output_alone_has_an_upstream_gradient(k: int, used: int) -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones((2, 3, 4), requires_grad=True)
    w = torch.arange(3.0)
    outputs = module_of(RULES, "torch").chosen_output(x, w, k=k)
    (dx,) = torch.autograd.grad(outputs[used].sum(), x)
    counts = used == (k <= 2)
    assert torch.equal(dx, counts * w[:, None].expand(2, 3, 4))


@by_target
def test_an_override_that_uses_no_upstream_gradient(target: str) -> None:
    """It has the shape of its input, whatever that of the outputs is."""
    module = module_of(PULLED, target)
    x, w = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    (y,), (dx, _) = called(target, module, "pulled", (x, w))
    assert y.shape == (2, 2)
    np.testing.assert_array_equal(dx, x)
    (y,), (dx, _) = called(target, module, "each", (x, w[:, None]))
    np.testing.assert_array_equal(dx, 2 * x)  # for each element of the outputs


def codes(text: str) -> list[str]:
    source = Source("t.grad", text)
    parsed = parse(source)
    assert parsed.value is not None
    lowered = lower(parsed.value, {})
    assert lowered.value is not None
    compiled = compile_module(lowered.value, source, Options(targets=("numpy",)))
    return [found.code for found in compiled.diagnostics]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (
            "GS251",
            "rule r(x[..., n]) -> (y[..., n], z[n]):\n    y[i] = x[i]\n    z[i] = n\n",
        ),
        ("GS252", "rule r(t[n]: int) -> y[n]:\n    y[i] = t[i]\n"),
        (
            "GS253",
            "rule r(x[..., n], w[..., n]) -> y[..., n]:\n    y[i] = x[i] * w[i]\n"
            '    override dx[i] = x[i] because "…"\n',
        ),
        (
            "GS253",
            "rule r(x[n]) -> y[n]:\n    y[i] = x[i]\n"
            '    override dx[i] = 1 because "…"\n',
        ),
        (
            "GS502",
            "rule r(x[n], w[..., n]) -> (y[..., n], s[]):\n"
            "    y[i] = x[i] * w[i]\n    s = sum(x[i] for i)\n"
            '    override dx[i] = w[i] * clip(dy[i], -1, 1) + ds because "…"\n',
        ),
    ],
)
def test_what_has_no_meaning_is_told(code: str, text: str) -> None:
    assert codes(text) == [code]


def test_the_choice_of_a_number_between_uses_of_the_same_inputs_is_fine() -> None:
    text = """rule r(a[..., n], b[..., n], k: static int = 1) -> y[..., n]:
    y[i] = a[i] + b[i] if k > 0 else a[i] * b[i]
"""
    assert codes(text) == []
