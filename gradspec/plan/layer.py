"""The layer of a rule with params: its attributes, constructor and call arguments.

Target-neutral: a target that supports layers prints it beside the function. The
author's names become arguments and attributes, with an underscore where the framework's
own class has that name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradspec.ir.rule import Input, Output
from gradspec.plan.program import Program


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
        return tuple(i for i in self.program.tensors if not i.is_param)

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
        return tuple(i for i in self.program.tensors if i.name in there)


def layer(program: Program, name: str, own: frozenset[str]) -> Layer | None:
    """The layer of a rule, called ``name``; None if it has no params. ``own`` are the
    names of the framework's class.
    """
    if not any(i.is_param for i in program.inputs):
        return None
    return Layer(name, program, _sizes(program), _naming(program, own))


def class_name(rule: str) -> str:
    """``LayerNorm`` of ``layer_norm``."""
    name = "".join(part[:1].upper() + part[1:] for part in rule.split("_"))
    return name if name.isidentifier() else f"Layer{name}"


def _sizes(rule: Program) -> tuple[str, ...]:
    statics = {i.name for i in rule.statics}
    axes = (axis for i in rule.inputs if i.is_param for axis in i.shape.axes)
    names = (axis for axis in axes if isinstance(axis, str) and axis not in statics)
    return tuple(dict.fromkeys(names))


def _naming(rule: Program, own: frozenset[str]) -> Callable[[str], str]:
    axes = (axis for i in rule.inputs for axis in i.shape.axes)
    names = [i.name for i in rule.inputs] + [a for a in axes if isinstance(a, str)]
    public: dict[str, str] = {}
    for name in dict.fromkeys(names):
        free = name
        while free in own or (free != name and free in names):
            free += "_"
        public[name] = free
    return public.__getitem__
