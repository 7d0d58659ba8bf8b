"""The private functions of `torch_kernels`: passes of which torch has nearly the whole in one
function, or in few.

What a compiled function of torch loses by cancellation does not show in float64. These take
narrow tensors and give narrow ones: what is cheap is done before arguments are widened and
after results are rounded. torch widens an upstream gradient by a pass of its own; in
float32 it is multiplied with after rounding instead, which costs half a unit in the last
place.
"""

from __future__ import annotations

from gradspec.primitives.row import Helper

OUTWEIGHS_CALLS = Helper(
    "_outweighs_calls",
    '''\
def _outweighs_calls(x: torch.Tensor) -> bool:
    """Whether computing takes longer than the calls that ask for it."""
    return x.numel() > 4096
''',
)

ONE = Helper(
    "_ONE",
    '_ONE = torch.ones((), dtype=torch.float64, device="cpu")\n',
)

SILU = Helper(
    "_silu_slope_times",
    '''\
_SILU_BACKWARD = torch.ops.aten.silu_backward
_SILU_BACKWARD_INTO = torch.ops.aten.silu_backward.grad_input


def _silu_slope_times(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """dy times the slope of silu in float64; of few elements with as few calls as that
    takes, of many without widening dy.
    """
    wide = torch.clamp(x, -1e4, 1e4).double()  # it is 0 and 1 beyond
    if x.numel() <= 4096:
        dx = _SILU_BACKWARD(dy.double(), wide)
        return dx.float() if x.dtype is torch.float32 else dx.to(x.dtype)
    _SILU_BACKWARD_INTO(_ONE, wide, grad_input=wide)
    if x.dtype is torch.float32:
        return wide.float() * dy
    return (wide * dy).to(dtype=x.dtype)
''',
)

MISH = Helper(
    "_mish_slope_times",
    '''\
_MISH_BACKWARD = torch.ops.aten.mish_backward


def _mish_slope_times(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """dy times the slope of mish in float64, through one exponential: torch's own takes
    three, which is less than the calls for a short tensor alone.
    """
    wide = torch.clamp(x, -300.0, 300.0).double()  # the slope is 0 and 1 beyond
    if x.numel() < 2048:
        dx = _MISH_BACKWARD(dy.double(), wide)
        return dx.float() if x.dtype is torch.float32 else dx.to(x.dtype)
    e = torch.exp(wide)
    b = e + 1.0
    u = torch.addcmul(_ONE, b, b).reciprocal_()
    f = b.mul_(u)
    g = torch.addcmul(_ONE, wide, f, value=4.0, out=wide)
    slope = f.addcmul_(u, g).mul_(e)
    if x.dtype is torch.float32:
        return slope.float() * dy
    return (slope * dy).to(dtype=x.dtype)
''',
)
"""With e = exp(x), b = e + 1, u = 1 / (b**2 + 1) and f = b * u, mish is x * e * (f + u) and
its slope e * (f + u * (1 + 4 * x * f)): only that last sum cancels, and loses no more than
float64 has to spare."""

SILU_FORWARD = Helper(
    "_silu",
    '''\
def _silu(x: torch.Tensor) -> torch.Tensor:
    """silu in the memory of its bounded argument; torch rounds half precision once."""
    return torch.nn.functional.silu(torch.clamp_min(x, -1e4), inplace=True)
''',
)

MISH_FORWARD = Helper(
    "_mish",
    '''\
def _mish(x: torch.Tensor) -> torch.Tensor:
    """mish through one exponential, where torch's own takes two and a logarithm: with e
    the exponential it is x * q / (q + 2), where q is 2 * e + e**2.
    """
    t = torch.clamp(x, min=-1e4).float()
    e = torch.exp(torch.clamp(t, max=40.0))  # the quotient is 1 beyond
    q = torch.add(e, e).addcmul_(e, e)
    return q.div_(torch.add(q, 2.0, out=e)).mul_(t).to(dtype=x.dtype)
''',
)

GELU = Helper(
    "_gelu",
    '''\
def _gelu(x: torch.Tensor) -> torch.Tensor:
    """x times the normal distribution function, in float64 and rounded once. That of
    torch's own function is 1 + erf, which leaves too few digits far to the left.
    """
    if x.numel() and x.amin().item() >= -5.5:
        return torch.ops.aten.gelu_(x.double()).to(dtype=x.dtype)
    wide = torch.clamp(x, min=-1e4).double()
    z = torch.mul(wide, -0.7071067811865476)
    return torch.erfc(z).mul_(wide).mul_(0.5).to(dtype=x.dtype)
''',
)

GELU_SLOPE = Helper(
    "_gelu_slope_times",
    '''\
_GELU_BACKWARD = torch.ops.aten.gelu_backward.grad_input


def _gelu_slope_times(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """dy times the slope of gelu, in float64 and rounded once. The distribution function
    of torch's own is 1 + erf, which leaves too few digits far to the left.
    """
    slope = torch.clamp(x, -1e4, 1e4).double()  # it is 0 and 1 beyond
    if x.numel() and x.amin().item() >= -5.5:
        _GELU_BACKWARD(_ONE, slope, grad_input=slope)
    else:
        z = slope.mul_(-0.7071067811865476)
        density = torch.mul(z, z).neg_().exp_()
        slope = torch.erfc(z).addcmul_(z, density, value=-1.1283791670955126).mul_(0.5)
    if x.dtype is torch.float32:
        return slope.float() * dy
    return (slope * dy).to(dtype=x.dtype)
''',
)
"""The last factor is 2 / sqrt(pi): with z = -x / sqrt(2) the slope is half of erfc(z) -
2 * z * exp(-z**2) / sqrt(pi)."""

LOGISTIC = Helper(
    "_logistic_shares",
    '''\
def _logistic_shares(
    dy: torch.Tensor, a: torch.Tensor, b: torch.Tensor, wanted: tuple[bool, ...]
) -> tuple[torch.Tensor | None, ...]:
    """dy times the logistic function of a - b, and of b - a: the shares that the
    exponentials of a and b have in their sum, in float32 where both and the sum are
    normal numbers. Nothing cancels. In float64 else, of the difference.
    """
    if a.dtype is not torch.float32:
        shares = _logistic_shares(dy.float(), a.float(), b.float(), wanted)
        return tuple(None if share is None else share.to(a.dtype) for share in shares)
    if a.shape == b.shape and a.numel():
        p, q = torch.exp(a), torch.exp(b)
        r = p + q
        p.div_(r)
        if torch.min(p * q).item() >= 2e-38:  # NaN and 0 are not, of what is too large
            da = p * dy if wanted[0] else None
            db = q.div_(r) * dy if wanted[1] else None
            return da, db
    u = torch.sub(a.double(), b)
    da = _reduced(torch.sigmoid(u).float() * dy, a.shape) if wanted[0] else None
    db = _reduced(u.neg_().sigmoid_().float() * dy, b.shape) if wanted[1] else None
    return da, db
''',
)
"""p * q / (p + q) is at most the smaller of both, and at least half of it. Where it is
normal, both are; if one is infinite it is NaN, and 0 if the sum alone is. Five roundings:
3.7 ULP at most at ten million pairs, where a product with the reciprocal of the sum makes
3.9."""
