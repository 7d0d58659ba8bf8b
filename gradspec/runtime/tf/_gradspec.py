"""Code shared by modules emitted by gradspec 0.1.0 for TensorFlow: `tf.custom_gradient`
with the features that it lacks.

gradspec copies this file unchanged beside the modules that import it. It needs
TensorFlow and nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast, overload

import tensorflow as tf

from .._arguments import check_size, explain, number, unreadable

try:  # it has no public name
    from tensorflow.python.eager import record
except ImportError:
    record = None
    warnings.warn(
        "this TensorFlow has no tensorflow.python.eager.record: in a graph "
        "tf.autodiff.ForwardAccumulator finds no derivative of these rules",
        stacklevel=2,
    )

Parameters = ParamSpec("Parameters")
Value = TypeVar("Value")
Result: TypeAlias = tuple[Value, Callable[..., Any]]
"""The result of a rule's body: its outputs, and the function of their cotangents."""

_NOTHING: Mapping[str, str] = MappingProxyType({})


@overload
def custom_gradient(
    core: Callable[Parameters, Result[Value]],
) -> Callable[Parameters, Value]: ...


@overload
def custom_gradient(
    *,
    precision: tf.DType = ...,
    is_linear: bool = ...,
    nograd: Sequence[int] = ...,
    kinds: Mapping[str, str] = ...,
    axes: Mapping[str, str] = ...,
) -> Callable[[Callable[Parameters, Result[Value]]], Callable[Parameters, Value]]: ...


def custom_gradient(
    core: Callable[..., Any] | None = None,
    *,
    precision: tf.DType = tf.float32,
    is_linear: bool = True,
    nograd: Sequence[int] = (),
    kinds: Mapping[str, str] = _NOTHING,
    axes: Mapping[str, str] = _NOTHING,
) -> Any:
    """`tf.custom_gradient` of ``core``: keyword-only parameters are numbers, the others
    floating tensors of one type, or of ``kinds``, "integer" or "boolean". And

    * any argument may be given by keyword, and Python numbers for tensors;
    * shapes are checked against ``axes``, as in ``{"x": "... n", "g": "n"}``;
    * types narrower than ``precision`` are computed in it and rounded once;
    * results at the places ``nograd`` have no gradient;
    * each gradient is summed to the shape, and cast to the type, of its own tensor;
    * `tf.autodiff.ForwardAccumulator` sees the rule, or an error where the gradient is not
      linear in the cotangent;
    * an eager tape keeps what the gradient uses and nothing else of the forward pass.
    """

    def decorate(core: Callable[..., Any]) -> Callable[..., Any]:
        rule, signature = core.__name__, inspect.signature(core)
        names = core.__code__.co_varnames[: core.__code__.co_argcount]
        numbers = {
            p.name: int if p.annotation == "int" else float
            for p in signature.parameters.values()
            if p.name not in names
        }

        def function(*given: Any, **named: Any) -> Any:
            if len(given) != len(names) or named.keys() != numbers.keys():
                given, named = _bind(rule, signature, given, named)
            for name, kind in numbers.items():
                if type(named[name]) is not kind:
                    named[name] = _number(rule, name, named[name], kind)
            values = dict(zip(names, given, strict=True))
            tensors = _tensors(rule, values, kinds)
            if axes:
                made = dict(zip(names, tensors, strict=True))
                late = _check_axes(rule, made, axes, named)
                if late:  # before any operation that the shapes would break
                    with tf.control_dependencies(late):
                        tensors = tuple(map(tf.identity, tensors))
            bound = functools.partial(core, **named)
            try:
                results = _apply(bound, tensors, precision, is_linear)
            except (ValueError, tf.errors.InvalidArgumentError) as fault:
                known = dict(zip(names, map(_outline, tensors), strict=True))
                explain(fault, rule, known | named, kinds, axes)
                raise
            if not nograd:
                return results
            outputs = results if isinstance(results, tuple) else (results,)
            ended = tuple(
                tf.stop_gradient(y) if k in nograd else y for k, y in enumerate(outputs)
            )
            return ended if isinstance(results, tuple) else ended[0]

        functools.update_wrapper(function, core)
        # `tf.function` would unwrap it among its arguments
        del function.__wrapped__  # type: ignore[attr-defined]
        function.__signature__ = signature  # type: ignore[attr-defined]
        # there is nothing to convert, and AutoGraph takes a tenth of a second to see it
        free = tf.autograph.experimental.do_not_convert(function)
        return cast(Callable[..., Any], free)

    return decorate if core is None else decorate(core)


def _apply(
    core: Callable[..., Any],
    tensors: tuple[tf.Tensor, ...],
    precision: tf.DType,
    is_linear: bool,
) -> Any:
    """The results of ``core``, recorded as those of one operation.

    A recorded forward pass has tangents of its own, which an accumulator prefers.
    """
    is_eager = tf.executing_eagerly()
    if not is_eager:  # in a branch of a loop a gradient finds no tensor from outside
        tensors = tuple(map(tf.identity, tensors))
    wide = _widen(tensors, precision)
    narrow = [t.dtype for w, t in zip(wide, tensors, strict=True) if w is not t]

    def pull_back(*upstream: Any) -> list[tf.Tensor | None]:
        pull = backward
        if pull is None or (record and record.could_possibly_record()):
            # again: nothing wide was kept, or what was kept must be seen through
            _, pull = core(*_widen(tensors, precision))
        dense = list(map(_dense, upstream, outlines))
        found = pull(*_widen(dense, precision))
        found = found if isinstance(found, tuple) else (found,)
        return [_like(dx, x) for dx, x in zip(found, tensors, strict=True)]

    with record.stop_recording() if record else contextlib.nullcontext():
        results, backward = core(*wide)
        outputs = results if isinstance(results, tuple) else (results,)
        if narrow:
            backward = None
            outputs = tuple(
                tf.cast(y, narrow[0]) if y.dtype.is_floating else y for y in outputs
            )
        outlines = [(shape(y), y.dtype) for y in outputs]
        if is_eager and record:
            made = [tf.identity(y) for y in outputs]
        else:
            ended = [tf.stop_gradient(y) for y in outputs]
            made = tf.custom_gradient(lambda *_: (ended, pull_back))(*tensors)
    if record:
        forward = None if is_linear else _no_forward_mode
        record.record_operation("Rule", made, tensors, pull_back, forward)
    return tuple(made) if isinstance(results, tuple) else made[0]


def _no_forward_mode(*_: object) -> None:
    raise NotImplementedError(
        "this rule has no forward mode: its gradient is not linear in the cotangent"
    )


def _widen(tensors: Sequence[tf.Tensor], precision: tf.DType) -> tuple[tf.Tensor, ...]:
    """The tensors, with narrower floating types cast to ``precision``."""
    least = precision.size
    narrow = [t.dtype.is_floating and t.dtype.size < least for t in tensors]
    pairs = zip(tensors, narrow, strict=True)
    return tuple(tf.cast(t, precision) if is_narrow else t for t, is_narrow in pairs)


def _dense(dy: Any, outline: tuple[Any, tf.DType]) -> tf.Tensor:
    """A cotangent as a dense tensor: behind `tf.gather` it is not dense, and None among
    ``output_gradients`` stands for zeros.
    """
    if isinstance(dy, tf.Tensor):
        return dy
    return tf.zeros(*outline) if dy is None else tf.convert_to_tensor(dy)


def _like(gradient: tf.Tensor | None, x: tf.Tensor) -> tf.Tensor | None:
    """A gradient in the shape and dtype of its tensor."""
    if gradient is None:
        return None
    gradient = sum_to(gradient, x)
    return gradient if gradient.dtype == x.dtype else tf.cast(gradient, x.dtype)


# --- shapes ----------------------------------------------------------------------------


def shape(x: tf.Tensor) -> Any:
    """The shape, static where it is known. In a graph, `tf.shape` fails for a tensor
    watched by nested accumulators.
    """
    return x.shape if x.shape.is_fully_defined() else tf.shape(tf.stop_gradient(x))


def size(x: tf.Tensor, axis: int) -> Any:
    """The size of an axis: a number where it is known, else an int64 tensor."""
    known = tf.compat.dimension_value(x.shape[axis]) if x.shape.rank else None
    return tf.shape(tf.stop_gradient(x), tf.int64)[axis] if known is None else known


def joint_shape(*tensors: tf.Tensor) -> Any:
    """The shape to which the tensors broadcast."""
    return functools.reduce(tf.broadcast_dynamic_shape, map(shape, tensors))


def sum_to(gradient: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """``gradient`` in the shape of ``x``: the sum over the axes along which x was
    broadcast.
    """
    if gradient.shape.is_fully_defined() and gradient.shape == x.shape:
        return gradient
    own, joint = shape(x), joint_shape(gradient, x)
    axes, _ = tf.raw_ops.BroadcastGradientArgs(s0=own, s1=joint)
    gradient = tf.broadcast_to(gradient, joint)
    return tf.reshape(tf.reduce_sum(gradient, axes, keepdims=True), own)


def broadcast_like(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """``x`` in the shape to which it broadcasts with ``y``."""
    return tf.broadcast_to(x, joint_shape(x, y))


def broadcast_full(value: Any, *like: tf.Tensor) -> tf.Tensor:
    """``value`` in its joint shape with the tensors, and the type of the first."""
    full = tf.cast(value, like[0].dtype)
    return tf.broadcast_to(full, joint_shape(full, *like))


def power(x: tf.Tensor, n: float) -> tf.Tensor:
    """``x**n``; at 0 TensorFlow's own derivative of ``x**0`` is NaN."""
    if n == 0:
        return tf.ones_like(x)
    if n == 1:
        return x
    return tf.square(x) if n == 2 else x**n


# --- arguments -------------------------------------------------------------------------


def _bind(
    rule: str, signature: inspect.Signature, given: Any, named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """All tensors by position, and all numbers by keyword."""
    try:
        bound = signature.bind(*given, **named)
    except TypeError as fault:
        raise TypeError(f"{rule}: {fault}") from None
    bound.apply_defaults()
    return bound.args, bound.kwargs


def _tensors(
    rule: str, values: dict[str, Any], kinds: Mapping[str, str]
) -> tuple[tf.Tensor, ...]:
    """The arguments as tensors, floating ones of one type, the widest; Python numbers
    take it over. Integers are int64, since TensorFlow mixes no types.
    """
    made = {
        name: _tensor(rule, name, value, kinds.get(name, "floating"))
        for name, value in values.items()
        if hasattr(value, "dtype") or name in kinds
    }
    types = {made[name].dtype for name in made if name not in kinds} or {tf.float32}
    dtype = max(types, key=lambda dtype: dtype.size)
    if dtype.size == 2 and len(types) > 1:  # float16 and bfloat16
        dtype = tf.float32
    for name, value in values.items():
        wanted = {"floating": dtype, "integer": tf.int64, "boolean": tf.bool}
        to = wanted[kinds.get(name, "floating")]
        if name not in made:
            made[name] = _convert(rule, name, value, to)
        elif made[name].dtype != to:
            made[name] = tf.cast(made[name], to)
    return tuple(made[name] for name in values)


def _tensor(rule: str, name: str, value: Any, kind: str) -> tf.Tensor:
    """A dense tensor whose dtype is of a kind."""
    tensor = value if isinstance(value, tf.Tensor) else _convert(rule, name, value)
    is_right = {
        "floating": tensor.dtype.is_floating,
        "integer": tensor.dtype.is_integer,
        "boolean": tensor.dtype.is_bool,
    }
    if not is_right[kind]:
        to = {"floating": "float32", "integer": "int64", "boolean": "bool"}[kind]
        article = "an" if kind == "integer" else "a"
        raise TypeError(
            f"{rule}: {name} must be {article} {kind} tensor, not {tensor.dtype.name}; "
            f"convert it first, as in tf.cast({name}, tf.{to})"
        )
    return tensor


def _convert(rule: str, name: str, value: Any, dtype: Any = None) -> tf.Tensor:
    if isinstance(value, tf.RaggedTensor):
        raise TypeError(
            f"{rule}: {name} must be a dense tensor, not a ragged one: take "
            f"tf.ragged.map_flat_values({rule}, {name}) if each element is by itself, "
            f"else {name}.to_tensor(), or each row by tf.map_fn"
        )
    if isinstance(value, tf.SparseTensor):
        raise TypeError(
            f"{rule}: {name} must be a dense tensor, not a sparse one; "
            f"convert it first, as in tf.sparse.to_dense({name})"
        )
    try:
        return tf.convert_to_tensor(value, dtype)
    except (TypeError, ValueError) as fault:
        raise unreadable(rule, name, fault) from fault


def _outline(tensor: tf.Tensor) -> Any:
    """A tensor as far as an error can tell of it: its value, or at least its shape."""
    if tensor.shape.rank is None:
        return None
    return tensor.numpy() if hasattr(tensor, "numpy") else tensor


def _number(rule: str, name: str, value: Any, kind: type[float | int]) -> float | int:
    """A static parameter as a Python number; a tensor must have a value already."""
    if isinstance(value, tf.Variable):
        raise TypeError(
            f"{rule}: {name} is static and gets no gradient; "
            f"give a number, as in {name}.numpy()"
        )
    known = tf.get_static_value(value) if isinstance(value, tf.Tensor) else value
    if known is None and value is not None:
        raise TypeError(
            f"{rule}: {name} is static, and this tensor has no value before its "
            f"graph runs; give a Python number, or declare {name} without `static`"
        )
    return number(rule, name, known, kind is int)


def _check_axes(
    rule: str,
    tensors: Mapping[str, tf.Tensor],
    axes: Mapping[str, str],
    numbers: Mapping[str, Any],
) -> list[Any]:
    """Raise an error for shapes other than declared; a size that a number gives is that
    number. Shapes unknown while tracing are checked when the graph runs, by the
    operations returned.
    """
    late: list[Any] = []
    sizes: dict[str, Any] = {n: k for n, k in numbers.items() if isinstance(k, int)}
    for name in (n for n in numbers if n in axes):
        check_size(rule, name, numbers[name])
    for name, pattern in ((n, p) for n, p in axes.items() if n not in numbers):
        x, words = tensors[name], pattern.split()
        own = words[1:] if words[:1] == ["..."] else words
        message = f"{rule}: {name} must have the shape [{', '.join(words)}]"
        rank = x.shape.rank
        if rank is not None and not (rank == len(own) or rank > len(own) < len(words)):
            raise ValueError(f"{message}, not {tuple(x.shape)}")
        if rank is None and len(own) == len(words):
            late.append(tf.debugging.assert_rank(x, len(own), message))
        for place, axis in enumerate(own, -len(own)):
            found = size(x, place)
            wanted = int(axis) if axis.isdigit() else sizes.setdefault(axis, found)
            if found is wanted:
                continue
            if not (isinstance(found, int) and isinstance(wanted, int)):
                found, wanted = tf.cast(found, tf.int64), tf.cast(wanted, tf.int64)
                differs = f"{message}: {axis} differs"
                late.append(tf.debugging.assert_equal(found, wanted, differs))
            elif found != wanted:
                known = "" if axis.isdigit() else f" with {axis} = {wanted}"
                raise ValueError(f"{message}{known}, not {tuple(x.shape)}")
    return [check for check in late if check is not None]


# --- layers and traces -----------------------------------------------------------------


def broadcast_shape(*shapes: Iterable[int | None]) -> tuple[int | None, ...]:
    """The broadcast shape of tensors of these shapes; None is an unknown size."""
    known = map(tf.TensorShape, shapes)
    return tuple(functools.reduce(tf.broadcast_static_shape, known))


def shown_size(*sizes: int | None) -> int | None:
    """The size of an axis that several inputs have, if one of them is known."""
    return next((size for size in sizes if size is not None), None)


def show(template: str, *values: Any) -> None:
    """Print the values at the placeholders ``{}`` of the template."""
    first, *texts = template.split("{}")
    parts = [part for pair in zip(values, texts, strict=True) for part in pair]
    tf.print(first, *parts, output_stream=sys.stdout, sep="")


# --- assumptions ----------------------------------------------------------------------


def require(found: Any, rule: str, *assumed: str) -> None:
    """Assert that every assumption holds at all elements; ``found`` has one boolean
    tensor for each of them. If not it is an InvalidArgumentError, in a graph too; XLA
    drops assertions."""
    for holds, text in zip(found if assumed[1:] else (found,), assumed, strict=True):
        size, right = tf.size(holds), tf.math.count_nonzero(holds, dtype=tf.int32)
        told = f"{rule} assumes {text}: false at", size - right, "of", size
        tf.debugging.Assert(tf.equal(size, right), told)
