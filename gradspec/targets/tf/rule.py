"""One rule in TensorFlow: the public function itself, as `tf.custom_gradient` takes it,
and the `keras.layers.Layer` of a rule with params.

Its body has the forward pass and, as a nested function, the backward pass, which are
plain operations and can be differentiated again. The decorator does the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

from gradspec.ir.rule import Input, Kind, Output
from gradspec.plan.arrays import Expr, Name, Op, names
from gradspec.plan.plan import Term
from gradspec.plan.program import Program
from gradspec.targets import layers
from gradspec.targets import lines as traces
from gradspec.targets.expressions import Scope, render, scope_of
from gradspec.targets.layers import Layer, layer
from gradspec.targets.lines import (
    Lines,
    assignment,
    assignments,
    checks,
    docstring,
    gradient,
    indent_lines,
    keywords,
    kinds_of,
    mark_unused,
    name_or_tuple,
    parameters,
    result_type,
    sentence,
    tighten,
)
from gradspec.targets.target import Definition, Page
from gradspec.targets.tf.dialect import DIALECT

_DISCRETE = ("integer", "boolean")
_TENSOR = "tf.Tensor"


def definitions(program: Program, page: Page, *, trace: bool) -> list[Definition]:
    """The function, and the layer of a rule with params."""
    scope = scope_of(program, page, DIALECT)
    result = f"{page.core('Result')}[{result_type(program, _TENSOR)}]"
    lines = [
        *([_registration(page)] if _is_activation(program) else []),
        _decorator(program, page),
        f"def {program.name}({parameters(program, _TENSOR)}) -> {result}:",
        docstring(program.docs),
        *indent_lines([*checks(program, page), *_body(program, scope, trace)]),
    ]
    function = Definition(lines, (program.name,))
    made = layer(program, OWN)
    return [function] if made is None else [function, _layer(made, page)]


def _decorator(program: Program, page: Page) -> str:
    words = ", ".join(_keywords(program))
    return f"@{page.core('custom_gradient')}" + (f"({words})" if words else "")


def _keywords(program: Program) -> Iterable[str]:
    if program.is_double:
        yield "precision=tf.float64"
    if not program.is_linear:
        yield "is_linear=False"
    ended = [k for k, o in enumerate(program.outputs) if o.kind is Kind.NOGRAD]
    if ended:
        yield f"nograd={ended}"
    kinds = {n: k for n, k in kinds_of(program).items() if k in _DISCRETE}
    yield from keywords(program, kinds)


def _body(program: Program, scope: Scope, trace: bool) -> Lines:
    backward = program.local("backward")
    statements, results = _forward(program, scope, trace)
    before = [*_sizes(program, scope.page, trace), *statements]
    behind = _backward(program, scope, trace)
    cotangents = ", ".join(mark_unused((o.cotangent for o in program.outputs), behind))
    return [
        *before,
        "",
        f"def {backward}({cotangents}):",
        *indent_lines(tighten(behind)),
        "",
        f"return {name_or_tuple(results)}, {backward}",
    ]


# --- forward ---------------------------------------------------------------------------


def _forward(program: Program, scope: Scope, trace: bool) -> tuple[Lines, list[str]]:
    """Statements, and the texts of the outputs; one that the backward pass uses is
    named.
    """
    block, used = program.forward, names(*program.backward.values)
    outputs = {output.name: output for output in program.outputs}
    lines: Lines = []
    for s in block.statements:
        if s.name in outputs:
            text = _output(program, outputs[s.name], s.value, scope)
        else:
            text = render(s.value, scope)
        lines += assignment(s.name, text, s.comment)
    named, results = {s.name for s in block.statements}, []
    for output, value in zip(program.outputs, block.results, strict=True):
        if value == Name(output.name) and output.name in named:
            results.append(output.name)
            continue
        text = _output(program, output, value, scope)
        if output.name in used or trace:
            lines += assignment(output.name, text)
            text = output.name
        results.append(text)
    if trace:
        lines.append(_print_call(program, traces.ends(program), scope.page))
    return lines, results


def _print_call(program: Program, values: traces.Shown, page: Page) -> str:
    return f"{page.core('show')}({traces.template(program, values)})"


def _output(program: Program, output: Output, value: Expr, scope: Scope) -> str:
    """The text of an output; a number takes the shape to which its inputs broadcast."""
    text = render(value, scope)
    if program.may_be_number(value):
        text = f"{scope.page.core('broadcast_full')}({text}, {', '.join(program.like(output))})"
    elif output.kind is not Kind.INT:
        return text
    to = {Kind.INT: "tf.int64", Kind.BOOL: "tf.bool"}.get(output.kind)
    return f"tf.cast({text}, {to})" if to else text


def _sizes(program: Program, page: Page, trace: bool) -> Lines:
    """Sizes of axes, for both passes."""
    values = [*program.forward.values, *program.backward.values]
    values += program.shown_values if trace else []
    found = program.sizes_of(values, [i.name for i in program.tensor_inputs])
    size = page.core("size") if found else ""
    return [f"{name} = {size}({array}, {axis})" for name, array, axis in found]


# --- backward --------------------------------------------------------------------------


def _backward(program: Program, scope: Scope, trace: bool) -> Lines:
    lines = assignments(program.backward.statements, scope)
    found = []
    for i, group in program.groups:
        text = _gradient(program, i, group, scope)
        if group is None:
            found.append("None")
            continue
        comment = "\n".join(term.comment for term in group if term.comment)
        if comment or trace:
            lines += assignment(i.cotangent, text, comment)
            text = i.cotangent
        if trace:
            shown = traces.terms(program, i.name, i.cotangent, scope)
            lines += [_print_call(program, values, scope.page) for values in shown]
        found.append(text)
    return [*lines, f"return {', '.join(found)}"]


def _gradient(
    program: Program, i: Input, group: tuple[Term, ...] | None, scope: Scope
) -> str:
    """The gradient of an input; terms of one shape are added as they are."""

    def needs_shape(term: Term) -> bool:
        """True for a choice by a number, which may be a number; in a linear gradient
        that is 0.
        """
        return program.takes_shape(term) and not (term.upstream and program.is_linear)

    shapes = {frozenset(term.spans) for term in group or ()}
    if group and len(shapes) == 1 and not any(map(needs_shape, group)):
        total = reduce(lambda a, b: Op("add", (a, b)), (term.value for term in group))
        group = (replace(group[0], value=total),)
    return gradient(program, i, group, scope, "tf.zeros_like", needs_shape)


# --- the layer -------------------------------------------------------------------------
#
# It is registered under the file's name, so that a saved model finds it in any process
# that has imported the module, whatever its name there; so are functions that can be
# activations. Sizes shown by the data are taken from it when the layer is built, as
# Keras' own layers do.
#
# Keras asks a layer for the shape of its results before it has any data
# (`TimeDistributed`, the functional API, `summary`). Without that method it traces
# `call`, which knows less. Unknown sizes are None.


OWN = """
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
"""Names in the class and its methods."""

_SHAPE = "tuple[int | None, ...]"
"""The type by which Keras passes a shape."""


def _registration(page: Page) -> str:
    """The decorator by which Keras finds a layer or function in a saved model."""
    package = page.path.removesuffix(".py").replace("/", ".")
    return f'@tf.keras.utils.register_keras_serializable(package="{package}")'


def _is_activation(program: Program) -> bool:
    """True if Keras may call the function as an activation: one tensor in, one of its
    shape out. An unregistered one is saved by its bare name, and where Keras has an
    activation of that name, it loads its own in silence.
    """
    if len(program.tensor_inputs) != 1 or len(program.outputs) != 1:
        return False
    given, made = program.tensor_inputs[0], program.outputs[0]
    is_float = given.kind is Kind.FLOAT and made.kind is Kind.FLOAT
    needs_no_more = all(i.default is not None for i in program.static_inputs)
    return (
        is_float and given.shape.batch and given.shape == made.shape and needs_no_more
    )


def _layer(layer: Layer, page: Page) -> Definition:
    """The class, which holds the params and calls the function."""
    sizes = _size_arguments(layer)
    arguments = layers.arguments(layer, sizes, layers.statics(layer))
    data = ", ".join(f"{layer.public(i.name)}: tf.Tensor" for i in layer.data)
    params = layers.listing(layer.public(i.name) for i in layer.params)
    lines = [
        _registration(page),
        f"class {layer.name}(tf.keras.layers.Layer):",
        sentence(f"`{layer.program.name}` with a learned {params}.", 1),
        "",
        f"    def __init__({', '.join(['self', *arguments, '**kwargs: object'])}) -> None:",
        "        super().__init__(**kwargs)",
        *indent_lines(indent_lines(layers.stored_arguments(layer, sizes))),
        "",
        *indent_lines(_build(layer, page)),
        "",
        f"    def call(self, {data}) -> {result_type(layer.program, _TENSOR)}:",
        f"        return {layers.call(layer)}",
        "",
        *indent_lines(_output_shapes(layer, page)),
        "    def get_config(self) -> dict[str, object]:",
        f"        return {{**super().get_config(), {', '.join(_config(layer))}}}",
    ]
    return Definition(lines, (layer.name,))


def _size_arguments(layer: Layer) -> tuple[str, ...]:
    """The sizes that no data show, which are constructor arguments."""
    return tuple(size for size in layer.sizes if not layer.places(size))


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
    return [f"def build(self, {params}) -> None:", *indent_lines(lines)]


def _config(layer: Layer) -> Lines:
    names = [*_size_arguments(layer), *(i.name for i in layer.program.static_inputs)]
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
    if not places or axis in {static.name for static in layer.program.static_inputs}:
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
    if any(not output.kind.is_real for output in outputs):
        return []
    told = ", ".join(f"{name}: {_SHAPE}" for name in _shapes(layer).values())
    found = [_shape(layer, output, page) for output in outputs]
    listed = found[0] if len(found) == 1 else f"({', '.join(found)})"
    result = result_type(layer.program, _SHAPE)
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
        return _batch_shape(batch, page)
    first = [f"*{_joint_shape(batch, page)}"] if batch else []
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


def _joint_shape(batch: Lines, page: Page) -> str:
    if len(batch) == 1:
        return batch[0]
    return f"{page.core('broadcast_shape')}({', '.join(batch)})"


def _batch_shape(batch: Lines, page: Page) -> str:
    """The shape of an output that has batch axes alone. Keras may pass a list."""
    if not batch:
        return "()"
    return f"tuple({batch[0]})" if len(batch) == 1 else _joint_shape(batch, page)
