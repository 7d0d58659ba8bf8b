"""A number in the shape that it has beside another (`plan/beside.py`).

Users have no name for it. Where a zero is subtracted, that changes no number, -0 among them:
it takes the result into the shape of the other, and into its batch of vmap.
"""

from __future__ import annotations

from gradspec.primitives.row import Helper, Primitive

BESIDE = "beside"

_NUMPY = Helper(
    "_beside",
    '''\
def _beside(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x, in the shape to which it broadcasts with y."""
    return np.array(np.broadcast_to(x, np.broadcast_shapes(x.shape, y.shape)))
''',
)

_TORCH = Helper(
    "_beside",
    '''\
def _beside(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x, in the shape to which it broadcasts with y, and in the batch of vmap in which y
    is.
    """
    if y.is_nested:  # its shape has sizes that are no numbers
        return x - torch.zeros_like(y, dtype=x.dtype)
    return x - y.new_zeros((), dtype=x.dtype).expand(y.shape)
''',
)

_TF = Helper(
    "_beside",
    '''\
def _beside(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """x, in the shape to which it broadcasts with y."""
    return x - tf.zeros_like(y, x.dtype)
''',
)

_JAX = Helper(
    "_beside",
    '''\
def _beside(x: jax.Array, y: jax.Array) -> jax.Array:
    """x, in the shape to which it broadcasts with y, in the batch of vmap in which y is, and
    on every device of shard_map.
    """
    return jnp.where(y == y, x, x)
''',
)

ROWS = (
    Primitive(
        BESIDE,
        ("x", "y"),
        meaning="x",
        partials=("1", "0"),
        ball=lambda x, y: x,
        sympy=lambda sp, x, y: x,
        model=lambda np, x, y: np.broadcast_arrays(x, y)[0],
        cost=1,
        source="IEEE 754-2019, 6.3: a number less 0 is the number, and so is -0",
        spellings={"numpy": _NUMPY, "torch": _TORCH, "tf": _TF, "jax": _JAX},
    ),
)
