"""The private functions of `torch_kernels` for compilers: slopes in float32, which make one
loop with all else.

There each operation costs about as much as any other but an exponential and a quotient, and
a choice next to nothing. Nothing cancels in them: a slope is a multiple of the distance from
its zero, which is in two parts, at least where it is small.
"""

from __future__ import annotations

from gradspec.primitives import coefficients_loops as fits
from gradspec.primitives.row import Helper
from gradspec.primitives.spelling import listed
from gradspec.primitives.texts_fused import EXPM1_SMALL, QUOTIENT
from gradspec.primitives.texts_torch import IS_FUSED

_NEEDS = tuple(text["torch"] for text in (QUOTIENT, *EXPM1_SMALL) if "torch" in text)

SILU = Helper(
    "_silu_slope_single",
    f'''\
def _silu_slope_single(x: torch.Tensor) -> torch.Tensor:
    """The slope of silu in float32, by that of -abs(x): about its zero the distance times
    a polynomial, else by exp(-abs(x)). Both sides add up to 1.
    """
    series = {listed(fits.SILU_SERIES)}
    a = torch.clamp(torch.where(x < 0.0, -x, x), max=1e4)  # the slope is 0 and 1 beyond
    e = torch.exp(-a)
    d = ({-fits.SILU_ZERO[0]!r} - a) - {fits.SILU_ZERO[1]!r}
    p = series[0]
    for c in series[1:]:
        p = p * d + c
    near = torch.abs(d) < {fits.SILU_NEAR}
    tail = torch.where(near, d * p, e * ((1.0 - a) + e) / torch.square(1.0 + e))
    return torch.where(x < 0.0, tail, 1.0 - tail)
''',
    needs=(IS_FUSED,),
)

GELU = Helper(
    "_gelu_slope_single",
    f'''\
def _gelu_slope_single(x: torch.Tensor) -> torch.Tensor:
    """The slope of x * ndtr(x) in float32. Its tail is exp(-x**2 / 2), the square split,
    times the distance from its zero and 1 / 2 + r, of which a small part is rounded.
    """
    over = {listed(fits.GELU_OVER)}
    under = {listed(fits.GELU_UNDER)}
    a = torch.clamp(torch.where(x < 0.0, -x, x), max=64.0)
    h = 0.00390625 * torch.round(256.0 * a)
    e = torch.exp(-0.5 * h * h)
    s = _expm1_small(0.5 * (h - a) * (h + a))
    r = _quotient(a, over, under)
    d = ({fits.GELU_ZERO[0]!r} - a) - {-fits.GELU_ZERO[1]!r}
    tail = (0.5 * e + e * (0.5 * s + (r + s * r))) * d
    return torch.where(x < 0.0, tail, 1.0 - tail)
''',
    needs=(IS_FUSED, *_NEEDS),
)

HELPERS = tuple(dict.fromkeys(h for one in (SILU, GELU) for h in one.whole()))
