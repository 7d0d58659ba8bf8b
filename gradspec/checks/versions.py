"""Two versions of a rule, compared over one set of inputs.

What both compute, outputs and gradients as they are emitted (declared, derived, overridden),
is put into one rule without gradients: its inputs are those of the old version and its upstream
gradients. So a definition that both have is one definition, sizes and points are those at which
either may change, and what evidence there is for a gradient there is for a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction

from gradspec.checks.evidence import Claim, is_rounding
from gradspec.checks.gradients import fault_at
from gradspec.checks.instances import Instance, Instances, Point, instances, stem
from gradspec.checks.proofs import is_defined, prove
from gradspec.checks.regions import region_points
from gradspec.derive.complete import complete
from gradspec.derive.indexed import closed_cotangent, same
from gradspec.derive.scopes import Fresh, refresh
from gradspec.ir.expr import (
    ONE,
    ZERO,
    Const,
    Expr,
    Idx,
    Reduce,
    Ref,
    Select,
    Size,
    show,
)
from gradspec.ir.recurrence import states
from gradspec.ir.rule import (
    Assume,
    Complete,
    Definition,
    Input,
    Kind,
    Origin,
    Output,
    Role,
    Rule,
    Shape,
)
from gradspec.ir.unroll import axis_names, is_too_large
from gradspec.ir.walk import transform
from gradspec.symbolic.compare import (
    Comparison,
    Relation,
    compare,
    distinct_texts,
    point_text,
)
from gradspec.symbolic.limit import Effort

_NEW = "°"
"""The end of the names of the new version, where its definitions are others."""

_REAL = (Kind.FLOAT, Kind.NOGRAD)
_Axes = Mapping[str | int, str | int]


class How(Enum):
    """How a value of the new version is known to be that of the old one, or not to be."""

    TEXT = "same text"
    PROVED = "proved"
    AGREES = "agrees"
    ROUNDED = "rounding"
    DIFFERS = "differs"
    UNKNOWN = "not compared"


@dataclass(frozen=True, slots=True)
class Part:
    """An output (``y``) or a gradient (``dx``) in two versions. ``sizes`` are those for
    which it is proved, ``points`` the number of points that agree. Where it differs,
    ``point`` is one at which it does, ``was`` and ``now`` are its values there. ``reason``
    says why it was not compared.
    """

    name: str
    how: How
    sizes: str = ""
    points: int = 0
    point: str = ""
    was: str = ""
    now: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """Changes of the signature, each with whether a caller can notice it, and the
    values; none of them where the signatures do not allow a comparison.
    """

    signature: tuple[tuple[bool, str], ...] = ()
    parts: tuple[Part, ...] = ()

    @property
    def is_noticed(self) -> bool:
        """True if a caller of the old version can notice the new one, or it is not
        known that none can."""
        loud = (How.DIFFERS, How.UNKNOWN)
        return any(noticed for noticed, _ in self.signature) or any(
            part.how in loud for part in self.parts
        )


def compare_rules(old: Rule, new: Rule, budget: float) -> Compared:
    """The signatures of two versions, their values and gradients; ``budget`` is the
    effort of proofs.
    """
    axes = _common_axes(old, new)
    told = [*_of_signature(old, new, axes or {})]
    if axes is None or any(_is_obstacle(old, new, i.name) for i in old.inputs):
        return Compared(tuple(told))
    extra = [i for i in new.inputs if i.name not in {j.name for j in old.inputs}]
    if any(i.default is None or i.is_size for i in extra):
        return Compared(tuple(told))
    told += _of_domain(old, new, axes)
    whole = complete(old).value, complete(new).value
    if whole[0] is None or whole[1] is None:
        reason = "a gradient cannot be derived"
        return Compared(tuple(told), (Part(old.name, How.UNKNOWN, reason=reason),))
    both = _Both(whole[0], whole[1], axes)
    return Compared(tuple(told), tuple(both.parts(Effort.of(budget))))


# --- signatures ----------------------------------------------------------------------------


def signature(rule: Rule) -> tuple[str, ...]:
    """What a caller writes and gets, in words that can be compared."""
    own: _Axes = {axis: f"{k}" for k, axis in enumerate(axis_names(rule))}
    return (*(_input(i, own) for i in rule.inputs), *_outputs(rule, own))


def _of_signature(old: Rule, new: Rule, axes: _Axes) -> Iterator[tuple[bool, str]]:
    before = {i.name: _input(i, {}) for i in old.inputs}
    after = {i.name: _input(i, axes) for i in new.inputs}
    for name, text in before.items():
        if name not in after:
            yield True, f"the input {text} is gone"
        elif after[name] != text:
            yield True, f"{text} was, {after[name]} is"
    for i in new.inputs:
        if i.name not in before:
            yield i.default is None, f"the input {after[i.name]} is new"
    orders = [[i.name for i in rule.tensor_inputs] for rule in (old, new)]
    if orders[0] != orders[1] and {*orders[0]} == {*orders[1]}:
        yield True, f"inputs were {', '.join(orders[0])}, are {', '.join(orders[1])}"
    results = [", ".join(_outputs(old, {})), ", ".join(_outputs(new, axes))]
    if results[0] != results[1]:
        yield True, f"-> {results[0]} was, -> {results[1]} is"


def _input(i: Input, axes: _Axes) -> str:
    value = i.initial if i.is_param else i.default
    kind = "param" if i.is_param else i.kind.value
    shown = "" if kind == "float" else f": {kind}"
    default = "" if value is None else f" = {show(Const(value))}"
    return f"{i.name}{_shape(i.shape, axes)}{shown}{default}"


def _outputs(rule: Rule, axes: _Axes) -> list[str]:
    """One output has no name that a caller sees."""
    names = [o.name if len(rule.outputs) > 1 else "result" for o in rule.outputs]
    kinds = ["" if o.kind is Kind.FLOAT else f": {o.kind.value}" for o in rule.outputs]
    shapes = [_shape(o.shape, axes) for o in rule.outputs]
    return [f"{n}{s}{k}" for n, s, k in zip(names, shapes, kinds, strict=True)]


def _shape(shape: Shape, axes: _Axes) -> str:
    if shape.is_elementwise:
        return ""
    named = [str(axes.get(axis, axis)) for axis in shape.axes]
    return f"[{', '.join(['...'] * shape.batch + named)}]"


def _common_axes(old: Rule, new: Rule) -> _Axes | None:
    """The axes of the new version by the names of the old one; none if a shape is
    another."""
    shapes = {i.name: i.shape for i in new.inputs}
    pairs = [(i.shape, shapes[i.name]) for i in old.inputs if i.name in shapes]
    results = zip(old.outputs, new.outputs, strict=False)
    found: dict[str | int, str | int] = {}
    for a, b in [*pairs, *((a.shape, b.shape) for a, b in results)]:
        if a.batch != b.batch or len(a.axes) != len(b.axes):
            return None
        for one, other in zip(a.axes, b.axes, strict=True):
            if found.setdefault(other, one) != one:
                return None
    fixed = all(a == b for b, a in found.items() if isinstance(a, int | float))
    is_same = fixed and len({*found.values()}) == len(found)
    return found if is_same and len(old.outputs) == len(new.outputs) else None


def _is_obstacle(old: Rule, new: Rule, name: str) -> bool:
    """True if an input of the old version is none of the new one, or of a kind that
    cannot be compared."""
    kinds = [{i.name: i.kind for i in rule.inputs}.get(name) for rule in (old, new)]
    return kinds[0] is not kinds[1] and not {*kinds} <= {*_REAL}


def _of_domain(old: Rule, new: Rule, axes: _Axes) -> Iterator[tuple[bool, str]]:
    before = {a.condition for a in old.assumes}
    after = {_rename(a.condition, {}, axes): a for a in new.assumes}
    for condition in after:
        if condition not in before:
            yield True, f"assumes {show(condition)} now"
    for condition in before - after.keys():
        yield False, f"no longer assumes {show(condition)}"


# --- values --------------------------------------------------------------------------------


class _Both:
    """Both versions as one rule: ``pairs`` are its names of each value in the two."""

    def __init__(self, old: Complete, new: Complete, axes: _Axes) -> None:
        values, others = _values(old), _values(new)
        positions = [*zip(old.outputs, new.outputs, strict=True)]
        given = {i.name for i in old.inputs}
        extra = {i.name: i.default for i in new.inputs if i.name not in given}
        start = {d.name: d.name for d in others} | {
            b.name: a.name for a, b in positions
        }
        start |= {b.cotangent: a.cotangent for a, b in positions}
        start |= {name: f"{name}{_NEW}" for name in extra}
        names = _common_names(values, others, start, axes, _is_text)
        is_recursive = any(d.is_equation for d in values) or bool(states(old))
        alike = names
        if is_recursive:
            alike = _common_names(values, others, start, axes, _is_alike)
        self.alike = {n for n in alike.values() if not n.endswith(_NEW)}
        self.upstream = [o.cotangent for o in old.outputs if o.takes_gradient]
        self.pairs = [(a.name, names[b.name]) for a, b in positions]
        common = {d.name for d in new.backward}
        self.pairs += [
            (d.name, names[d.name]) for d in old.backward if d.name in common
        ]

        truths = {a.name for a in old.outputs if a.kind is Kind.BOOL}
        truths |= {names[b.name] for b in new.outputs if b.kind is Kind.BOOL}
        shown = {name for pair in self.pairs for name in pair}
        options = (
            Definition(f"{name}{_NEW}", Role.LOCAL, Const(default))
            for name, default in extra.items()
            if default is not None
        )
        changed = (d for d in others if names[d.name].endswith(_NEW))
        definitions = (
            replace(
                one,
                role=Role.OUTPUT if one.name in shown else Role.LOCAL,
                value=Select(one.value, ONE, ZERO) if one.name in truths else one.value,
                origin=Origin.WRITTEN,
            )
            for one in (*values, *(_by_old_names(d, names, axes) for d in changed))
        )
        upstream = (
            Input(o.cotangent, Kind.NOGRAD, o.shape)
            for o in old.outputs
            if o.takes_gradient
        )
        shapes = {o.name: o.shape for o in old.outputs}
        shapes |= {i.cotangent: i.shape for i in old.inputs}
        assumes = (*old.assumes, *(_assumption(a, axes) for a in new.assumes))
        self.rule = Rule(
            old.name,
            None,
            (*(_without_gradient(i) for i in old.inputs), *upstream),
            tuple(
                Output(name, Kind.NOGRAD, shapes[was])
                for was, now in self.pairs
                for name in dict.fromkeys((was, now))
            ),
            (*options, *definitions),
            tuple(dict.fromkeys(assumes)),
            source=old.source,
            span=old.span,
        )

    def parts(self, effort: Effort) -> Iterator[Part]:
        """Every output and gradient of the old version, in order."""
        has_equation = any(d.is_equation for d in self.rule.definitions)
        is_beyond = has_equation or is_too_large(self.rule)
        known = None if is_beyond else instances(self.rule)
        for was, now in self.pairs:
            if was == now:
                yield Part(was, How.TEXT)
            elif known is None:
                if self._is_equal(was, now):
                    yield Part(was, How.PROVED, self._every_size)
                else:
                    reason = "an equation" if has_equation else "it is too large"
                    yield Part(was, How.UNKNOWN, reason=reason)
            else:
                yield self._part(was, now, known, effort)

    def _part(self, was: str, now: str, known: Instances, effort: Effort) -> Part:
        claims = [c for one in known.every for c in self._claims(was, now, one)]
        agreeing = 0
        for claim in claims:
            for point in claim.instance.points:
                seen = compare(claim.declared, claim.derived, point)
                if seen.relation in _APART:
                    return self._difference(was, claim, point, seen)
                agreeing += seen.relation is Relation.EQUAL
        lacking = self._lacking(was, known)
        if lacking is not None:
            return lacking
        sizes = self._proved_sizes(was, now, claims, known, effort)
        if sizes is not None and (not sizes or sizes == "every size"):
            return Part(was, How.PROVED, sizes)
        for claim in claims if known.is_whole or not self.rule.has_axes else ():
            for point in region_points(claim):
                seen = compare(claim.declared, claim.derived, point)
                if seen.relation in _APART:
                    return self._difference(was, claim, point, seen)
        if not agreeing:
            return Part(was, How.UNKNOWN, reason="no point could be decided")
        return Part(was, How.AGREES, sizes or "", agreeing)

    def _lacking(self, was: str, known: Instances) -> Part | None:
        """The part, if the new version uses an element that does not exist, at sizes
        that the old one knows."""
        kept = tuple(d for d in self.rule.definitions if not d.name.endswith(_NEW))
        outputs = tuple(o for o in self.rule.outputs if not o.name.endswith(_NEW))
        old = replace(self.rule, definitions=kept, outputs=outputs)
        for gap in known.missed:
            fault = fault_at(self.rule, gap)
            if fault is not None and fault_at(old, gap) is None:
                given = {**gap.sizes, **gap.integers}
                point = ", ".join(f"{name} = {value}" for name, value in given.items())
                now = f"an element that does not exist ({fault.name})"
                return Part(was, How.DIFFERS, point=point, was="a number", now=now)
        return None

    def _proved_sizes(
        self,
        was: str,
        now: str,
        claims: list[Claim],
        known: Instances,
        effort: Effort,
    ) -> str | None:
        """The sizes at which the value is proved to be the same, none of a rule without
        axes; None if there is no proof."""
        far = {known.first, *known.further}
        if self._is_equal(was, now) and all(
            is_defined(claim, effort) for claim in claims if claim.instance in far
        ):
            return self._every_size
        small = [claim for claim in claims if claim.instance in {*known.small}]
        if not known.is_whole or any(prove(c, effort).proof is None for c in small):
            return None
        return f"sizes 1 to {known.largest}" if axis_names(self.rule) else ""

    @property
    def _every_size(self) -> str:
        return "every size" if axis_names(self.rule) else ""

    def _is_equal(self, was: str, now: str) -> bool:
        """True if the index calculus shows it, for every size."""
        values = self.rule.values
        if was in self.alike or not self.rule.has_axes or states(self.rule):
            return was in self.alike
        a, b = (closed_cotangent(self.rule, values[name]) for name in (now, was))
        return same(a, b)

    def _claims(self, was: str, now: str, instance: Instance) -> Iterator[Claim]:
        for key, value in instance.forward.items():
            if stem(key) == was:
                other = instance.forward[now + key.removeprefix(was)]
                element = Input(key, Kind.FLOAT, Shape())
                yield _Unchanged(instance, element, self.rule.values[was], other, value)

    def _difference(
        self, was: str, claim: Claim, point: Point, seen: Comparison
    ) -> Part:
        if seen.relation is Relation.DIFFERENT and is_rounding(claim, point):
            return Part(was, How.ROUNDED)
        plain = {**point, **dict.fromkeys(self._upstream_elements(claim), Fraction(1))}
        simpler = compare(claim.declared, claim.derived, plain)
        if simpler.relation in _APART:
            point, seen = plain, simpler
        now, before = distinct_texts((seen.left, seen.right))
        where = point_text(point, claim.shown)
        return Part(claim.input.name, How.DIFFERS, point=where, was=before, now=now)

    def _upstream_elements(self, claim: Claim) -> Iterable[str]:
        return (n for n in claim.instance.shown if stem(n) in self.upstream)


class _Unchanged(Claim):
    """The claim that a value is still the old one, wherever that exists."""

    __slots__ = ()

    @property
    def given(self) -> tuple[Expr, ...]:
        return (self.derived,)


_APART = (Relation.DIFFERENT, Relation.LEFT_UNDEFINED)


def _values(rule: Complete) -> list[Definition]:
    """What a rule computes, both passes."""
    return [d for d in rule.definitions if d.role is not Role.SURROGATE]


def _common_names(
    values: list[Definition],
    others: list[Definition],
    start: Mapping[str, str],
    axes: _Axes,
    is_same: Callable[[Definition, Definition], bool],
) -> dict[str, str]:
    """Each name of the new version in both: that of the old one, unless its definition
    is seen to be another, or uses one that is.
    """
    twins = {d.name: d for d in values}
    names = dict(start)
    apart = others
    while apart:
        apart = []
        for one in others:
            if names[one.name].endswith(_NEW):
                continue
            twin = twins.get(names[one.name])
            if twin is None or not is_same(twin, _by_old_names(one, names, axes)):
                apart.append(one)
        names |= {d.name: f"{d.name}{_NEW}" for d in apart}
    return names


def _without_gradient(i: Input) -> Input:
    kind = Kind.NOGRAD if i.kind is Kind.FLOAT else i.kind
    return replace(i, kind=kind, initial=None)


def _assumption(assume: Assume, axes: _Axes) -> Assume:
    indices = tuple((index, axes.get(axis, axis)) for index, axis in assume.indices)
    return Assume(_rename(assume.condition, {}, axes), indices)


def _by_old_names(one: Definition, names: Mapping[str, str], axes: _Axes) -> Definition:
    """A definition of the new version by the names of both."""
    return replace(
        one,
        name=names[one.name],
        value=_rename(one.value, names, axes),
        axes=tuple(axes.get(axis, axis) for axis in one.axes),
        start=None if one.start is None else _rename(one.start, names, axes),
    )


def _is_text(a: Definition, b: Definition) -> bool:
    """True if two definitions are the same, but for places in the text."""
    values = [(d.value, d.indices, d.axes, d.is_equation, d.start) for d in (a, b)]
    return values[0] == values[1]


def _is_alike(a: Definition, b: Definition) -> bool:
    """True if two definitions are the same function of the names that they use, for
    every size. Where that holds of each step, it holds of a recurrence."""
    if (a.axes, a.is_equation, a.start) != (b.axes, b.is_equation, b.start):
        return False
    places = [{i: Idx(f"{p}") for p, i in enumerate(d.indices)} for d in (a, b)]
    steps = [
        refresh(d.value, at, Fresh()) for d, at in zip((a, b), places, strict=True)
    ]
    return same(steps[1], steps[0])


def _rename(value: Expr, names: Mapping[str, str], axes: _Axes) -> Expr:
    def visit(node: Expr) -> Expr:
        match node:
            case Ref(name=name, indices=indices):
                return Ref(names.get(name, name), indices, span=node.span)
            case Size(axis=axis):
                return Size(str(axes.get(axis, axis)), span=node.span)
            case Reduce(op=op, bounds=bounds, body=body, where=where):
                over = tuple(replace(b, axis=axes.get(b.axis, b.axis)) for b in bounds)
                return Reduce(op, over, body, where, span=node.span)
            case _:
                return node

    return transform(value, visit)
