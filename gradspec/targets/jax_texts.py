"""JAX: its dialect, and the private functions that a module may need."""

from __future__ import annotations

from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Helper
from gradspec.targets.python import Dialect

RESERVED = frozenset(["jax", "jnp", "functools", "operator", "checkpoint_name"])
"""Names that no variable of a rule can have beside the text of its module."""

AGAIN = "again"
"""How the function is called that computes again what a backward pass needs."""

LOCALS = frozenset(["primals", "tangents", "residuals", "upstream", "backward"])
"""Names of the text's own values; the author's variables go before."""


def _lifts(name: str, scalars: tuple[bool, ...]) -> tuple[bool, ...]:
    """Which numbers must be arrays: our own functions are written for arrays, and so is
    what follows a choice by a number.
    """
    if name == "choice":
        return scalars
    if name != "where" and isinstance(primitive(name).spellings.get("jax"), Helper):
        return scalars
    return (False,) * len(scalars)


DIALECT = Dialect(
    target="jax",
    where="jnp.where({c}, {x}, {y})",
    is_nan="jnp.isnan({x})",
    to_float="{x}.astype({like}.dtype)",
    lift="jnp.asarray({x}, {like}.dtype)",
    lifts=_lifts,
)

FLOATING = Helper(
    "_floating",
    '''\
def _floating(rule: str, name: str, value: jax.Array) -> jax.Array:
    """``value`` as a floating array; a Python number takes the default type, weakly."""
    if not hasattr(value, "dtype"):
        value = 1.0 * jnp.asarray(value)
    if not jnp.issubdtype(value.dtype, jnp.floating):
        raise TypeError(
            f"{rule}: {name} must be a floating array, not {value.dtype}; "
            f"convert it first, as in {name}.astype(jnp.float32)"
        )
    if isinstance(value, jax.Array):
        return value
    if hasattr(value, "todense"):
        raise TypeError(
            f"{rule}: {name} must be a dense array, not {type(value).__name__}; "
            f"convert it first, as in {name}.todense()"
        )
    return jnp.asarray(value)
''',
)

PROMOTE = Helper(
    "_promote",
    '''\
def _promote(rule: str, **values: jax.Array) -> tuple[jax.Array, ...]:
    """Arrays of one floating type, as JAX promotes; Python numbers take it over."""
    arrays = [_floating(rule, name, value) for name, value in values.items()]
    dtype = jnp.result_type(*arrays)
    return tuple(x if x.dtype == dtype else x.astype(dtype) for x in arrays)
''',
)

INTEGER = Helper(
    "_integer",
    '''\
def _integer(rule: str, name: str, value: jax.Array) -> jax.Array:
    """``value`` as an integer array, of a type that holds what is made of positions."""
    value = jnp.asarray(value)
    if not jnp.issubdtype(value.dtype, jnp.integer):
        raise TypeError(
            f"{rule}: {name} must be an integer array, not {value.dtype}; "
            f"convert it first, as in {name}.astype(int)"
        )
    return value.astype(jnp.int32) if jnp.iinfo(value.dtype).bits < 32 else value
''',
)

BOOLEAN = Helper(
    "_boolean",
    '''\
def _boolean(rule: str, name: str, value: jax.Array) -> jax.Array:
    """``value`` as a boolean array."""
    value = jnp.asarray(value)
    if value.dtype != jnp.bool_:
        raise TypeError(
            f"{rule}: {name} must be a boolean array, not {value.dtype}; "
            f"convert it first, as in {name}.astype(bool)"
        )
    return value
''',
)

RANK0 = Helper(
    "_check_rank0",
    '''\
def _check_rank0(rule: str, **arrays: jax.Array) -> None:
    """Refuse arrays that have axes."""
    for name, array in arrays.items():
        if array.ndim != 0:
            raise ValueError(
                f"{rule}: {name} must have rank 0, that is the shape (), "
                f"not {array.shape}"
            )
''',
)

WIDEN = Helper(
    "_widen",
    '''\
def _widen(x: jax.Array) -> jax.Array:
    """Half precision is computed in float32, and rounded once at the end."""
    return x.astype(jnp.float32) if jnp.finfo(x.dtype).bits < 32 else x
''',
)

IN_DOUBLE = Helper(
    "_in_double",
    '''\
def _in_double(x: jax.Array) -> jax.Array:
    """Computed in float64 where JAX has it enabled (else float32), and rounded once."""
    wide = jnp.finfo(jnp.result_type(float))
    # a number stays weak
    return x if jnp.finfo(x.dtype).bits >= wide.bits else x.astype(wide.dtype)
''',
)

NARROW = Helper(
    "_narrow",
    '''\
def _narrow(y: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """``y`` in the type of the arguments."""
    return y if y.dtype == dtype else y.astype(dtype)
''',
)

LASTING = Helper(
    "_lasting",
    '''\
def _lasting(tensors: int) -> Callable[..., Any]:
    """A `jax.custom_jvp` that lasts within `jax.lax.scan`.

    Where a gradient through a scan is differentiated again, JAX takes the bare function
    in place of the rule. Here that is a rule too, for reverse mode.
    """

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        statics = tuple(range(tensors, function.__code__.co_argcount))
        bare = jax.custom_vjp(function, nondiff_argnums=statics)
        rule = jax.custom_jvp(bare, nondiff_argnums=statics)

        def forward(*given):
            arrays, numbers = given[:tensors], given[tensors:]
            arrays = [_residual(x) for x in arrays]
            return jax.vjp(lambda *arrays: rule(*arrays, *numbers), *arrays)

        def backward(*given):
            *_, pullback, upstream = given
            return pullback(upstream)

        bare.defvjp(forward, backward)
        return rule

    return decorated
''',
    ("from collections.abc import Callable", "from typing import Any"),
)

RESIDUAL = Helper(
    "_residual",
    '''\
def _residual(x: jax.Array) -> jax.Array:
    """x under a name, which is no user's for `jax.checkpoint`. An argument itself must be no
    residual of a `jax.custom_vjp`: where a gradient through `jax.lax.scan` is
    differentiated again, JAX takes another for it.
    """
    return checkpoint_name(x, "argument of a rule")
''',
    ("from jax.ad_checkpoint import checkpoint_name",),
)

FRUGAL = Helper(
    "_frugal",
    '''\
def _frugal(tensors: int, saved: tuple[str, ...] = ()) -> Callable[..., Any]:
    """A rule that keeps its arguments alone for the backward pass, and what is ``saved``.

    JAX would keep each slope. The tangents stand behind `jax.checkpoint`; that itself
    stands behind a `custom_jvp`, since `checkify` differentiates no other in it.
    """
    policy = jax.checkpoint_policies.save_only_these_names(*saved)

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        statics = tuple(range(tensors, function.__code__.co_argcount))
        again = jax.checkpoint(
            function, prevent_cse=False, policy=policy, static_argnums=statics
        )
        rule = jax.custom_jvp(function, nondiff_argnums=statics)

        def jvp(*given):
            *numbers, primals, tangents = given
            moved = [k for k, tangent in enumerate(tangents) if not _is_absent(tangent)]

            def of_moved(*values):
                arguments = dict(enumerate(primals)) | dict(zip(moved, values))
                return again(*arguments.values(), *numbers)

            return jax.jvp(
                of_moved, [primals[k] for k in moved], [tangents[k] for k in moved]
            )

        rule.defjvp(jvp, symbolic_zeros=True)
        return rule

    return decorated
''',
    ("from collections.abc import Callable", "from typing import Any"),
)

IS_ABSENT = Helper(
    "_is_absent",
    '''\
def _is_absent(tangent: object) -> bool:
    """Whether nothing moves the input that this is the tangent of."""
    return isinstance(tangent, jax.custom_derivatives.SymbolicZero)
''',
)

PLUS = Helper(
    "_plus",
    '''\
def _plus(total: jax.Array | None, term: jax.Array) -> jax.Array:
    """``total + term``, where there may be no total yet."""
    return term if total is None else total + term
''',
)

TANGENT = Helper(
    "_tangent",
    '''\
def _tangent(tangent: jax.Array | None, y: jax.Array) -> jax.Array:
    """The tangent of ``y``: what there is, in the shape of ``y``."""
    if tangent is None:
        return jax.custom_derivatives.zero_from_primal(y)
    return _varying(jnp.broadcast_to(tangent, y.shape), jax.typeof(y))
''',
)

PUSHED = Helper(
    "_pushed",
    '''\
def _pushed(
    backward: Callable[..., tuple[jax.Array, ...]],
    tangents: tuple[jax.Array, ...],
    *outputs: jax.Array,
) -> tuple[jax.Array, ...]:
    """The tangents of the outputs: the forward derivative is the transpose of the
    backward pass, which is linear in its upstream gradients.
    """
    moved = [k for k, tangent in enumerate(tangents) if not _is_absent(tangent)]
    if not moved:
        return tuple(_tangent(None, y) for y in outputs)
    types: list[jax.core.AbstractValue] = []

    def part(*upstream: jax.Array) -> list[jax.Array]:
        every = backward(*upstream)
        gradients = [every[k] for k in moved]
        types[:] = map(jax.typeof, gradients)
        return gradients

    transposed = jax.linear_transpose(part, *outputs)
    return transposed([_varying(tangents[k], t) for k, t in zip(moved, types)])
''',
    ("from collections.abc import Callable",),
)

VARYING = Helper(
    "_varying",
    '''\
def _varying(x: jax.Array, like: jax.core.AbstractValue) -> jax.Array:
    """``x``; in `shard_map`, as a value that differs along the axes that ``like`` does."""
    axes = _varying_axes(like) - _varying_axes(jax.typeof(x))
    if not axes:
        return x
    names = tuple(sorted(axes))
    if not hasattr(jax.lax, "pcast"):  # JAX 0.8
        return jax.lax.pvary(x, names)
    return jax.lax.pcast(x, names, to="varying")
''',
)

# `vma` up to JAX 0.9.
VARYING_AXES = Helper(
    "_varying_axes",
    '''\
def _varying_axes(kind: jax.core.AbstractValue) -> frozenset[str]:
    """The axes of the mesh along which devices hold different values."""
    manual = getattr(kind, "manual_axis_type", None)
    return getattr(manual or kind, "varying" if manual else "vma", frozenset())
''',
)

IN_STEP = Helper(
    "_in_step",
    '''\
def _in_step(*arrays: jax.Array) -> tuple[jax.Array, ...]:
    """The arrays; in `shard_map`, all as values that differ along the same axes. A
    `jax.custom_vjp` cannot sum a gradient over the devices that share its input.
    """
    for kind in map(jax.typeof, arrays):
        arrays = tuple(_varying(x, kind) for x in arrays)
    return arrays
''',
)

# What is compared is whether any element is NaN; whatever comes out, the choice is the same,
# and a compiler drops it.
BATCHED_WITH = Helper(
    "_batched_with",
    '''\
def _batched_with(output: jax.Array, *others: jax.Array) -> jax.Array:
    """``output``, in every batch of vmap in which the others are: the upstream gradient of
    what stands outside is summed beforehand.
    """
    for other in others:
        output = jnp.where(jnp.any(other != other), output, output)
    return output
''',
)

LIKE = Helper(
    "_like",
    '''\
def _like(gradient: jax.Array, x: jax.Array) -> jax.Array:
    """``gradient`` in the shape of ``x``: summed where ``x`` was broadcast."""
    shape = jnp.broadcast_shapes(jnp.shape(gradient), x.shape)
    gradient = jnp.broadcast_to(gradient, shape)
    front = len(shape) - x.ndim
    ones = [k for k, size in enumerate(x.shape, front) if size == 1]
    axes = (*range(front), *(k for k in ones if shape[k] != 1))
    return jnp.sum(gradient, axes).reshape(x.shape) if axes else gradient
''',
)

HELPERS = (
    FLOATING,
    PROMOTE,
    INTEGER,
    BOOLEAN,
    RANK0,
    WIDEN,
    IN_DOUBLE,
    NARROW,
    LASTING,
    RESIDUAL,
    FRUGAL,
    IS_ABSENT,
    PLUS,
    VARYING_AXES,
    VARYING,
    IN_STEP,
    TANGENT,
    PUSHED,
    BATCHED_WITH,
    LIKE,
)
"""In the order in which a module has them."""
