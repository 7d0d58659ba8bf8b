"""What a guess at the cause of a wrong cotangent works with, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from gradspec.checks.instances import Point
from gradspec.ir.calls import expand
from gradspec.ir.expr import Apply, Call, Const, Expr
from gradspec.ir.rule import Declared, Kind, Rule
from gradspec.ir.text import show
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import names, nodes, transform
from gradspec.source import Span
from gradspec.symbolic.meant import Place, Scene, scene

if TYPE_CHECKING:
    from gradspec.checks.claims import Claim

MOST_POINTS = 16
_MOST_NODES = 60
_LONGEST = 80  # characters of a term that help a reader


@dataclass(frozen=True, slots=True)
class Guess:
    """A sentence; the guilty place if it is known, and what should stand there."""

    sentence: str
    place: Place | None = None
    new: Expr | None = None
    part: Span | None = None

    @property
    def span(self) -> Span | None:
        """The guilty piece of text."""
        if self.part is not None or self.place is None:
            return self.part
        return self.place.node.span


class Case:
    """A refuted claim, the points at which it is smooth, and its parts' values.

    (Not a value but a place to work: what several guesses need is worked out once.)
    """

    def __init__(self, claim: Claim, points: tuple[Point, ...]) -> None:
        self.claim, self.rule, self.points = claim, claim.instance.rule, points

    @cached_property
    def texts(self) -> dict[str, Expr]:
        """Every name with its text, in order, and the cotangent itself."""
        lets = (*self.rule.forward, *self.rule.backward_locals)
        found = {let.name: plain(let.value) for let in lets}
        entries = zip(self.rule.inputs, self.rule.backward, strict=True)
        for variable, entry in entries:
            if isinstance(entry, Declared):
                found[f"d{variable.name}"] = plain(entry.value)
        found[self.claim.name] = plain(self.claim.entry.value)
        return found

    @cached_property
    def own(self) -> frozenset[str]:
        """The locals that serve the backward pass alone."""
        return backward_only(self.rule)

    @cached_property
    def scene(self) -> Scene:
        return scene(
            self.claim.name, self.texts, self.own, self.claim.derived, self.points
        )

    @property
    def places(self) -> tuple[Place, ...]:
        return self.scene.places

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Everything that a number can be called, shortest meaning first."""
        flags = {v.name for v in self.rule.inputs if v.kind is Kind.BOOL}
        known = [v.name for v in self.rule.inputs if v.name not in flags]
        known += self.claim.instance.upstream
        known += [n for n in self.texts if n != self.claim.name and n not in known]
        return tuple(known)


def plain(text: Expr) -> Expr:
    """Without calls; as it is if there are none, for rebuilding gives equal parts the
    place in the source of the first of them."""
    return expand(text) if any(isinstance(n, Call) for n in nodes(text)) else text


def backward_only(rule: Rule) -> frozenset[str]:
    """Locals of the backward pass, and those of which no output is made."""
    texts: Mapping[str, Expr] = {let.name: let.value for let in rule.forward}
    needed: set[str] = set()
    todo = [o.name for o in rule.outputs]
    todo += [n for s in rule.surrogates for n in names(s.value)]
    while todo:
        name = todo.pop()
        if name in texts and name not in needed:
            needed.add(name)
            todo += names(texts[name])
    return frozenset({let.name for let in rule.backward_locals} | (set(texts) - needed))


def is_short(expr: Expr) -> bool:
    """Few enough nodes to be somebody's slip of the pen, and to be tried in many forms."""
    return sum(1 for _ in islice(nodes(expr), _MOST_NODES + 1)) <= _MOST_NODES


def put(expr: Expr, old: Expr, new: Expr) -> Expr:
    """One part in the place of another, wherever it stands."""
    return transform(expr, lambda node: new if node == old else node)


def quoted(expr: Expr) -> str:
    """As an author would write it, in backquotes."""
    text = as_written(expr)
    return f"`{text}`" if len(text) <= _LONGEST else "a term of it"


def as_written(expr: Expr) -> str:
    """Tidy, with powers for squares."""
    return as_it_is(tidy(expr))


def as_it_is(expr: Expr) -> str:
    """The author's own arithmetic is left alone."""
    return show(transform(expr, _as_power))


def _as_power(node: Expr) -> Expr:
    match node:
        case Apply(op="square", args=(base,)):
            return Apply("pow", (base, Const(Fraction(2))))
        case _:
            return node


def decimal_or_fraction(expr: Expr) -> str:
    """A number as a short decimal, if it has one, else as a formula."""
    return number_text(expr.value) if isinstance(expr, Const) else show(expr)


def number_text(value: Fraction) -> str:
    text = repr(float(value)).removesuffix(".0")
    exact = "e" not in text and Fraction(text) == value
    return text if exact or value.denominator > 1000 else str(value)
