"""The parts of a declared cotangent, with the values that they have and should have.

From the root down every operation is inverted: if ``a * b`` is to be ``w``, then ``b``
is to be ``w / a``. So a single wrong part is known by the value that is missing there,
and a hypothesis about it costs an evaluation of the replacement alone. A part of a
reduction has no such value: there the whole reduction is evaluated with the part
replaced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, product
from typing import Any, TypeAlias

from gradspec.checks.instances import Instance, Point
from gradspec.derive.chain import Underivable
from gradspec.derive.indexed import indexed_cotangents
from gradspec.derive.scopes import Fresh, Value, inlined, named
from gradspec.ir.elements import Axes, Expansion, Index, element, places
from gradspec.ir.expr import Apply, Bound, Call, Const, Expr, Idx, Reduce, Ref, Select
from gradspec.ir.rule import Declared, Derived, Kind, Let, Override, Rule
from gradspec.ir.tidy import fold
from gradspec.ir.unroll import axes_of, axis_names, expansion
from gradspec.ir.walk import children, expand, nodes, size, transform, with_children
from gradspec.primitives.balls import truth
from gradspec.source import Span
from gradspec.symbolic.enclose import UNDEFINED, Program, defined, program
from gradspec.symbolic.inverse import is_invertible, operands
from gradspec.symbolic.recognise import PRECISION, Values, narrow

_MOST_PLACES = 300
"""Parts examined: in ten thousand terms nobody finds the wrong one."""

_MOST_NODES = 60
_FEW = 22
"""Points at which a part is replaced; `mending` checks the result at all of them."""

_STEPS = 1_500_000
"""Operations on balls that one diagnosis may cost: about two seconds."""

Indices: TypeAlias = "Mapping[str, str | int]"
"""Indices with the axes that they range over."""

Instead: TypeAlias = "Callable[[View], Expr]"
"""A candidate for an element of a view, in the names of points, if not the
derivative."""


class Exhausted(Exception):
    """The effort for one diagnosis is spent."""


class Effort:
    """Work that is counted, so that the answer does not depend on the machine."""

    def __init__(self, steps: int = _STEPS) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise Exhausted


class _Bound(dict[str, Any]):
    """The values of all names; an element that does not exist is undefined."""

    def __missing__(self, name: str) -> Any:
        return UNDEFINED


@dataclass(frozen=True, eq=False)
class View:
    """The points of an instance, seen from one element of the cotangent: ``index`` is
    its place, ``env`` has the values of the indices of the text that is looked at."""

    instance: Instance
    index: Index
    points: tuple[Point, ...]
    expansion: Expansion
    env: Mapping[str, int]

    def closed(self, expr: Expr) -> Expr:
        """``expr`` at these indices, in the names of the points."""
        if self.instance.written.is_elementwise:
            return expr
        return self.expansion.expand(expr, self.env)

    def few(self) -> View:
        """Some of the points."""
        return replace(self, points=self.points[:_FEW])

    def of(self, name: str) -> str:
        """The element of another variable of the same shape."""
        return element(name, self.index)

    def derivative(self, name: str) -> Program:
        return program(self.instance.derived[self.of(name)])

    def inside(self, let: Let, indices: tuple[Expr, ...]) -> View | None:
        """The same for the text of a local that is used with these indices."""
        found = [self.closed(index) for index in indices]
        values = [int(i.value) for i in found if isinstance(i, Const)]
        if len(values) < len(found):
            return None
        return replace(self, env=dict(zip(let.indices, values, strict=True)))


@dataclass(frozen=True, eq=False)
class Rows:
    """Every point of every view; a column of values has one for each."""

    views: tuple[View, ...]
    effort: Effort

    def columns(self, *exprs: Expr) -> list[tuple[Any, ...]]:
        """The values as they are."""
        rows: list[tuple[Any, ...]] = []
        for view in self.views:
            closed = [view.closed(expr) for expr in exprs]
            self.effort.spend((size(closed[0]) + len(exprs)) * len(view.points))
            compiled = program(*closed)
            rows += [compiled.run(point, PRECISION) for point in view.points]
        return list(zip(*rows, strict=True))

    def values(self, expr: Expr) -> Values:
        """The values that are precise enough, None elsewhere."""
        return tuple(map(narrow, self.columns(expr)[0]))

    def are(self, wanted: Values, closed: Callable[[View], Expr]) -> bool:
        """True if a candidate has the values wanted wherever they are known (at least
        three). Most candidates fail at the first."""
        count, values = 0, iter(wanted)
        for view in self.views:
            form = closed(view)
            compiled, steps = program(form), size(form)
            for point, value in zip(view.points, values, strict=False):
                if value is None:
                    continue
                self.effort.spend(steps)
                held = compiled.run(point, PRECISION)[0]
                if not defined(held) or not held.overlaps(value):
                    return False
                count += narrow(held) is not None
        return count >= 3

    def fits(self, wanted: Values, form: Expr) -> bool:
        return self.are(wanted, lambda view: view.closed(form))

    def inside(self, let: Let, indices: tuple[Expr, ...]) -> Rows | None:
        found = [view.inside(let, indices) for view in self.views]
        views = tuple(view for view in found if view is not None)
        return Rows(views, self.effort) if len(views) == len(found) else None


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
    rows: Rows
    now: Values = ()
    meant: Values = ()
    around: Place | None = None

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
        return self.rows.fits(self.meant, new)


class Scene:
    """A declared cotangent that differs from the derivative, at the points of some
    instances of its rule. (Not a value: results are memoised.)"""

    def __init__(
        self, written: Rule, name: str, points: Mapping[Instance, tuple[Point, ...]]
    ) -> None:
        self.rule, self.input = written, name
        self.axes: Mapping[str, Axes] = axes_of(written)
        self.effort = Effort()
        self.every = Rows(tuple(self._views(points)), self.effort)
        self.rows = Rows(tuple(view.few() for view in self.every.views), self.effort)
        self.upstream = tuple(f"d{o.name}" for o in written.outputs if o.takes_gradient)
        numbers = (v.name for v in written.inputs if v.kind is not Kind.BOOL)
        others = (text for text in self.texts if text != f"d{name}")
        self.names = tuple(dict.fromkeys((*numbers, *self.upstream, *others)))

    def _views(self, points: Mapping[Instance, tuple[Point, ...]]) -> Iterator[View]:
        for instance, some in points.items():
            made = expansion(self.rule, instance.sizes, instance.integers)
            bound = tuple(_bound(instance, point) for point in some)
            for index in places(self.axes[self.input], instance.sizes):
                env = dict(zip(self.entry.indices, index, strict=True))
                yield View(instance, index, bound, made, env)

    @cached_property
    def entry(self) -> Declared:
        pairs = zip(self.rule.inputs, self.rule.backward, strict=True)
        found = next(entry for v, entry in pairs if v.name == self.input)
        assert isinstance(found, Declared)
        return found

    @cached_property
    def lets(self) -> Mapping[str, Let]:
        return {t.name: t for t in (*self.rule.forward, *self.rule.backward_locals)}

    @cached_property
    def texts(self) -> Mapping[str, Let]:
        """Every text, calls expanded, and last that of the cotangent."""
        found = {n: replace(t, value=plain(t.value)) for n, t in self.lets.items()}
        for variable, entry in zip(self.rule.inputs, self.rule.backward, strict=True):
            if isinstance(entry, Declared):
                name, axes = f"d{variable.name}", variable.shape.axes
                value = plain(entry.value)
                found[name] = Let(name, entry.indices, value, entry.span, axes)
        own = f"d{self.input}"
        return {**{n: t for n, t in found.items() if n != own}, own: found[own]}

    @property
    def text(self) -> Let:
        return self.texts[f"d{self.input}"]

    @cached_property
    def derived(self) -> Derived | None:
        """The derivative for every size, with the indices of the cotangent's text."""
        try:
            found = indexed_cotangents(self.rule)[self.input]
        except Underivable:
            return None
        pairs = zip(found.indices, self.entry.indices, strict=True)
        return Derived(renamed(found.value, dict(pairs)), self.entry.indices)

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """The parts of the cotangent, and of the backward locals that it uses once."""
        return tuple(islice(self._places(), _MOST_PLACES))

    @property
    def root(self) -> Place:
        return self.places[0]

    def is_instead(self, instead: Instead) -> bool:
        """True if every element of the cotangent has the value of this candidate."""
        return self.every.are(self.values[0], instead)

    @cached_property
    def values(self) -> tuple[Values, Values]:
        """The values of the cotangent and those of the derivative, at every point."""
        return self.every.values(self.text.value), self._derivative(self.every)

    @cached_property
    def closed(self) -> tuple[Let, ...]:
        """The outputs in terms of the inputs."""
        fresh, outputs = Fresh(), {output.name for output in self.rule.outputs}
        texts = [self.texts[let.name] for let in self.rule.forward]
        values = {t.name: Value(t.name, t.indices, t.axes, t.value) for t in texts}
        taken = frozenset((*self.axes, *axis_names(self.rule)))
        return tuple(
            replace(
                t, value=named(inlined(t.value, values, fresh), taken | {*t.indices})
            )
            for t in texts
            if t.name in outputs
        )

    def at_hand(
        self, expr: Expr, text: Let, indices: Indices | None = None
    ) -> Expr | None:
        """A part of a text in terms of the available indices, if they range over its
        axes."""
        wanted = self.root.indices if indices is None else indices
        own = dict(zip(text.indices, text.axes, strict=True))
        used = [index for index in own if index in expr.free]
        free_at = {axis: index for index, axis in reversed(list(wanted.items()))}
        names = {
            i: i if wanted.get(i) == own[i] else free_at.get(own[i], "") for i in used
        }
        if not all(names.values()) or len(set(names.values())) < len(used):
            return None
        found = renamed(expr, names)
        return found if is_at_hand(found, wanted) else None

    def refs(self, indices: Indices) -> Iterator[Ref]:
        """Every value that can be named at these indices."""
        for name in self.names:
            choices = [
                [i for i, a in indices.items() if a == x] for x in self.axes[name]
            ]
            for at in product(*choices):
                if len(set(at)) == len(at):
                    yield Ref(name, tuple(map(Idx, at)))

    # --- places --------------------------------------------------------------------------

    def _places(self) -> Iterator[Place]:
        yield from self._of_text(self.text, self.rows, self._derivative(self.rows))

    def _derivative(self, rows: Rows) -> Values:
        return tuple(
            narrow(view.derivative(self.input).run(point, PRECISION)[0])
            for view in rows.views
            for point in view.points
        )

    def _of_text(self, text: Let, rows: Rows, meant: Values) -> Iterator[Place]:
        indices = dict(zip(text.indices, text.axes, strict=True))
        parts = list(_above_reductions(text.value))
        raw = dict(zip(parts, rows.columns(*parts), strict=True))
        todo: list[tuple[Expr, Expr | None, Values]] = [(text.value, None, meant)]
        while todo:
            node, parent, wanted = todo.pop()
            now = tuple(map(narrow, raw[node]))
            place = Place(text.name, node, parent, indices, rows, now, wanted)
            yield place
            if isinstance(node, Reduce):
                yield from _inside(place, node)
            below = list(_below(node, raw, wanted))
            todo += [(child, node, values) for child, values in reversed(below)]
            if isinstance(node, Ref) and node.name in self._once:
                let = self.texts[node.name]
                inner = rows.inside(let, node.indices)
                if inner is not None:
                    yield from self._of_text(let, inner, wanted)

    @cached_property
    def _once(self) -> frozenset[str]:
        """The locals that only the backward pass uses, in one place."""
        uses = Counter(
            node.name
            for text in self.texts.values()
            for node in islice(_tree(text.value), _MOST_PLACES)
            if isinstance(node, Ref)
        )
        return frozenset(n for n in backward_only(self.rule) if uses[n] == 1)


def _bound(instance: Instance, point: Point) -> Point:
    """A point with the values of all names of the rule."""
    bound, rule = _Bound(point), instance.rule
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        if isinstance(entry, Declared | Override):
            stated = program(instance.stated[variable.name])
            bound[f"d{variable.name}"] = _known(stated.run(point, PRECISION)[0])
    for let in (*rule.forward, *rule.backward_locals):
        value = program(expand(let.value)).run(bound, PRECISION)[0]
        bound[let.name] = _known(value)
    return bound


def _known(value: Any) -> Any:
    return UNDEFINED if value is None else value


def _inside(place: Place, node: Reduce) -> Iterator[Place]:
    """The parts of a reduction, which have no values of their own."""
    todo: list[tuple[Expr, Expr, Indices]] = [(node, node, place.indices)]
    while todo:
        part, parent, indices = todo.pop()
        if part is not node:
            yield Place(place.within, part, parent, indices, place.rows, around=place)
        if isinstance(part, Reduce):
            indices = {**indices, **{b.index: b.axis for b in part.bounds}}
        if not isinstance(part, Ref | Idx):
            todo += [(child, part, indices) for child in reversed(children(part))]


def _above_reductions(text: Expr) -> Iterator[Expr]:
    """Every distinct part that is in no reduction."""
    seen: set[Expr] = set()
    todo = [text]
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            yield node
            if not isinstance(node, Reduce | Ref):
                todo += children(node)


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
        return self.instead is None or scene.is_instead(self.instead)


Hypothesis: TypeAlias = Callable[[Scene], Iterator[Guess]]
Forms: TypeAlias = Iterator[tuple[str, Expr]]
"""Sentences with candidates for the replacement of a part."""


# --- expressions -------------------------------------------------------------------------


def plain(text: Expr) -> Expr:
    """The expression without calls; unchanged if there are none, since rebuilding gives
    equal parts the span of the first of them."""
    return expand(text) if any(isinstance(n, Call) for n in nodes(text)) else text


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


def at(body: Expr, index: str, other: Expr) -> Expr:
    """``body`` with an index replaced."""
    return everywhere(body, Idx(index), other)


def renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
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


def is_at_hand(expr: Expr, indices: Iterable[str]) -> bool:
    """True if an expression uses no indices but these."""
    return set(indices).issuperset(expr.free)


def backward_only(rule: Rule) -> frozenset[str]:
    """Locals of the backward pass, and those that no output uses."""
    texts: Mapping[str, Expr] = {let.name: let.value for let in rule.forward}
    needed: set[str] = set()
    todo = [output.name for output in rule.outputs]
    todo += [n for one in rule.surrogates for n in _names(one.value)]
    while todo:
        name = todo.pop()
        if name in texts and name not in needed:
            needed.add(name)
            todo += _names(texts[name])
    return frozenset({let.name for let in rule.backward_locals} | (set(texts) - needed))


def _names(expr: Expr) -> frozenset[str]:
    return frozenset(node.name for node in nodes(expr) if isinstance(node, Ref))
