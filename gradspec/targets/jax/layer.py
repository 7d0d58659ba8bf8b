"""JAX has no layers: ``init_<rule>`` returns the initial arrays of a rule's params."""

from __future__ import annotations

from gradspec.plan.program import Program
from gradspec.targets import layers
from gradspec.targets.docstring import sentence
from gradspec.targets.layers import Layer, layer
from gradspec.targets.lines import Lines
from gradspec.targets.page import Page
from gradspec.targets.target import Definition

_OWN = frozenset(["dtype", "shape"])
"""Arguments of the function, which no size or param may be named."""


def starts(program: Program, page: Page) -> list[Definition]:
    """The initialisation function, if the rule has params."""
    name = f"init_{program.name}"
    made = layer(program, name, _OWN)
    if made is None:
        return []
    name = page.fresh(name)
    return [Definition(_function(made, name, page), (name,))]


def _function(made: Layer, name: str, page: Page) -> Lines:
    """The whole function. The arrays are named like the rule's inputs."""
    start = page.core("start")
    values = [
        f'"{i.name}": {start}({made.public(i.name)}, '
        f"{_shape(made, i.shape.axes, i.shape.is_elementwise)}, dtype)"
        for i in made.params
    ]
    rule = made.program.name
    about = f"What `{rule}` starts from, as keywords: `{rule}(…, **{name}(…))`."
    return [
        f"def {name}({', '.join(_arguments(made))}) -> dict[str, {page.core('Array')}]:",
        sentence(about, 1),
        f"    return {{{', '.join(values)}}}",
    ]


def _arguments(made: Layer) -> Lines:
    statics = {i.name for i in made.program.statics}
    axes = (axis for i in made.params for axis in i.shape.axes)
    numbers = dict.fromkeys(axis for axis in axes if axis in statics)
    free = [f"{layers.SHAPE}: int | tuple[int, ...] = ()"] if made.is_free else []
    return [
        *(f"{made.public(size)}: int" for size in (*made.sizes, *map(str, numbers))),
        "*",
        *layers.starts(made),
        *free,
        "dtype: jax.typing.DTypeLike | None = None",
    ]


def _shape(made: Layer, axes: tuple[str | int, ...], is_free: bool) -> str:
    if is_free:
        return layers.SHAPE
    own = [made.public(axis) if isinstance(axis, str) else str(axis) for axis in axes]
    return f"({', '.join(own)}{',' if len(own) == 1 else ''})"
