"""The layer of a rule with params: its attributes, constructor and call arguments.

The author's names become arguments and attributes, with an underscore where the
framework's own class has that name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gradspec.ir.rule import Input, Kind, Output, layer_name
from gradspec.plan.program import Program
from gradspec.targets.expressions import numeral
from gradspec.targets.lines import Lines

SHAPE = "shape"
"""The argument for params of any shape; no name of a rule is this one."""


@dataclass(frozen=True, slots=True)
class Layer:
    """``sizes`` are the named axes of its params, except those that a static gives;
    ``public`` maps each name of the rule to the layer's own.
    """

    name: str
    program: Program
    sizes: tuple[str, ...]
    public: Callable[[str], str]

    @property
    def params(self) -> tuple[Input, ...]:
        return tuple(i for i in self.program.inputs if i.is_param)

    @property
    def data(self) -> tuple[Input, ...]:
        """The call arguments."""
        return tuple(i for i in self.program.tensor_inputs if not i.is_param)

    @property
    def is_free(self) -> bool:
        """True if a param may have any shape that broadcasts with the data."""
        return any(i.shape.is_elementwise for i in self.params)

    def places(self, size: str) -> tuple[tuple[str, int], ...]:
        """The data axes (from the end) that have the size."""
        return tuple(
            (i.name, position)
            for i in self.data
            for position, axis in enumerate(i.shape.axes, -len(i.shape.axes))
            if axis == size
        )

    def spread(self, output: Output) -> tuple[Input, ...]:
        """The inputs whose batch axes the output has."""
        if not output.shape.batch:
            return ()
        there = self.program.reach[output.name]
        return tuple(i for i in self.program.tensor_inputs if i.name in there)


def layer(program: Program, own: str, name: str = "") -> Layer | None:
    """The layer of a rule, called ``name`` or by the rule's name; None if it has no
    params. ``own`` are the names of the framework's class, which no argument or attribute
    may have.
    """
    if not any(i.is_param for i in program.inputs):
        return None
    name = name or layer_name(program.name)
    return Layer(name, program, _sizes(program), _naming(program, {*own.split()}))


def _sizes(rule: Program) -> tuple[str, ...]:
    statics = {i.name for i in rule.static_inputs}
    axes = (axis for i in rule.inputs if i.is_param for axis in i.shape.axes)
    names = (axis for axis in axes if isinstance(axis, str) and axis not in statics)
    return tuple(dict.fromkeys(names))


def _naming(rule: Program, own: set[str]) -> Callable[[str], str]:
    axes = (axis for i in rule.inputs for axis in i.shape.axes)
    names = [i.name for i in rule.inputs] + [a for a in axes if isinstance(a, str)]
    public: dict[str, str] = {}
    for name in dict.fromkeys(names):
        free = name
        while free in own or (free != name and free in names):
            free += "_"
        public[name] = free
    return public.__getitem__


# --- text ------------------------------------------------------------------------------


def arguments(layer: Layer, sizes: Iterable[str], statics: Iterable[str] = ()) -> Lines:
    """``n: int, *, eps: float = 1e-5, beta: float = 1.0``: sizes, statics, and the
    initial value of each param.
    """
    free = [f"{SHAPE}: int | tuple[int, ...] = ()"] if layer.is_free else []
    starts = [(layer.public(i.name), i.initial) for i in layer.program.inputs]
    return [
        *(f"{layer.public(size)}: int" for size in sizes),
        "*",
        *statics,
        *(
            f"{n}: float = {numeral(value)[0]}"
            for n, value in starts
            if value is not None
        ),
        *free,
    ]


def statics(layer: Layer) -> Lines:
    """``eps: float = 1e-5`` for each static; those without a default first."""
    found = []
    for i in sorted(layer.program.static_inputs, key=lambda i: i.default is not None):
        kind = "int" if i.kind is Kind.STATIC_INT else "float"
        text = "" if i.default is None else f" = {_default(i, kind)}"
        found.append(f"{layer.public(i.name)}: {kind}{text}")
    return found


def _default(i: Input, kind: str) -> str:
    assert i.default is not None
    return str(i.default.numerator) if kind == "int" else numeral(i.default)[0]


def stored_arguments(layer: Layer, sizes: Iterable[str]) -> Lines:
    """The constructor arguments of the layer, stored as attributes."""
    names = [*sizes, *(i.name for i in layer.program.static_inputs)]
    lines = [f"self.{layer.public(n)} = {layer.public(n)}" for n in names]
    if layer.is_free:
        as_tuple = f"({SHAPE},) if isinstance({SHAPE}, int) else tuple({SHAPE})"
        lines.append(f"self.{SHAPE} = {as_tuple}")
    own = [layer.public(i.name) for i in layer.params]
    values = ", ".join(f'"{name}": {name}' for name in own)
    return [*lines, f"self._initial = {{{values}}}"]


def shape(layer: Layer, i: Input, known: str = "self.", given: str = "self.") -> str:
    """The shape of a param; sizes are attributes, or local names without ``known``, and
    so are statics and a free shape without ``given``.
    """
    if i.shape.is_elementwise:
        return f"{given}{SHAPE}"
    statics_ = {static.name for static in layer.program.static_inputs}
    axes = [
        str(axis)
        if isinstance(axis, int)
        else f"{given if axis in statics_ else known}{layer.public(axis)}"
        for axis in i.shape.axes
    ]
    return f"({', '.join(axes)}{',' if len(axes) == 1 else ''})"


def call(layer: Layer) -> str:
    """The call of the rule's function with the arguments and the params held."""
    own = [
        f"self.{layer.public(i.name)}" if i.is_param else layer.public(i.name)
        for i in layer.program.tensor_inputs
    ]
    own += [
        f"{i.name}=self.{layer.public(i.name)}" for i in layer.program.static_inputs
    ]
    return f"{layer.program.name}({', '.join(own)})"


def listing(names: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
