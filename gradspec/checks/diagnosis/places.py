"""The parts of a declared cotangent, with the values that they have and should have.

From the root down every operation is inverted: if ``a * b`` is to be ``w``, then ``b``
is to be ``w / a``. So a single wrong part is known by the value that is missing there,
and a hypothesis about it costs an evaluation of the replacement alone. A part of a
reduction has no such value: there the whole reduction is evaluated with the part
replaced.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import islice, product
from typing import Any, TypeAlias

from gradspec.checks.instances import Instance, Point
from gradspec.derive.chain import Underivable
from gradspec.derive.complete import derived_entries
from gradspec.derive.shortest import as_written
from gradspec.ir.elements import Axes, Expansion, Index, element, places
from gradspec.ir.expr import (
    ZERO,
    Apply,
    Bound,
    Call,
    Const,
    Expr,
    Idx,
    Reduce,
    Ref,
    Select,
    show,
)
from gradspec.ir.rule import Definition, Kind, Origin, Role, Rule
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.unroll import axes_of, expansion
from gradspec.ir.walk import children, expand, nodes, size, transform, with_children
from gradspec.primitives.balls import truth
from gradspec.primitives.lookup import primitive
from gradspec.source import Span
from gradspec.symbolic.enclose import UNDEFINED, is_defined, program
from gradspec.symbolic.limit import Effort
from gradspec.symbolic.recognise import (
    PRECISION,
    Values,
    combine_rows,
    is_invertible,
    narrow,
    operands,
    quotients,
)

_MOST_PLACES = 300
"""Parts examined: in ten thousand terms nobody finds the wrong one."""

_MOST_NODES = 60
_STEPS = 1_500_000
"""Operations on balls that one diagnosis may cost: about two seconds."""

Indices: TypeAlias = "Mapping[str, str | int]"
"""Indices with the axes that they range over."""

Instead: TypeAlias = "Callable[[View], Expr]"
"""A candidate for an element of a view, in the names of points, if not the
derivative."""

Forms: TypeAlias = Iterator[tuple[str, Expr]]
"""Sentences with candidates for the replacement of a part."""


class Exhausted(Exception):
    """The effort for one diagnosis is spent."""


class _Bound(dict[str, Any]):
    """The values of all names; an element that does not exist is undefined."""

    def __missing__(self, name: str) -> Any:
        return UNDEFINED


@dataclass(frozen=True, eq=False)
class View:
    """The points of an instance, seen from one element of the cotangent: ``index`` is
    its place, ``env`` has the values of the indices of the text."""

    instance: Instance
    index: Index
    points: tuple[Point, ...]
    expansion: Expansion
    env: Mapping[str, int]

    def close(self, expr: Expr) -> Expr:
        """``expr`` at these indices, in the names of the points."""
        if not self.instance.written.has_axes:
            return expr
        return self.expansion.expand(expr, self.env)

    def of(self, name: str) -> str:
        """The element of another variable of the same shape."""
        return element(name, self.index)


@dataclass(frozen=True, eq=False)
class Place:
    """One part of a text: ``within`` is the name of the text, ``parent`` the operation
    that it is an operand of, ``indices`` are those that it may use. ``now`` are its
    values and ``meant`` those it should have; in a reduction, ``around``, they are not
    known.
    """

    within: str
    node: Expr
    parent: Expr | None
    indices: Indices
    scene: Scene
    now: Values = ()
    meant: Values = ()
    around: Place | None = None

    @property
    def refs(self) -> Iterator[Ref]:
        """Every value that can be named at the indices of the place."""
        for name in self.scene.names:
            axes = self.scene.axes[name]
            choices = [[i for i, a in self.indices.items() if a == x] for x in axes]
            for at in product(*choices):
                if len(set(at)) == len(at):
                    yield Ref(name, tuple(map(Idx, at)))

    @cached_property
    def factor(self) -> Values:
        """The quotient of the values that it should have and those that it has."""
        return quotients(self.meant, self.now)

    @cached_property
    def inverse(self) -> Values:
        return quotients(self.now, self.meant)

    @cached_property
    def term(self) -> Values:
        return combine_rows(operator.sub, self.meant, self.now)

    @property
    def is_short(self) -> bool:
        """True if small enough for a typing slip, and for many candidates."""
        return is_short(self.node)

    def fits(self, new: Expr) -> bool:
        """True if replacing this part with ``new`` gives the whole its correct
        values."""
        if self.around is not None:
            whole = put(self.around.node, self.node, new)
            return whole is not None and self.around.fits(whole)
        return self.scene.are(self.meant, partial(View.close, expr=new))


class Scene:
    """A declared cotangent that differs from the derivative, at the points of some
    instances of its rule; a column of values has one for each point of each view. (Not a
    value: results are memoised.)"""

    def __init__(
        self, written: Rule, name: str, points: Mapping[Instance, tuple[Point, ...]]
    ) -> None:
        self.rule, self.input = written, name
        self.entry = written.declared[name]
        self.axes: Mapping[str, Axes] = axes_of(written)
        self.views, self._effort = tuple(self._views(points)), Effort(_STEPS)
        self.upstream = written.cotangents
        numbers = (v.name for v in written.inputs if v.kind is not Kind.BOOL)
        others = (text for text in self.texts if text != f"d{name}")
        self.names = tuple(dict.fromkeys((*numbers, *self.upstream, *others)))

    def _views(self, points: Mapping[Instance, tuple[Point, ...]]) -> Iterator[View]:
        for instance, some in points.items():
            made = expansion(self.rule, instance.sizes, instance.integers)
            bound = tuple(_bind(instance, point) for point in some)
            for index in places(self.axes[self.input], instance.sizes):
                env = dict(zip(self.entry.indices, index, strict=True))
                yield View(instance, index, bound, made, env)

    @cached_property
    def texts(self) -> Mapping[str, Definition]:
        """Every text, calls expanded, and last that of the cotangent."""
        found = {
            name: replace(text, value=plain(text.value))
            for name, text in self.rule.values.items()
            if text.origin is Origin.WRITTEN
        }
        own = found.pop(f"d{self.input}")
        return {**found, own.name: own}

    @property
    def text(self) -> Definition:
        return self.texts[f"d{self.input}"]

    @cached_property
    def derived(self) -> Definition:
        """The derivative for every size, with the indices of the cotangent's text."""
        try:
            found = derived_entries(self.rule)[self.input]
        except (Underivable, KeyError):
            return Definition("", Role.LOCAL, ZERO)
        pairs = zip(found.indices, self.entry.indices, strict=True)
        return replace(self.text, value=rename_indices(found.value, dict(pairs)))

    @property
    def root(self) -> Place:
        return self.places[0]

    # --- values --------------------------------------------------------------------------

    def spend(self, steps: int) -> None:
        if not self._effort.take(steps):
            raise Exhausted

    def columns(self, *exprs: Expr) -> list[tuple[Any, ...]]:
        """The values as they are."""
        rows: list[tuple[Any, ...]] = []
        for view in self.views:
            closed = [view.close(expr) for expr in exprs]
            self.spend((size(closed[0]) + len(exprs)) * len(view.points))
            compiled = program(*closed)
            rows += [compiled.run(point, PRECISION) for point in view.points]
        return [tuple(row[k] for row in rows) for k in range(len(exprs))]

    def values(self, expr: Expr) -> Values:
        """The values that are precise enough, None elsewhere."""
        return tuple(map(narrow, self.columns(expr)[0]))

    def derivative(self, name: str) -> Values:
        return tuple(
            narrow(program(view.instance.derived[view.of(name)]).run(p, PRECISION)[0])
            for view in self.views
            for p in view.points
        )

    def are(self, wanted: Values, closed: Instead) -> bool:
        """True if a candidate has the values wanted wherever they are known (at least
        three). Most candidates fail at the first."""
        count, values = 0, iter(wanted)
        for view in self.views:
            form = closed(view)
            compiled, steps = program(form), size(form)
            for point, value in zip(view.points, values, strict=False):
                if value is None:
                    continue
                self.spend(steps)
                held = compiled.run(point, PRECISION)[0]
                if not is_defined(held) or not held.overlaps(value):
                    return False
                count += narrow(held) is not None
        return count >= 3

    # --- places --------------------------------------------------------------------------

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """The parts of the cotangent, and of the locals that nothing else uses."""
        return tuple(islice(self._places(), _MOST_PLACES))

    def _places(self) -> Iterator[Place]:
        text = self.text
        indices = dict(zip(text.indices, text.axes, strict=True))
        parts = list(self._parts())
        raw = dict(zip(parts, self.columns(*parts), strict=True))
        todo: list[tuple[str, Expr, Expr | None, Values]]
        todo = [(text.name, text.value, None, self.derivative(self.input))]
        while todo:
            within, node, parent, wanted = todo.pop()
            now = tuple(map(narrow, raw[node]))
            place = Place(within, node, parent, indices, self, now, wanted)
            yield place
            if isinstance(node, Reduce):
                yield from _inside(place, node)
            local = self._local(node)
            if local is not None:
                todo.append((local.name, local.value, None, wanted))
            below = list(_below(node, raw, wanted))
            todo += [(within, part, node, values) for part, values in reversed(below)]

    def _parts(self) -> Iterator[Expr]:
        """Every distinct part that is in no reduction, those of locals included."""
        seen: set[Expr] = set()
        todo = [self.text.value]
        while todo:
            node = todo.pop()
            if node not in seen:
                seen.add(node)
                yield node
                local = self._local(node)
                todo += () if local is None else (local.value,)
                todo += () if isinstance(node, Reduce | Ref) else children(node)

    def _local(self, node: Expr) -> Definition | None:
        """The local that a name stands for, if nothing else uses it."""
        if not isinstance(node, Ref) or node.name not in self._used_once:
            return None
        let = self.texts[node.name]
        own = set(zip(let.indices, let.axes, strict=True))
        is_same = node.indices == tuple(map(Idx, let.indices))
        within = zip(self.text.indices, self.text.axes, strict=True)
        return let if is_same and own <= set(within) else None

    @cached_property
    def _used_once(self) -> frozenset[str]:
        """The locals that are used in one place."""
        surrogates = (surrogate.value for surrogate in self.rule.surrogates)
        texts = (*(text.value for text in self.texts.values()), *surrogates)
        some = (node for text in texts for node in islice(_tree(text), _MOST_PLACES))
        uses = Counter(node.name for node in some if isinstance(node, Ref))
        outputs = {output.name for output in self.rule.outputs}
        lets = {let.name for let in (*self.rule.forward, *self.rule.backward_locals)}
        known = (lets - outputs) & self.texts.keys()
        return frozenset(name for name in known if uses[name] == 1)


def _bind(instance: Instance, point: Point) -> Point:
    """A point with the values of all names of the rule."""
    bound, rule = _Bound(point), instance.rule
    for entry in rule.backward:
        if not entry.is_derived:
            stated = program(instance.stated[entry.input])
            bound[entry.name] = _or_undefined(stated.run(point, PRECISION)[0])
    for let in (*rule.forward, *rule.backward_locals):
        value = program(expand(let.value)).run(bound, PRECISION)[0]
        bound[let.name] = _or_undefined(value)
    return bound


def _or_undefined(value: Any) -> Any:
    return UNDEFINED if value is None else value


def _inside(place: Place, node: Reduce) -> Iterator[Place]:
    """The parts of a reduction, which have no values of their own."""
    todo: list[tuple[Expr, Expr, Indices]] = [(node, node, place.indices)]
    while todo:
        part, parent, indices = todo.pop()
        if part is not node:
            yield Place(place.within, part, parent, indices, place.scene, around=place)
        if isinstance(part, Reduce):
            indices = {**indices, **{b.index: b.axis for b in part.bounds}}
        if not isinstance(part, Ref | Idx):
            todo += [(child, part, indices) for child in reversed(children(part))]


def _tree(text: Expr) -> Iterator[Expr]:
    """Every occurrence of every part."""
    todo = [text]
    while todo:
        node = todo.pop()
        yield node
        todo += children(node)


def _below(
    node: Expr, raw: Mapping[Expr, tuple[Any, ...]], wanted: Values
) -> Iterator[tuple[Expr, Values]]:
    """The operands that alone may be wrong, with the values they should have."""
    match node:
        case Apply(op=op, args=args) if is_invertible(op):
            rows = list(zip(*(raw[arg] for arg in args), strict=True))
            for place, arg in enumerate(args):
                values = operands(op, rows, place, wanted)
                if values is not None and _is_known(values):
                    yield arg, values
        case Select(condition=condition, then=then, other=other):
            taken = [truth(value) for value in raw[condition]]
            held = tuple(map(narrow, raw[node]))
            for branch, side in ((then, True), (other, False)):
                if _agree_outside(held, wanted, taken, side):
                    pairs = zip(wanted, taken, strict=True)
                    values = tuple(w if t is side else None for w, t in pairs)
                    if _is_known(values):
                        yield branch, values
        case _:
            return


def _agree_outside(now: Values, wanted: Values, taken: list[Any], side: bool) -> bool:
    """True if nothing has to change where the other branch is taken."""
    return all(
        t is side or n is None or w is None or n.overlaps(w)
        for n, w, t in zip(now, wanted, taken, strict=True)
    )


def _is_known(values: Values) -> bool:
    return sum(value is not None for value in values) >= 3


@dataclass(frozen=True, slots=True)
class Guess:
    """A sentence; ``new`` replaces ``place``, of which ``part`` is the wrong piece;
    ``instead`` is the formula that the cotangent has in place of the derivative. A
    guess with neither is seen in the text."""

    sentence: str
    place: Place | None = None
    new: Expr | None = None
    instead: Instead | None = None
    part: Span | None = None

    def holds(self, scene: Scene) -> bool:
        if self.place is not None and self.new is not None:
            return self.place.fits(self.new)
        if self.instead is None:
            return True
        return scene.are(scene.root.now, self.instead)


# --- expressions and numbers in sentences ------------------------------------------------

_LONGEST = 80  # characters of a term that help a reader


def quotation(expr: Expr) -> str:
    """The expression as an author would write it, in backquotes."""
    text = as_written(tidy(expr))
    return f"`{text}`" if len(text) <= _LONGEST else "a term of it"


def bare(expr: Expr) -> str:
    return quotation(expr).strip("`")


def number_text(expr: Expr) -> str:
    """A number as a short decimal, if it has one, else as a formula."""
    if not isinstance(expr, Const):
        return show(expr)
    text = repr(float(expr.value)).removesuffix(".0")
    exact = "e" not in text and Fraction(text) == expr.value
    return text if exact or expr.value.denominator > 1000 else str(expr.value)


# --- expressions -------------------------------------------------------------------------


def plain(text: Expr) -> Expr:
    """The expression without calls; unchanged if there are none, since rebuilding gives
    equal parts the span of the first of them."""
    return expand(text) if any(isinstance(n, Call) for n in nodes(text)) else text


def is_number(node: Expr) -> bool:
    match node:
        case Apply(op=op):
            return primitive(op).result == "real"
        case Select(then=then):
            return is_number(then)
        case _:
            return not isinstance(node, Idx)


def is_short(expr: Expr) -> bool:
    return sum(1 for _ in islice(nodes(expr), _MOST_NODES + 1)) <= _MOST_NODES


def put(text: Expr, old: Expr, new: Expr) -> Expr | None:
    """The tree with one occurrence, identified by its span, replaced; None if it is too
    large to be walked as a tree."""
    if text == old and text.span == old.span:
        return new
    if sum(1 for _ in islice(_tree(text), _MOST_PLACES)) == _MOST_PLACES:
        return None
    return _put(text, old, new)


def _put(text: Expr, old: Expr, new: Expr) -> Expr:
    if text == old and text.span == old.span:
        return new
    parts = tuple(_put(child, old, new) for child in children(text))
    changed = with_children(text, parts)
    return text if changed is text else fold(changed)


def everywhere(text: Expr, old: Expr, new: Expr) -> Expr:
    """The expression with one part replaced wherever it occurs."""
    return transform(text, lambda node: new if node == old else node)


def rename_indices(expr: Expr, names: Mapping[str, str]) -> Expr:
    """Free indices renamed; a bound one that is in the way takes the old name."""
    names = {old: new for old, new in names.items() if old != new}
    if not names:
        return expr
    gone = sorted(set(names) - set(names.values()))
    taken = sorted(set(names.values()) - set(names))
    whole = {**names, **dict(zip(taken, gone, strict=True))}

    def visit(node: Expr) -> Expr:
        match node:
            case Idx(name=name):
                return Idx(whole.get(name, name))
            case Reduce(op=op, bounds=bounds, body=body, where=where):
                new = tuple(Bound(whole.get(b.index, b.index), b.axis) for b in bounds)
                return Reduce(op, new, body, where)
            case _:
                return node

    return transform(expr, visit)


def is_at_hand(expr: Expr, text: Definition, indices: Indices) -> bool:
    """True if a part of a text uses no indices but these."""
    own = dict(zip(text.indices, text.axes, strict=True))
    return all(i in own and indices.get(i) == own[i] for i in expr.free)
