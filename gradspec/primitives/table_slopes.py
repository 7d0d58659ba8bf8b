"""Slopes for which frameworks have one function, or a short formula of several roundings.

Users have no names for these, and float32 has never use of them: about their zeros they
lose all its digits. Where float64 is taken for narrower arguments they are right.
"""

from __future__ import annotations

from typing import Any

from gradspec.primitives.row import Expand, Helper, Primitive, Template

_OTHERS = ("tf", "jax")


def _silu_model(np: Any, x: Any) -> Any:
    s = 1.0 / (1.0 + np.exp(-x))
    return s * (1.0 + x * (1.0 - s))


def _mish_model(np: Any, x: Any) -> Any:
    x = np.clip(x, -1e4, 40.0)  # it is 0 and 1 beyond
    e = np.exp(x)
    d = (2.0 + e) * e + 2.0
    return e / d * (2.0 + e + 4.0 * x * (1.0 + e) / d)


def _silu_ball(x: Any) -> Any:
    e = (-x).exp()
    return (1 + e + x * e) / (1 + e) ** 2


def _mish_ball(x: Any) -> Any:
    e = x.exp()
    d = (2 + e) * e + 2
    return e / d * (2 + e + 4 * x * (1 + e) / d)


SILU = "silu_slope"
MISH = "mish_slope"

_SILU = "sigmoid(x) * (1 + x * sigmoid(-x))"
_MISH = "tanh(softplus(x)) + x * sigmoid(x) / cosh(softplus(x))**2"


_TORCH = {
    SILU: Template("torch.ops.aten.silu_backward(torch.ones_like({x}), {x})"),
    MISH: Template("_mish_backward(torch.ones_like({x}), {x})"),
}
"""Without an upstream gradient to multiply with; with one, `targets.torch_fused`."""

# With z the zero and c = exp(z) = -1 - z, the slope (1 + u + x) u / (1 + u)**2 of u = exp(x)
# is (d + c * expm1(d)) / (1 + c + c * expm1(d)) of d = x - z, where nothing cancels, times the
# logistic function. At five million numbers off by 4.0 ULP at most, by 0.2 on average; it
# takes 2.9 ns for an element, in float64 6.
_SILU_TEXT = '''\
def _silu_slope(x: np.ndarray) -> np.ndarray:
    """The slope of x / (1 + exp(-x)) in float32, abs(x) < 64: a multiple of the distance
    from its zero, which is subtracted in two parts.
    """
    d = x + 1.2784645557403564
    d -= 1.2979282759673083e-8
    e = np.expm1(d)
    e *= 0.2784645427610738
    d += e
    e += 1.2784645427610738
    t = -x
    np.expm1(t, out=t)
    t += 2.0
    d /= t
    d /= e
    return d
'''

# With q = e * (e + 2), e = exp(x), the slope is (q * (q + 2) + 4 * x * (q - e)) / (q + 2)**2:
# three arrays of float64 for all that lies between.
_MISH_TEXT = '''\
def _mish_slope(x: np.ndarray) -> np.ndarray:
    """The slope of x * tanh(log(1 + exp(x))) in float32, abs(x) < 64; what cancels about
    its zero float64 has digits for.
    """
    e = np.exp(x, dtype=np.float64)
    q = e + 2.0
    q *= e
    t = np.subtract(q, e, out=e)
    t *= x
    t *= 4.0
    d = q + 2.0
    t /= d
    t += q
    t /= d
    return t.astype(np.float32)
'''

NUMPY_SLOPES = {
    SILU: Helper("_silu_slope", _SILU_TEXT),
    MISH: Helper("_mish_slope", _MISH_TEXT),
}
"""Of arrays of float32 of moderate numbers; elsewhere `targets.numpy_double`."""


def _row(name: str, meaning: str, ball: Any, model: Any, cost: float) -> Primitive:
    return Primitive(
        name,
        ("x",),
        ball=ball,
        meaning=meaning,
        partials=(None,),
        model=model,
        cost=cost,
        source="derivative of the activation's formula",
        spellings={
            **dict.fromkeys(_OTHERS, Expand(meaning)),
            "torch": _TORCH[name],
            "numpy": NUMPY_SLOPES[name],
        },
    )


ROWS = (
    _row(SILU, _SILU, _silu_ball, _silu_model, 8.0),
    _row(MISH, _MISH, _mish_ball, _mish_model, 16.0),
)
