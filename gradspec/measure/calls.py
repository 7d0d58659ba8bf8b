"""Calls of a rule and their expected results, computed without any framework.

The rule is unrolled at small sizes into one of scalars (`ir.unroll`), and each element
of a batch is one point for ball arithmetic; an elementwise rule is of scalars as it is.
Where a rule has indices, its cotangents are those of scalar calculus whatever it
declares or index calculus has derived. Neither derivation over indices nor planning has
a part in it. What equations define is solved for at each point, with its multipliers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import fsum, isfinite, isnan
from typing import Any

from gradspec.checks.solutions import Solutions
from gradspec.derive.complete import complete_scalars
from gradspec.derive.scopes import rename_references
from gradspec.ir.elements import element, extent, places
from gradspec.ir.expr import ZERO, Apply, Expr, Ref, const
from gradspec.ir.rule import (
    Definition,
    Input,
    Kind,
    Output,
    Role,
    Rule,
    Shape,
)
from gradspec.ir.tidy import fold
from gradspec.ir.unroll import unknown, unroll
from gradspec.ir.walk import (
    closed_cotangents,
    closed_outputs,
    expand,
    follows_surrogate,
    names,
    substitute,
    transform,
)
from gradspec.primitives.foreign import is_plain
from gradspec.symbolic.compare import bend, slope
from gradspec.symbolic.enclose import Program, enclose
from gradspec.symbolic.points.arguments import Drawn, Place, Point, place_in
from gradspec.symbolic.truth import nearest, values

Term = tuple[str, Expr]
"""A summand of a gradient, and the output whose batch it has ("": the whole batch)."""

Parts = dict[str, list[tuple[Place, float]]]
"""By element: numbers and the places of the batch at which they fall."""

WHOLE = ""


@dataclass(frozen=True, slots=True)
class Scalars:
    """A rule at given sizes: scalar expressions of its elements, and the solutions of
    its equations, if it has some."""

    rule: Rule
    sizes: Mapping[str, int]
    unrolled: Rule
    values: Mapping[str, Expr]
    gradients: Mapping[str, tuple[Term, ...]]
    solutions: Solutions | None = None

    @staticmethod
    def of(rule: Rule, sizes: Mapping[str, int], is_split: bool = False) -> Scalars:
        """``rule`` unrolled; if ``is_split`` a gradient has a term for each output.
        Raises `ir.elements.OutOfRange` where the rule says nothing of these sizes.
        """
        made = unroll(rule, sizes)
        unrolled, equations = (
            made.rule,
            tuple(e for e in made.equations if e.is_forward),
        )
        if rule.has_axes or equations:
            kept = (d for d in unrolled.definitions if not _is_derivative(d))
            behind = {unknown(e.name) for e in made.equations if not e.is_forward}
            inputs = tuple(i for i in unrolled.inputs if i.name not in behind)
            unrolled = replace(unrolled.keep(kept), inputs=inputs)
        derived = complete_scalars(unrolled)
        outputs = tuple(o.name for o in derived.outputs if o.takes_gradient)
        known = Solutions(unrolled, equations) if equations else None
        gradients = closed_cotangents(derived)
        if known is not None:
            own = {d.name for d in unrolled.backward}
            true = {f"d{name}": e for name, e in known.derived.items()}
            gradients |= {n: e for n, e in true.items() if n not in own}
        return Scalars(
            rule,
            sizes,
            unrolled,
            {name: expand(e) for name, e in closed_outputs(derived).items()},
            {
                name.removeprefix("d"): _terms(expand(e), outputs if is_split else ())
                for name, e in gradients.items()
            },
            known,
        )

    @property
    def roots(self) -> tuple[Expr, ...]:
        """All expressions."""
        terms = (term for terms in self.gradients.values() for _, term in terms)
        return (*self.values.values(), *terms)

    @property
    def differentiable(self) -> tuple[Input, ...]:
        """The inputs that take a gradient and have one."""
        return tuple(i for i in self.rule.inputs if i.takes_gradient)

    @property
    def elements(self) -> list[str]:
        """The elements of the differentiable inputs."""
        return [
            element(variable.name, index)
            for variable in self.differentiable
            for index in places(variable.shape.axes, self.sizes)
        ]

    def solution_near(self, point: Point) -> Point | None:
        """The point, with what equations define there; None if they have no solution."""
        known = self.solutions
        if known is None:
            return point
        start = dict.fromkeys(known.unknowns, Fraction(0))
        found = known.solution_near({**point, **start})
        return found and {**point, **found}

    def is_sound(self, program: Program, point: Point) -> bool:
        """True if the assumptions hold and everything is defined; ``program`` has the
        roots."""
        given = (a.condition for a in self.unrolled.assumes)
        assumed = (c for c in given if names(c) <= point.keys())
        if not all(enclose(condition, point) is True for condition in assumed):
            return False
        solved = self.solution_near(point)
        return solved is not None and all(map(isfinite, values(program, solved)))


def _is_derivative(definition: Definition) -> bool:
    """True of a cotangent that is no override."""
    return definition.role is Role.COTANGENT and not definition.is_override


def _terms(whole: Expr, outputs: tuple[str, ...]) -> tuple[Term, ...]:
    if not outputs:
        return ((WHOLE, whole),)
    found = []
    for output in outputs:
        others = {f"d{other}": ZERO for other in outputs if other != output}
        term = transform(substitute(whole, others), fold)
        if f"d{output}" in names(term):
            found.append((output, term))
    return tuple(found)


def is_exact(rule: Rule) -> bool:
    """True if the backward is the derivative of the forward, so that difference
    quotients apply."""
    return not rule.overrides and not follows_surrogate(rule)


def signature(rule: Rule) -> dict[str, Any]:
    """The data with which a rule is called, as plain data for JSON."""
    return {
        "rule": rule.name,
        "kernels": sorted({kernel.target for kernel in rule.kernels}),
        "axes": rule.has_axes,
        "inputs": [[i.name, i.kind.value] for i in rule.tensor_inputs],
        "outputs": [[o.name, o.kind.value] for o in rule.outputs],
    }


def statics(rule: Rule, known: Mapping[str, Any]) -> dict[str, float | int]:
    """The statics as Python's numbers."""
    return {
        i.name: (int if i.kind is Kind.STATIC_INT else float)(known[i.name])
        for i in rule.static_inputs
    }


def call(scalars: Scalars, drawn: Drawn, is_smooth: bool = True) -> dict[str, Any]:
    """One call: arguments (it ``is_even`` if they have the same batch), values, gradients and, if it ``is_smooth`` and small enough,
    second derivatives. Gradients of an input are summed over the elements of the batch
    that share it.
    """
    rule, sizes = scalars.rule, scalars.sizes
    solved = ((place, scalars.solution_near(point)) for place, point in drawn.points)
    points = tuple((place, point) for place, point in solved if point is not None)
    drawn = replace(drawn, points=points)
    values, gradients = _evaluated(scalars, drawn)
    numbers = {n: cells[()] for n, cells in drawn.cells.items() if () in cells}
    known = statics(rule, {**numbers, **sizes})
    arrays = {
        name: [_shape(rule, name, sizes, drawn), [float(v) for v in cells.values()]]
        for name, cells in drawn.cells.items()
        if name not in known
    }
    return {
        "statics": known,
        "given": {i.name: arrays[i.name] for i in rule.tensor_inputs},
        "upstream": {
            o.name: arrays[o.cotangent] for o in rule.outputs if o.takes_gradient
        },
        "probes": {i.name: arrays[f"probe {i.name}"] for i in scalars.differentiable},
        "values": {
            o.name: _summed_over_batch(o, sizes, drawn.shapes[o.cotangent], values)
            for o in rule.outputs
        },
        "first": _by_input(scalars, drawn, gradients),
        "second": second(scalars, drawn) if is_smooth else None,
        "is_even": len(
            {drawn.shapes[i.name] for i in rule.tensor_inputs if i.shape.batch}
        )
        < 2,
    }


def _shape(rule: Rule, name: str, sizes: Mapping[str, int], drawn: Drawn) -> list[int]:
    """Batch axes, then those of the variable that ``name`` is, is for, or probes."""
    variables: tuple[Input | Output, ...] = (*rule.inputs, *rule.outputs)
    axes = {o.cotangent: o.shape.axes for o in rule.outputs}
    axes |= {v.name: v.shape.axes for v in variables}
    bare = name.removeprefix("probe ")
    return [*drawn.shapes[bare], *(extent(a, sizes) for a in axes[bare])]


def _batch(drawn: Drawn, output: str) -> Iterator[tuple[Place, Point]]:
    """A point for each element of the batch of an output, or of the whole one."""
    if output == WHOLE:
        return iter(drawn.points)
    return drawn.within(drawn.shapes[f"d{output}"])


def _evaluated(scalars: Scalars, drawn: Drawn) -> tuple[Parts, Parts]:
    """Every value and gradient of each element of the batch, in float64."""
    roots = scalars.roots
    program = Program(roots)
    numbers = {
        place: [
            _number(root, point) if isnan(value) else value
            for root, value in zip(roots, values(program, point), strict=True)
        ]
        for place, point in drawn.points
    }
    outputs: Parts = {}
    for column, name in enumerate(scalars.values):
        outputs[name] = [
            (place, numbers[place][column])
            for place, _ in _batch(drawn, _owner(scalars.rule, name))
        ]
    column = len(outputs)
    gradients: Parts = {}
    for name, terms in scalars.gradients.items():
        gradients[name] = []
        for output, _ in terms:
            for place, _ in _batch(drawn, output):
                gradients[name].append((place, numbers[place][column]))
            column += 1
    return outputs, gradients


def _owner(rule: Rule, name: str) -> str:
    """The output whose element has the name."""
    bare = name.partition("[")[0]
    return next(o.name for o in rule.outputs if o.name == bare)


def _number(root: Expr, point: Point) -> float:
    """Of more digits than usual, where the number is large or lost; nan for none."""
    return nearest(root, [point], "float64")[0]


def _by_input(scalars: Scalars, drawn: Drawn, found: Parts) -> dict[str, Any]:
    """Numbers by element as the gradients of the inputs."""
    return {
        v.cotangent: _summed_over_batch(v, scalars.sizes, drawn.shapes[v.name], found)
        for v in scalars.differentiable
    }


def _summed_over_batch(
    variable: Input | Output,
    sizes: Mapping[str, int],
    batch: Place,
    parts: Parts,
) -> list[Any]:
    """[shape, flat values]: over elements of the batch that share a place, the sum."""
    indices = list(places(variable.shape.axes, sizes))
    batches = list(product(*map(range, batch)))
    sums: dict[tuple[Place, Place], list[float]] = {
        (place, index): [] for place in batches for index in indices
    }
    for index in indices:
        for place, value in parts[element(variable.name, index)]:
            sums[place_in(place, batch), index].append(value)
    core = (extent(axis, sizes) for axis in variable.shape.axes)
    return [[*batch, *core], [_sum(terms) for terms in sums.values()]]


def _sum(terms: list[float]) -> float:
    return terms[0] if len(terms) == 1 else fsum(terms)


# --- higher derivatives --------------------------------------------------------------


SECOND_ORDER_LIMIT = 72
"""Second derivatives cost six evaluations an element; larger calls do without."""


def second(scalars: Scalars, drawn: Drawn) -> dict[str, Any] | None:
    """The derivative by each input of the gradients' product with the probes; None at a
    kink, for calls that are too large, and where two answers are right.
    """
    elements = scalars.elements
    if len(elements) * len(drawn.points) > SECOND_ORDER_LIMIT:
        return None
    if _is_ambiguous(scalars.rule) or not is_plain(scalars.rule):
        return None
    if scalars.solutions is not None:
        return _by_equations(scalars, drawn, 1)
    if not all(
        slope(value, point, name) is not None
        for value in scalars.values.values()
        for _, point in drawn.points
        for name in elements
    ):
        return None
    return _derivatives(scalars, drawn, slope)


def third(scalars: Scalars, drawn: Drawn) -> dict[str, Any] | None:
    """The derivative by each input of the second derivatives' product with the
    probes."""
    if scalars.solutions is not None:
        return _by_equations(scalars, drawn, 2)

    def change(whole: Expr, point: Point, name: str) -> float | None:
        along = {n: point[f"probe {n}"] for n in scalars.elements}
        return bend(whole, point, name, along)

    return _derivatives(scalars, drawn, change)


def _derivatives(scalars: Scalars, drawn: Drawn, of: Any) -> dict[str, Any] | None:
    """``of`` the gradients' product with the probes, by each element."""
    found: Parts = {name: [] for name in scalars.elements}
    for output, whole in _probe_products(scalars).items():
        for place, point in _batch(drawn, output):
            for name, parts in found.items():
                change = of(whole, point, name)
                if change is None:
                    return None
                parts.append((place, change))
    return _by_input(scalars, drawn, found)


def _by_equations(scalars: Scalars, drawn: Drawn, times: int) -> dict[str, Any]:
    """The derivative of the gradients' product with the probes, so many times over:
    equations and those of the multipliers are equations once more."""
    found: Parts = {name: [] for name in scalars.elements}
    for output, whole in _probe_products(scalars).items():
        made = _probed(scalars, whole)
        for _ in range(times - 1):
            made = _probed(made, _probe_products(made)[WHOLE])
        program = Program(tuple(terms[0][1] for terms in made.gradients.values()))
        for place, point in _batch(drawn, output):
            solved = made.solution_near({**point, f"d{_PROBED}": Fraction(1)})
            numbers = values(program, solved or {})
            for name, number in zip(made.gradients, numbers, strict=True):
                found[name].append((place, number))
    return _by_input(scalars, drawn, found)


_PROBED = "probed"


def _probed(scalars: Scalars, whole: Expr) -> Scalars:
    """A rule with equations whose output is the product of gradients with probes."""
    known, rule = scalars.solutions, scalars.unrolled
    assert known is not None
    own = {name: f"{len(known.ahead)} {name}" for name in known.multipliers}
    to = {name: unknown(called) for name, called in own.items()}
    more = tuple(
        Definition(
            own[name],
            Role.LOCAL,
            Apply("sub", (Ref(to[name]), rename_references(value, to))),
        )
        for name, value in known.multipliers.items()
    )
    given = {i.name for i in rule.inputs}
    result = Definition(_PROBED, Role.OUTPUT, rename_references(whole, to))
    used = dict.fromkeys(
        name
        for value in (result.value, *(one.value for one in more))
        for name in sorted(names(value))
        if name not in given
    )
    opened = replace(
        rule.keep((*(replace(d, role=Role.LOCAL) for d in rule.forward), result)),
        inputs=(*rule.inputs, *(Input(n, Kind.NOGRAD, Shape()) for n in used)),
        outputs=(Output(_PROBED, Kind.FLOAT, Shape()),),
    )
    solved = Solutions(opened, (*known.ahead, *more))
    gradients = {n: ((WHOLE, solved.derived[n]),) for n in scalars.elements}
    return replace(
        scalars,
        unrolled=opened,
        values={_PROBED: result.value},
        gradients=gradients,
        solutions=solved,
    )


def _probe_products(scalars: Scalars) -> dict[str, Expr]:
    """The gradients' product with the probes, by the output whose batch it has."""
    found: dict[str, Expr] = {}
    for name in scalars.elements:
        for output, term in scalars.gradients[name]:
            part = Apply("mul", (Ref(f"probe {name}"), term))
            found[output] = Apply("add", (found.get(output, const(0)), part))
    return found


def _is_ambiguous(rule: Rule) -> bool:
    """True for a surrogate that the backward names by its output, or that a called rule
    has: it may be differentiated once more as the step or as the surrogate. Both are
    right, so second derivatives are not compared.
    """
    if not follows_surrogate(rule):
        return False
    used = {n for e in rule.declared.values() for n in names(e.value)}
    return not rule.surrogates or any(output.name in used for output in rule.outputs)


def is_smooth(scalars: Scalars, point: Point) -> bool:
    """True if values and gradients have slopes at ``point`` (those of foreign functions
    are not asked for)."""
    if not is_plain(scalars.rule) or scalars.solutions is not None:
        return scalars.solution_near(point) is not None
    roots = scalars.roots
    return all(slope(e, point, n) is not None for e in roots for n in scalars.elements)
