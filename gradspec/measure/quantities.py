"""The measured quantities of a rule: its outputs, ∂output/∂input, ∂²output/∂input²; and
its formula as written, as plain data that a runner evaluates.

The latter is the other side of the comparison: what a user gets who types the formula
into the framework and lets it differentiate. Parts without inputs are folded to one
double, as Python would have it. The numbers of all four formats are float64, so that
one kind of array serves for all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from gradspec.checks.instances import stem
from gradspec.derive.chain import Underivable
from gradspec.derive.vjp import vjps
from gradspec.ir.expr import ONE, ZERO, Apply, Call, Const, Expr, Ref, Select, const
from gradspec.ir.rule import Definition, Role, Rule
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import (
    closed_cotangents,
    closed_outputs,
    expand,
    follows_surrogate,
    names,
    nodes,
    stops,
    substitute,
)
from gradspec.primitives.table_operators import STOP
from gradspec.stabilise.names import with_stops
from gradspec.symbolic.truth import FORMATS, nearest


@dataclass(frozen=True, slots=True)
class Quantity:
    """``order`` 0: the output; 1: its derivative by ``input`` (by the rule's own
    backward, whose truth an override or a surrogate defines); 2: the derivative of
    that by the same input. Of a rule over axes ``output`` at order 0 and ``input`` are
    elements, and the derivative is that of the sum of the output's elements, times
    their `weights`. ``forms`` are expressions of it in the inputs and statics
    alone, as written first: where balls cannot decide one of them the next is asked
    (``x / cosh(x)**2`` at 1e38 is infinity over infinity to a ball).
    """

    order: int
    output: str
    input: str
    forms: tuple[Expr, ...]

    @property
    def key(self) -> str:
        return ":".join((str(self.order), self.output, self.input))


def quantities(written: Rule, chosen: Rule, order: int) -> tuple[Quantity, ...]:
    """The quantities of a complete rule, up to an order of derivatives (0, 1 or 2). ``chosen``
    is the same rule with its evaluations chosen: equal functions in other forms.
    """
    others = {q.key: q.forms for q in _quantities(chosen, order)}
    return tuple(
        replace(q, forms=tuple(dict.fromkeys((*q.forms, *others.get(q.key, ())))))
        for q in _quantities(written, order)
    )


def _quantities(rule: Rule, order: int) -> tuple[Quantity, ...]:
    values = closed_outputs(rule)
    floats = [o.name for o in rule.outputs if o.takes_gradient]
    found = [Quantity(0, name, "", (expand(values[name]),)) for name in floats]
    if order >= 1:
        gradients = closed_cotangents(rule)
        for output in dict.fromkeys(map(stem, floats)):
            own = [name for name in floats if stem(name) == output]
            seeds: dict[str, Expr] = {f"d{name}": ZERO for name in floats}
            for name, weight in zip(own, weights(len(own)), strict=True):
                seeds[f"d{name}"] = const(weight)
            for name, value in gradients.items():
                expr = tidy(substitute(expand(value), seeds))
                found.append(Quantity(1, output, name[1:], (expr,)))
    if order >= 2:
        found += [s for q in found if q.order == 1 for s in _second(q)]
    return tuple(found)


def weights(count: int) -> list[Fraction]:
    """The upstream gradients of the elements of an output: 1, then numbers of other
    signs and sizes, which every format has."""
    return [Fraction((-1) ** k * (4 + 5 * k % 8), 4) for k in range(count)]


def _second(first: Quantity) -> tuple[Quantity, ...]:
    let = Definition("slope", Role.LOCAL, first.forms[0])
    try:
        expr = vjps((let,), (), {"slope": ONE}, (first.input,))[first.input]
    except Underivable:
        return ()
    return (Quantity(2, first.output, first.input, (tidy(expr),)),)


# --- as written --------------------------------------------------------------------


def written_outputs(rule: Rule) -> dict[str, Expr]:
    """The outputs with calls inlined, except those that stop gradients."""
    found = closed_outputs(rule).items()
    return {name: with_stops(value) for name, value in found}


def written_program(exprs: dict[str, Expr]) -> dict[str, Any]:
    """``nodes`` in order, children first, and ``roots``: places of the expressions."""
    known: dict[Expr, int] = {}
    steps: list[list[Any]] = []
    for root in exprs.values():
        for node in nodes(root):
            if node not in known:
                steps.append(_step(node, known))
                known[node] = len(steps) - 1
    return {"nodes": steps, "roots": {key: known[e] for key, e in exprs.items()}}


def is_derivative(rule: Rule) -> bool:
    """True if the rule's backward is the derivative of its forward, where no gradient
    is stopped: else a framework's own differentiation concerns another function.
    """
    if rule.overrides or rule.surrogates:
        return False
    values = (let.value for let in rule.forward)
    called = (n.rule for value in values for n in nodes(value) if isinstance(n, Call))
    return all(
        stops(callee) or not (callee.overrides or follows_surrogate(callee))
        for callee in called
    )


def _step(node: Expr, known: dict[Expr, int]) -> list[Any]:
    match node:
        case Ref(name=name):
            return ["ref", name]
        case Const(value=value):
            return ["const", _double(float(value))]
        case Select(condition=condition, then=then, other=other):
            return ["select", *(known[part] for part in (condition, then, other))]
        case Apply(op="stop", args=(arg,)):
            return [STOP, known[arg]]
        case Apply(op=op, args=args):
            folded = math.nan if names(node) else nearest(node, [{}], "float64")[0]
            if not math.isnan(folded):
                return ["const", _double(folded)]
            return [op, *(known[arg] for arg in args)]
        case _:
            raise NotImplementedError("indexed expressions")


def _double(value: float) -> float | str:
    """A number for JSON, which has no infinity."""
    return value if math.isfinite(value) else repr(value)


# --- formats --------------------------------------------------------------------------


Array = Any
"""A float64 array (NumPy's own types say little more)."""

DTYPES = tuple(FORMATS)
HALF = ("float16", "bfloat16")

_INTEGERS = {"float16": (np.float16, np.int16), "float32": (np.float32, np.int32)}


def least_normal(dtype: str) -> float:
    """The smallest positive normal number."""
    form = FORMATS[dtype]
    return float(2.0 ** (form.least + form.bits - 1))


def largest(dtype: str) -> float:
    """The largest finite number."""
    form = FORMATS[dtype]
    return float((2.0 - 2.0 ** (1 - form.bits)) * 2.0 ** (form.top - 1))


def exponents(dtype: str) -> tuple[int, int]:
    """Exponents of the normal numbers: the first, and one beyond the last."""
    form = FORMATS[dtype]
    return form.least + form.bits - 1, form.top


def rounded(values: Array, dtype: str) -> Array:
    """The values rounded to the format, half to even."""
    values = np.asarray(values, dtype=np.float64)
    if dtype == "float64":
        return values
    form = FORMATS[dtype]
    with np.errstate(all="ignore"):
        _, top = np.frexp(values)
        unit = np.maximum(top - form.bits, form.least)
        near = np.ldexp(np.rint(np.ldexp(values, -unit)), unit)
    near = np.where(np.abs(near) > largest(dtype), np.copysign(np.inf, values), near)
    return np.where(np.isfinite(values), near, values)


def ordinals(values: Array, dtype: str) -> Array:
    """Whole numbers in the order of the numbers, neighbours differing by 1 (-0.0 and
    0.0 are one).
    """
    values = np.asarray(values, dtype=np.float64)
    bits = _bits(values, dtype)
    return np.where(np.signbit(values), -bits, bits)


def numbers(ordinal: Array, dtype: str) -> Array:
    """The inverse of :func:`ordinals`."""
    ordinal = np.asarray(ordinal, dtype=np.int64)
    size = np.abs(ordinal)
    if dtype == "float64":
        value = size.view(np.float64)
    elif dtype == "bfloat16":
        value = (size << 16).astype(np.int32).view(np.float32).astype(np.float64)
    else:
        real, whole = _INTEGERS[dtype]
        with np.errstate(invalid="ignore"):  # NaN of a kind that float64 is told of
            value = size.astype(whole).view(real).astype(np.float64)
    return np.where(ordinal < 0, -value, value)


def _bits(values: Array, dtype: str) -> Array:
    size = np.abs(values)
    if dtype == "float64":
        return size.view(np.int64)
    if dtype == "bfloat16":
        return size.astype(np.float32).view(np.int32).astype(np.int64) >> 16
    real, whole = _INTEGERS[dtype]
    return size.astype(real).view(whole).astype(np.int64)


def every(dtype: str) -> Array:
    """Every finite number of a format of 16 bits, in order (0.0 once)."""
    top = int(ordinals(np.array([largest(dtype)]), dtype)[0])
    return numbers(np.arange(-top, top + 1), dtype)


def unit(high: Array, low: Array, dtype: str) -> Array:
    """One ULP of exact values given as pairs: ``2**(floor(log2|v|) - bits + 1)``, and
    not below the unit of the least normal numbers; nan for 0 and what is not finite.
    """
    form = FORMATS[dtype]
    with np.errstate(all="ignore"):
        mantissa, top = np.frexp(high)
        below = (
            (np.abs(mantissa) == 0.5) & (np.sign(low) == -np.sign(high)) & (low != 0)
        )
        top = top - below
        size = np.ldexp(1.0, np.maximum(top - form.bits, form.least))
    return np.where(np.isfinite(high) & (high != 0), size, np.nan)
