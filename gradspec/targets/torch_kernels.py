"""Passes in float64 of which torch has nearly the whole in one function.

What a compiled function of torch loses by cancellation does not show in float64. These take
narrow tensors and give narrow ones: what is cheap is done before arguments are widened and
after results are rounded, and torch widens the upstream gradient inside of its function.
"""

from __future__ import annotations

from fractions import Fraction

from gradspec.plan.array import Expr, Literal, Name, Op
from gradspec.primitives.row import Helper
from gradspec.targets.lines import Lines, indented
from gradspec.targets.torch_parts import Function

SILU = Helper(
    "_silu_slope_times",
    '''\
_SILU_BACKWARD = torch.ops.aten.silu_backward.default


def _silu_slope_times(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """dy times the slope of silu, in float64 and rounded once."""
    wide = torch.clamp(x, -1e4, 1e4).double()  # the slope is 0 and 1 beyond
    return _SILU_BACKWARD(dy, wide).to(dtype=x.dtype)
''',
)

MISH = Helper(
    "_mish_slope_times",
    '''\
def _mish_slope_times(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """dy times the slope of mish in float64, through one exponential: torch's own takes
    three, which is less than the calls for a short tensor alone.
    """
    wide = torch.clamp(x, -1e4, 40.0).double()  # the slope is 0 and 1 beyond
    if x.numel() < 2048:
        return torch.ops.aten.mish_backward(dy, wide).to(dtype=x.dtype)
    e = torch.exp(wide)
    p = 1.0 + e
    d = torch.square(p).add_(1.0)
    q = e.div_(d)
    slope = wide.mul_(p).div_(d).mul_(4.0).add_(p).add_(1.0).mul_(q)
    return slope.mul_(dy).to(dtype=x.dtype)
''',
)
"""With e the exponential, mish is x * (e**2 + 2e) / d, where d is e**2 + 2e + 2."""

GELU = Helper(
    "_gelu",
    '''\
def _gelu(x: torch.Tensor) -> torch.Tensor:
    """x times the normal distribution function, in float64 and rounded once. That of
    torch's own function is 1 + erf, which leaves too few digits far to the left.
    """
    if x.numel() and x.amin().item() >= -5.5:
        return torch.nn.functional.gelu(x.double()).to(dtype=x.dtype)
    wide = torch.clamp(x, min=-1e4).double()
    z = torch.mul(wide, -0.7071067811865476)
    return torch.erfc(z).mul_(wide).mul_(0.5).to(dtype=x.dtype)
''',
)

GELU_SLOPE = Helper(
    "_gelu_slope_times",
    '''\
_GELU_BACKWARD = torch.ops.aten.gelu_backward.default


def _gelu_slope_times(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """dy times the slope of gelu, in float64 and rounded once. The distribution function
    of torch's own is 1 + erf, which leaves too few digits far to the left.
    """
    wide = torch.clamp(x, -1e4, 1e4).double()  # the slope is 0 and 1 beyond
    if x.numel() and x.amin().item() >= -5.5:
        return _GELU_BACKWARD(dy, wide).to(dtype=x.dtype)
    z = wide.mul_(-0.7071067811865476)
    density = torch.mul(z, z).neg_().exp_()
    slope = torch.erfc(z).addcmul_(z, density, value=-1.1283791670955126)
    return slope.mul_(0.5).mul_(dy).to(dtype=x.dtype)
''',
)
"""The last factor is 2 / sqrt(pi): with z = -x / sqrt(2) the slope is half of erfc(z) -
2 * z * exp(-z**2) / sqrt(pi)."""

LOGISTIC = Helper(
    "_logistic_times",
    '''\
def _logistic_times(
    dy: torch.Tensor, u: torch.Tensor, dtype: torch.dtype
) -> torch.Tensor:
    """dy times 1 / (1 + exp(-u)), where u has digits for both."""
    product = torch.sigmoid(u).float().mul_(dy)
    return product if dtype is torch.float32 else product.to(dtype)
''',
)

HELPERS = (SILU, MISH, GELU, GELU_SLOPE, LOGISTIC)


def forward_kernel(made: Function) -> Lines:
    """The lines of a forward pass that is one of these, none else."""
    steps, names = made.forward.statements, [i.name for i in made.inputs]
    if len(names) != 1 or len(steps) != 1 or len(made.outputs) != 1:
        return []
    x = Name(names[0])
    bounded = Op("max", (x, _number(-10000)))
    if steps[0].value != Op("mul", (bounded, Op("ndtr", (x,)))):
        return []
    return [f"# {steps[0].comment}", f"return _gelu({x.id})"]


def backward_kernel(made: Function) -> Lines:
    """The lines of a backward pass that is one of these, none else."""
    upstream, names = made.plan.upstream, [i.name for i in made.inputs]
    terms = list(made.gradients.values())
    if len(upstream) != 1 or len(terms) != len(names) or made.backward.statements:
        return []
    if any(len(of_one) != 1 for of_one in terms):
        return []
    values, comment = [of_one[0].value for of_one in terms], terms[0][0].comment
    match names:
        case [x]:
            called = _slope(values[0], Name(upstream[0]), Name(x))
            if not called:
                return []
            text = [f"({x},) = {made.ctx}.saved_tensors"]
            return [*text, f"# {comment}", f"return {called}({upstream[0]}, {x})"]
        case [a, b] if values == _logistic_pair(Name(upstream[0]), Name(a), Name(b)):
            return _logistic_lines(made, upstream[0], a, b, comment)
        case _:
            return []


def _slope(value: Expr, dy: Expr, x: Expr) -> str:
    """The function that is ``value``."""
    ends = Op("clip", (x, _number(-10000), _number(10000)))
    half_square = Op("mul", (_number(Fraction(-1, 2)), Op("mul", (x, x))))
    root = Op("sqrt", (Op("mul", (_number(2), Op("pi", ()))),))
    density = Op("div", (Op("exp", (half_square,)), root))
    slopes: dict[Expr, str] = {
        Op("silu_slope", (ends,)): SILU.name,
        Op("mish_slope", (x,)): MISH.name,
        Op("add", (Op("ndtr", (x,)), Op("mul", (ends, density)))): GELU_SLOPE.name,
    }
    match value:
        case Op("mul", (first, slope)) if first == dy:
            return slopes.get(slope, "")
        case _:
            return ""


def _number(value: int | Fraction) -> Literal:
    return Literal(Fraction(value))


def _logistic_pair(dy: Expr, a: Expr, b: Expr) -> list[Expr]:
    """The gradients of ``log(exp(a) + exp(b))``."""

    def share(u: Expr, v: Expr) -> Expr:
        below = Op("add", (_number(1), Op("exp", (Op("sub", (v, u)),))))
        return Op("div", (dy, below))

    return [share(a, b), share(b, a)]


def _logistic_lines(made: Function, dy: str, a: str, b: str, comment: str) -> Lines:
    ctx, dtype = made.ctx, made.dtype
    u = made.local("difference")
    lines = [
        f"{a}, {b} = {ctx}.saved_tensors",
        f"{dtype} = {a}.dtype",
        f"{u} = torch.sub({a}.double(), {b})",
        f"d{a} = d{b} = None",
    ]
    for place, (name, value) in enumerate(((a, u), (b, f"{u}.neg_()"))):
        share = f"_logistic_times({dy}, {value}, {dtype})"
        text = f"d{name} = _reduced({share}, {name}.shape)"
        own = [*([f"# {comment}"] if comment and not place else []), text]
        lines += [f"if {ctx}.needs_input_grad[{place}]:", *indented(own)]
    return [*lines, f"return d{a}, d{b}"]
