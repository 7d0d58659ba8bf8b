"""A rule at one point, for the features of any framework."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any

from conforming import Case, elsewhere


class Setting:
    """A number made of the rule's outputs, as a function of its floating inputs. The
    abstract methods are the framework's words.
    """

    def __init__(self, module: ModuleType, case: Case, dtype: str = "float32") -> None:
        self.case, self.path = case, module.__file__
        self.rule = getattr(module, case["rule"])
        kinds = [kind for _, kind in case["inputs"]]
        self.places = [k for k, kind in enumerate(kinds) if kind == "float"]
        self.made_in(dtype)

    def made_in(self, dtype: str) -> None:
        """Make everything in a format."""
        self.dtype: str = dtype
        case = self.case
        pairs = case["inputs"]
        self.inputs = [self.tensor(case["given"][n], kind) for n, kind in pairs]
        self.upstream = [self.tensor(v, "float") for v in case["upstream"].values()]
        self.probes = [self.tensor(v, "float") for v in case["probes"].values()]

    # --- the framework's words -------------------------------------------------------

    @staticmethod
    def prepare_trial() -> None:
        """Let float64 be float64."""

    def tensor(self, value: Any, kind: str) -> Any:
        """A floating tensor, or one of the kind's own type; ``value`` is [shape,
        flat]."""
        raise NotImplementedError

    def flat(self, x: Any) -> tuple[list[int], list[float]]:
        """Shape and elements."""
        raise NotImplementedError

    def dot(self, x: Any, y: Any) -> Any:
        """The sum of the products of elements."""
        raise NotImplementedError

    def stack(self, tensors: Sequence[Any], axis: int = 0) -> Any:
        """Along a new axis."""
        raise NotImplementedError

    def dots(self, x: Any, matrix: Any) -> Any:
        """Products of ``x`` with a matrix that has its axes first."""
        raise NotImplementedError

    def units(self, x: Any) -> Iterable[Any]:
        """A tensor like ``x`` for each of its elements, with 1 there and 0
        elsewhere."""
        raise NotImplementedError

    def gradient(self, function: Callable[..., Any], floats: Sequence[Any]) -> Any:
        """The gradients of a function of the floating inputs, which have gradients."""
        raise NotImplementedError

    # --- the rule --------------------------------------------------------------------

    @property
    def floats(self) -> tuple[Any, ...]:
        return tuple(self.inputs[k] for k in self.places)

    @property
    def every(self) -> tuple[int, ...]:
        return tuple(range(len(self.places)))

    def double(self) -> None:
        """Everything in float64."""
        self.made_in("float64")

    def by_keyword(self) -> None:
        """Call the rule by keywords from now on."""
        names, rule = [name for name, _ in self.case["inputs"]], self.rule
        self.rule = lambda *given, **statics: rule(
            **dict(zip(names, given, strict=True)), **statics
        )

    def among(self, inputs: Sequence[Any], floats: Sequence[Any]) -> list[Any]:
        """All inputs, of which the floating ones are others."""
        given = list(inputs)
        for place, x in zip(self.places, floats, strict=True):
            given[place] = x
        return given

    def made(self, *inputs: Any) -> list[Any]:
        """The outputs that take a cotangent, of all inputs."""
        kinds = [kind for _, kind in self.case["outputs"]]
        made = self.every_output(*inputs)
        return [y for y, kind in zip(made, kinds, strict=True) if kind == "float"]

    def every_output(self, *inputs: Any) -> list[Any]:
        """All outputs, of all inputs."""
        made = self.rule(*(inputs or self.inputs), **self.case["statics"])
        count = len(self.case["outputs"])
        return [made] if count == 1 else [made[k] for k in range(count)]

    def outputs(self, *floats: Any) -> list[Any]:
        """The outputs that take a cotangent, of the floating inputs."""
        return self.made(*self.among(self.inputs, floats))

    def tuple_of(self, *floats: Any) -> tuple[Any, ...]:
        """The outputs as a tuple."""
        return tuple(self.outputs(*floats))

    def weighed(self, *inputs: Any) -> Any:
        """Cotangents times outputs, of all inputs."""
        return self.weighed_outputs(self.made(*inputs))

    def weighed_outputs(self, outputs: Sequence[Any]) -> Any:
        """Cotangents times outputs."""
        return sum(map(self.dot, outputs, self.upstream))

    def total(self, *floats: Any) -> Any:
        """Cotangents times outputs, of the floating inputs."""
        return self.weighed_outputs(self.outputs(*floats))

    def whole(self, *tensors: Any) -> Any:
        """Cotangents times outputs, of all inputs, then of the cotangents: nothing is
        closed over."""
        here = copy.copy(self)
        here.inputs = list(tensors[: len(self.inputs)])
        here.upstream = list(tensors[len(self.inputs) :])
        return here.total(*here.floats)

    def moved(self) -> Any:
        """The gradients at another point and with other statics."""
        here = copy.copy(self)
        here.case = elsewhere(self.case)
        return here.first(*(x / 2 for x in self.floats))

    # --- derivatives -----------------------------------------------------------------

    def first(self, *floats: Any) -> Any:
        """The gradients of the total."""
        return self.gradient(self.total, floats or self.floats)

    def probed(self, gradients: Iterable[Any]) -> Any:
        """Probes times gradients."""
        return sum(map(self.dot, gradients, self.probes))

    def second(self, *floats: Any) -> Any:
        """The gradients of the probed gradients."""
        return self.gradient(
            lambda *f: self.probed(self.first(*f)), floats or self.floats
        )

    def contracted(self, matrices: Any) -> list[Any]:
        """Probes times second derivatives: one row of blocks for each gradient."""
        return [
            sum(self.dots(p, matrices[k][by]) for k, p in enumerate(self.probes))
            for by in self.every
        ]

    def along(
        self, push: Callable[[tuple[Any, ...]], Any], floats: Sequence[Any] = ()
    ) -> list[Any]:
        """Gradients from what a tangent of 1 in each element makes of a number."""
        found, floats = [], floats or self.floats
        for place, x in enumerate(floats):
            slopes = []
            for unit in self.units(x):
                tangents = [0 * v for v in floats]
                tangents[place] = unit
                slopes.append(float(push(tuple(tangents))))
            found.append(self.tensor([self.flat(x)[0], slopes], "float"))
        return found

    def stacked(self, axis: int = 0) -> list[Any]:
        """Two calls, of which the first counts."""
        return [self.stack([x, 2 * x], axis) for x in self.floats]

    def listed(self, tensors: Iterable[Any]) -> list[Any]:
        """[shape, elements] of each."""
        return [list(self.flat(x)) for x in tensors]
