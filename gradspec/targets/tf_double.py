"""The evaluation in float64 for narrower eager tensors on the CPU.

There every operation is a call of ten to twenty microseconds, so a short formula in
float64, rounded once, takes less than a long one in float32; and TensorFlow takes no
number of float32 for 0 on the way, as it does with what is subnormal. A second function
has it. A pass that is itself recorded is that of the first, and so is every graph: XLA
fuses, and accelerators have little float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gradspec.ir.rule import Kind
from gradspec.plan.array import Expr, Op, children, names, nodes
from gradspec.plan.plan import RulePlan
from gradspec.plan.translate import rebuilt
from gradspec.primitives.row import Helper, Template
from gradspec.primitives.table_slopes import MISH, SILU
from gradspec.targets.python import Dialect
from gradspec.targets.signature import fresh, variables
from gradspec.targets.tf_costs import CONVERSION, in_double, in_single
from gradspec.targets.tf_parts import Core

_GAIN = 0.8
"""Of what both passes cost in float32, what they may cost in float64."""

FORMULAS = {
    "ndtr": "erfc(x * -0.70710678118654752440) * 0.5",
    "logaddexp": "max(x, y) + log1p(exp(-abs(0 if x == y else x - y)))",
    "tanh_softplus": "tanh(log1p(exp(min(x, 40))))",
    "exp_neg_half_square": "exp(x * x * -0.5)",
    SILU: "sigmoid(x) * (1 + x * (1 - sigmoid(x)))",
    MISH: "tanh(log1p(exp(clip(x, -10000, 40)))) + clip(x, -10000, 40) "
    "* sigmoid(x) * (1 - square(tanh(log1p(exp(clip(x, -10000, 40))))))",
}
"""What float32 has private functions for; in float64 these are right for it. The slope
of mish is 0 and 1 beyond the bounds."""

_OWN = {
    "sigmoid": Template("tf.math.sigmoid({x})"),
    "tanh": Template("tf.math.tanh({x})"),
    "erf": Template("tf.math.erf(tf.minimum(tf.maximum({x}, -6.0), 6.0))"),
    "erfc": Template("tf.math.erfc({x})"),
    "softplus": Template("tf.math.softplus({x})"),
    "clip": Template("tf.minimum(tf.maximum({x}, {y}), {z})"),
}
"""The framework's own functions, which lose digits in float32 that float64 has to spare;
`tf.clip_by_value` takes twice as long as the two operations that it is made of. Of an
infinity `tf.math.erf` makes a NaN in float64."""


def in_double_dialect(dialect: Dialect) -> Dialect:
    """How float64 is written for eager tensors: the framework's own function, whatever
    the module has of its own.
    """

    def spelled(name: str, scalars: tuple[bool, ...]) -> Template | None:
        return _OWN.get(name) or dialect.variants(name, scalars)

    return replace(dialect, variants=spelled)


def numbers_last(
    expand: Callable[[Expr], Expr], scalars: frozenset[str]
) -> Callable[[Expr], Expr]:
    """``x + 1`` for ``1 + x``, which takes half as long again: Python asks the number
    first."""

    def written(expr: Expr) -> Expr:
        done: dict[Expr, Expr] = {}
        value = expand(expr)
        for node in nodes(value):
            made = rebuilt(node, tuple(done[child] for child in children(node)))
            done[node] = _turned(made, scalars)
        return done[value]

    return written


def _turned(node: Expr, scalars: frozenset[str]) -> Expr:
    match node:
        case Op("add" | "mul" as name, (number, x)) if {*names(number)} <= scalars:
            return node if {*names(x)} <= scalars else Op(name, (x, number))
        case _:
            return node


def may_be_doubled(core: Core) -> RulePlan | None:
    """The plan in float64, of an elementwise rule that keeps its arguments alone."""
    plan = core.plan
    floats = all(i.kind is Kind.FLOAT for i in plan.tensors)
    single = all(o.kind is Kind.FLOAT for o in plan.outputs)
    if plan.is_ranked or core.is_traced or core.keeps or not (floats and single):
        return None
    return plan.double


def is_cheaper(made: Core, base: Core) -> bool:
    """Whether both passes of ``made`` take less than those of ``base``."""
    if made.keeps or _is_constant(made):
        return False
    own = frozenset(_OWN)
    changed = 2 * len(made.floats) + 2 * len(made.plan.outputs) + len(made.gradients)
    after = in_double(made.values, made.scalars, own) + CONVERSION * changed
    if base.is_double:
        before = in_double(base.values, base.scalars, frozenset())
        return after <= _GAIN * (before + 2 * CONVERSION * changed)
    return after <= _GAIN * in_single(base.values, base.scalars)


def _is_constant(core: Core) -> bool:
    results = (*core.forward.results, *(term.value for term in core.terms))
    return any({*names(value)} <= core.scalars for value in results)


def short_name(core: Core) -> str:
    """What the function in float64 is called."""
    if core.statics:
        return fresh("double", {core.plan.name, *variables(core.plan)})
    return f"{core.name}_double"


IS_NARROW = Helper(
    "_is_narrow",
    '''\
def _is_narrow(tensors: tuple[tf.Tensor, ...]) -> bool:
    """Whether they are eager tensors of less than float64 in the memory of the CPU."""
    return tf.executing_eagerly() and all(
        isinstance(t, tf.Tensor) and t.dtype.size < 8 and "CPU" in t.device
        for t in tensors
    )
''',
)

CAST = Helper(
    "_cast",
    '''\
def _cast(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """The operation alone: tf.cast of an eager tensor takes as long again."""
    return tf.raw_ops.Cast(x=x, DstT=dtype)
''',
)

DOUBLES = Helper(
    "_doubles",
    '''\
def _doubles(*tensors: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Narrow eager tensors in float64."""
    return tuple(_cast(t, tf.float64) for t in tensors)
''',
    needs=(CAST,),
)

OR_DOUBLE = Helper(
    "_or_double",
    '''\
def _or_double(short: Callable[..., Any]) -> Callable[..., Any]:
    """``short`` for narrow eager tensors on the CPU, where each operation is a call:
    float64, rounded once, takes fewer. A pass that is recorded is the other one's.
    """

    def either(core: Callable[..., Any]) -> Callable[..., Any]:
        def whole(*tensors: tf.Tensor) -> Any:
            if _record is None or not _is_narrow(tensors):
                return core(*tensors)
            results, quick = short(*tensors)

            def backward(*upstream: tf.Tensor) -> Any:
                if _is_watched() or not _is_narrow(upstream):
                    return core(*tensors)[1](*upstream)
                return quick(*upstream)

            return results, backward

        return whole

    return either
''',
)

HELPERS = (IS_NARROW, CAST, DOUBLES, OR_DOUBLE)
