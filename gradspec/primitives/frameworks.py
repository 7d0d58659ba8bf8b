"""The other direction of the table: what a function of a framework means, by its name.

It is the inverse of the spellings of rows; of the row's own name where frameworks have it;
and of the names below, by which frameworks call the same functions and others that are
formulas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from gradspec.ir.expr import Expr
from gradspec.primitives.lookup import formula, is_function, rows
from gradspec.primitives.row import Template

_PLACES = """
torch       torch torch.special torch.nn.functional torch.Tensor
tensorflow  tensorflow tensorflow.math tensorflow.nn tensorflow.linalg tensorflow.math.special
tensorflow  tensorflow.keras.backend tensorflow.keras.activations keras.backend keras.ops
tensorflow  tensorflow.experimental.numpy tensorflow.python.ops.math_ops
tensorflow  tensorflow.python.ops.array_ops tensorflow.python.ops.nn_ops
jax         jax.numpy jax.lax jax.nn jax.scipy.special jax.numpy.linalg jax
numpy       numpy numpy.linalg scipy.special math
"""
"""Frameworks, and their modules that have functions of numbers; a name means the same in
all of those of one framework."""

_MODULES = {
    "np": "numpy",
    "jnp": "jax.numpy",
    "tf": "tensorflow",
    "special": "jax.scipy.special",
}
"""The modules behind the names in the spellings of targets."""

_FORMULAS = """
arcsin asin | x | asin(x)
arccos acos | x | acos(x)
arctan atan | x | atan(x)
arctan2 atan2 | x y | atan2(x, y)
arcsinh asinh | x | asinh(x)
arccosh acosh | x | acosh(x)
arctanh atanh | x | atanh(x)
absolute fabs abs | x | abs(x)
fix trunc | x | trunc(x)
expit | x | sigmoid(x)
log_sigmoid logsigmoid | x | logsigmoid(x)
gammaln | x | lgamma(x)
erf_inv | x | erfinv(x)
bessel_i0 | x | i0(x)
bessel_i1 | x | i1(x)
bessel_i0e | x | i0e(x)
bessel_i1e | x | i1e(x)
rint round | x | round(x)
sgn | x | sign(x)
psi | x | digamma(x)
logit | x | log(x / (1 - x))
maximum fmax | x y | max(x, y)
minimum fmin | x y | min(x, y)
pow power float_power integer_pow | x y | x**y
neg negative | x | -x
reciprocal | x | 1 / x
reciprocal_no_nan | x | 0 if x == 0 else 1 / x
add | x y alpha=1 | x + alpha * y
sub subtract | x y alpha=1 | x - alpha * y
mul multiply scalar_mul | x y | x * y
div divide true_divide truediv | x y | x / y
divide_no_nan div_no_nan | x y | 0 if y == 0 else x / y
remainder mod floormod | x y | x % y
floor_divide floordiv | x y | floor(x / y)
squared_difference | x y | (x - y)**2
lerp | x y weight | x + weight * (y - x)
addcmul | x y z value=1 | x + value * (y * z)
addcdiv | x y z value=1 | x + value * (y / z)
eq equal | x y | x == y
ne not_equal | x y | x != y
gt greater | x y | x > y
ge greater_equal | x y | x >= y
lt less | x y | x < y
le less_equal | x y | x <= y
logical_and bitwise_and | x y | x and y
logical_or bitwise_or | x y | x or y
logical_not bitwise_not | x | not x
where | condition x y | x if condition else y
masked_fill | x mask value | value if mask else x
silu swish | x | x * sigmoid(x)
mish | x | x * tanh(softplus(x))
gelu_exact | x | x * ndtr(x)
gelu_tanh | x | 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))
softplus | x beta=1 threshold=20 | softplus(beta * x) / beta
softsign soft_sign | x | x / (1 + abs(x))
leaky_relu | x slope=0.01 | x if x > 0 else slope * x
tensorflow.nn.leaky_relu | x slope=0.2 | x if x > 0 else slope * x
elu | x alpha=1 | x if x > 0 else alpha * expm1(x)
selu | x | 1.0507009873554805 * (x if x > 0 else 1.6732632423543772 * expm1(x))
relu6 | x | clip(x, 0, 6)
hardsigmoid jax.nn.hard_sigmoid | x | clip(x + 3, 0, 6) / 6
hardswish jax.nn.hard_swish hard_silu | x | x * clip(x + 3, 0, 6) / 6
hardtanh hard_tanh | x min_val=-1 max_val=1 | clip(x, min_val, max_val)
tanhshrink | x | x - tanh(x)
hardshrink | x lambd=0.5 | 0 if abs(x) <= lambd else x
softshrink | x lambd=0.5 | 0 if abs(x) <= lambd else x - lambd * sign(x)
jax.lax.clamp | min x max | clip(x, min, max)
jax.lax.select | condition x y | x if condition else y
"""
"""Names, parameters with their defaults, and the formula. A name with dots is meant in
that place only."""

_CALL = re.compile(r"([\w.]+)\(\{x\}(?:, \{y\})?(?:, \{z\})?\)")
CLIP = next(row.name for row in rows() if row.is_piecewise and row.arity == 3)
FLOOR, TRUNC = "floor", "trunc"
_SEVERAL = frozenset(("max", "min", CLIP))
"""Names that frameworks have for reductions, or with bounds left out."""


@dataclass(frozen=True)
class Meaning:
    """The formula that a function of numbers computes; parameters without a default are required."""

    parameters: tuple[str, ...]
    defaults: Mapping[str, Fraction]
    text: str

    @property
    def value(self) -> Expr:
        return formula(self.text)


@cache
def _places() -> Mapping[str, str]:
    """The framework of each module."""
    lines = (line.split() for line in _PLACES.split("\n") if line)
    return {place: framework for framework, *places in lines for place in places}


def place_of(name: str) -> str:
    """The framework of a function, by its full name; empty if it stands in no module of
    functions of numbers."""
    return _places().get(name.rpartition(".")[0], "")


@cache
def _meanings() -> Mapping[str, Meaning]:
    found: dict[str, Meaning] = {}
    for row in rows():
        if not is_function(row.name) or row.name in _SEVERAL:
            continue
        params = row.params[: row.arity]
        meaning = Meaning(params, {}, f"{row.name}({', '.join(params)})")
        found[row.name] = meaning
        for spelling in row.spellings.values():
            called = _CALL.fullmatch(getattr(spelling, "text", ""))
            if isinstance(spelling, Template) and called:
                first, _, rest = called[1].partition(".")
                found[f"{_MODULES.get(first, first)}.{rest}"] = meaning
    return found | dict(_of_formulas())


def _of_formulas() -> Iterator[tuple[str, Meaning]]:
    for line in _FORMULAS.strip().split("\n"):
        names, given, text = line.split(" | ")
        pairs = [one.partition("=") for one in given.split()]
        defaults = {name: Fraction(value) for name, _, value in pairs if value}
        meaning = Meaning(tuple(name for name, *_ in pairs), defaults, text)
        yield from ((name, meaning) for name in names.split())


def meaning_of(name: str) -> Meaning | None:
    """The formula of a framework's function, by its full name; None if the table knows
    no such function of numbers."""
    known = _meanings()
    if name in known and "." in name:
        return known[name]
    return known.get(name.rpartition(".")[2]) if place_of(name) else None
