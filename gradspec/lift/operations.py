"""Functions of the frameworks that are no primitives: those with shapes, options and other
names for operators. Each takes the machine, the node of the call and the arguments.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from gradspec.ir.expr import Apply, Expr, Ref, Select, Size
from gradspec.ir.walk import transform
from gradspec.lift.arrays import Arrays, arithmetic, choice, view
from gradspec.lift.values import (
    UNSET,
    Array,
    Axes,
    CannotLift,
    Chosen,
    Index,
    Library,
    Opaque,
    Shape,
    as_condition,
    as_number,
    extent_named,
    is_condition,
    words,
)
from gradspec.primitives.frameworks import CLIP, TRUNC, Meaning, meaning_of

Node = ast.AST | None
Operation = Callable[..., Any]

IGNORED = words(
    "dtype device layout name requires_grad memory_format non_blocking copy"
    " precision stacklevel validate_args preferred_element_type out_sharding"
    " pin_memory"
)
"""Keywords that change no values (an integer `dtype` is looked at)."""

_WHOLE = re.compile(r"\bu?int(8|16|32|64)?\b|\blong\b|\bshort\b|\bbyte\b")
_BOOL = re.compile(r"\bbool_?\b")
_FLOAT = re.compile(r"float|double|half|complex")


def of_type(m: Arrays, node: Node, x: Any, kind: Any) -> Any:
    """The values of `x` in another dtype: whole numbers are truncated."""
    text = (
        kind.name
        if isinstance(kind, Library)
        else kind
        if isinstance(kind, str)
        else ""
    )
    if isinstance(x, Chosen):
        return x
    if _BOOL.search(text):
        return x if _is_condition(x) else m.compare("ne", x, 0, node)
    if _WHOLE.search(text) and not _FLOAT.search(text):
        return x if _is_condition(x) else m.apply(TRUNC, x, node=node)
    if isinstance(x, Array) and x.is_condition and _FLOAT.search(text):
        return m.arithmetic("add", x, 0, node)
    return x


def _is_condition(x: Any) -> bool:
    return isinstance(x, bool) or (isinstance(x, Array) and is_condition(x.value))


def _cast(m: Arrays, node: Node, x: Any, *kinds: Any, **named: Any) -> Any:
    for kind in (*kinds, *named.values()):
        x = of_type(m, node, x, kind)
    if isinstance(x, Array) and x.is_condition and any(_is_dtype(k) for k in kinds):
        return m.arithmetic("add", x, 0, node)
    return x


def _is_dtype(kind: Any) -> bool:
    """True of the dtype of an array, which is a floating one where it is asked for."""
    return isinstance(kind, Array) or (
        isinstance(kind, Opaque) and kind.kind == "dtype"
    )


def _of_numbers(m: Arrays, node: Node, x: Any) -> Any:
    return m.arithmetic("add", x, 0, node) if _is_condition(x) else x


def _same(m: Arrays, node: Node, x: Any, *_: Any) -> Any:
    return x


def _copy(m: Arrays, node: Node, x: Any) -> Any:
    return x.copy() if isinstance(x, Array) else x


def _filler(value: int) -> Operation:
    def like(m: Arrays, node: Node, x: Any, *sizes: Any) -> Any:
        more = [s for s in sizes if type(s) is int or isinstance(s, Array)]
        return _full(m, node, (x, *more) if more else x, value)

    return like


def _empty(m: Arrays, node: Node, *shape: Any) -> Any:
    """An array whose elements have to be set before they are read."""
    return _full(m, node, _one_shape(shape), Array(UNSET))


def _full(m: Arrays, node: Node, shape: Any, value: Any = 0) -> Any:
    """An array of one value: like another, of its shape, or of axes of size 1."""
    if isinstance(shape, Shape):
        shape = shape.array
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    if any(isinstance(s, Array) and isinstance(s.value, Size) for s in sizes):
        return Array(
            m.array(value, node).value, tuple(_axis_of(s, node) for s in sizes)
        )
    if isinstance(shape, Array) and shape.is_condition | bool(
        shape.axes or shape.is_open
    ):
        return m.like(value, shape, node)
    if isinstance(shape, Array):
        return m.array(value, node).copy()
    if all(type(s) is int and s == 1 for s in sizes):
        return Array(m.array(value, node).value, (None,) * len(sizes))
    raise CannotLift("shape", "an array whose shape is computed", node)


def _axis_of(size: Any, node: Node) -> Index | None:
    """An axis of a size."""
    match size:
        case Array(value=Size(axis=str() as axis)):
            return Index(extent_named(axis))
        case 1:
            return None
        case _:
            raise CannotLift("shape", "an array whose shape is computed", node)


def _new_full(m: Arrays, node: Node, x: Any, shape: Any, value: Any = 0) -> Any:
    return _full(m, node, shape, value)


def _clamp(m: Arrays, node: Node, x: Any, min: Any = None, max: Any = None) -> Any:
    if min is not None and max is not None:
        return m.apply(CLIP, x, min, max, node=node)
    if min is None and max is None:
        return x
    bound, name = (min, "max") if min is not None else (max, "min")
    return m.apply(name, x, bound, node=node)


def reducing(op: str) -> Operation:
    def reduce(
        m: Arrays, node: Node, x: Any, axis: Any = None, keepdims: Any = False
    ) -> Any:
        if isinstance(x, tuple | list) and op == "sum":
            return m.total(x, node)
        return m.reduce(op, x, axis, bool(keepdims), node)

    return reduce


def _extremum(op: str) -> Operation:
    def reduce(
        m: Arrays,
        node: Node,
        x: Any,
        y: Any = None,
        axis: Any = None,
        keepdims: Any = False,
    ) -> Any:
        torch = getattr(m, "framework", "") == "torch"
        if isinstance(y, Array) and torch:
            return m.apply(op, x, y, node=node)
        if torch and (y is not None or axis is not None):
            told = "a maximum along an axis with its positions"
            raise CannotLift("function", told, node)
        return m.reduce(op, x, y if axis is None else axis, bool(keepdims), node)

    return reduce


def _variance(of_root: bool) -> Operation:
    def reduce(
        m: Arrays,
        node: Node,
        x: Any,
        axis: Any = None,
        unbiased: Any = None,
        keepdims: Any = False,
        correction: Any = None,
        ddof: Any = 0,
    ) -> Any:
        if isinstance(axis, bool):
            axis, unbiased = None, axis
        if getattr(m, "framework", "") == "torch":
            less = correction if correction is not None else int(unbiased is not False)
        else:
            less = ddof
        array = m.array(x, node)
        places = tuple(k - len(array.axes) for k in m.places(array, axis, node))
        middle = m.reduce("mean", array, places, True, node)
        square = m.apply("square", m.arithmetic("sub", array, middle, node), node=node)
        if less:
            total = m.reduce("sum", square, places, bool(keepdims), node)
            below = m.arithmetic("sub", m.count(array, places, node), less, node)
            value = m.arithmetic("div", total, below, node)
        else:
            value = m.reduce("mean", square, places, bool(keepdims), node)
        return m.apply("sqrt", value, node=node) if of_root else value

    return reduce


def _norm(
    m: Arrays,
    node: Node,
    x: Any,
    p: Any = None,
    axis: Any = None,
    keepdims: Any = False,
) -> Any:
    if p == 1:
        return m.reduce("sum", m.apply("abs", x, node=node), axis, bool(keepdims), node)
    if p not in (None, 2, "euclidean"):
        raise CannotLift("function", "a norm other than the 2-norm", node)
    square = m.apply("square", x, node=node)
    return m.apply(
        "sqrt", m.reduce("sum", square, axis, bool(keepdims), node), node=node
    )


def _softmax(m: Arrays, node: Node, x: Any, axis: Any = -1) -> Any:
    grown = m.apply("exp", x, node=node)
    return m.arithmetic("div", grown, m.reduce("sum", grown, axis, True, node), node)


def _log_softmax(m: Arrays, node: Node, x: Any, axis: Any = -1) -> Any:
    return m.arithmetic("sub", x, m.reduce("logsumexp", x, axis, True, node), node)


def _gelu(m: Arrays, node: Node, x: Any, approximate: Any = None) -> Any:
    if approximate is None:
        approximate = getattr(m, "framework", "") == "jax"
    if not isinstance(approximate, bool | str):
        raise CannotLift(
            "function", "a form of `gelu` that the file does not fix", node
        )
    form = "exact" if approximate in (False, "none") else "tanh"
    return apply_meaning(m, node, _known_meaning(f"gelu_{form}"), [x], {})


def _known_meaning(name: str) -> Meaning:
    found = meaning_of(f"torch.{name}")
    assert found is not None
    return found


def _transpose(m: Arrays, node: Node, x: Any, a: Any = None, b: Any = None) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return m.swap(x, a, b, node)
    array = m.array(x, node)
    return m.permute(array, a if a is not None else range(len(array.axes))[::-1], node)


def _permute(m: Arrays, node: Node, x: Any, *order: Any) -> Any:
    several = len(order) == 1 and isinstance(order[0], tuple | list)
    return m.permute(x, order[0] if several else order, node)


def transpose_matrix(m: Arrays, node: Node, x: Any) -> Any:
    """The transpose of a matrix; a vector is its own."""
    array = m.array(x, node)
    if array.is_open or len(array.axes) > 2:
        raise CannotLift("shape", "a transposition of an array of unknown rank", node)
    return m.swap(array, -1, -2, node) if len(array.axes) == 2 else array


def _size(m: Arrays, node: Node, x: Any, axis: Any = None) -> Any:
    return Shape(m.array(x, node)) if axis is None else m.size(m.array(x), axis, node)


def _count(m: Arrays, node: Node, x: Any) -> Any:
    array = x.array if isinstance(x, Shape) else m.array(x, node)
    return m.count(array, None, node)


def _rank(m: Arrays, node: Node, x: Any) -> Any:
    array = m.array(x, node)
    return Opaque("shape", "the rank of an input") if array.is_open else len(array.axes)


def _outer(m: Arrays, node: Node, x: Any, y: Any) -> Any:
    return m.arithmetic("mul", m.with_axis(x, -1, node), y, node)


def _matmul(
    m: Arrays,
    node: Node,
    x: Any,
    y: Any,
    transpose_a: Any = False,
    transpose_b: Any = False,
) -> Any:
    x = m.swap(x, -1, -2, node) if transpose_a else x
    y = m.swap(y, -1, -2, node) if transpose_b else y
    return m.matmul(x, y, node)


def _linear(m: Arrays, node: Node, x: Any, weight: Any, bias: Any = None) -> Any:
    found = m.matmul(x, m.swap(weight, -1, -2, node), node)
    return found if bias is None else m.arithmetic("add", found, bias, node)


def _broadcast(m: Arrays, node: Node, x: Any, *shape: Any) -> Any:
    """In the shape of another array: an axis of size 1 repeats its element."""
    for one in shape:
        if isinstance(one, Shape | Array):
            return m.like(x, one.array if isinstance(one, Shape) else one, node)
    raise CannotLift("reshape", "a shape that is computed", node)


def _reshape(m: Arrays, node: Node, x: Any, *shape: Any) -> Any:
    """The array itself, where the shape is its own."""
    for one in shape:
        other = one.array if isinstance(one, Shape) else one
        if isinstance(other, Array) and isinstance(x, Array):
            mine, wanted = x.axes, other.axes
            if len(mine) == len(wanted) and x.is_open == other.is_open:
                return m.like(x, other, node)
    sizes = (
        shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    )
    if isinstance(x, Array) and not x.is_open:
        axes = _axes_of_sizes(m, x, sizes)
        if axes is not None:
            return view(x, axes)
    raise CannotLift("reshape", "`reshape` rearranges elements", node)


def _axes_of_sizes(m: Arrays, x: Array, sizes: Any) -> Axes | None:
    """The axes of an array in a shape that adds or drops axes of size 1 only; None if the
    shape does more."""
    left = list(x.indices)
    free = sum(type(s) is int and s == -1 for s in sizes)
    if len(left) != sum(not (type(s) is int and s == 1) for s in sizes) or free > 1:
        return None
    found: list[Index | None] = []
    for size in sizes:
        if type(size) is int and size == 1:
            found.append(None)
            continue
        index = left.pop(0)
        value = size.value if isinstance(size, Array) else None
        if isinstance(value, Size) and len(x.indices) == 1:
            m.unify(extent_named(value.axis), index.extent)  # there are no others
        elif isinstance(value, Size):
            if extent_named(value.axis).root is not index.extent.root:
                return None
        elif size != -1:
            return None
        found.append(index)
    return tuple(found)


def _summed_to(m: Arrays, node: Node, x: Any, *shape: Any) -> Any:
    array, (one,) = m.array(x, node), shape
    if not isinstance(one, Shape) or array.is_open or one.array.is_open:
        raise CannotLift("shape", "a sum to a shape that is computed", node)
    extra = len(array.axes) - len(one.array.axes)
    return m.reduce("sum", array, range(extra), False, node) if extra > 0 else array


def _whole(m: Arrays, node: Node, x: Any) -> Any:
    if isinstance(x, int | Fraction):
        return int(x)
    return x if _is_condition(x) else m.apply(TRUNC, x, node=node)


def _truth(m: Arrays, node: Node, x: Any) -> Any:
    if isinstance(x, bool | Opaque):
        return x
    return x if _is_condition(x) else m.compare("ne", x, 0, node)


def _nothing(m: Arrays, node: Node, *_: Any) -> None:
    return None


def _constantly(value: Any) -> Operation:
    return lambda m, node, *_: value


_NAMED: dict[str, Operation] = {
    "sum reduce_sum": reducing("sum"),
    "mean reduce_mean": reducing("mean"),
    "prod reduce_prod": reducing("prod"),
    "logsumexp reduce_logsumexp": reducing("logsumexp"),
    "amax reduce_max": reducing("max"),
    "amin reduce_min": reducing("min"),
    "max": _extremum("max"),
    "min": _extremum("min"),
    "var variance reduce_variance": _variance(False),
    "std reduce_std": _variance(True),
    "norm vector_norm": _norm,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "detach contiguous stop_gradient identity convert_to_tensor tensor as_tensor asarray"
    " array constant cpu cuda alias requires_grad_ optimization_barrier numpy item"
    " block_until_ready check_numerics ensure_shape": _cast,
    "to type cast astype convert_element_type type_as cast_like": _cast,
    "float double half bfloat16 float32 float64 float16 to_float": _of_numbers,
    "int long int32 int64": _whole,
    "bool": _truth,
    "clone copy": _copy,
    "ones_like": _filler(1),
    "zeros_like": _filler(0),
    "ones": _filler(1),
    "zeros": _filler(0),
    "new_zeros": lambda m, node, x, *s: _full(m, node, _one_shape(s), 0),
    "new_ones": lambda m, node, x, *s: _full(m, node, _one_shape(s), 1),
    "new_full": _new_full,
    "full_like full fill": _full,
    "empty_like": _empty,
    "empty": _empty,
    "new_empty": lambda m, node, x, *s: _empty(m, node, *s),
    "clamp clip clip_by_value": _clamp,
    "clamp_min": _clamp,
    "clamp_max": lambda m, node, x, max: _clamp(m, node, x, None, max),
    "add_n": lambda m, node, xs: m.total(xs, node),
    "gelu": _gelu,
    "matmul mm bmm dot mv": _matmul,
    "linear": _linear,
    "t matrix_transpose": transpose_matrix,
    "transpose": _transpose,
    "swapaxes": lambda m, node, x, a, b: m.swap(x, a, b, node),
    "permute": _permute,
    "unsqueeze expand_dims": lambda m, node, x, axis: m.with_axis(x, axis, node),
    "squeeze": lambda m, node, x, axis=None: m.without_axis(x, axis, node),
    "size": _size,
    "shape get_shape": _size,
    "numel nelement": _count,
    "dim ndimension rank ndim": _rank,
    "outer ger": _outer,
    "expand_as broadcast_to expand broadcast_as": _broadcast,
    "view_as reshape_as reshape view reshape_like": _reshape,
    "sum_to_size": _summed_to,
    "is_tensor is_floating_point is_contiguous": _constantly(True),
    "is_compiling is_scripting is_tracing is_autocast_enabled is_complex"
    " is_torchdynamo_compiling": _constantly(False),
    "warn warning info debug print assert_shape record_function"
    " _assert assert_equal mark_step retain_grad": _nothing,
    "get_default_dtype result_type promote_types": _constantly(
        Opaque("dtype", "a dtype")
    ),
}

OPERATIONS: dict[str, Operation] = {
    name: operation for names, operation in _NAMED.items() for name in names.split()
}

FULL_NAMES: dict[str, Operation] = dict.fromkeys(
    ("tensorflow.size", "jax.numpy.size", "numpy.size"), _count
)

NOT_ELEMENTWISE = frozenset(
    f"torch{place}.{name}" for place in ("", ".Tensor") for name in ("equal", "select")
)
"""Functions that have the name of an elementwise one, and are something else."""

_KEYWORDS = {
    name: own
    for own, names in {
        "axis": "dim reduction_indices",
        "keepdims": "keepdim keep_dims",
        "p": "ord",
        "y": "exponent other multiplier values",
        "x": "input a input_tensor logits features tensor t value",
        "min": "a_min clip_value_min",
        "max": "a_max clip_value_max",
        "slope": "negative_slope alpha",
        "value": "fill_value",
        "a": "perm axes dim0",
        "b": "dim1",
    }.items()
    for name in names.split()
}
"""Keywords of the frameworks, and what the functions here call them."""


def _one_shape(shape: tuple[Any, ...]) -> Any:
    return shape[0] if len(shape) == 1 else shape


def perform(m: Arrays, node: Node, operation: Operation, args: Any, given: Any) -> Any:
    """The result of an operation, whose arguments have to be those that it knows."""
    named = {}
    dtype = given.get("dtype")
    parameters = inspect.signature(operation).parameters
    for key, value in given.items():
        if key in IGNORED:
            continue
        other = _KEYWORDS.get(key, key)
        named[key if key in parameters else other] = value
    try:
        inspect.signature(operation).bind(m, node, *args, **named)
    except TypeError as wrong:
        told = f"`{_call_text(node)}` with arguments that the table does not know ({wrong})"
        raise CannotLift("function", told, node) from None
    found = operation(m, node, *args, **named)
    return found if dtype is None else of_type(m, node, found, dtype)


def _call_text(node: Node) -> str:
    return ast.unparse(node.func) if isinstance(node, ast.Call) else "a function"


def is_fixed(args: list[Any], named: dict[str, Any]) -> bool:
    """True if no argument but the first is an array, an axis that the caller chooses."""
    others = (*args[1:], *named.values())
    return not any(isinstance(a, Array | tuple | list) for a in others)


def apply_meaning(
    m: Arrays, node: Node, meaning: Meaning, args: list[Any], given: dict[str, Any]
) -> Any:
    """The value of a formula of the table at arguments."""
    named = {}
    for key, value in given.items():
        if key not in IGNORED or key in meaning.parameters:
            other = key if key in meaning.parameters else _KEYWORDS.get(key, key)
            named[other] = value
    bound = dict(zip(meaning.parameters, args, strict=False)) | named
    is_wrong = len(args) > len(meaning.parameters) or bound.keys() - set(
        meaning.parameters
    )
    values = {**meaning.defaults, **{k: v for k, v in bound.items() if v is not None}}
    if is_wrong or values.keys() != set(meaning.parameters):
        told = f"`{_call_text(node)}` with arguments that the table does not know"
        raise CannotLift("function", told, node)

    def make(*elements: Expr) -> Expr:
        known = dict(zip(meaning.parameters, elements, strict=True))
        return transform(meaning.value, lambda part: _build(part, known))

    return m.each(make, *(values[p] for p in meaning.parameters), node=node)


def _build(part: Expr, known: dict[str, Expr]) -> Expr:
    match part:
        case Ref(name=name):
            return known[name]
        case Apply(op="add" | "sub" | "mul" | "div" | "pow" as op, args=(a, b)):
            return arithmetic(op, a, b)
        case Apply(op="and" | "or" | "not" as op, args=args):
            return Apply(op, tuple(map(as_condition, args)))
        case Apply(op=op, args=args):
            return Apply(op, tuple(map(as_number, args)))
        case Select(condition=condition, then=then, other=other):
            return choice(condition, then, other)
        case _:
            return part
