"""The layer of a rule with params: what it holds, what it is made with, what it is given.

Neutral: a target that has such a thing prints it beside the function. Names of the author
are those of arguments and attributes, with an underscore where the framework's own class
has that name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradspec.ir.rule import Input, Output
from gradspec.plan.beside import reach_of
from gradspec.plan.plan import ModulePlan, RulePlan


@dataclass(frozen=True, slots=True)
class Layer:
    """``sizes`` are the named axes of its params, but for those that a static gives;
    ``public`` the layer's own name for each name of the rule.
    """

    name: str
    plan: RulePlan
    sizes: tuple[str, ...]
    public: Callable[[str], str]

    @property
    def params(self) -> tuple[Input, ...]:
        return tuple(i for i in self.plan.inputs if i.is_param)

    @property
    def data(self) -> tuple[Input, ...]:
        """What it is called with."""
        return tuple(i for i in self.plan.tensors if not i.is_param)

    @property
    def is_free(self) -> bool:
        """Whether a param may have any shape that broadcasts with the data."""
        return any(i.shape.is_elementwise for i in self.params)

    def places(self, size: str) -> tuple[tuple[str, int], ...]:
        """The data whose axes (from the end) have the size."""
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
        values = {let.name: let.value for let in self.plan.forward}
        there = reach_of(values[output.name], self.plan.tensors)
        return tuple(i for i in self.plan.tensors if i.shape.batch and i.name in there)


def layers(
    plan: ModulePlan, own: frozenset[str], taken: frozenset[str]
) -> tuple[Layer, ...]:
    """The layers of a module. ``own`` are the names of the framework's class, ``taken``
    those of its module: ``prelu`` has ``Prelu``, or ``PreluLayer`` where that is one.
    """
    used = set(taken) | {rule.name for rule in plan.rules}
    found = []
    for rule in plan.rules:
        if any(i.is_param for i in rule.inputs):
            name = class_name(rule.name, used)
            used.add(name)
            found.append(Layer(name, rule, _sizes(rule), _naming(rule, own)))
    return tuple(found)


def class_name(rule: str, used: set[str]) -> str:
    """``LayerNorm`` of ``layer_norm``."""
    name = "".join(part[:1].upper() + part[1:] for part in rule.split("_"))
    name = name if name.isidentifier() else f"Layer{name}"
    while name in used:
        name += "Layer"
    return name


def _sizes(rule: RulePlan) -> tuple[str, ...]:
    statics = {i.name for i in rule.statics}
    axes = (axis for i in rule.inputs if i.is_param for axis in i.shape.axes)
    names = (axis for axis in axes if isinstance(axis, str) and axis not in statics)
    return tuple(dict.fromkeys(names))


def _naming(rule: RulePlan, own: frozenset[str]) -> Callable[[str], str]:
    axes = (axis for i in rule.inputs for axis in i.shape.axes)
    names = [i.name for i in rule.inputs] + [a for a in axes if isinstance(a, str)]
    public: dict[str, str] = {}
    for name in dict.fromkeys(names):
        free = name
        while free in own or (free != name and free in names):
            free += "_"
        public[name] = free
    return public.__getitem__
