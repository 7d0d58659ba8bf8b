"""The shapes that a Keras layer is told and tells.

Keras asks a layer for the shape of its results before it has any data (`TimeDistributed`,
the functional API, `summary`). Where it is not told, it traces `call`, which knows less.
Sizes that are not known are None.
"""

from __future__ import annotations

from gradspec.ir.rule import Input, Kind, Output
from gradspec.plan.layer import Layer
from gradspec.primitives.row import Helper
from gradspec.targets import layers
from gradspec.targets.lines import Lines, indented

SHAPE_TYPE = "tuple[int | None, ...]"
"""How Keras tells a shape."""

_FLOATS = (Kind.FLOAT, Kind.NOGRAD)

_BROADCAST = Helper(
    "_broadcast_shape",
    '''\
def _broadcast_shape(*shapes: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """The shape that tensors of these shapes broadcast to."""
    return tuple(functools.reduce(tf.broadcast_static_shape, map(tf.TensorShape, shapes)))
''',
    imports=("import functools",),
)

_SHOWN = Helper(
    "_shown",
    '''\
def _shown(*sizes: int | None) -> int | None:
    """The size of an axis that several inputs have, if one of them shows it."""
    return next((size for size in sizes if size is not None), None)
''',
)

HELPERS = (_BROADCAST, _SHOWN)


def shapes(layer: Layer) -> dict[str, str]:
    """What the shapes of the data are called, by input. With one argument Keras gives its
    shape, with several one each, by their names.
    """
    if len(layer.data) == 1:
        return {layer.data[0].name: "input_shape"}
    return {i.name: f"{layer.public(i.name)}_shape" for i in layer.data}


def size_of(layer: Layer, axis: str | int) -> str:
    """The size of an axis of an input or output: told to the layer or shown by the data."""
    if isinstance(axis, int):
        return str(axis)
    places = layer.places(axis)
    if not places or axis in {static.name for static in layer.plan.statics}:
        return f"self.{layer.public(axis)}"
    of = shapes(layer)
    shown = ", ".join(f"{of[name]}[{position}]" for name, position in places)
    return shown if len(places) == 1 else f"_shown({shown})"


def output_shapes(layer: Layer) -> Lines:
    """The method that tells Keras the shapes of the results, and an empty line. Keras takes
    each result to be of the layer's own type then, so a layer that gives an integer or a
    boolean has no such method: Keras traces `call` and finds the type, too.
    """
    outputs = layer.plan.outputs
    if any(output.kind not in _FLOATS for output in outputs):
        return []
    told = ", ".join(f"{name}: {SHAPE_TYPE}" for name in shapes(layer).values())
    returned = [SHAPE_TYPE] * len(outputs)
    result = returned[0] if len(returned) == 1 else f"tuple[{', '.join(returned)}]"
    found = [_shape(layer, output) for output in outputs]
    return [
        f"def compute_output_shape(self, {told}) -> {result}:",
        *indented([f"return {_listed(found)}"]),
        "",
    ]


def _shape(layer: Layer, output: Output) -> str:
    """The shape of an output: what the batch axes broadcast to, then its own axes."""
    spread = layer.spread(output)
    own = [size_of(layer, axis) for axis in output.shape.axes]
    for i in layer.data:
        is_spread_alone = spread == ((i,) if i.shape.batch else ())
        if own and own == _own(layer, i) and is_spread_alone:
            return f"tuple({shapes(layer)[i.name]})"
    batch = list(dict.fromkeys(_batch(layer, i) for i in spread))
    if not own:
        return _whole(batch)
    first = [f"*{_joined(batch)}"] if batch else []
    return f"({', '.join([*first, *own])}{'' if first or own[1:] else ','})"


def _own(layer: Layer, i: Input) -> Lines:
    """The sizes of an input's own axes as its shape shows them."""
    count = len(i.shape.axes)
    return [f"{shapes(layer)[i.name]}[{position}]" for position in range(-count, 0)]


def _batch(layer: Layer, i: Input) -> str:
    """The batch axes of an input."""
    if i.is_param:
        return f"self.{layers.SHAPE}"
    name, count = shapes(layer)[i.name], len(i.shape.axes)
    return f"{name}[:-{count}]" if count else name


def _joined(batch: Lines) -> str:
    return batch[0] if len(batch) == 1 else f"_broadcast_shape({', '.join(batch)})"


def _whole(batch: Lines) -> str:
    """The shape of an output that has batch axes alone. Keras may give a list."""
    if not batch:
        return "()"
    return f"tuple({batch[0]})" if len(batch) == 1 else _joined(batch)


def _listed(found: Lines) -> str:
    return found[0] if len(found) == 1 else f"({', '.join(found)})"
