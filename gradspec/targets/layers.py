"""Emission of layers, shared by all targets."""

from __future__ import annotations

from collections.abc import Iterable

from gradspec.ir.rule import Input, Kind
from gradspec.plan.layer import Layer
from gradspec.targets.lines import Lines
from gradspec.targets.numerals import numeral

SHAPE = "shape"
"""The argument for params of any shape; no name of a rule is this one."""


def initial(i: Input) -> str:
    """The initial value of the param."""
    assert i.initial is not None
    return numeral(i.initial)[0]


def starts(layer: Layer) -> Lines:
    """``beta: float = 1.0`` for each param."""
    return [f"{layer.public(i.name)}: float = {initial(i)}" for i in layer.params]


def statics(layer: Layer) -> Lines:
    """``eps: float = 1e-5`` for each static; those without a default first."""
    found = []
    for i in sorted(layer.program.statics, key=lambda i: i.default is not None):
        kind = "int" if i.kind is Kind.STATIC_INT else "float"
        text = "" if i.default is None else f" = {_default(i, kind)}"
        found.append(f"{layer.public(i.name)}: {kind}{text}")
    return found


def _default(i: Input, kind: str) -> str:
    assert i.default is not None
    return str(i.default.numerator) if kind == "int" else numeral(i.default)[0]


def kept(layer: Layer, sizes: Iterable[str]) -> Lines:
    """The constructor arguments of the layer, stored as attributes."""
    names = [*sizes, *(i.name for i in layer.program.statics)]
    lines = [f"self.{layer.public(n)} = {layer.public(n)}" for n in names]
    if layer.is_free:
        as_tuple = f"({SHAPE},) if isinstance({SHAPE}, int) else tuple({SHAPE})"
        lines.append(f"self.{SHAPE} = {as_tuple}")
    own = [layer.public(i.name) for i in layer.params]
    values = ", ".join(f'"{name}": {name}' for name in own)
    return [*lines, f"self._initial = {{{values}}}"]


def shape(layer: Layer, i: Input, known: str = "self.") -> str:
    """The shape of a param; sizes are attributes, or local names without ``known``."""
    if i.shape.is_elementwise:
        return f"self.{SHAPE}"
    statics_ = {static.name for static in layer.program.statics}
    axes = [
        str(axis)
        if isinstance(axis, int)
        else f"{'self.' if axis in statics_ else known}{layer.public(axis)}"
        for axis in i.shape.axes
    ]
    return f"({', '.join(axes)}{',' if len(axes) == 1 else ''})"


def call(layer: Layer) -> str:
    """The call of the rule's function with the arguments and the params held."""
    own = [
        f"self.{layer.public(i.name)}" if i.is_param else layer.public(i.name)
        for i in layer.program.tensors
    ]
    own += [f"{i.name}=self.{layer.public(i.name)}" for i in layer.program.statics]
    return f"{layer.program.name}({', '.join(own)})"


def listed(names: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
