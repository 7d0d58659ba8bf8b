"""Code shared by modules emitted by gradspec 0.1.0 for JAX: arguments, rules, tangents.

gradspec copies this file unchanged beside the modules that import it. A rule is a
function of arrays and Python numbers that holds only its formulas; `rule` does the rest,
with one of JAX's transformations or one of the wrappers here: `lasting` where a
declared gradient is not the derivative, `constant` where there is none, and a
`jax.custom_vjp` with `batched_with` and `residual` where it is not linear in its
cotangent.
"""

# mypy: disable-error-code="no-untyped-call, no-any-return"
# Parts of JAX have no type annotations.

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.custom_derivatives import SymbolicZero, zero_from_primal
from jax.typing import ArrayLike, DTypeLike

from .._arguments import checking_axes, explain, number, unreadable

Array: TypeAlias = jax.Array
Value = TypeVar("Value")

WIDE: DTypeLike = float
"""float64 where JAX has it enabled, else float32."""

_FLOATS = ("floating", "nograd")
_NUMBERS = ("number", "whole")
_NOTHING: Mapping[str, str] = MappingProxyType({})

# --- rules -----------------------------------------------------------------------------


class Rule:
    """A function of arrays, then Python numbers, with a derivative of its own.

    Arguments: ``by``, the transformation that gives the function a derivative; ``kinds``
    of inputs that are not floating: "nograd" (floating without a gradient), "integer",
    "boolean", and "number" or "whole" for Python numbers; ``axes``, declared shapes as
    in ``{"x": "... n"}``; ``least``, a type. The computation is in the type to which
    JAX promotes the floating arguments, or ``least``, whichever is wider; results are
    rounded once. Python numbers take the type of the arrays.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        by: Callable[..., Any],
        kinds: Mapping[str, str],
        axes: Mapping[str, str],
        least: DTypeLike,
    ) -> None:
        code = function.__code__
        inputs = code.co_varnames[: code.co_argcount]
        self._name, self._axes, self._least = name, axes, least
        self._kinds = {i: kinds.get(i, "floating") for i in inputs}
        self._check_axes = checking_axes(name, self._kinds, axes)
        self._arrays = [i for i, kind in self._kinds.items() if kind not in _NUMBERS]
        statics = tuple(range(len(self._arrays), len(inputs)))
        self._is_joint = by is jax.custom_vjp and len(self._arrays) > 1
        self._function = by(function, nondiff_argnums=statics)

    def __call__(self, *inputs: Any) -> Any:
        """The outputs for converted arguments."""
        return self._function(*inputs)

    def defjvp(self, function: Callable[..., Any], *, symbolic_zeros: bool) -> None:
        """Register the derivative of a `jax.custom_jvp`."""
        self._function.defjvp(function, symbolic_zeros=symbolic_zeros)

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Register the two passes of a `jax.custom_vjp`."""
        self._function.defvjp(forward, backward)

    def call(self, *arguments: Any) -> Array:
        """The output for the arguments of the public function."""
        return self.calls(*arguments)[0]

    def calls(self, *arguments: Any) -> tuple[Array, ...]:
        """All outputs for the arguments of the public function."""
        dtype, inputs = self._convert(dict(zip(self._kinds, arguments, strict=True)))
        try:
            made = self._function(*inputs)
        except (IndexError, TypeError, ValueError) as fault:
            given = dict(zip(self._kinds, inputs, strict=True))
            explain(fault, self._name, given, self._kinds, self._axes)
            raise
        outputs = made if isinstance(made, tuple) else (made,)
        return tuple(_cast_result(dtype, y) for y in outputs)

    def _convert(self, given: dict[str, Any]) -> tuple[Any, list[Any]]:
        """The dtype of the results, and the arguments for the function."""
        name, kinds, dtype = self._name, self._kinds, None
        floats = {
            n: _floating(name, n, x) for n, x in given.items() if kinds[n] in _FLOATS
        }
        if floats:
            dtype, least = (
                jnp.result_type(*floats.values()),
                jnp.result_type(self._least),
            )
            work = dtype if jnp.finfo(dtype).bits >= jnp.finfo(least).bits else least
            given |= {
                n: x if x.dtype == work else x.astype(work) for n, x in floats.items()
            }
        for n, convert in ((n, _CONVERSIONS.get(kind)) for n, kind in kinds.items()):
            if convert is not None:
                given[n] = convert(name, n, given[n])
        if self._axes:
            self._check_axes(tuple(given.values()))
        if self._is_joint:
            arrays = in_step(*(given[n] for n in self._arrays))
            given |= zip(self._arrays, arrays, strict=True)
        return dtype, [*given.values()]


def rule(
    name: str,
    *,
    by: Callable[..., Any] = jax.custom_jvp,
    kinds: Mapping[str, str] = _NOTHING,
    axes: Mapping[str, str] = _NOTHING,
    least: DTypeLike = jnp.float32,
) -> Callable[[Callable[..., Any]], Rule]:
    """The decorator that makes a rule of its function, see `Rule`."""
    return lambda function: Rule(function, name, by, kinds, axes, least)


# --- arguments and results -------------------------------------------------------------


def _integers(rule: str, name: str, value: ArrayLike) -> Array:
    """An integer argument, in a type wide enough for arithmetic on positions."""
    array = _checked_array(rule, name, value, jnp.integer, "an integer", "int")
    return array.astype(jnp.int32) if jnp.iinfo(array.dtype).bits < 32 else array


def _booleans(rule: str, name: str, value: ArrayLike) -> Array:
    """A boolean argument."""
    return _checked_array(rule, name, value, jnp.bool_, "a boolean", "bool")


def _number(rule: str, name: str, value: float) -> Any:
    """A static as a Python number: a NumPy number would promote."""
    return number(rule, name, _known_static(rule, name, value), is_whole=False)


def _whole(rule: str, name: str, value: int) -> Any:
    """A static that must be an integer."""
    return number(rule, name, _known_static(rule, name, value), is_whole=True)


_CONVERSIONS: Mapping[str, Callable[[str, str, Any], Any]] = {
    "integer": _integers,
    "boolean": _booleans,
    "number": _number,
    "whole": _whole,
}


def _known_static(rule: str, name: str, value: Any) -> Any:
    """A static, whose value must be known when JAX traces."""
    if isinstance(value, jax.core.Tracer):
        raise TypeError(
            f"{rule}: {name}, a static of a gradspec rule is traced: give it as a Python"
            " number (under jax.jit, name it in static_argnames, or bind it with"
            " functools.partial)"
        )
    return value


def _cast_result(dtype: Any, y: Array) -> Array:
    """A floating result in the dtype of the results."""
    if dtype is None or y.dtype == dtype or not jnp.issubdtype(y.dtype, jnp.floating):
        return y
    return y.astype(dtype)


def as_default_int(y: Array) -> Array:
    """An integer result in JAX's default integer type."""
    return y.astype(int)


def broadcast_full(value: ArrayLike, *like: Array) -> Array:
    """``value`` in its joint shape with the arrays, and the dtype of the first."""
    shape = jnp.broadcast_shapes(jnp.shape(value), *(x.shape for x in like))
    return jnp.broadcast_to(jnp.asarray(value, like[0].dtype), shape)


def broadcast_like(x: Array, y: Array) -> Array:
    """``x`` in the shape to which it broadcasts with ``y``, in the vmap batch of ``y``,
    and on every device of `jax.shard_map`.
    """
    return jnp.where(jnp.isnan(y), x, x)


def sum_to(value: ArrayLike, x: Array) -> Array:
    """``value`` summed over the axes along which ``x`` was broadcast."""
    value = jnp.asarray(value, x.dtype)
    if value.shape == x.shape:
        return value
    value = jnp.broadcast_to(value, jnp.broadcast_shapes(value.shape, x.shape))
    front = value.ndim - x.ndim
    ones = (k for k, size in enumerate(x.shape, front) if size == 1)
    axes = (*range(front), *(k for k in ones if value.shape[k] != 1))
    return jnp.sum(value, axes).reshape(x.shape) if axes else value


def start(value: float, shape: Sequence[int] | int, dtype: DTypeLike | None) -> Array:
    """The initial value of a learned input."""
    return jnp.full(shape, value, float if dtype is None else dtype)


# --- gradients that are linear in the cotangent ----------------------------------------


def lasting(
    function: Callable[..., Value], nondiff_argnums: tuple[int, ...] = ()
) -> jax.custom_jvp[Value]:
    """A `jax.custom_jvp` of a rule that is not the derivative of its function.

    Where a gradient through `jax.lax.scan` is differentiated again, JAX replaces the
    rule by the bare function. Here that is a rule too, for reverse mode. Statics follow
    the arrays.
    """
    bare = jax.custom_vjp(function, nondiff_argnums=nondiff_argnums)
    rule = jax.custom_jvp(bare, nondiff_argnums=nondiff_argnums)

    def forward(*given: Any) -> Any:
        count = len(given) - len(nondiff_argnums)
        arrays = [residual(x) for x in given[:count]]
        return jax.vjp(lambda *arrays: rule(*arrays, *given[count:]), *arrays)

    def backward(*given: Any) -> Any:
        *_, pullback, cotangent = given
        return pullback(cotangent)

    bare.defvjp(forward, backward)
    return rule


def constant(
    function: Callable[..., Value], nondiff_argnums: tuple[int, ...] = ()
) -> Callable[..., Value]:
    """The function, through which no derivative flows. Statics follow the arrays."""

    def hold(*given: Any) -> Value:
        count = len(given) - len(nondiff_argnums)
        return function(*map(jax.lax.stop_gradient, given[:count]), *given[count:])

    return hold


def slopes(rule: Rule) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the derivative of a rule, from a function of inputs, statics and outputs
    that gives slopes: for each output (a tuple of several) one for each input (a tuple
    of several), None where there is none.
    """

    def push(function: Callable[..., Any], given: tuple[Any, ...]) -> tuple[Any, Any]:
        *statics, primals, dots = given
        result = rule(*primals, *statics)
        outputs = result if isinstance(result, tuple) else (result,)
        rows = function(*primals, *statics, *outputs)
        if not isinstance(result, tuple):
            return result, _tangent(result, rows, dots)
        return result, tuple(map(_tangent, outputs, rows, [dots] * len(outputs)))

    return _registrar(rule, push)


def _tangent(y: Array, row: Any, dots: Sequence[Any]) -> Array:
    """The tangent of ``y``: slopes times tangents. An input without a tangent
    contributes nothing: an infinite slope is not multiplied by a tangent of zero.
    """
    pairs = zip(row if isinstance(row, tuple) else [row] * len(dots), dots, strict=True)
    moving = [
        slope * dot
        for slope, dot in pairs
        if slope is not None and not isinstance(dot, SymbolicZero)
    ]
    if not moving:
        return still(y)
    total = reduce(operator.add, moving)
    return _varying(jnp.broadcast_to(total, y.shape), jax.typeof(y))


def pullback(
    rule: Rule, constant: tuple[int, ...] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the derivative of a rule as the transpose of its backward pass: a
    function of inputs, statics, outputs, and the cotangents of the outputs that are not
    ``constant``. It returns one gradient for each input, in any shape that its input
    broadcasts to, and None for an input without a gradient.
    """

    def push(function: Callable[..., Any], given: tuple[Any, ...]) -> tuple[Any, Any]:
        *statics, primals, dots = given
        result = rule(*primals, *statics)
        outputs = result if isinstance(result, tuple) else (result,)
        moved = [y for k, y in enumerate(outputs) if k not in constant]

        def backward(*cotangents: Array) -> Any:
            return function(*primals, *statics, *outputs, *cotangents)

        pushed = iter(_transpose(backward, primals, dots, moved))
        tangents = tuple(
            still(y) if k in constant else next(pushed) for k, y in enumerate(outputs)
        )
        return result, tangents if isinstance(result, tuple) else tangents[0]

    return _registrar(rule, push)


def _transpose(
    backward: Callable[..., Any],
    inputs: Sequence[Array],
    dots: Sequence[Any],
    outputs: Sequence[Array],
) -> Sequence[Array]:
    """The tangents of the outputs from those of the inputs: the transpose of the
    backward pass, which is linear in the cotangents of these outputs.
    """
    moving: list[tuple[Any, Any]] = []

    def part(*cotangents: Array) -> list[Array]:
        found = backward(*cotangents)
        gradients = found if isinstance(found, tuple) else (found,)
        kept = [
            (sum_to(gradient, x), dot)
            for gradient, x, dot in zip(gradients, inputs, dots, strict=True)
            if gradient is not None and not isinstance(dot, SymbolicZero)
        ]
        moving[:] = [(jax.typeof(gradient), dot) for gradient, dot in kept]
        return [gradient for gradient, _ in kept]

    transposed = jax.linear_transpose(part, *outputs)
    if not moving:
        return [still(y) for y in outputs]
    given = [_varying(dot, kind) for kind, dot in moving]
    tangents: Sequence[Array] = transposed(given)
    return tangents


def _registrar(
    rule: Rule, push: Callable[[Callable[..., Any], tuple[Any, ...]], tuple[Any, Any]]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        rule.defjvp(lambda *given: push(function, given), symbolic_zeros=True)
        return function

    return register


def still(y: Array) -> Array:
    """The tangent of an output that depends on no varying input: zero."""
    return zero_from_primal(y)


# --- gradients that are not ------------------------------------------------------------


def residual(x: Array) -> Array:
    """``x``, for the backward pass of a `jax.custom_vjp`. JAX loses track of an
    argument itself where a gradient through `jax.lax.scan` is differentiated again; a
    named value is no argument. No user's policy of `jax.checkpoint` has this name.
    """
    return checkpoint_name(x, "argument of a rule")


def in_step(*arrays: Array) -> tuple[Array, ...]:
    """The arrays; in `jax.shard_map`, all as values that vary along the same axes. A
    `jax.custom_vjp` cannot sum a gradient over the devices that share its input.
    """
    for kind in map(jax.typeof, arrays):
        arrays = tuple(_varying(x, kind) for x in arrays)
    return arrays


def batched_with(output: Array, *inputs: Array) -> Array:
    """``output``, in every vmap batch of any input: the cotangent of an unbatched
    output is summed before a backward pass sees it. Both branches of the choice are the
    same, and a compiler drops it.
    """
    for x in inputs:
        output = jnp.where(jnp.any(jnp.isnan(x)), output, output)
    return output


def _varying(x: Array, like: Any) -> Array:
    """``x``; in `jax.shard_map`, as a value that varies along the axes along which a
    value of the type ``like`` does.
    """
    axes = _varying_axes(like) - _varying_axes(jax.typeof(x))
    if not axes:
        return x
    names = tuple(sorted(axes))
    if not hasattr(jax.lax, "pcast"):  # JAX 0.8
        return jax.lax.pvary(x, names)  # type: ignore[attr-defined, unused-ignore]
    return jax.lax.pcast(x, names, to="varying")


def _varying_axes(kind: Any) -> frozenset[str]:
    """The axes of the mesh along which devices hold different values."""
    manual = getattr(kind, "manual_axis_type", None)
    if manual:
        return frozenset(manual.varying)
    return frozenset(getattr(kind, "vma", ()))  # up to JAX 0.9


# --- conversions -----------------------------------------------------------------------


def _floating(rule: str, name: str, value: ArrayLike) -> Array:
    if type(value) in (int, float):
        return 1.0 * jnp.asarray(value)  # stays weak
    if hasattr(value, "todense"):
        raise TypeError(
            f"{rule}: {name} must be a dense array, not {type(value).__name__}; "
            f"convert it first, as in {name}.todense()"
        )
    return _checked_array(rule, name, value, jnp.floating, "a floating", "jnp.float32")


def _checked_array(
    rule: str, name: str, value: ArrayLike, kind: Any, words: str, to: str
) -> Array:
    """``value`` as an array of the kind; no implicit conversion between kinds."""
    try:
        array = jnp.asarray(value)
    except (TypeError, ValueError) as fault:
        raise unreadable(rule, name, fault) from fault
    if not jnp.issubdtype(array.dtype, kind):
        raise TypeError(
            f"{rule}: {name} must be {words} array, not {array.dtype}; "
            f"convert it first, as in {name}.astype({to})"
        )
    return array


# --- assumptions ----------------------------------------------------------------------


def require(found: Any, rule: str, *assumed: str) -> None:
    """Raise a ValueError unless every assumption holds at all elements; ``found`` has
    one boolean array for each of them. Where arrays are traced (`jax.jit`, `jax.vmap`)
    it is a debug check of `jax.experimental.checkify`, which has no effect outside of
    `checkify.checkify`."""
    for holds, text in zip(found if assumed[1:] else (found,), assumed, strict=True):
        if isinstance(holds, jax.core.Tracer):
            from jax.experimental import checkify

            checkify.debug_check(jnp.all(holds), f"{rule} assumes {text}")
            continue
        wrong = holds.size - int(jnp.count_nonzero(holds))
        if wrong:
            raise ValueError(f"{rule} assumes {text}: false at {wrong} of {holds.size}")
