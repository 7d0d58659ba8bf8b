"""`keras.layers.Layer` for a rule with params: it holds them and calls the function.

It is registered under the file's name, so that a saved model finds it in any process
that has imported the module, whatever its name there; so are functions that can be
activations. Sizes shown by the data are taken from it when the layer is built, as
Keras' own layers do.

Keras asks a layer for the shape of its results before it has any data
(`TimeDistributed`, the functional API, `summary`). Without that method it traces
`call`, which knows less. Unknown sizes are None.
"""

from __future__ import annotations

from gradspec.ir.rule import Input, Kind, Output
from gradspec.plan.program import Program
from gradspec.targets import layers
from gradspec.targets.docstring import sentence
from gradspec.targets.layers import Layer, class_name
from gradspec.targets.layers import layer as planned
from gradspec.targets.lines import Lines, indented, returned
from gradspec.targets.page import Page
from gradspec.targets.target import Definition

_WORDS = """
activity_regularizer add_loss add_metric add_variable add_weight autocast build
build_from_config built call call_signature_parameters compute_dtype compute_mask
compute_output_shape compute_output_spec count_params dtype dtype_policy from_config
get_build_config get_config get_weights input input_dtype input_shape input_spec
load_own_variables losses metrics metrics_variables name non_trainable_variables
non_trainable_weights output path quantization_mode quantize quantized_build
quantized_call rematerialized_call save_own_variables set_weights stateless_call
supports_jit supports_masking symbolic_call trainable trainable_variables
trainable_weights variable_dtype variables weights
self kwargs shape training mask tf super tuple isinstance int
"""

OWN = frozenset(_WORDS.split())
"""Names in the class and its methods, which no argument or attribute may have."""

_SHAPE = "tuple[int | None, ...]"
"""The type by which Keras passes a shape."""

_FLOATS = (Kind.FLOAT, Kind.NOGRAD)


def registration(page: Page) -> str:
    """The decorator by which Keras finds a layer or function in a saved model."""
    package = page.path.removesuffix(".py").replace("/", ".")
    return f'@tf.keras.utils.register_keras_serializable(package="{package}")'


def is_activation(program: Program) -> bool:
    """True if Keras may call the function as an activation: one tensor in, one of its
    shape out. An unregistered one is saved by its bare name, and where Keras has an
    activation of that name, it loads its own in silence.
    """
    if len(program.tensors) != 1 or len(program.outputs) != 1:
        return False
    given, made = program.tensors[0], program.outputs[0]
    is_float = given.kind is Kind.FLOAT and made.kind is Kind.FLOAT
    needs_no_more = all(i.default is not None for i in program.statics)
    return (
        is_float and given.shape.batch and given.shape == made.shape and needs_no_more
    )


def layer_class(program: Program, page: Page) -> Definition | None:
    """The whole class."""
    if not any(i.is_param for i in program.inputs):
        return None
    layer = planned(program, page.fresh(class_name(program.name)), OWN)
    assert layer is not None
    data = ", ".join(f"{layer.public(i.name)}: tf.Tensor" for i in layer.data)
    params = layers.listed(layer.public(i.name) for i in layer.params)
    lines = [
        registration(page),
        f"class {layer.name}(tf.keras.layers.Layer):",
        sentence(f"`{program.name}` with a learned {params}.", 1),
        "",
        f"    def __init__({', '.join(_arguments(layer))}) -> None:",
        "        super().__init__(**kwargs)",
        *indented(indented(layers.kept(layer, _size_arguments(layer)))),
        "",
        *indented(_build(layer, page)),
        "",
        f"    def call(self, {data}) -> {returned(program, 'tf.Tensor')}:",
        f"        return {layers.call(layer)}",
        "",
        *indented(_output_shapes(layer, page)),
        "    def get_config(self) -> dict[str, object]:",
        f"        return {{**super().get_config(), {', '.join(_config(layer))}}}",
    ]
    return Definition(lines, (layer.name,))


def _size_arguments(layer: Layer) -> tuple[str, ...]:
    """The sizes that no data show, which are constructor arguments."""
    return tuple(size for size in layer.sizes if not layer.places(size))


def _arguments(layer: Layer) -> Lines:
    free = [f"{layers.SHAPE}: int | tuple[int, ...] = ()"] if layer.is_free else []
    return [
        "self",
        *(f"{layer.public(size)}: int" for size in _size_arguments(layer)),
        "*",
        *layers.statics(layer),
        *layers.starts(layer),
        *free,
        "**kwargs: object",
    ]


def _build(layer: Layer, page: Page) -> Lines:
    """The weights."""
    lines = [f"{layer.public(n)} = {_size(layer, n, page)}" for n in layer.sizes]
    for i in layer.params:
        name = layer.public(i.name)
        shape = layers.shape(layer, i, known="")
        start = f'tf.keras.initializers.Constant(self._initial["{name}"])'
        made = f'self.add_weight(name="{name}", shape={shape}, initializer={start})'
        lines.append(f"self.{name} = {made}")
    params = ", ".join(f"{name}: {_SHAPE}" for name in _shapes(layer).values())
    return [f"def build(self, {params}) -> None:", *indented(lines)]


def _config(layer: Layer) -> Lines:
    names = [*_size_arguments(layer), *(i.name for i in layer.program.statics)]
    own = [layer.public(name) for name in names]
    own += [layers.SHAPE] if layer.is_free else []
    return [*(f'"{name}": self.{name}' for name in own), "**self._initial"]


# --- shapes ----------------------------------------------------------------------------


def _shapes(layer: Layer) -> dict[str, str]:
    """The names of the data's shapes, by input. With one argument Keras passes its
    shape, with several one each, by their names.
    """
    if len(layer.data) == 1:
        return {layer.data[0].name: "input_shape"}
    return {i.name: f"{layer.public(i.name)}_shape" for i in layer.data}


def _size(layer: Layer, axis: str | int, page: Page) -> str:
    """The size of an axis of an input or output: an argument of the layer or shown by
    the data.
    """
    if isinstance(axis, int):
        return str(axis)
    places = layer.places(axis)
    if not places or axis in {static.name for static in layer.program.statics}:
        return f"self.{layer.public(axis)}"
    of = _shapes(layer)
    shown = ", ".join(f"{of[name]}[{position}]" for name, position in places)
    return shown if len(places) == 1 else f"{page.core('shown_size')}({shown})"


def _output_shapes(layer: Layer, page: Page) -> Lines:
    """The method that gives Keras the shapes of the results, and an empty line. Keras
    then takes each result to be of the layer's own type, so a layer with an integer or
    boolean result has no such method: Keras traces `call` and finds the type, too.
    """
    outputs = layer.program.outputs
    if any(output.kind not in _FLOATS for output in outputs):
        return []
    told = ", ".join(f"{name}: {_SHAPE}" for name in _shapes(layer).values())
    found = [_shape(layer, output, page) for output in outputs]
    listed = found[0] if len(found) == 1 else f"({', '.join(found)})"
    result = returned(layer.program, _SHAPE)
    return [
        f"def compute_output_shape(self, {told}) -> {result}:",
        f"    return {listed}",
        "",
    ]


def _shape(layer: Layer, output: Output, page: Page) -> str:
    """The shape of an output: the broadcast batch axes, then its own axes."""
    spread = layer.spread(output)
    own = [_size(layer, axis, page) for axis in output.shape.axes]
    for i in layer.data:
        is_spread_alone = spread == ((i,) if i.shape.batch else ())
        if own and own == _assign_sizes(layer, i) and is_spread_alone:
            return f"tuple({_shapes(layer)[i.name]})"
    batch = list(dict.fromkeys(_batch(layer, i) for i in spread))
    if not own:
        return _whole(batch, page)
    first = [f"*{_joined(batch, page)}"] if batch else []
    return f"({', '.join([*first, *own])}{'' if first or own[1:] else ','})"


def _assign_sizes(layer: Layer, i: Input) -> Lines:
    """Assign the sizes of an input's own axes from its shape."""
    count = len(i.shape.axes)
    return [f"{_shapes(layer)[i.name]}[{position}]" for position in range(-count, 0)]


def _batch(layer: Layer, i: Input) -> str:
    """The batch axes of an input."""
    if i.is_param:
        return f"self.{layers.SHAPE}"
    name, count = _shapes(layer)[i.name], len(i.shape.axes)
    return f"{name}[:-{count}]" if count else name


def _joined(batch: Lines, page: Page) -> str:
    if len(batch) == 1:
        return batch[0]
    return f"{page.core('broadcast_shape')}({', '.join(batch)})"


def _whole(batch: Lines, page: Page) -> str:
    """The shape of an output that has batch axes alone. Keras may pass a list."""
    if not batch:
        return "()"
    return f"tuple({batch[0]})" if len(batch) == 1 else _joined(batch, page)
