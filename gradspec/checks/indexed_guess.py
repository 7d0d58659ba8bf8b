"""What is probably wrong with a refuted cotangent over named axes.

Small changes to the text as it was written, indices and all: each is written out for the
elements at one choice of sizes and told if every element is then right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gradspec.checks.claims import derived
from gradspec.checks.guess import quoted
from gradspec.checks.guesses_sums import other_sums
from gradspec.checks.instances import Instance, Point
from gradspec.ir.calls import expand
from gradspec.ir.elements import Axes, Expansion, element, places
from gradspec.ir.expr import (
    ONE,
    ZERO,
    Apply,
    Const,
    Expr,
    Idx,
    Reduce,
    Ref,
    Select,
    Size,
    apply,
)
from gradspec.ir.joining import PLAIN
from gradspec.ir.rule import Declared, Input, Output, Rule
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import names, nodes, transform
from gradspec.symbolic.enclose import defined, program
from gradspec.symbolic.meant import PRECISION

_MOST = 200  # changes tried
_POINTS = 4


class _Scene:
    """A cotangent's elements at some points, and what they should be."""

    def __init__(self, case: Instance, name: str) -> None:
        self.rule, self.name, self.case = case.written, name, case
        self.axes = _axes_of(case.written)
        self.expansion = Expansion(self.axes, case.sizes, case.integers, PLAIN)
        entries = zip(self.rule.inputs, self.rule.backward, strict=True)
        self.entry = next(e for v, e in entries if v.name == name)
        lets = case.rule.forward
        self.points = tuple(
            _bound(point, {let.name: expand(let.value) for let in lets})
            for point in case.points[:_POINTS]
        )

    def is_right(self, place: str, text: Expr) -> bool:
        """Whether every element is right with one text of the backward changed."""
        return all(self._is_right_at(point, place, text) for point in self.points)

    def _is_right_at(self, point: Point, place: str, text: Expr) -> bool:
        bound = dict(point)
        for let in self.rule.backward_locals:
            value = text if let.name == place else let.value
            for index in places(let.axes, self.case.sizes):
                env = dict(zip(let.indices, index, strict=True))
                expr = self.expansion.expand(expand(value), env)
                if not names(expr) <= set(bound):
                    return False
                bound[element(let.name, index)] = _run(expr, bound)
        assert isinstance(self.entry, Declared)
        value = text if place == self.name else self.entry.value
        return all(
            self._is_equal(bound, index, value)
            for index in places(self.axes[self.name], self.case.sizes)
        )

    def _is_equal(self, bound: Point, index: tuple[int, ...], value: Expr) -> bool:
        true = self.case.derived.get(element(self.name, index))
        assert isinstance(self.entry, Declared)
        env = dict(zip(self.entry.indices, index, strict=True))
        expr = self.expansion.expand(expand(value), env)
        if true is None or not names(expr) <= set(bound):
            return False
        left, right = _run(expr, bound), _run(true, bound)
        return defined(left) and defined(right) and bool(left.overlaps(right))


def _bound(point: Point, texts: Mapping[str, Expr]) -> Point:
    bound = dict(point)
    for name, text in texts.items():
        bound[name] = _run(text, bound)
    return bound


def _run(expr: Expr, point: Point) -> Any:
    value = program(expr).run(point, PRECISION)[0]
    return float("nan") if value is None else value


def _axes_of(rule: Rule) -> dict[str, Axes]:
    found = {let.name: let.axes for let in (*rule.forward, *rule.backward_locals)}
    variables: tuple[Input | Output, ...] = (*rule.inputs, *rule.outputs)
    found |= {f"d{v.name}": v.shape.axes for v in variables if v.takes_gradient}
    return found | {v.name: v.shape.axes for v in variables}


@dataclass(frozen=True, slots=True)
class TextGuess:
    """A sentence, and the change to a text of the backward that it means, if any."""

    sentence: str
    place: str = ""
    text: Expr | None = None


def text_guess(case: Instance, name: str) -> TextGuess | None:
    """The first change that makes the cotangent of ``name`` right."""
    if not case.points:
        return None
    scene = _Scene(case, name)
    tried = 0
    for place, text in _texts(scene):
        sums = other_sums(text, _indices_of(scene, place))
        for told, changed in (*sums, *_changes(text), *_lacking(scene, place, text)):
            tried += 1
            if tried > _MOST:
                return None
            if scene.is_right(place, changed):
                return TextGuess(told, place, changed)
    told = _of_derived(scene)
    return TextGuess(told) if told else None


def _texts(scene: _Scene) -> Iterator[tuple[str, Expr]]:
    """The cotangent as written, and the locals of the backward pass."""
    assert isinstance(scene.entry, Declared)
    yield scene.name, scene.entry.value
    for let in reversed(scene.rule.backward_locals):
        yield let.name, let.value


def _put(expr: Expr, old: Expr, new: Expr) -> Expr:
    return transform(expr, lambda node: new if node == old else node)


# --- changes to what is there -------------------------------------------------------------


def _changes(text: Expr) -> Iterator[tuple[str, Expr]]:
    for node in reversed(list(nodes(text))):
        for told, new in _near(node):
            yield told, _put(text, node, new)


def _near(node: Expr) -> Iterator[tuple[str, Expr]]:
    match node:
        case Apply(op="add" | "sub" as op, args=(left, right)):
            turned = apply("sub" if op == "add" else "add", left, right)
            yield f"the sign of {quoted(right)} is wrong", turned
            yield f"the sign of {quoted(left)} is wrong", apply("neg", turned)
            yield f"{quoted(right)} is one term too many", left
            yield f"{quoted(left)} is one term too many", right
        case Apply(op="mul", args=(left, right)):
            yield f"{quoted(right)} is one factor too many", left
            yield f"{quoted(left)} is one factor too many", right
        case Apply(op="div", args=(left, right)):
            yield f"the division by {quoted(right)} is one too many", left
            times = apply("mul", left, right)
            yield f"it should multiply by {quoted(right)}, not divide", times
        case Apply(op="pow", args=(base, Const(value=power))):
            for near in (power - 1, power + 1):
                told = f"the exponent of {quoted(node)} should be {near}"
                yield told, apply("pow", base, Const(near))
        case Apply(op="square", args=(base,)):
            yield f"the square of {quoted(base)} is one too many", base
        case Select(condition=condition, then=then, other=other):
            told = f"the branches of `… if {quoted(condition).strip('`')} else …`"
            yield f"{told} are swapped", Select(condition, other, then)
        case Reduce():
            yield from _other_reductions(node)
        case Ref(name=name, indices=(first, second)):
            told = f"the indices of {quoted(node)} are exchanged"
            yield told, Ref(name, (second, first))
            yield f"{quoted(node)} should be squared", apply("square", node)
        case Ref():
            yield f"{quoted(node)} should be squared", apply("square", node)
        case _:
            return


def _other_reductions(node: Reduce) -> Iterator[tuple[str, Expr]]:
    for op in ("sum", "mean"):
        if op != node.op and node.op in ("sum", "mean"):
            new = Reduce(op, node.bounds, node.body, node.where)
            yield f"{quoted(node)} should be a {op}", new
    if node.where is not None:
        new = Reduce(node.op, node.bounds, node.body)
        yield f"{quoted(node)} should range over all elements", new


# --- factors that are missing or too many --------------------------------------------------


def _lacking(scene: _Scene, place: str, text: Expr) -> Iterator[tuple[str, Expr]]:
    """A value or a size as a factor of a term or of what is summed."""
    indices = _indices_of(scene, place)
    for part, inner in _factors(text, indices):
        where = "" if part == text else f" in {quoted(part)}"
        for factor in _values(scene, inner):
            shown = quoted(factor)
            more = apply("mul", part, factor)
            yield f"the factor {shown} is missing{where}", _put(text, part, more)
            less = apply("div", part, factor)
            told = f"{quoted(part)} is multiplied by {shown} once too often"
            if factor not in set(nodes(part)):
                told = f"the division by {shown} is missing{where}"
            yield told, _put(text, part, less)


def _indices_of(scene: _Scene, place: str) -> dict[str, str | int]:
    """The indices of a text with their axes."""
    for let in scene.rule.backward_locals:
        if let.name == place:
            return dict(zip(let.indices, let.axes, strict=True))
    assert isinstance(scene.entry, Declared)
    return dict(zip(scene.entry.indices, scene.axes[scene.name], strict=True))


def _factors(
    text: Expr, indices: dict[str, str | int]
) -> Iterator[tuple[Expr, dict[str, str | int]]]:
    """The whole, the terms of sums, the bodies of reductions; with their indices."""
    yield text, indices
    for node in nodes(text):
        match node:
            case Apply(op="add" | "sub", args=args):
                yield from ((arg, indices) for arg in args if names(arg))
            case Reduce(bounds=bounds, body=body):
                yield body, indices | {bound.index: bound.axis for bound in bounds}
            case _:
                continue


def _values(scene: _Scene, indices: dict[str, str | int]) -> Iterator[Expr]:
    """Every value at the indices at hand, and the sizes."""
    for name, axes in scene.axes.items():
        if name == f"d{scene.name}":
            continue
        if not axes:
            yield Ref(name)
        for index, axis in indices.items():
            if axes == (axis,):
                yield Ref(name, (Idx(index),))
    yield from (Size(axis) for axis in scene.case.sizes)
    yield Const(ONE.value * 2)


# --- what is missing of the derivative ------------------------------------------------------


def _of_derived(scene: _Scene) -> str:
    """The derivative less a term, or with only one element of a sum."""
    entry = derived(scene.rule).get(scene.name)
    if entry is None:
        return ""
    guesses = list(_reduced(entry.value, entry.indices))
    guesses.sort(key=lambda guess: guess[0].startswith("the factor"))  # terms first
    for told, less in guesses:
        if _is_declared(scene, entry.indices, less):
            return told
    return ""


def _reduced(value: Expr, indices: tuple[str, ...]) -> Iterator[tuple[str, Expr]]:
    for node in nodes(value):
        match node:
            case Apply(op="add" | "sub", args=(left, right)):
                yield f"{_term(right)} is missing", _put(value, node, left)
                yield f"{_term(left)} is missing", _put(value, node, right)
            case Apply(op="mul", args=(left, right)):
                yield f"the factor {quoted(right)} is missing", _put(value, node, left)
                yield f"the factor {quoted(left)} is missing", _put(value, node, right)
            case Reduce(bounds=(bound,), body=body):
                told = f"of {quoted(node)} only the term with {bound.index} ="
                for index in indices:
                    one = _at(body, bound.index, Idx(index))
                    yield f"{told} {index} is there", _put(value, node, one)
                one = _at(body, bound.index, ZERO)
                yield f"{told} 0 is there", _put(value, node, one)
            case _:
                continue


def _term(expr: Expr) -> str:
    shown = quoted(expr)
    return f"the term {shown}" if shown.startswith("`") else shown


def _at(body: Expr, index: str, other: Expr) -> Expr:
    return transform(body, lambda n: other if n == Idx(index) else n)


def _is_declared(scene: _Scene, indices: tuple[str, ...], value: Expr) -> bool:
    """Whether the changed derivative is what was declared, at every element."""
    stated = scene.case.stated
    for point in scene.points:
        for index in places(scene.axes[scene.name], scene.case.sizes):
            env = dict(zip(indices, index, strict=True))
            left = tidy(scene.expansion.expand(expand(value), env))
            right = stated[element(scene.name, index)]
            if not names(left) | names(right) <= set(point):
                return False
            a, b = _run(left, point), _run(right, point)
            if not (defined(a) and defined(b) and a.overlaps(b)):
                return False
    return True
