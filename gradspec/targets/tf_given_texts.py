"""The private functions of a TensorFlow module that look at what a public function is
given.
"""

from __future__ import annotations

from gradspec.primitives.row import Helper

TENSOR = Helper(
    "_tensor",
    '''\
def _tensor(rule: str, name: str, value: Any) -> tf.Tensor:
    """``value``, which is no tensor yet, as one."""
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
    return tf.convert_to_tensor(value)
''',
    imports=("from typing import Any",),
)

NUMBER = Helper(
    "_number",
    '''\
def _number(rule: str, name: str, value: Any, kind: Callable[[Any], Any]) -> Any:
    """A static parameter as a Python number; a tensor must have a value already."""
    if isinstance(value, tf.Variable):
        raise TypeError(
            f"{rule}: {name} is static and gets no gradient; "
            f"give a number, as in {name}.numpy()"
        )
    if isinstance(value, tf.Tensor):
        known = tf.get_static_value(value)
        if known is None:
            raise TypeError(
                f"{rule}: {name} is static, and this tensor has no value before its "
                f"graph runs; give a Python number, or declare {name} without `static`"
            )
        value = known
    if isinstance(value, str):
        raise TypeError(f"{rule}: {name} must be a number, not a string")
    try:
        return kind(value)
    except (TypeError, ValueError) as fault:
        raise TypeError(f"{rule}: {name} must be a number: {fault}") from None
''',
    imports=(
        "from collections.abc import Callable",
        "from typing import Any",
    ),
)

FLOATING = Helper(
    "_floating",
    '''\
def _floating(rule: str, name: str, value: tf.Tensor) -> tf.Tensor:
    """``value`` as a floating tensor; a Python number becomes float32."""
    if not hasattr(value, "dtype"):
        return tf.convert_to_tensor(value, tf.float32)
    if not isinstance(value, tf.Tensor):
        value = _tensor(rule, name, value)
    if not value.dtype.is_floating:
        raise TypeError(
            f"{rule}: {name} must be a floating tensor, not {value.dtype.name}; "
            f"convert it first, as in tf.cast({name}, tf.float32)"
        )
    return value
''',
)

PROMOTE = Helper(
    "_promote",
    '''\
def _promote(rule: str, **values: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Tensors of one floating type, the widest; Python numbers take it over."""
    first, *others = given = tuple(values.values())
    if isinstance(first, tf.Tensor) and first.dtype.is_floating:
        if all(isinstance(t, tf.Tensor) and t.dtype == first.dtype for t in others):
            return given
    tensors = {
        name: _floating(rule, name, value)
        for name, value in values.items()
        if hasattr(value, "dtype")
    }
    dtypes = [tensor.dtype for tensor in tensors.values()] or [tf.float32]
    dtype = dtypes[0]
    if any(other != dtype for other in dtypes):
        dtype = tf.float64 if tf.float64 in dtypes else tf.float32
    return tuple(
        (
            tf.cast(tensors[name], dtype)
            if name in tensors
            else tf.convert_to_tensor(value, dtype)
        )
        for name, value in values.items()
    )
''',
)

INTEGER = Helper(
    "_integer",
    '''\
def _integer(rule: str, name: str, value: tf.Tensor) -> tf.Tensor:
    """``value`` as an integer tensor, of a type that holds what is made of positions."""
    if not isinstance(value, tf.Tensor):
        value = _tensor(rule, name, value)
    if not value.dtype.is_integer:
        raise TypeError(
            f"{rule}: {name} must be an integer tensor, not {value.dtype.name}; "
            f"convert it first, as in tf.cast({name}, tf.int32)"
        )
    return tf.cast(value, tf.int32) if value.dtype.size < 4 else value
''',
)

BOOLEAN = Helper(
    "_boolean",
    '''\
def _boolean(rule: str, name: str, value: tf.Tensor) -> tf.Tensor:
    """``value`` as a boolean tensor."""
    if not isinstance(value, tf.Tensor):
        value = _tensor(rule, name, value)
    if not value.dtype.is_bool:
        raise TypeError(
            f"{rule}: {name} must be a boolean tensor, not {value.dtype.name}; "
            f"convert it first, as in tf.cast({name}, tf.bool)"
        )
    return value
''',
)

RANK0 = Helper(
    "_rank0",
    '''\
def _rank0(rule: str, name: str, tensor: tf.Tensor) -> tf.Tensor:
    """``tensor`` if it has no axes; checked as soon as its rank is known."""
    if tensor.shape.rank is None:
        return tf.ensure_shape(tensor, ())
    if tensor.shape.rank != 0:
        raise ValueError(
            f"{rule}: {name} must have rank 0, that is the shape (), "
            f"not {tuple(tensor.shape)}"
        )
    return tensor
''',
)

HELPERS = (TENSOR, NUMBER, FLOATING, PROMOTE, INTEGER, BOOLEAN, RANK0)
"""In the order in which a module has them."""
