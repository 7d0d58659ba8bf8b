"""A rule at one point in a framework: what trials, the conformance suite and audits ask
it by.
"""

from __future__ import annotations

import copy
import importlib
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

Case = dict[str, Any]
Function = Callable[..., Any]
Run = Callable[[Any], Any]


class Register(dict[str, Run]):
    """The functions of features by name."""

    def __call__(self, name: str) -> Callable[[Run], Run]:
        return lambda function: self.setdefault(name, function)


class Setting:
    """A number made of the rule's outputs, as a function of its floating inputs.

    A subclass has the framework's words:

    * ``tensor(value, kind)``: a floating tensor, or one of the kind's own type, of
      [shape, elements]; ``flat(x)`` gives these back,
    * ``dot(x, y)``: the sum of the products of elements; ``dots(x, matrix)``: those with
      a matrix that has the axes of ``x`` first,
    * ``stack(tensors, axis)``; ``units(x)``: a tensor like ``x`` for each of its
      elements, with 1 there and 0 elsewhere,
    * ``gradient(function, floats)``: the gradients of a function of the floating inputs,
      which have gradients of their own,
    * ``plain(path)``: the module at ``path`` without its rules: the same forward
      expressions, which the framework differentiates,
    * ``library()``: the framework's own functions, an `audit.Library`.
    """

    tensor: ClassVar[Function]
    flat: ClassVar[Function]
    dot: ClassVar[Function]
    dots: ClassVar[Function]
    stack: ClassVar[Function]
    units: ClassVar[Function]
    gradient: ClassVar[Function]
    plain: ClassVar[Function]
    library: ClassVar[Function]

    differentiates = True
    """False for a framework that has no derivatives but those of rules."""

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

    @staticmethod
    def prepare_trial() -> None:
        """Let float64 be float64."""

    # --- the rule --------------------------------------------------------------------

    @property
    def floats(self) -> tuple[Any, ...]:
        return tuple(self.inputs[k] for k in self.places)

    @property
    def every(self) -> tuple[int, ...]:
        return tuple(range(len(self.places)))

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

    def weighed_outputs(self, outputs: Sequence[Any]) -> Any:
        """Cotangents times outputs."""
        return sum(map(self.dot, outputs, self.upstream))

    def weighed(self, *inputs: Any) -> Any:
        """Cotangents times outputs, of all inputs."""
        return self.weighed_outputs(self.made(*inputs))

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

    # --- derivatives -----------------------------------------------------------------

    def of(self, function: Function) -> Any:
        """The gradients of a function here."""
        return self.gradient(function, self.floats)

    def probed(self, gradients: Iterable[Any]) -> Any:
        """Probes times gradients."""
        return sum(map(self.dot, gradients, self.probes))

    def probing(self, function: Function) -> Function:
        """The gradients of a function, times the probes."""
        return lambda *floats: self.probed(self.gradient(function, floats))

    def first(self, *floats: Any) -> Any:
        """The gradients of the total."""
        return self.gradient(self.total, floats or self.floats)

    def second(self, *floats: Any) -> Any:
        """The gradients of the probed gradients."""
        return self.gradient(self.probing(self.total), floats or self.floats)

    def third(self) -> Any:
        """The gradients of the probed second derivatives."""
        return self.of(self.probing(self.probing(self.total)))

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

    # --- audits ----------------------------------------------------------------------

    @staticmethod
    def columns(columns: list[Any], case: Case) -> list[Any]:
        """The inputs at all points, as the framework is to have them."""
        return columns

    @property
    def ones(self) -> list[Any]:
        """The upstream gradient of each output: 1, over axes a number an element."""
        return [self.tensor(weights, "float") for weights in self.case["weights"]]

    def floating(self, side: str) -> list[str]:
        """The names of the floating inputs or outputs."""
        return [name for name, kind in self.case[side] if kind == "float"]

    def quantities(self, floats: Sequence[Any] = (), ones: Sequence[Any] = ()) -> Case:
        """Values and derivatives by order, output and input: second derivatives are by
        the same input.
        """
        case, floats, ones = self.case, floats or self.floats, ones or self.ones
        outputs, inputs = self.floating("outputs"), self.floating("inputs")
        made = zip(outputs, self.outputs(*floats), strict=True)
        found = {f"0:{name}:": value for name, value in made}
        if not (case["order"] and case["differentiable"] and self.differentiates):
            return found

        def firsts(k: int, *floats: Any) -> Any:
            return self.gradient(
                lambda *f: self.dot(self.outputs(*f)[k], ones[k]), floats
            )

        def second(k: int, place: int) -> Any:
            slope = lambda *f: self.dot(firsts(k, *f)[place], ones[k])  # noqa: E731
            return self.gradient(slope, floats)[place]

        for k, output in enumerate(outputs):
            slopes = firsts(k, *floats)
            for place, name in enumerate(inputs):
                found[f"1:{output}:{name}"] = slopes[place]
                if case["order"] > 1:
                    found[f"2:{output}:{name}"] = second(k, place)
        return found

    def emitted(self) -> Case:
        """The quantities of the emitted function."""
        return self.quantities()

    def compiled(self) -> Case:
        """The quantities in a program that the framework rewrites before it runs it;
        none where users have no such thing by default."""
        return {}


# --- jobs: read, done, and their results written, line by line ---------------------------


def do_job(setting: Any, features: Any) -> None:
    """Do the job of the command line in the framework of ``setting``, whose functions
    for features are ``features``. Its kind is the name of the module that does it.
    """
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    doer = importlib.import_module(f"gradspec.measure.frameworks.{job['kind']}")
    doer.work(job, setting, features)


def report(line: object) -> None:
    """Add a result to the file that is the second argument of the command line."""
    with Path(sys.argv[2]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
