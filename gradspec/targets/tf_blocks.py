"""Long CPU tensors in eager TensorFlow: which rules XLA evaluates, and the private
functions that do it.

TensorFlow makes a pass over memory for each operation, and most of that time is for fresh
pages of the results; XLA makes one for all. It compiles for each shape: so only the first
sixteen are compiled as they are, and large tensors of others are cut into blocks of one
size.

Dear functions that XLA is slow at, or has fewer digits for, go in blocks of a quarter of
that through TensorFlow's own graphs: what lies between takes the memory of a block, and of
the forward pass a gradient computes what it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradspec.plan.array import Expr, Op, names, nodes
from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Helper
from gradspec.targets.passes import passes
from gradspec.targets.tf_costs import dearest, private
from gradspec.targets.tf_parts import Core

_WORTH = 4
"""Passes over memory from which XLA pays for putting blocks together."""

_OF_HELPER = 3
"""What a private function has at least beyond one pass."""

_DEAR = 29.0
"""Products that a function takes from which a graph pays for putting blocks together: the
gamma and Bessel functions, the inverses of the error function. A call of a graph takes a
millisecond."""


def is_in_blocks(core: Core) -> bool:
    """Whether XLA evaluates it."""
    used = (primitive(name).on["tf"] for name in _primitives(core.values))
    return _is_cut(core) and not any(here.slow or here.lossy for here in used)


def is_in_parts(core: Core) -> bool:
    """Whether graphs do, a block at a time."""
    if not _is_cut(core) or is_in_blocks(core):
        return False
    return dearest(core.values, core.scalars) >= _DEAR


def _is_cut(core: Core) -> bool:
    """Elementwise, with values between arguments and results, of which nothing but results
    is kept."""
    if core.plan.is_ranked or core.is_traced or core.keeps > core.keeps_results:
        return False
    results = (*core.forward.results, *(term.value for term in core.terms))
    if any(set(names(value)) <= core.scalars for value in results):
        return False
    ahead = (*(s.value for s in core.forward.statements), *core.forward.results)
    behind = (
        *(s.value for s in core.backward.statements),
        *(term.value for term in core.terms),
    )
    return max(_steps(values, core.scalars) for values in (ahead, behind)) >= _WORTH


def _steps(values: Iterable[Expr], scalars: frozenset[str]) -> int:
    """Passes over memory of TensorFlow's own."""
    values = tuple(values)
    helpers = [name for name in _primitives(values) if private(name)]
    return passes(values, scalars) + _OF_HELPER * len(helpers)


def _primitives(values: Iterable[Expr]) -> Iterator[str]:
    return (n.primitive for v in values for n in nodes(v) if isinstance(n, Op))


IS_LONG = Helper(
    "_is_long",
    '''\
_LONG = 1 << 13
"""Elements from which XLA is worth the call."""


def _is_long(tensors: tuple[tf.Tensor, ...]) -> bool:
    """Whether they are eager tensors of one shape in the memory of the CPU, and long."""
    shape = tensors[0].shape
    return (
        tf.executing_eagerly()
        and shape.num_elements() >= _LONG
        and all(t.shape == shape and "CPU" in t.device for t in tensors)
    )
''',
)

JOINED = Helper(
    "_joined",
    '''\
def _joined(
    compute: Callable[..., tuple[tf.Tensor | None, ...]],
    tensors: tuple[tf.Tensor, ...],
    size: int,
) -> tuple[tf.Tensor | None, ...]:
    """``compute`` of each block of ``size`` elements, put together. The last block ends
    where the tensors do; of what it has in common with the one before it, one is left
    out.
    """
    shape = tensors[0].shape
    flat = [tf.reshape(t, [-1]) for t in tensors]
    rest = shape.num_elements() % size
    starts = [*range(0, shape.num_elements() - rest, size)]
    blocks = [compute(*(t[start : start + size] for t in flat)) for start in starts]
    if rest:
        last = compute(*(t[-size:] for t in flat))
        blocks.append(tuple(None if y is None else y[-rest:] for y in last))
    return tuple(
        None if parts[0] is None else tf.reshape(tf.concat(parts, 0), shape)
        for parts in zip(*blocks)
    )
''',
)

RESULTS = Helper(
    "_results",
    '''\
def _results(core: Callable[..., Any], *tensors: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """The outputs of ``core``."""
    made, _ = core(*tensors)
    return made if isinstance(made, tuple) else (made,)
''',
)

GRADIENTS = Helper(
    "_gradients",
    '''\
def _gradients(
    core: Callable[..., Any], count: int, *values: tf.Tensor
) -> tuple[tf.Tensor | None, ...]:
    """The gradients of ``core``; its ``count`` arguments stand before the upstream ones."""
    _, backward = core(*values[:count])
    made = backward(*values[count:])
    return made if isinstance(made, tuple) else (made,)
''',
)

FUSED = Helper(
    "_fused",
    '''\
_SHAPES = 16
"""Shapes that are compiled as they are, which takes a tenth of a second for each."""
_BLOCK = 1 << 20
"""Elements of a block of other tensors."""


def _fused(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` by XLA: one pass over memory, where TensorFlow makes one for each
    operation. None where XLA is not there or lacks an operation, or for short tensors
    after many shapes.
    """
    xla = tf.function(function, autograph=False, jit_compile=True)
    made: dict[Any, Callable[..., Any]] = {}

    def fused(*tensors: tf.Tensor) -> Any:
        shape = tensors[0].shape
        kind = (*shape, *(t.dtype for t in tensors))
        try:
            if kind not in made and len(made) < _SHAPES:
                made[kind] = xla.get_concrete_function(*tensors)
            if kind in made:
                return made[kind](*tensors)
            if shape.num_elements() >= _BLOCK:
                return _joined(xla, tensors, _BLOCK)
        except tf.errors.OpError:
            made[kind] = lambda *_: None
        return None

    return fused
''',
)

IN_BLOCKS = Helper(
    "_in_blocks",
    '''\
_VALUES = 16
"""Values of static parameters for which a rule is compiled: one that is annealed has a
new one at each step.
"""
_COUNTS: dict[str, int] = {}
"""How many there were, by rule."""


def _in_blocks(core: Callable[..., Any]) -> Callable[..., Any]:
    """``core``, which leaves long tensors to XLA."""
    rule = core.__qualname__
    _COUNTS[rule] = _COUNTS.get(rule, 0) + 1
    if _COUNTS[rule] > _VALUES:
        return core
    results = _fused(functools.partial(_results, core))

    @functools.cache
    def gradients(count: int) -> Callable[..., Any]:
        return _fused(functools.partial(_gradients, core, count))

    def whole(*tensors: tf.Tensor) -> Any:
        is_free = _record is None or not _is_watched()
        made = results(*tensors) if is_free and _is_long(tensors) else None
        if made is None:
            return core(*tensors)

        def backward(*upstream: tf.Tensor) -> Any:
            values = (*tensors, *upstream)
            if _is_long(values) and not _is_watched():
                found = gradients(len(tensors))(*values)
                if found is not None:
                    return found
            return core(*tensors)[1](*upstream)

        return made if len(made) > 1 else made[0], backward

    return whole
''',
    imports=("import functools",),
)

IN_PARTS = Helper(
    "_in_parts",
    '''\
_PART = 1 << 18
"""Elements of a block of large tensors, which have four at least."""


def _in_parts(core: Callable[..., Any]) -> Callable[..., Any]:
    """``core``, which evaluates large tensors a block at a time, in graphs."""
    results = tf.function(functools.partial(_results, core), autograph=False)

    @functools.cache
    def gradients(count: int) -> Callable[..., Any]:
        return tf.function(functools.partial(_gradients, core, count), autograph=False)

    def whole(*tensors: tf.Tensor) -> Any:
        count = tensors[0].shape.num_elements() if _is_long(tensors) else 0
        if count < 4 * _PART or _record is not None and _is_watched():
            return core(*tensors)
        made = _joined(results, tensors, _PART)

        def backward(*upstream: tf.Tensor) -> Any:
            values = (*tensors, *upstream)
            if _is_long(values) and not _is_watched():
                return _joined(gradients(len(tensors)), values, _PART)
            return core(*tensors)[1](*upstream)

        return made if len(made) > 1 else made[0], backward

    return whole
''',
    imports=("import functools",),
)

IS_WATCHED = Helper(
    "_is_watched",
    '''\
def _is_watched() -> bool:
    """Whether a tape or an accumulator looks on, which needs each operation."""
    return _record is None or _record.could_possibly_record()
''',
)

HELPERS = (IS_LONG, IS_WATCHED, JOINED, RESULTS, GRADIENTS, FUSED, IN_BLOCKS, IN_PARTS)


def called(text: str) -> str:
    """Calls of the helpers that the decorators in a text name."""
    found = set(HELPERS) if "@_in_blocks" in text else set()
    found -= {IN_PARTS}
    if "@_in_parts" in text:
        found |= {IN_PARTS, RESULTS, GRADIENTS}
    return " ".join(f"{helper.name}()" for helper in HELPERS if helper in found)
