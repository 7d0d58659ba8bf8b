"""`keras.layers.Layer` for rules with params: it holds them and calls the function.

It is registered under the file's name, so that a model that was saved is found again by
any process that has imported the module, whatever that is called there; so are functions
that can be activations. Sizes that the data show are taken from them when the layer is
built, as Keras' own layers do.
"""

from __future__ import annotations

from gradspec.ir.rule import Kind
from gradspec.plan.layer import Layer
from gradspec.plan.layer import layers as planned
from gradspec.plan.plan import ModulePlan, RulePlan
from gradspec.targets import layers
from gradspec.targets.docstring import sentence
from gradspec.targets.lines import Lines, indented
from gradspec.targets.tf_layer_shapes import SHAPE_TYPE, output_shapes, shapes, size_of
from gradspec.targets.tf_texts import RESERVED

_OWN = """
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

OWN = frozenset(_OWN.split())
"""Names of the class and of its methods' text: an argument or attribute has none."""


def tf_layers(plan: ModulePlan) -> tuple[Layer, ...]:
    """The layers of a TensorFlow module."""
    return planned(plan, OWN, RESERVED)


def layer_class(plan: ModulePlan, layer: Layer) -> Lines:
    """The whole class."""
    returned = ["tf.Tensor"] * len(layer.plan.outputs)
    result = returned[0] if len(returned) == 1 else f"tuple[{', '.join(returned)}]"
    data = ", ".join(f"{layer.public(i.name)}: tf.Tensor" for i in layer.data)
    params = layers.listed(layer.public(i.name) for i in layer.params)
    return [
        registration(plan),
        f"class {layer.name}(tf.keras.layers.Layer):",
        sentence(f"`{layer.plan.name}` with a learned {params}.", 1),
        "",
        f"    def __init__({', '.join(_arguments(layer))}) -> None:",
        "        super().__init__(**kwargs)",
        *indented(indented(layers.kept(layer, _asked(layer)))),
        "",
        *indented(_build(layer)),
        "",
        f"    def call(self, {data}) -> {result}:",
        f"        return {layers.call(layer)}",
        "",
        *indented(output_shapes(layer)),
        "    def get_config(self) -> dict[str, object]:",
        f"        return {{**super().get_config(), {', '.join(_config(layer))}}}",
    ]


def registration(plan: ModulePlan) -> str:
    """What makes Keras find a layer or function of the module in a saved model."""
    package = plan.path.removesuffix(".py").replace("/", ".")
    return f'@tf.keras.utils.register_keras_serializable(package="{package}")'


def is_activation(rule: RulePlan) -> bool:
    """Whether Keras may call the function as an activation: with one tensor, to have one of
    its shape. One that is not registered is saved by its bare name, and where Keras has an
    activation of that name, it loads its own in silence.
    """
    if len(rule.tensors) != 1 or len(rule.outputs) != 1:
        return False
    given, made = rule.tensors[0], rule.outputs[0]
    is_float = given.kind is Kind.FLOAT and made.kind is Kind.FLOAT
    needs_no_more = all(i.default is not None for i in rule.statics)
    return (
        is_float and given.shape.batch and given.shape == made.shape and needs_no_more
    )


def _asked(layer: Layer) -> tuple[str, ...]:
    """The sizes that no data show."""
    return tuple(size for size in layer.sizes if not layer.places(size))


def _arguments(layer: Layer) -> Lines:
    free = [f"{layers.SHAPE}: int | tuple[int, ...] = ()"] if layer.is_free else []
    return [
        "self",
        *(f"{layer.public(size)}: int" for size in _asked(layer)),
        "*",
        *layers.statics(layer),
        *layers.starts(layer),
        *free,
        "**kwargs: object",
    ]


def _build(layer: Layer) -> Lines:
    """The weights."""
    lines = [f"{layer.public(n)} = {size_of(layer, n)}" for n in layer.sizes]
    for i in layer.params:
        name = layer.public(i.name)
        shape = layers.shape(layer, i, known="")
        start = f'tf.keras.initializers.Constant(self._initial["{name}"])'
        made = f'self.add_weight(name="{name}", shape={shape}, initializer={start})'
        lines.append(f"self.{name} = {made}")
    params = ", ".join(f"{name}: {SHAPE_TYPE}" for name in shapes(layer).values())
    return [f"def build(self, {params}) -> None:", *indented(lines)]


def _config(layer: Layer) -> Lines:
    names = [*_asked(layer), *(i.name for i in layer.plan.statics)]
    own = [layer.public(name) for name in names]
    own += [layers.SHAPE] if layer.is_free else []
    return [*(f'"{name}": self.{name}' for name in own), "**self._initial"]
