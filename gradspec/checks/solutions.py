"""Points at which the equations of a rule hold.

In an instance of a rule with equations, what these define is an input of its own, the
unknown (`ir/unroll.py`). The gradient follows from the rule in which unknowns are free:
``(dF/dv)' u`` is the upstream gradient of ``v``, and the gradient of an input is
``-(dF/dinput)' u``, with a multiplier ``u`` for each equation. Both sides of a claim are
then formulas in inputs, unknowns and multipliers, and a claim is judged where these are
solutions: those of the author's adjoint equations, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

from gradspec.derive.chain import gradient, is_linear
from gradspec.derive.vjp import cotangents, own_backward
from gradspec.ir.expr import ZERO, Apply, Expr, Ref
from gradspec.ir.rule import Definition, Kind, Output, Role, Rule, Shape
from gradspec.ir.tidy import tidy
from gradspec.ir.unroll import unknown
from gradspec.ir.walk import closed_values, expand, names, substitute, transform
from gradspec.symbolic.enclose import enclose, middle
from gradspec.symbolic.newton import Equations

Point = Mapping[str, Any]

_MARK = "~"
_STARTS = tuple(map(Fraction, ("1", "1/2", "-1", "2", "-1/2", "1/8")))
_MOST_FAILURES = 32
"""Points without a solution after which none is sought at others."""


class Solutions:
    """The equations of an unrolled rule, whose unknowns are inputs."""

    def __init__(self, rule: Rule, equations: tuple[Definition, ...]) -> None:
        self.rule = rule
        self.ahead = tuple(e for e in equations if e.is_forward)
        self.behind = tuple(e for e in equations if not e.is_forward)
        self._points: dict[tuple[object, ...], Point | None] = {}
        self._failures = 0

    @cached_property
    def unknowns(self) -> frozenset[str]:
        return frozenset(unknown(one.name) for one in (*self.ahead, *self.behind))

    def _residual(self, one: Definition) -> Expr:
        """What is 0 where the equation holds, in inputs and unknowns, calls kept."""
        value = closed_values(self.rule, (one.value,))[0]
        own = Ref(unknown(one.name))
        match value:
            case Apply("sub", (first, gap)) if first == own:
                return tidy(gap)
            case _:
                return tidy(Apply("sub", (own, value)))

    @cached_property
    def _residuals(self) -> dict[str, Expr]:
        every = (*self.ahead, *self.behind)
        return {unknown(one.name): self._residual(one) for one in every}

    # --- gradients ---------------------------------------------------------------------

    @cached_property
    def _cotangents(self) -> Mapping[str, Expr]:
        """Of inputs and unknowns, in the multipliers of the equations."""
        rule, own = self.rule, {unknown(one.name): one for one in self.ahead}
        inputs = tuple(
            replace(i, kind=Kind.FLOAT) if i.name in own else i for i in rule.inputs
        )
        residuals = tuple(
            Definition(_MARK + name, Role.OUTPUT, self._residuals[name]) for name in own
        )
        outputs = (Output(d.name, Kind.FLOAT, Shape()) for d in residuals)
        opened = replace(
            rule.keep((*rule.forward, *residuals, *rule.surrogates)),
            inputs=inputs,
            outputs=(*rule.outputs, *outputs),
        )
        return {n: expand(value) for n, value in cotangents(opened).items()}

    @cached_property
    def multipliers(self) -> Mapping[str, Expr]:
        """By multiplier, what is 0 if it is that of the derivative."""
        found = self._cotangents
        own = (unknown(one.name) for one in self.ahead)
        return {f"d{_MARK}{name}": found[name] for name in own}

    @cached_property
    def derived(self) -> Mapping[str, Expr]:
        """The true cotangents by input, in inputs, unknowns and multipliers; without
        the multiplier of a single equation, which is a quotient. Raises
        `Underivable`."""
        values: dict[str, Expr] = {}
        if len(self.multipliers) == 1:
            ((name, value),) = self.multipliers.items()
            slope = _slopes(value, (name,))[0]
            given = tidy(substitute(value, {name: ZERO}))
            values[name] = Apply("neg", (Apply("div", (given, slope)),))
        own = {unknown(one.name) for one in self.ahead}
        return {
            name: tidy(substitute(value, values))
            for name, value in self._cotangents.items()
            if name not in own
        }

    @cached_property
    def linear(self) -> frozenset[str]:
        """What is linear in the upstream gradients: these, and what linear equations
        make of them."""
        upstream = frozenset(self.rule.cotangents)
        own = (unknown(one.name) for one in self.behind)
        every = upstream | {*self.multipliers, *own}
        values = [self._residuals[unknown(one.name)] for one in self.behind]
        return every if all(is_linear(value, every) for value in values) else upstream

    def apply_equations(self, expr: Expr) -> Expr:
        """An expression where the equations hold: an input that stands alone on one side
        of one is the other side; an unknown ``v == f(w)`` that does is ``f`` of a new
        name for ``w``."""
        for old, new in self._facts:
            expr = transform(expr, partial(_put, old, new))
        return expr

    @cached_property
    def _facts(self) -> tuple[tuple[Expr, Expr], ...]:
        found: dict[Expr, Expr] = {}
        inputs = {i.name for i in self.rule.inputs}
        for one in self.ahead:
            own = Ref(unknown(one.name))
            value = expand(closed_values(self.rule, (one.value,))[0])
            match value:
                case Apply("sub", (first, Apply("sub", sides))) if first == own:
                    for side, other in (sides, sides[::-1]):
                        if _is_alone(side, other, inputs) and not found:
                            found[side] = other
                case Apply(op, args) if own.name in names(value) and not found:
                    parts = [Ref(f"{_MARK}{place}") for place in range(len(args))]
                    pairs = zip(args, parts, strict=True)
                    found |= {a: p for a, p in pairs if own.name in names(a)}
                    found[own] = Apply(op, tuple(found.get(a, a) for a in args))
        return tuple(found.items())

    # --- points ------------------------------------------------------------------------

    def solution_near(self, point: Point) -> Point | None:
        """The point with its unknowns and multipliers solved; None if no solution is
        found that the assumptions permit."""
        key = self._key(point)
        if key not in self._points:
            found = self._points[key] = self._solve_point(point)
            if found is not None:
                self._points[self._key(found)] = found
        return self._points[key]

    def _key(self, point: Point) -> tuple[object, ...]:
        return tuple(_exact_key(point.get(name)) for name in self._sampled)

    @cached_property
    def _sampled(self) -> tuple[str, ...]:
        return (*(i.name for i in self.rule.inputs), *self.rule.cotangents)

    def _solve_point(self, point: Point) -> Point | None:
        if self._failures == _MOST_FAILURES:
            return None
        unsolved = dict.fromkeys(self.unknowns, Fraction(0))
        found = next(self._forward({**unsolved, **point}), None)
        self._failures += found is None
        for equations in self._backward:
            start = {**dict.fromkeys(equations.unknowns, Fraction(0)), **(found or {})}
            found = None if found is None else equations.solution(start)
        return found

    def _forward(self, point: Point) -> Iterator[Point]:
        """Solutions for the unknowns; then with inputs that are moved, too, unless the
        author says where a solution is sought."""
        has_start = any(one.start is not None for one in self.ahead)
        for start in self._starts(point):
            found = self._square.solution(start)
            if found is not None and self._is_assumed(found):
                yield found
        moved = None if has_start else self._wide.approximation(point)
        short = moved and {n: _short(value) for n, value in moved.items()}
        found = None if short is None else self._square.solution(short)
        if found is not None and self._is_assumed(found):
            yield found

    def _starts(self, point: Point) -> Iterator[Point]:
        given = {}
        for one in self.ahead:
            if one.start is not None:
                value = enclose(closed_values(self.rule, (one.start,))[0], point)
                if value.is_finite():
                    given[unknown(one.name)] = middle(value)
        own = [unknown(one.name) for one in self.ahead]
        yield {**point, **given}
        for first in () if given else _STARTS:
            yield {**point, **dict.fromkeys(own, first)}

    def _is_assumed(self, point: Point) -> bool:
        conditions = (a.condition for a in self.rule.assumes)
        return all(enclose(c, point) is True for c in conditions)

    @cached_property
    def _square(self) -> Equations:
        own = [unknown(one.name) for one in self.ahead]
        return _equations([self._residuals[name] for name in own], own)

    @cached_property
    def _wide(self) -> Equations:
        """The equations with inputs as unknowns, and what is assumed to be equal."""
        own = [unknown(one.name) for one in self.ahead]
        real = (Kind.FLOAT, Kind.NOGRAD)
        behind = {unknown(one.name) for one in self.behind}
        free = [
            i.name for i in self.rule.inputs if i.kind in real and i.name not in behind
        ]
        equal = [
            Apply("sub", condition.args)
            for condition in (a.condition for a in self.rule.assumes)
            if isinstance(condition, Apply) and condition.op == "eq"
        ]
        return _equations([*(self._residuals[name] for name in own), *equal], free)

    @cached_property
    def _backward(self) -> tuple[Equations, ...]:
        """The adjoint equations: those of the derivative, those of the author."""
        own = [unknown(one.name) for one in self.behind]
        theirs = [self._residuals[name] for name in own]
        true = self.multipliers
        return (
            _equations(list(true.values()), list(true)),
            _equations(theirs, own),
        )


def _short(value: Any) -> Fraction:
    """The float that is nearest to a ball: what moved solves nothing exactly yet."""
    return value if isinstance(value, Fraction) else Fraction(float(value.mid()))


def _exact_key(value: Any) -> object:
    """A value as something to compare by: of a ball, the centre."""
    if value is None or isinstance(value, Fraction | float | bool | int):
        return value
    return tuple(map(int, value.mid().man_exp()))


def _put(old: Expr, new: Expr, node: Expr) -> Expr:
    return new if node == old else node


def _is_alone(side: Expr, other: Expr, inputs: set[str]) -> bool:
    """True of an input that one side of an equation is, and the other has not."""
    is_input = isinstance(side, Ref) and side.name in inputs
    return is_input and not names(side) & names(other)


def _equations(residuals: list[Expr], unknowns: list[str]) -> Equations:
    values = [expand(residual) for residual in residuals]  # of calls the true slopes
    return Equations(values, unknowns, [_slopes(value, unknowns) for value in values])


def _slopes(value: Expr, by: Sequence[str]) -> list[Expr]:
    """The derivatives of a value by some names."""
    found = gradient(value, lambda n: isinstance(n, Ref) and n.name in by, own_backward)
    return [found.get(Ref(name), ZERO) for name in by]
