"""TensorFlow: its dialect, and the private functions that a module may need."""

from __future__ import annotations

from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Helper, Template
from gradspec.primitives.table_known import POWER
from gradspec.targets import tf_given_texts
from gradspec.targets.python import Dialect

RESERVED = frozenset(
    [
        "tf",
        "functools",
        "operator",
        "sys",
        "weakref",
        "backward",
        "Any",
        "Callable",
        "TypeVar",
    ]
)


def _lifts(name: str, scalars: tuple[bool, ...]) -> tuple[bool, ...]:
    """Which numbers must be tensors. In a graph a function takes its type from its first
    argument, and `tf.where` from the first branch.
    """
    if name == "choice":
        return scalars
    if name == POWER:
        return scalars[0], False
    if name != "where" and isinstance(primitive(name).spellings.get("tf"), Helper):
        return scalars
    return tuple(number and not position for position, number in enumerate(scalars))


# In a graph the first argument tells the type.
_SWAPPED: dict[tuple[str, tuple[bool, ...]], Template] = {
    ("max", (True, False)): Template("tf.maximum({y}, {x})"),
    ("min", (True, False)): Template("tf.minimum({y}, {x})"),
    ("eq", (True, False)): Template("tf.equal({y}, {x})"),
    ("ne", (True, False)): Template("tf.not_equal({y}, {x})"),
}

DIALECT = Dialect(
    target="tf",
    where="tf.where({c}, {x}, {y})",
    is_nan="tf.math.is_nan({x})",
    to_float="tf.cast({x}, {like}.dtype)",
    lift="tf.constant({x}, {like}.dtype)",
    lifts=_lifts,
    variants=lambda name, scalars: _SWAPPED.get((name, scalars)),
)

WIDEN = Helper(
    "_widen",
    '''\
def _widen(*tensors: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Half precision is computed in float32, and rounded once at the end."""
    half = (tf.float16, tf.bfloat16)
    return tuple(tf.cast(t, tf.float32) if t.dtype in half else t for t in tensors)
''',
)

IN_DOUBLE = Helper(
    "_in_double",
    '''\
def _in_double(*tensors: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Computed in float64, and rounded once at the end."""
    return tuple(tf.cast(t, tf.float64) if t.dtype.is_floating else t for t in tensors)
''',
)

UNBROADCAST = Helper(
    "_unbroadcast",
    '''\
def _unbroadcast(gradient: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """The sum of ``gradient`` over the axes along which ``x`` was broadcast."""
    if gradient.shape.is_fully_defined() and gradient.shape == x.shape:
        return gradient
    shape = tf.shape(x)
    axes, _ = tf.raw_ops.BroadcastGradientArgs(s0=shape, s1=tf.shape(gradient))
    return tf.reshape(tf.reduce_sum(gradient, axes, keepdims=True), shape)
''',
)

HERE = Helper(
    "_here",
    '''\
def _here(tensors: tuple[tf.Tensor, ...]) -> tuple[tf.Tensor, ...]:
    """Tensors of the graph at hand: in a branch within a loop TensorFlow finds no others
    that a gradient uses.
    """
    return tensors if tf.executing_eagerly() else tuple(map(tf.identity, tensors))
''',
)

RECORD = """\
try:
    from tensorflow.python.eager import record as _record
except ImportError:  # it is no public name: without it tapes see tf.custom_gradient
    _record = None
"""

DENSE = Helper(
    "_dense",
    '''\
def _dense(dy: Any, output: Callable[[], tf.Tensor]) -> tf.Tensor:
    """An upstream gradient as a tensor: where tf.gather follows it is none, and None among
    ``output_gradients`` is zeros.
    """
    if isinstance(dy, tf.IndexedSlices):
        return tf.convert_to_tensor(dy)
    return tf.zeros_like(output()) if dy is None else dy
''',
)

DENSELY = Helper(
    "_densely",
    '''\
def _densely(core: Callable[..., Any]) -> Callable[..., Any]:
    """``core``, whose gradient is given tensors."""

    def dense(*tensors: tf.Tensor) -> Any:
        results, backward = core(*tensors)
        outputs = results if isinstance(results, tuple) else (results,)
        kept = [lambda y=y: y for y in outputs]
        return results, lambda *upstream: backward(*map(_dense, upstream, kept))

    return dense
''',
)

RULE = Helper(
    "_rule",
    '''\
def _rule(
    core: Callable[..., Any], forward: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """``core`` with its own gradient. Of its forward pass nothing is recorded."""

    def apply(*tensors: tf.Tensor) -> Any:
        tensors = _here(tensors)
        if _record is None:
            return tf.custom_gradient(_densely(core))(*tensors)
        with _record.stop_recording():
            results, backward = core(*tensors)
        return _recorded(tensors, results, backward, forward)

    return apply
''',
)

RULE_KEEPING = Helper(
    "_rule_keeping",
    '''\
def _rule_keeping(
    core: Callable[..., Any], forward: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """``core`` with its own gradient, which uses what the forward pass has computed: a
    second derivative must see through that. It is computed again where something records
    the gradient, and of the forward pass nothing is recorded.
    """

    def apply(*tensors: tf.Tensor) -> Any:
        tensors = _here(tensors)
        if _record is None:
            return tf.custom_gradient(_densely(core))(*tensors)
        with _record.stop_recording():
            results, backward = core(*tensors)

        def pulled(*upstream: tf.Tensor) -> Any:
            is_seen = _record.could_possibly_record()
            return (core(*tensors)[1] if is_seen else backward)(*upstream)

        return _recorded(tensors, results, pulled, forward)

    return apply
''',
)

RULE_OF_RESULTS = Helper(
    "_rule_of_results",
    '''\
def _rule_of_results(
    core: Callable[..., Any], forward: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """``core`` with its own gradient, which uses results: a second derivative sees through
    those as through any. What half precision is computed in is no result.
    """
    keeping = _rule_keeping(core, forward)

    def apply(*tensors: tf.Tensor) -> Any:
        half = any(x.dtype in (tf.float16, tf.bfloat16) for x in tensors)
        if half or _record is None or not tf.executing_eagerly():
            return keeping(*tensors)
        with _record.stop_recording():
            results, backward = core(*tensors)
        return _recorded(tensors, results, backward, forward, are_kept=True)

    return apply
''',
)

NO_FORWARD_MODE = Helper(
    "_no_forward_mode",
    '''\
def _no_forward_mode(*_: object) -> None:
    """Where a gradient is not linear in the upstream one."""
    raise NotImplementedError("this rule has no forward mode")
''',
)

RECORDED = Helper(
    "_recorded",
    '''\
def _recorded(
    tensors: tuple[tf.Tensor, ...],
    results: Any,
    backward: Callable[..., Any],
    forward: Callable[..., Any] | None,
    are_kept: bool = False,
) -> Any:
    """The results as those of one operation, for tapes and accumulators: a
    ForwardAccumulator looks through tf.custom_gradient, which serves graphs here. If the
    gradient has them, they are recorded themselves, but for arguments and twins.
    """
    outputs = results if isinstance(results, tuple) else (results,)

    def pulled(*upstream: tf.Tensor) -> list[tf.Tensor | None]:
        gradients = backward(*map(_dense, upstream, alive))
        return list(gradients) if isinstance(gradients, tuple) else [gradients]

    with _record.stop_recording():
        if are_kept:
            made, taken = outputs, {id(x) for x in tensors}
            outputs = []
            for y in made:
                outputs.append(_raw.Identity(input=y) if id(y) in taken else y)
                taken.add(id(y))
        elif tf.executing_eagerly():
            outputs = [_raw.Identity(input=y) for y in outputs]
        else:
            made = outputs
            outputs = tf.custom_gradient(lambda *_: (made, pulled))(*tensors)
    # who asks for their gradients has the outputs
    alive = [weakref.ref(y) for y in outputs]
    if are_kept and forward is None:
        # tapes first: an accumulator computes with the results, and a tape around it is
        # to see where they come from
        _record.record_operation_backprop_only("Rule", outputs, tensors, pulled)
        _record.record_operation_forwardprop_only(
            "Rule", outputs, tensors, pulled, None
        )
    else:
        _record.record_operation("Rule", outputs, tensors, pulled, forward)
    return tuple(outputs) if isinstance(results, tuple) else outputs[0]
''',
    imports=(
        "import weakref",
        "from collections.abc import Callable",
        "from typing import Any",
    ),
)

UNCONVERTED = Helper(
    "_unconverted",
    '''\
_Function = TypeVar("_Function", bound=Callable[..., Any])


def _unconverted(function: _Function) -> _Function:
    """``function``, which AutoGraph leaves as it is: there is nothing to convert, and the
    search for it takes most of the time of a first trace.
    """
    return tf.autograph.experimental.do_not_convert(function)
''',
    imports=(
        "from collections.abc import Callable",
        "from typing import Any",
        "from typing import TypeVar",
    ),
)

HELPERS: tuple[Helper, ...] = (
    UNCONVERTED,
    HERE,
    DENSE,
    DENSELY,
    RECORDED,
    RULE,
    RULE_KEEPING,
    RULE_OF_RESULTS,
    NO_FORWARD_MODE,
    *tf_given_texts.HELPERS,
    WIDEN,
    IN_DOUBLE,
    UNBROADCAST,
)
"""In the order in which a module has them."""
