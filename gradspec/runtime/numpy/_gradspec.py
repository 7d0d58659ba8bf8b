"""Code shared by modules emitted by gradspec 0.1.0 for NumPy: arguments, results,
gradients.

gradspec copies this file unchanged beside the modules that import it. A rule is a class
that holds only its formulas, as functions of arrays and Python numbers; `Rule` does the
rest.
"""

# mypy: disable-error-code="no-any-return"
# NumPy's type stubs give Any for operations on arrays of any type.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature, unwrap
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from .._arguments import checking_axes, explain, number, unreadable

Array: TypeAlias = np.ndarray[Any, Any]
Result = TypeVar("Result", bound=Array | tuple[Array, ...])
Pullback: TypeAlias = Callable[..., tuple[Any, ...]]
Primals: TypeAlias = Sequence[ArrayLike]
Tangents: TypeAlias = Sequence[ArrayLike | None]

_FLOATS = ("floating", "nograd")
_KINDS = {
    "floating": ("f", "a floating", "np.float64"),
    "nograd": ("f", "a floating", "np.float64"),
    "integer": ("iu", "an integer", "np.int64"),
    "boolean": ("b", "a boolean", "bool"),
}
_NOTHING: Mapping[str, str] = MappingProxyType({})


class Rule(Generic[Result]):
    """One call of a rule: its arguments, in the dtype of the computation. That is the
    type to which NumPy promotes them, or ``least``, whichever is wider; results are
    rounded once.

    A subclass has static methods:

    * ``value(*inputs)``: the output, or a tuple of outputs; the last ``extra`` are locals
      that the pullback takes.
    * ``pullback(*residuals, *cotangents)``: a gradient, or None, for each array.
    * ``pushforward(*residuals, *tangents)``: the tangent of each output that has one.
      Without it, the pullback: a derivative that is its own transpose.
    * ``residuals(*inputs, *outputs)``: what these are given. Without it, the inputs.

    and class keywords: ``name`` of the rule; ``kinds`` of inputs that are not floating:
    "nograd" (floating without a gradient), "integer", "boolean", and "number" or
    "whole" for Python numbers, which come last; ``axes``, declared shapes: ``{"x": "...
    n"}``; ``constant``, the places of outputs without a gradient.
    """

    value: ClassVar[Callable[..., Any]]
    pullback: ClassVar[Callable[..., Any]]
    pushforward: ClassVar[Callable[..., Any] | None] = None
    residuals: ClassVar[Callable[..., Any] | None] = None

    _name: ClassVar[str]
    _kinds: ClassVar[dict[str, str]]
    _axes: ClassVar[Mapping[str, str]]
    _check_axes: ClassVar[Callable[..., None]]
    _least: ClassVar[DTypeLike]
    _extra: ClassVar[int]
    _constant: ClassVar[tuple[int, ...]]

    def __init_subclass__(
        cls,
        *,
        name: str,
        kinds: Mapping[str, str] = _NOTHING,
        axes: Mapping[str, str] = _NOTHING,
        least: DTypeLike = np.float32,
        extra: int = 0,
        constant: tuple[int, ...] = (),
    ) -> None:
        code = unwrap(cls.value).__code__
        inputs = code.co_varnames[: code.co_argcount]
        cls._name, cls._axes, cls._least = name, axes, least
        cls._extra, cls._constant = extra, constant
        cls._kinds = {i: kinds.get(i, "floating") for i in inputs}
        cls._check_axes = staticmethod(checking_axes(name, cls._kinds, axes))

    def __init__(self, *arguments: Any) -> None:
        pairs = zip(self._kinds.items(), arguments, strict=True)
        given = {n: _argument(self._name, n, kind, x) for (n, kind), x in pairs}
        floats = [n for n, kind in self._kinds.items() if kind in _FLOATS]
        types = [given[n] for n in floats] or [np.float64]
        self._given = given
        self._dtype = np.result_type(*types)
        self._work = np.promote_types(self._dtype, self._least)
        arrays = {n: np.asarray(given[n], self._work) for n in floats}
        self._inputs = given | arrays
        if self._axes:
            self._check_axes(tuple(self._inputs.values()))

    def result(self) -> Result:
        """The output, or a tuple of outputs."""
        return self._results(self._outputs_and_residuals()[0])

    def vjp(self) -> tuple[Result, Pullback]:
        """The outputs, and a function from their cotangents to the gradients: one for
        each array, of its shape and type; None for one without a gradient.
        """
        outputs, extra = self._outputs_and_residuals()
        shapes = [y.shape for y in self._differentiable(outputs)]
        residuals = self._saved_values(outputs, extra)

        def pullback(*cotangents: ArrayLike, **named: ArrayLike) -> tuple[Any, ...]:
            names = self._cotangents(len(residuals))
            if named or len(cotangents) != len(names):
                cotangents = self._in_order(cotangents, named, names)
            shaped = list(map(self._in_shape, names, cotangents, shapes))
            with np.errstate(all="ignore"):
                found = type(self).pullback(*residuals, *shaped)
            found = found if isinstance(found, tuple) else (found,)
            pairs_ = zip(self._arrays(), found, strict=True)
            return tuple(self._gradient(name, dx) for name, dx in pairs_)

        return self._results(outputs), pullback

    def jvp(self, tangents: Tangents) -> tuple[Result, Result]:
        """The outputs, and their derivatives along the tangents; None is zero."""
        outputs, extra = self._outputs_and_residuals()
        names = self._arrays()
        if len(tangents) != len(names):
            told = f"one for each of {', '.join(names)}, not {len(tangents)}"
            raise TypeError(f"{self._name}: the tangents must be {told}")
        moving = [
            np.zeros_like(x)
            if dot is None
            else self._in_shape(f"{n}_dot", dot, x.shape)
            for n, dot in zip(names, tangents, strict=True)
            if self._kinds[n] == "floating"
            for x in [self._inputs[n]]
        ]
        push = type(self).pushforward or type(self).pullback
        with np.errstate(all="ignore"):
            found = push(*self._saved_values(outputs, extra), *moving)
        pairs = zip(_tuple(found), self._differentiable(outputs), strict=True)
        full = [np.broadcast_to(dot, y.shape) for dot, y in pairs]
        return self._results(outputs), self._results(full, len(outputs) > 1)

    def _saved_values(
        self, outputs: tuple[Array, ...], extra: tuple[Array, ...]
    ) -> tuple[Any, ...]:
        """The residuals: the values passed to pullback and pushforward."""
        inputs = tuple(self._inputs.values())
        if self.residuals is None:
            return inputs
        return type(self).residuals(*inputs, *outputs, *extra)  # type: ignore[misc]

    def _cotangents(self, after: int) -> list[str]:
        """The names of the cotangents: parameters of the pullback, after others."""
        code = unwrap(type(self).pullback).__code__
        return [n.lstrip("_") for n in code.co_varnames[after : code.co_argcount]]

    def _in_order(
        self,
        cotangents: Sequence[ArrayLike],
        named: dict[str, ArrayLike],
        names: list[str],
    ) -> tuple[ArrayLike, ...]:
        """Cotangents in the order of the outputs, from those given by position and
        those given by name (``dy`` for the output ``y``).
        """
        order = [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD) for n in names]
        try:
            return Signature(order).bind(*cotangents, **named).args
        except TypeError as fault:
            raise TypeError(f"{self._name}: {fault}") from None

    def _differentiable(self, outputs: Sequence[Array]) -> list[Array]:
        """The outputs that have a gradient."""
        return [y for k, y in enumerate(outputs) if k not in self._constant]

    def _outputs_and_residuals(self) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """The outputs, and locals for the pullback."""
        try:
            with np.errstate(all="ignore"):
                made = _tuple(type(self).value(*self._inputs.values()))
        except (IndexError, ValueError) as fault:
            explain(fault, self._name, self._inputs, self._kinds, self._axes)
            raise
        count = len(made) - self._extra
        return made[:count], made[count:]

    def _results(self, outputs: Sequence[Array], several: bool | None = None) -> Any:
        """Outputs or tangents in the dtype of the results; never views of arguments."""
        arrays = [self._inputs[n] for n in self._arrays()]

        def own(y: Array) -> Array:
            if y.dtype.kind == "f" and y.dtype != self._dtype:
                return y.astype(self._dtype)
            if y.dtype.kind in "iu":
                return y.astype(np.int64)
            is_seen = any(np.may_share_memory(y, x) for x in arrays)
            return y.copy() if is_seen or not y.flags.writeable else y

        found = [own(np.asarray(y)) for y in outputs]
        is_tuple = len(found) > 1 if several is None else several
        return tuple(found) if is_tuple else found[0]

    def _arrays(self) -> list[str]:
        return [n for n, kind in self._kinds.items() if kind in _KINDS]

    def _in_shape(self, name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
        """A cotangent or tangent as an array of the shape of its output or input."""
        try:
            array = _without_mask(value).astype(
                self._work, casting="same_kind", copy=False
            )
            return array if array.shape == shape else np.broadcast_to(array, shape)
        except (TypeError, ValueError) as fault:
            raise type(fault)(f"{self._name}: {name}: {fault}") from fault

    def _gradient(self, name: str, value: Array | None) -> Array | None:
        """A gradient in the shape and dtype of its argument, as an array of its own."""
        if value is None:
            return None
        total = sum_to(value, self._inputs[name])
        own = getattr(self._given[name], "dtype", self._dtype)
        is_new = total is not value or (value.base is None and value.flags.writeable)
        return total.astype(own, copy=not is_new)


def sum_to(value: Array, x: Array) -> Array:
    """``value`` summed over the axes along which ``x`` was broadcast."""
    if value.shape == x.shape:
        return value
    value = np.broadcast_to(value, np.broadcast_shapes(value.shape, x.shape))
    front = value.ndim - x.ndim
    ones = (axis for axis, size in enumerate(x.shape, front) if size == 1)
    total: Array = value.sum(axis=(*range(front), *ones))
    return total.reshape(x.shape)


def broadcast_full(value: ArrayLike, *like: Array) -> Array:
    """``value`` in its joint shape with the arrays, and the dtype of the first."""
    shape = np.broadcast_shapes(np.shape(value), *(x.shape for x in like))
    return np.broadcast_to(np.asarray(value, like[0].dtype), shape)


def broadcast_like(x: Array, y: Array) -> Array:
    """``x`` in the shape to which it broadcasts with ``y``."""
    return np.broadcast_to(x, np.broadcast_shapes(np.shape(x), y.shape))


# --- arguments -------------------------------------------------------------------------


def _argument(rule: str, name: str, kind: str, value: Any) -> Any:
    """An argument as an array or a number of its kind; no implicit conversion between
    kinds.
    """
    if kind in ("number", "whole"):
        return number(rule, name, value, kind == "whole")
    if kind in _FLOATS and type(value) in (int, float):
        return float(value)
    try:
        array = _without_mask(value)
    except (TypeError, ValueError) as fault:
        raise unreadable(rule, name, fault) from fault
    kinds, words, to = _KINDS[kind]
    if array.dtype.kind not in kinds:
        raise TypeError(
            f"{rule}: {name} must be {words} array, not {array.dtype}; "
            f"convert it first, as in {name}.astype({to})"
        )
    return array.astype(np.int64) if kind == "integer" else array


def _without_mask(value: ArrayLike) -> Array:
    """``value`` as an array; a masked one is refused, since its mask would be lost."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise TypeError("a masked array would lose its mask; fill it: x.filled(0.0)")
    return np.asarray(value)


def _tuple(made: Any) -> tuple[Any, ...]:
    return made if isinstance(made, tuple) else (made,)


# --- assumptions ----------------------------------------------------------------------


def require(found: Any, rule: str, *assumed: str) -> None:
    """Raise a ValueError unless every assumption holds at all elements; ``found`` has
    one boolean array for each of them."""
    for holds, text in zip(found if assumed[1:] else (found,), assumed, strict=True):
        wrong = np.asarray(holds).size - np.count_nonzero(holds)
        if wrong:
            size = np.asarray(holds).size
            raise ValueError(f"{rule} assumes {text}: false at {wrong} of {size}")
