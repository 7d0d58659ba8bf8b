"""Slopes for which frameworks have one function, or a short formula of several roundings.

Users have no names for these, and float32 has never use of them: about their zeros they
lose all its digits. Where float64 is taken for narrower arguments they are right.
"""

from __future__ import annotations

from typing import Any

from gradspec.primitives.row import Expand, Primitive, Template

_OTHERS = ("numpy", "tf", "jax")


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
        spellings={**dict.fromkeys(_OTHERS, Expand(meaning)), "torch": _TORCH[name]},
    )


ROWS = (
    _row(SILU, _SILU, _silu_ball, _silu_model, 8.0),
    _row(MISH, _MISH, _mish_ball, _mish_model, 16.0),
)
