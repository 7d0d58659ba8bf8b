"""The values of a rule, the meaning of its names and indices, and rules with replaced
values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, count

from gradspec.derive import scopes
from gradspec.derive.chain import Underivable
from gradspec.derive.vjp import fill_slopes, vjps
from gradspec.ir.expr import (
    ZERO,
    Apply,
    Bound,
    Call,
    Const,
    Expr,
    Idx,
    Key,
    Reduce,
    Ref,
    Select,
    Size,
)
from gradspec.ir.products import product
from gradspec.ir.rule import Complete, Definition, Input, Output, Rule
from gradspec.ir.walk import (
    children,
    expand,
    inline,
    names,
    nodes,
    stops,
    substitute,
    transform,
    with_children,
)
from gradspec.primitives.table_operators import STOP
from gradspec.symbolic.points.domain import Signs


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value of a rule that is evaluated: a local, an output or a cotangent. A derived
    one may take any form; ``others`` are further initial forms of it.
    """

    name: str
    value: Expr
    indices: tuple[str, ...] = ()
    axes: tuple[str | int, ...] = ()
    is_gradient: bool = False
    is_derived: bool = False
    others: tuple[Expr, ...] = ()

    @property
    def owner(self) -> str:
        """The value of the text that it is, or is a part of (`comparisons`)."""
        return self.name.partition("'")[0]


class Names:
    """The values that the names of a rule stand for; a value may use other names.
    ``opaque`` names stand for themselves.
    """

    def __init__(self, rule: Rule, opaque: tuple[str, ...] = ()) -> None:
        self._values = {name: one.value for name, one in rule.values.items()}
        for name in opaque:
            self._values.pop(name, None)
        self._closed: dict[str, Expr] = {}
        self._known: dict[Key, Expr] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def close(self, expr: Expr) -> Expr:
        """``expr`` in inputs, statics and cotangents alone."""
        used = sorted(names(expr) & self._values.keys())
        if not used:
            return expr
        if expr.key not in self._known:
            values = {name: self._close(name) for name in used}
            self._known[expr.key] = substitute(expr, values)
        return self._known[expr.key]

    def _close(self, name: str) -> Expr:
        if name not in self._closed:
            self._closed[name] = self.close(self._values[name])
        return self._closed[name]


def signed(expr: Expr, signs: Signs) -> Expr:
    """``expr`` with something of the same sign in place of each name that has one."""

    def visit(node: Expr) -> Expr:
        sign = signs.get(node.name.partition("[")[0]) if isinstance(node, Ref) else None
        plain = Apply("exp" if sign else "square", (node,))
        return node if sign is None else Apply("max", (plain,))  # not a square any more

    return transform(expr, visit)


def map_values(rule: Complete, change: Callable[[Expr], Expr]) -> Complete:
    """``rule`` with all of its values changed."""
    return rule.map(lambda one: replace(one, value=change(one.value)))


def without_calls(rule: Complete) -> Complete:
    """Calls of other rules replaced by their values; their declared backward passes are
    in the cotangents already. Where these use a value that stops gradients, it is a
    constant for whoever differentiates them.
    """
    plain, held = map_values(rule, expand), map_values(rule, with_stops)
    if held == plain:
        return plain
    stopped: dict[str, Definition] = {}
    for let, same in zip(held.forward, plain.forward, strict=True):
        if let.value != same.value or names(let.value) & stopped.keys():
            stopped[let.name] = let
    lets = rule.values.values()
    variables: tuple[Input | Output, ...] = (*rule.inputs, *rule.outputs)
    taken = {*(v.name for v in variables), *(let.name for let in lets)}
    scope = Scope(taken.union(*(let.indices for let in lets)))
    backward = map_values(held, lambda value: inline_lets(value, stopped, scope))
    return plain.redefine(*backward.backward, *backward.backward_locals)


def with_stops(expr: Expr) -> Expr:
    """``expr`` with its calls replaced by their values, and with `STOP` where a called
    rule passes no gradient on."""

    def visit(node: Expr) -> Expr:
        if not isinstance(node, Call):
            return node
        if stops(node.rule):
            return Apply(STOP, (expand(node),))
        own = inline(node.rule.forward, Ref(node.rule.outputs[node.output].name))
        inputs = (variable.name for variable in node.rule.inputs)
        return substitute(with_stops(own), dict(zip(inputs, node.args, strict=True)))

    return transform(expr, visit)


def without_dead_locals(before: Rule, after: Complete) -> Complete:
    """``after`` without locals that only the old forms used; locals that the user left
    unused, or asked to be saved or recomputed, stay.
    """
    used_before, used_after = _used(before), _used(after)
    dead = {let.name for let in before.forward if let.name in used_before - used_after}
    if not dead:
        return after
    kept = tuple(d for d in after.definitions if d.name not in dead)
    return replace(after, definitions=kept)


def _used(rule: Rule) -> frozenset[str]:
    """Names that outputs, cotangents or the user's ``save`` and ``recompute`` need."""
    values = {let.name: let.value for let in (*rule.forward, *rule.backward_locals)}
    roots: list[str] = [o.name for o in rule.outputs]
    roots += [*rule.saves, *rule.recomputes]
    roots += [let.name for let in rule.backward_locals]
    for entry in (*rule.backward, *rule.surrogates):
        roots += sorted(names(entry.value))
    found: dict[str, None] = {}
    while roots:
        name = roots.pop()
        if name not in found:
            found[name] = None
            roots += sorted(names(values[name])) if name in values else []
    return frozenset(found)


def rederive(rule: Rule, forward: tuple[Definition, ...]) -> dict[str, Expr]:
    """The cotangents of the inputs, derived from the selected forward; none where a
    selected form has no derivative.
    """
    upstream = {o.name: Ref(o.cotangent) for o in rule.outputs if o.takes_gradient}
    wrt = tuple(i.name for i in rule.inputs if i.takes_gradient)
    try:
        return vjps(fill_slopes(forward), rule.surrogates, upstream, wrt)
    except Underivable:
        return {}


# --- indices --------------------------------------------------------------------------
#
# An index is bound at most once on the way from the root to any node
# (`tests/ir/well_formed.py`), so substituted expressions get new names for their bound
# indices (`derive.scopes`).

Scope = frozenset[str]
"""Names that a new bound index must not have: indices in scope, variables."""


_FRESH = scopes.Fresh("@")


def _letters() -> Iterator[str]:
    for number in count():
        yield from (f"{letter}{number or ''}" for letter in "jlkiqrstuvw")


def copy_fresh(expr: Expr) -> Expr:
    """``expr`` with fresh names for its bound indices, to be put anywhere inside an
    expression that :func:`place` gets in the end.
    """
    return scopes.refresh(expr, {}, _FRESH)


def place(expr: Expr, values: Mapping[str, Expr], scope: Scope) -> Expr:
    """``expr`` with free indices replaced, to be placed where ``scope`` is in force; a
    bound index keeps its name unless that is taken, or fresh.
    """
    taken = scope.union(expr.free, *(value.free for value in values.values()))
    return _place(expr, values, taken)


def _place(expr: Expr, values: Mapping[str, Expr], taken: Scope) -> Expr:
    if isinstance(expr, Idx):
        return values.get(expr.name, expr)
    if not isinstance(expr, Reduce):
        parts = (_place(child, values, taken) for child in children(expr))
        return with_children(expr, tuple(parts))
    bounds = []
    for old in expr.bounds:
        own = () if old.index.startswith("@") else (old.index,)
        name = next(n for n in chain(own, _letters()) if n not in taken)
        bounds.append(Bound(name, old.axis))
        values, taken = {**values, old.index: Idx(name)}, taken | {name}
    parts = (_place(child, values, taken) for child in children(expr))
    return Reduce(expr.op, tuple(bounds), *parts, span=expr.span)


def inline_lets(expr: Expr, lets: Mapping[str, Definition], scope: Scope) -> Expr:
    """``expr`` with lets inlined, recursively."""
    values = {
        name: scopes.Value(name, let.indices, let.axes, let.value)
        for name, let in lets.items()
    }
    return place(scopes.inline_values(expr, values, _FRESH), {}, scope)


def weight(expr: Expr, lets: Mapping[str, Definition]) -> int:
    """The number of nodes of :func:`inline_lets`'s result, without building it (it may be
    large).
    """
    known: dict[str, int] = {}
    for let in lets.values():
        known[let.name] = _weight(let.value, known)
    return _weight(expr, known)


def _weight(expr: Expr, known: Mapping[str, int]) -> int:
    found: dict[Expr, int] = {}
    for node in nodes(expr):
        own = known.get(node.name, 1) if isinstance(node, Ref) else 1
        found[node] = own + sum(found[child] for child in children(node))
    return found[expr]


def is_same(left: Expr, right: Expr) -> bool:
    """True if equal up to the names of bound indices."""
    return scopes.unify(left, right, Scope()) is not None


def use_names(expr: Expr, lets: tuple[Definition, ...]) -> Expr:
    """``expr`` with the names of lets in place of their values. A value that is no more
    than an operation on a constant is not worth a name.
    """
    worth = tuple(x for x in lets if children(x.value) and names(x.value))
    return _use_names(expr, worth) if worth else expr


def _use_names(expr: Expr, lets: tuple[Definition, ...]) -> Expr:
    for let in lets:
        if type(let.value) is type(expr) and names(let.value) == names(expr):
            found = scopes.unify(let.value, expr, Scope(let.indices))
            if found is not None and len(found) == len(let.indices):
                at = tuple(found[index] for index in let.indices)
                return Ref(let.name, at)
    parts = tuple(_use_names(child, lets) for child in children(expr))
    return with_children(expr, parts)


# --- what is known of an expression without data -------------------------------------------


def divisors(expr: Expr) -> Iterator[Expr]:
    """The divisors in an expression, and the bases of powers that may be divisors."""
    for node in nodes(expr):
        match node:
            case Apply(op="div", args=(_, below)):
                yield from product(below).above
            case Apply(op="rsqrt" | "pow", args=(a, *n)) if not any(
                is_positive(exponent, True) for exponent in n
            ):
                yield a


def is_positive(expr: Expr, or_zero: bool = False) -> bool:
    """True if an expression is plainly positive (or not negative) for all data."""
    match expr:
        case Const(value=value):
            return value > 0 or (value == 0 and or_zero)
        case Size() | Apply(op="exp" | "sigmoid" | "softplus"):
            return True
        case Apply(op="square" | "abs") | Apply(op="pow", args=(_, Const(value=2))):
            return or_zero
        case Apply(op="sqrt", args=(a,)):
            return is_positive(a, or_zero)
        case Apply(op="max", args=parts):
            return any(is_positive(part, or_zero) for part in parts)
        case Apply(op="mul" | "div", args=(a, b)):
            return is_positive(a, or_zero) and is_positive(b, or_zero)
        case Apply(op="add", args=(a, b)):
            both = is_positive(a, True) and is_positive(b, True)
            return both and (or_zero or is_positive(a) or is_positive(b))
        case Reduce(op="sum" | "mean", body=body):  # an empty one is 0
            return or_zero and is_positive(body, True)
        case _:
            return False


@lru_cache(maxsize=8192)
def degree(expr: Expr, of: Expr | str = "exp") -> int | None:
    """The degree in which an expression is homogeneous in a node, or in the calls of a
    primitive: the expression scales with them. None if it is not homogeneous.
    """
    match expr:
        case _ if expr == of or (isinstance(expr, Apply) and expr.op == of):
            return 1
        case Apply(op="neg", args=(a,)):
            return degree(a, of)
        case Apply(op="mul" | "div" as op, args=(a, b)):
            one, other = degree(a, of), degree(b, of)
            if one is None or other is None:
                return None
            return one + other if op == "mul" else one - other
        case Apply(op="square", args=(a,)):
            return None if (one := degree(a, of)) is None else 2 * one
        case Apply(op="pow", args=(a, Const(value=n))) if n.denominator == 1:
            return None if (one := degree(a, of)) is None else int(n) * one
        case Apply(op="add" | "sub", args=(a, b)):
            return _common(a, b, of)
        case Select(condition=test, then=a, other=b) if degree(test, of) == 0:
            return _common(a, b, of)
        case Reduce(op="sum" | "mean", body=body, where=where) if (
            where is None or degree(where, of) == 0
        ):
            return degree(body, of)
        case _:
            return 0 if all(degree(part, of) == 0 for part in children(expr)) else None


def _common(left: Expr, right: Expr, of: Expr | str) -> int | None:
    if ZERO in (left, right):
        return degree(right if left == ZERO else left, of)
    one, other = degree(left, of), degree(right, of)
    return one if one == other else None
