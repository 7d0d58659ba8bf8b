"""What is said of a ranked rule's cotangent: the witness, the cure, a likely cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import prod
from typing import Any

from gradspec.checks.claims import Claim, at_several_places, derived
from gradspec.checks.cotangents_said import refusal
from gradspec.checks.cure import line_fix, meant
from gradspec.checks.guess import as_it_is
from gradspec.checks.indexed_guess import TextGuess, text_guess
from gradspec.checks.instances import Instance, Instances, Point, number
from gradspec.checks.mending import left_out
from gradspec.diagnostics import Diagnostic, Fix, error, warning
from gradspec.ir.elements import Index, Nested, element, extent, places
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Declared, Input, Output, Rule
from gradspec.ir.walk import names
from gradspec.symbolic.compare import (
    Comparison,
    Relation,
    compare,
    decimal,
    decimals,
    simple_ratio,
)


@dataclass(frozen=True, slots=True)
class Witness:
    """A point at which an element of a cotangent is not as it should be."""

    case: Instance
    claim: Claim
    point: Point
    seen: Comparison
    ends: tuple[object, ...] = ()

    @property
    def rule(self) -> Rule:
        return self.case.written

    @property
    def place(self) -> str:
        """``n = 2, x = [1, 2], dy = [1, 3]``: the variables that matter, whole."""
        used = names(self.claim.declared) | names(self.claim.derived)
        sizes = [f"{axis} = {size}" for axis, size in self.case.sizes.items()]
        values = [
            f"{name} = {text}"
            for name, axes in _variables(self.rule)
            if (text := self._text(name, axes, used)) is not None
        ]
        return ", ".join((*sizes, *values))

    def _text(
        self, name: str, axes: tuple[str | int, ...], used: frozenset[str]
    ) -> str | None:
        if name in self.case.sizes:
            return None
        if name in self.case.integers:
            return _rows(self.case.integers[name])
        elements = [element(name, i) for i in places(axes, self.case.sizes)]
        if not any(one in used for one in elements):
            return None
        return _nested(name, axes, (), self)

    def value(self, name: str) -> str:
        return number(self.point[name])


def _variables(rule: Rule) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    for variable in rule.inputs:
        yield variable.name, variable.shape.axes
    for output in rule.outputs:
        if output.takes_gradient:
            yield f"d{output.name}", output.shape.axes


def _nested(
    name: str, axes: tuple[str | int, ...], index: Index, witness: Witness
) -> str:
    if not axes:
        return witness.value(element(name, index))
    rows = (
        _nested(name, axes[1:], (*index, k), witness)
        for k in range(extent(axes[0], witness.case.sizes))
    )
    return f"[{', '.join(rows)}]"


def _rows(value: Nested) -> str:
    if isinstance(value, int):
        return str(value)
    return f"[{', '.join(_rows(row) for row in value)}]"


# --- findings --------------------------------------------------------------------------


def refuted(
    rule: Rule, entry: Declared, witness: Witness, known: Instances
) -> Diagnostic:
    claim, seen = witness.claim, witness.seen
    if seen.relation is Relation.DIFFERENT:
        declared, true = decimals(seen.left, seen.right)
    else:
        declared, true = decimal(seen.left), decimal(seen.right)
    place, name = witness.place, f"d{_ranked(claim).name}"
    notes = [f"at {place}: declared {claim.name} = {declared}, derivative {true}"]
    guess = likely(witness, known)
    if guess is not None and guess.text is None:
        notes.append(guess.sentence)
    if rule.surrogates:
        notes.append("the derivative is that of the surrogate")
    return error(
        *refusal(claim, witness.point),
        rule.source,
        entry.span,
        label=f"{_element(claim)}gives {declared} at {place}, where the derivative is"
        f" {true}",
        notes=notes,
        help=meant(name),
        fixes=_cures(rule, entry, name, guess),
    )


def outside(witness: Witness, entry: Declared) -> Diagnostic:
    claim = witness.claim
    slopes = " and ".join(dict.fromkeys(decimal(end, 10) for end in witness.ends))
    return error(
        "GS402",
        f"d{_ranked(claim).name} of {witness.rule.name} is outside the one-sided slopes"
        " at a kink",
        witness.rule.source,
        entry.span,
        label=f"{_element(claim)}gives {decimal(witness.seen.left, 10)} at"
        f" {witness.place}; the slopes there are {slopes}",
        help="give this point the value of one side, or one between both",
    )


def hole(witness: Witness, entry: Declared) -> Diagnostic:
    claim = witness.claim
    return warning(
        "GS403",
        f"d{_ranked(claim).name} of {witness.rule.name} is undefined where the"
        " derivative is not",
        witness.rule.source,
        entry.span,
        label=f"{_element(claim)}is undefined at {witness.place}, where the derivative"
        f" is {decimal(witness.seen.right)}",
        help="or give the limit there with a conditional that is false at this point only",
        fixes=((left_out(witness.rule, entry.span),),),
    )


def unknown(rule: Rule, variable: Input, entry: Declared) -> Diagnostic:
    name = f"d{variable.name}"
    return error(
        "GS421",
        f"{name} of {rule.name} cannot be checked at its fixed sizes",
        rule.source,
        entry.span,
        label="not seen to be the derivative, and too many elements to try",
        help=meant(name),
        fixes=_cures(rule, entry, name),
    )


def _ranked(claim: Claim) -> Input:
    return replace(claim.input, name=claim.input.name.partition("[")[0])


def _element(claim: Claim) -> str:
    return f"{claim.name} " if "[" in claim.name else ""


def _cures(
    rule: Rule, entry: Declared, name: str, guess: TextGuess | None = None
) -> tuple[tuple[Fix, ...], ...]:
    text = _derived(rule, name)
    lines = () if text is None else (line_fix(entry.span, text),)
    return ((*_guessed(rule, entry, guess), *lines), (left_out(rule, entry.span),))


def _guessed(rule: Rule, entry: Declared, guess: TextGuess | None) -> Iterator[Fix]:
    """The text that is at fault as it should be."""
    if guess is None or guess.text is None:
        return
    lets = {let.name: let for let in rule.backward_locals}
    let = lets.get(guess.place)
    span = entry.span if let is None else let.value.span
    name = f"d{guess.place}" if let is None else guess.place
    if span is not None:
        line = _line(name, (let or entry).indices, guess.text)
        yield replace(line_fix(span, line), note=guess.sentence)


def _line(name: str, indices: tuple[str, ...], value: Expr) -> str:
    left = f"{name}[{', '.join(indices)}]" if indices else name
    return f"{left} = {as_it_is(value)}"


def _derived(rule: Rule, name: str) -> str | None:
    """The line that would be right, if it can be derived for any size."""
    entry = derived(rule).get(name.removeprefix("d"))
    if entry is None:
        return None
    return _line(name, entry.indices, entry.value)


# --- a likely cause --------------------------------------------------------------------


def likely(witness: Witness, known: Instances) -> TextGuess | None:
    """The first cause that fits."""
    for look in (_missing, _factor, _turned, _other):
        sentence = look(witness, known)
        if sentence:
            return TextGuess(sentence)
    # At two elements much is equal that is not: the larger the sizes, the better.
    case = next(iter(known.larger), known.apart or witness.case)
    return text_guess(case, _ranked(witness.claim).name)


def _missing(witness: Witness, known: Instances) -> str:
    """An upstream gradient that does not occur."""
    claim = witness.claim
    absent = [
        f"d{output.name}"
        for output in witness.rule.outputs
        if _occurs(output, claim.derived, witness)
        and not _occurs(output, claim.declared, witness)
    ]
    if not absent:
        return ""
    return f"it does not use the upstream gradient {' or '.join(absent)}"


def _occurs(output: Output, expr: Any, witness: Witness) -> bool:
    used = names(expr)
    axes = output.shape.axes
    elements = (element(f"d{output.name}", i) for i in places(axes, witness.case.sizes))
    return any(one in used for one in elements)


def _factor(witness: Witness, known: Instances) -> str:
    """A constant factor at each size: a number, a size, or one over a size."""
    ratios: list[tuple[Instance, Any]] = []
    for case in _varied(known):
        for claim in _claims(witness, case):
            if not at_several_places(claim, claim.instance.points, 2):
                return ""
            ratio = simple_ratio(claim.declared, claim.derived, claim.instance.points)
            if not isinstance(ratio, Fraction):
                return ""
            ratios.append((case, ratio))
    if not ratios:
        return ""
    first = ratios[0][1]
    if all(ratio == first for _, ratio in ratios):
        if first == 1:
            return ""
        if first == -1:
            return "its sign is wrong everywhere"
        return f"it is {number(first)} times the derivative everywhere"
    axes = tuple(witness.case.sizes)
    for some in (*((axis,) for axis in axes), *combinations(axes, 2)):
        told = " * ".join(some)
        shown = f"({told})" if len(some) > 1 else told
        counts = [(prod(case.sizes[a] for a in some), ratio) for case, ratio in ratios]
        if all(ratio == count for count, ratio in counts):
            return f"it is {told} times the derivative: divide by {shown}"
        if all(ratio * count == 1 for count, ratio in counts):
            return f"it is the derivative divided by {shown}"
    return ""


def _varied(known: Instances) -> tuple[Instance, ...]:
    """A few cases at which the sizes differ."""
    some = (*known.small[1:2], known.apart, *known.small[-1:], *known.larger[:1])
    return tuple(dict.fromkeys(case for case in some if case is not None))


def _claims(witness: Witness, case: Instance) -> list[Claim]:
    """The elements of the same cotangent in another case."""
    instance, name = case, _ranked(witness.claim).name
    return [
        replace(
            witness.claim,
            instance=instance,
            input=variable,
            declared=instance.stated[variable.name],
            derived=instance.derived[variable.name],
        )
        for variable in instance.rule.inputs
        if variable.name.partition("[")[0] == name and variable.name in instance.derived
    ]


def _turned(witness: Witness, known: Instances) -> str:
    """A matrix's gradient with its indices exchanged."""
    name, axes = _ranked(witness.claim).name, _ranked_axes(witness)
    if len(axes) != 2:
        return ""
    for case in reversed(known.small):
        rows, columns = (extent(axis, case.sizes) for axis in axes)
        if rows == columns and rows > 1:
            stated, derived = case.stated, case.derived
            pairs = [
                (stated[element(name, (i, k))], derived[element(name, (k, i))])
                for i, k in places(axes, case.sizes)
            ]
            right = all(_agree(a, b, case.points) for a, b in pairs)
            return "its two indices are exchanged" if right else ""
    return ""


def _ranked_axes(witness: Witness) -> tuple[str | int, ...]:
    name = _ranked(witness.claim).name
    return next(i.shape.axes for i in witness.rule.inputs if i.name == name)


def _other(witness: Witness, known: Instances) -> str:
    """The derivative by another input of the same shape."""
    name, axes = _ranked(witness.claim).name, _ranked_axes(witness)
    case = known.small[-1]
    for other in witness.rule.inputs:
        if other.name == name or other.shape.axes != axes or not other.takes_gradient:
            continue
        pairs = [
            (
                case.stated[element(name, index)],
                case.derived[element(other.name, index)],
            )
            for index in places(axes, case.sizes)
        ]
        if all(_agree(a, b, case.points) for a, b in pairs):
            return f"it is the derivative by {other.name}, not by {name}"
    return ""


def _agree(left: Any, right: Any, points: tuple[Point, ...]) -> bool:
    relations = [compare(left, right, point).relation for point in points]
    return Relation.EQUAL in relations and Relation.DIFFERENT not in relations
