"""The evaluation in float64 for narrower eager tensors on the CPU.

There every operation is a call of nine microseconds at least, so a short formula in
float64, rounded once, takes less than a long one in float32; and TensorFlow takes no
number of float32 for 0 on the way, as it does with what is subnormal. A second function
has it, in operations alone. A pass that is itself recorded is that of the first, and so is
every graph: XLA fuses, and accelerators have little float64.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradspec.ir.rule import Kind
from gradspec.plan.array import Expr, Op, names, nodes
from gradspec.plan.plan import RulePlan
from gradspec.primitives.row import Helper
from gradspec.primitives.table_bounds import FINITE, GATED, VANISHING
from gradspec.primitives.table_slopes import MISH, SILU
from gradspec.targets.signature import fresh, variables
from gradspec.targets.tf_blocks import is_in_blocks
from gradspec.targets.tf_costs import CONVERSION, calls, in_double, in_single
from gradspec.targets.tf_parts import Core
from gradspec.targets.tf_raw import SCALED, SPELLED

_GAIN = 0.8
"""Of what both passes cost in float32, what they may cost in float64."""

_ALONE = 0.5
"""What an operation alone takes of a call of the function or the operator."""

FORMULAS = {
    "ndtr": "erfc(x * -0.70710678118654752440) * 0.5",
    "logaddexp": "max(x, y) + softplus(-abs(0 if x == y else x - y))",
    "tanh_softplus": "tanh(softplus(x))",
    "exp_neg_square": "exp(-(x * x))",
    "exp_neg_half_square": "exp(x * x * -0.5)",
    "bell_raised": "exp(x * x * -0.5 + y)",
    "ndtr_raised": "exp(y) * (erfc(x * -0.70710678118654752440) * 0.5)",
    "exp_sum": "exp(x + y)",
    "exp_product": "exp(x * y)",
    "expm1_sum": "expm1(x + y)",
    "expm1_product": "expm1(x * y)",
    "expm1_known": "expm1(x)",
    "sigmoid_sum": "sigmoid(x + y)",
    "sigmoid_product": "sigmoid(x * y)",
    "softplus_sum": "softplus(x + y)",
    "softplus_product": "softplus(x * y)",
    "logsigmoid": "-softplus(-x)",
    "fence": "x",
    FINITE: "clip(x, -1.7976931348623157e308, 1.7976931348623157e308)",
    VANISHING: "(0 if y == 0 and abs(x) == inf else x) * y",
    GATED: "times(x, max(y, 0) + clip(x, 0, 0))",
    SILU: "sigmoid(x) + x * (sigmoid(x) * (1 - sigmoid(x)))",
    MISH: "tanh(softplus(clip(x, -10000, 40))) + clip(x, -10000, 40) "
    "* sigmoid(x) * (1 - square(tanh(softplus(clip(x, -10000, 40)))))",
}
"""What float32 has private functions for; in float64 these are right for it. The slope
of mish is 0 and 1 beyond the bounds."""


def may_be_doubled(core: Core) -> RulePlan | None:
    """The plan in float64, of an elementwise rule that keeps its arguments alone: one of
    its own, or the same formulas."""
    plan = core.plan
    floats = all(i.kind in (Kind.FLOAT, Kind.NOGRAD) for i in plan.tensors)
    single = all(o.kind is Kind.FLOAT for o in plan.outputs)
    if plan.is_ranked or core.is_traced or core.keeps or not (floats and single):
        return None
    return plan.double or (plan if is_in_blocks(core) else None)


def is_cheaper(made: Core, base: Core) -> bool:
    """Whether both passes of ``made`` take less than those of ``base``."""
    if made.keeps or _is_constant(made):
        return False
    if base.plan.double is None and not _is_plain(made.values, made.scalars):
        return False
    changed = 2 * len(made.floats) + 2 * len(made.plan.outputs) + len(made.gradients)
    short = _ALONE * (calls(made.values, made.scalars) + changed)
    if short > _GAIN * in_single(base.values, base.scalars):
        return False
    return is_in_blocks(base) or _is_cheaper_long(made, base, changed)


def _is_cheaper_long(made: Core, base: Core, changed: int) -> bool:
    """The same where computing takes as long as the calls."""
    own = frozenset(SPELLED)
    after = in_double(made.values, made.scalars, own) + CONVERSION * changed
    if base.is_double:
        before = in_double(base.values, base.scalars, frozenset())
        return after <= _GAIN * (before + 2 * CONVERSION * changed)
    return after <= _GAIN * in_single(base.values, base.scalars)


def _is_plain(values: Iterable[Expr], scalars: frozenset[str]) -> bool:
    """Whether all are operations of TensorFlow that float64 has enough digits for."""
    return all(
        node.primitive in SPELLED
        for node in nodes(*values)
        if isinstance(node, Op) and not {*names(node)} <= scalars
    )


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
    return _raw.Cast(x=x, DstT=dtype)
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
        @functools.wraps(core)
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
    imports=("import functools",),
)

HELPERS = (IS_NARROW, CAST, SCALED, DOUBLES, OR_DOUBLE)
