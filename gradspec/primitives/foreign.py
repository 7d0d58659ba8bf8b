"""Foreign functions: known by their paths and their derivatives.

The operation of one is its name, a line end, and all that is known of it as JSON: its
own definition and those of the foreign functions that its derivatives call. So an
operation is complete in itself, wherever it is stored, and two that say the same are one.

In proofs it is an opaque symbol. Where numbers are needed (points that refute a wrong
gradient), a smooth function that belongs to nobody stands in for it: what holds for the
function whatever it is holds for the stand-in. A trial installs the real ones.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from typing import Any

from gradspec.ir.expr import Apply, Call, Expr, spoken
from gradspec.ir.rule import Rule
from gradspec.ir.walk import expressions, nodes
from gradspec.primitives.row import TARGETS, Foreign, Missing, Primitive, Spelling

FRAMEWORKS = {
    "numpy": "numpy",
    "scipy": "numpy",
    "torch": "torch",
    "tensorflow": "tf",
    "tf": "tf",
    "jax": "jax",
    "jnp": "jax",
}
"""The target whose arrays the functions of a module take."""

_ABBREVIATIONS = {"tf": "tensorflow", "jnp": "jax.numpy", "np": "numpy"}

_CALL = re.compile(r"([A-Za-z]\w*)\(")

COST = 30.0
"""Multiplications of a float32 array: about a function of the standard library."""


@dataclass(frozen=True, slots=True)
class ForeignFunction:
    """One definition: ``calls`` are (target, path, arguments), "" for every target;
    ``derivatives`` are formulas of the parameters, one each or none."""

    name: str
    params: tuple[str, ...]
    calls: tuple[tuple[str, str, tuple[str, ...]], ...]
    derivatives: tuple[str, ...] = ()


def is_foreign(op: str) -> bool:
    return "\n" in op


def foreign_operations(exprs: Iterable[Expr]) -> tuple[str, ...]:
    """Those that expressions apply, in calls of other rules too."""
    found: dict[str, None] = {}
    for expr in exprs:
        for node in nodes(expr):
            if isinstance(node, Apply) and is_foreign(node.op):
                found[node.op] = None
            elif isinstance(node, Call):
                found |= dict.fromkeys(foreign_operations(expressions(node.rule)))
    return tuple(found)


def is_plain(rule: Rule) -> bool:
    """True if a rule calls no foreign function, so that its numbers are known."""
    return not foreign_operations(expressions(rule))


def operation(name: str, known: Mapping[str, ForeignFunction]) -> str:
    """The operation of the function ``name``, with what its derivatives call."""
    order, todo = {name}, [name]
    while todo:
        fresh = {*_called(known[todo.pop()], known)} - order
        order |= fresh
        todo += sorted(fresh)
    parts = [
        [
            f.name,
            list(f.params),
            [[t, p, list(a)] for t, p, a in f.calls],
            [*f.derivatives],
        ]
        for f in (known[one] for one in (name, *sorted(order - {name})))
    ]
    return f"{name}\n{json.dumps(parts)}"


def _called(
    function: ForeignFunction, known: Mapping[str, ForeignFunction]
) -> Iterator[str]:
    for text in function.derivatives:
        yield from (name for name in _CALL.findall(text) if name in known)


@cache
def members(op: str) -> dict[str, ForeignFunction]:
    """The definitions in an operation by name, its own first."""
    data = json.loads(op.partition("\n")[2])
    found = (
        ForeignFunction(
            name, tuple(params), tuple((t, p, tuple(a)) for t, p, a in calls), tuple(d)
        )
        for name, params, calls, d in data
    )
    return {function.name: function for function in found}


def definition(op: str) -> ForeignFunction:
    return next(iter(members(op).values()))


def unknown_derivative(function: ForeignFunction, position: int) -> str:
    """The operation of a derivative that is not given: nothing computes it."""
    name = f"{function.name}'"
    if len(function.params) > 1:
        name = f"∂{function.name}/∂{function.params[position]}"
    return operation(name, {name: ForeignFunction(name, function.params, ())})


def unknown_derivatives(exprs: Iterable[Expr]) -> tuple[str, ...]:
    """The names of derivatives that expressions need and that are not given."""
    every = foreign_operations(exprs)
    return tuple(spoken(op) for op in every if not definition(op).calls)


def givens(operations: Iterable[str]) -> tuple[str, ...]:
    """``j0'(x) = -j1(x)`` for each derivative that is given."""
    found: dict[str, None] = {}
    for one in map(definition, operations):
        inside = ", ".join(one.params)
        for param, text in zip(one.params, one.derivatives, strict=False):
            left = f"∂{one.name}/∂{param}" if len(one.params) > 1 else f"{one.name}'"
            found[f"{left}({inside}) = {text}"] = None
    return tuple(found)


@cache
def foreign_row(op: str) -> Primitive:
    """The row of a foreign function."""
    one = definition(op)
    return Primitive(
        op,
        one.params,
        ball=partial(_ball, op),
        spellings={target: spelling(one, target) for target in TARGETS},
        partials=one.derivatives,
        cost=COST,
    )


def spelling(function: ForeignFunction, target: str) -> Spelling:
    """The call that serves a target: its own, else the one for every target."""
    by_target = {call[0]: call for call in function.calls}
    if not {target, ""} & {*by_target}:
        return Missing(f"`{function.name}` is given for {', '.join(by_target)} only")
    named, path, arguments = by_target.get(target) or by_target[""]
    root, _, rest = path.partition(".")
    home = FRAMEWORKS.get(root, target if named else "numpy")
    if home not in (target, "numpy"):
        return Missing(f"`{path}` is a function of {home}")
    path = f"{_ABBREVIATIONS.get(root, root)}.{rest}"
    return Foreign(function.name, path, arguments, home == target)


# --- numbers -----------------------------------------------------------------------------

Real = Callable[[str, tuple[float, ...]], float]
"""The value of an operation at numbers."""

_real: ContextVar[Real | None] = ContextVar("real", default=None)


@contextmanager
def use_real(real: Real) -> Iterator[None]:
    """Context in which the real functions are called where numbers are needed."""
    token = _real.set(real)
    try:
        yield
    finally:
        _real.reset(token)


def _ball(op: str, *args: Any) -> Any:
    arb = type(args[0])
    if not all(arg.is_finite() for arg in args):
        return arb.nan()
    real = _real.get()
    if real is None:
        return _stand_in(op, args)
    value = real(op, tuple(float(arg.mid()) for arg in args))
    return arb(value) if math.isfinite(value) else arb.nan()


def _stand_in(op: str, args: tuple[Any, ...]) -> Any:
    """A smooth function with coefficients of its own: not 0, not monotonic."""
    arb = type(args[0])
    first, second, *weights = _coefficients(spoken(op), len(args))
    inner = arb(second) / 37
    for weight, arg in zip(weights, args, strict=True):
        inner += (arb(weight) / 64 + 1) * arg
    return arb(first) / 91 + 1 + inner.sin() + inner / 7


@cache
def _coefficients(name: str, count: int) -> tuple[int, ...]:
    digest = sha256(name.encode()).digest()
    return tuple(digest[k % len(digest)] + 1 for k in range(count + 2))
