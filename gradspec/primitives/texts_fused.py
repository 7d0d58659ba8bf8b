"""Private functions in float32 for compilers that fuse: XLA, and torch's own.

In a fused loop a few products cost next to nothing, a second exponential as much as all the
rest, and a quotient half of that. So there are polynomials in place of exponentials, and
fits that are as good as float32 is.
"""

from __future__ import annotations

from collections.abc import Mapping

from gradspec.primitives.coefficients_single import MILLS_OVER, MILLS_UNDER
from gradspec.primitives.row import Helper
from gradspec.primitives.spelling import everywhere, listed
from gradspec.primitives.texts_torch import IS_FUSED

_QUICK = {
    "numpy": "",
    "torch": """\
    if _is_fused(x):
        return {}_single({})
""",
    "tf": """\
    if x.dtype == tf.float32:
        return {}_single({})
""",
    "jax": """\
    if x.dtype == jnp.float32:
        return {}_single({})
""",
}


def quick(name: str, given: str = "x") -> dict[str, dict[str, str]]:
    """What a line ``SINGLE`` stands for: ``name`` leaves float32 to ``name_single``."""
    lines = {target: text.format(name, given) for target, text in _QUICK.items()}
    return {"    SINGLE\n": lines}


def _fused(
    name: str, text: str, needs: tuple[Mapping[str, Helper], ...] = ()
) -> tuple[Mapping[str, Helper], ...]:
    """The function, and what asks for it."""
    found = everywhere(name, text, needs=needs)
    del found["numpy"]
    return {"torch": IS_FUSED}, found


QUOTIENT = everywhere(
    "_quotient",
    '''\
def _quotient(
    x: Array, over: tuple[float, ...], under: tuple[float, ...]
) -> Array:
    """A quotient of polynomials in x, their highest powers first."""
    p, q = over[0], under[0]
    for c in over[1:]:
        p = p * x + c
    for c in under[1:]:
        q = q * x + c
    return p / q
''',
)

# In place: a new array for each product would leave the cache.
QUOTIENT["numpy"] = Helper(
    "_quotient",
    '''\
def _quotient(
    x: np.ndarray, over: tuple[float, ...], under: tuple[float, ...]
) -> np.ndarray:
    """A quotient of polynomials in x, their highest powers first."""
    p, q = over[0] * x, under[0] * x
    for c in over[1:-1]:
        p += c
        p *= x
    for c in under[1:-1]:
        q += c
        q *= x
    p += over[-1]
    q += under[-1]
    p /= q
    return p
''',
)

EXPM1_SMALL = _fused(
    "_expm1_small",
    '''\
def _expm1_small(t: Array) -> Array:
    """exp(t) - 1 of a number below 1/10, in float32, by its series."""
    return t + t * t * (0.5 + t * (0.16666666666666666 + t * 0.041666666666666664))
''',
)


def _split(
    name: str, said: str, exponent: str, rest: str, takes: str = "x: Array"
) -> tuple[Mapping[str, Helper], ...]:
    """An exponential of a square; ``h`` has so few bits that its square is exact."""
    return _fused(
        name,
        f'''\
def {name}({takes}) -> Array:
    """{said} in float32, the square split: its rounding error would be magnified."""
    a = xp.where(x < 0.0, -x, x)
    a = xp.where(a > 64.0, 64.0 * xp.ones_like(a), a)
    h = 0.00390625 * xp.round(256.0 * a)
    return xp.exp({exponent}) * (1.0 + _expm1_small({rest}))
''',
        needs=EXPM1_SMALL,
    )


EXP_NEG_SQUARE = _split(
    "_exp_neg_square_single", "exp(-x**2)", "-h * h", "(h - a) * (h + a)"
)

EXP_NEG_HALF_SQUARE = _split(
    "_exp_neg_half_square_single",
    "exp(-x**2 / 2)",
    "-0.5 * h * h",
    "0.5 * (h - a) * (h + a)",
)

BELL_RAISED = _split(
    "_bell_raised_single",
    "exp(y - x**2 / 2)",
    "y - 0.5 * h * h",
    "0.5 * (h - a) * (h + a)",
    "x: Array, y: Array",
)


# The exponential is evaluated as `_exp_neg_half_square_single` does, or as
# `_bell_raised_single`: where both are used, once.
def _tail(said: str, exponent: str) -> str:
    """The lines to the tail, of which ``said`` is the beginning of the docstring."""
    return f'''\
    """{said}
    (1 / 2 + r) / (1 + abs(x)). What is rounded is a small part of each sum."""
    over = {listed(MILLS_OVER)}
    under = {listed(MILLS_UNDER)}
    a = xp.where(x < 0.0, -x, x)
    a = xp.where(a > 64.0, 64.0 * xp.ones_like(a), a)
    h = 0.00390625 * xp.round(256.0 * a)
    e = xp.exp({exponent})
    s = _expm1_small(0.5 * (h - a) * (h + a))
    r = a * _quotient(a, over, under)
'''


_TAIL = "(0.5 * e + e * (0.5 * s + (r + s * r))) / (1.0 + a)"

NDTR = _fused(
    "_ndtr_single",
    f"""\
def _ndtr_single(x: Array) -> Array:
{
        _tail(
            "ndtr(x) in float32: exp(-x**2 / 2), its square split, times Mills' ratio, which is",
            "-0.5 * h * h",
        )
    }\
    tail = {_TAIL}
    return xp.where(x < 0.0, tail, 1.0 - tail)
""",
    needs=(QUOTIENT, *EXPM1_SMALL),
)

TAIL_RAISED = _fused(
    "_tail_raised_single",
    f"""\
def _tail_raised_single(x: Array, y: Array) -> Array:
{
        _tail(
            "exp(y) * ndtr(-abs(x)) in float32: exp(y - x**2 / 2), split, times Mills' ratio,",
            "y - 0.5 * h * h",
        )
    }\
    return {_TAIL}
""",
    needs=(QUOTIENT, *EXPM1_SMALL),
)

NDTR_RAISED = _fused(
    "_ndtr_raised_single",
    '''\
def _ndtr_raised_single(x: Array, y: Array) -> Array:
    """exp(y) * ndtr(x) in float32."""
    tail = _tail_raised_single(x, y)
    return xp.where(x < 0.0, tail, 1.0 - tail)
''',
    needs=TAIL_RAISED,
)
