"""JAX has no layers: ``init_<rule>`` gives the arrays that a rule's params start from."""

from __future__ import annotations

from gradspec.plan.layer import Layer
from gradspec.plan.layer import layers as planned
from gradspec.plan.plan import ModulePlan
from gradspec.targets import layers
from gradspec.targets.docstring import sentence
from gradspec.targets.jax_texts import RESERVED
from gradspec.targets.lines import Lines
from gradspec.targets.signature import fresh

OWN = frozenset(["dtype", "shape", "jax", "jnp", "float", "int"])
"""Names of the functions' text: an argument has none."""


def jax_layers(plan: ModulePlan) -> tuple[Layer, ...]:
    """What there is to start, by rule."""
    return planned(plan, OWN, RESERVED)


def start_name(plan: ModulePlan, layer: Layer) -> str:
    """``init_prelu``, unless a rule has that name."""
    return fresh(f"init_{layer.plan.name}", {rule.name for rule in plan.rules})


def start_function(plan: ModulePlan, layer: Layer) -> Lines:
    """The whole function. The arrays have the names of the rule's inputs."""
    values = [
        f'"{i.name}": jnp.full({_shape(layer, i.shape.axes, i.shape.is_elementwise)}, '
        f"{layer.public(i.name)}, dtype)"
        for i in layer.params
    ]
    told = "What `{0}` starts from; give it as keywords: `{0}(…, **{1}(…))`."
    name = start_name(plan, layer)
    return [
        f"def {name}({', '.join(_arguments(layer))}) -> dict[str, jax.Array]:",
        sentence(told.format(layer.plan.name, name), 1),
        f"    return {{{', '.join(values)}}}",
    ]


def _arguments(layer: Layer) -> Lines:
    statics = {i.name for i in layer.plan.statics}
    axes = (axis for i in layer.params for axis in i.shape.axes)
    numbers = dict.fromkeys(axis for axis in axes if axis in statics)
    free = [f"{layers.SHAPE}: int | tuple[int, ...] = ()"] if layer.is_free else []
    return [
        *(f"{layer.public(size)}: int" for size in (*layer.sizes, *map(str, numbers))),
        "*",
        *layers.starts(layer),
        *free,
        "dtype: jax.typing.DTypeLike = float",
    ]


def _shape(layer: Layer, axes: tuple[str | int, ...], is_free: bool) -> str:
    if is_free:
        return layers.SHAPE
    own = [layer.public(axis) if isinstance(axis, str) else str(axis) for axis in axes]
    return f"({', '.join(own)}{',' if len(own) == 1 else ''})"
