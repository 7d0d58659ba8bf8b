"""The derivatives of one expression by its leaves, by reverse accumulation.

Every sweep starts with 1 at the node that it differentiates, so results are factors
without an upstream gradient: ``dy * factor`` is the cotangent, and reads as one would
write it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce
from typing import TypeAlias

from gradspec.ir.expr import ONE, ZERO, Apply, Call, Const, Expr, Reduce, Ref, Select
from gradspec.ir.rule import Rule
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import children, nodes, substitute, with_children
from gradspec.primitives.lookup import partial, primitive

# --- regions --------------------------------------------------------------------------
#
# Which part of an expression is differentiated in one sweep.
#
# A branch of a conditional is differentiated by itself, down to the inputs: were its
# derivative multiplied by a 0 from outside instead, a branch not taken could leak a NaN
# (0 times infinity). What several sweeps share is differentiated once, in a sweep of its
# own. So every active node has one owner: the expression itself, a branch, or a shared
# node, and the work is linear in the size of the expression.


def below(node: Expr) -> tuple[Expr, ...]:
    """The children through which a derivative flows (a condition is none of them)."""
    match node:
        case Apply(args=args) | Call(args=args):
            return args
        case Select(then=then, other=other):
            return (then, other)
        case Reduce(body=body):
            return (body,)
        case _:
            return ()


class Regions:
    """The active nodes below ``root``, children first, each with its owner.

    ``is_leaf`` tells what to differentiate by; ``edges`` numbers the edges from left to
    right, so that sums of contributions can follow the text (``places``: the first edge
    that leads to a node).
    """

    def __init__(self, root: Expr, is_leaf: Callable[[Expr], bool]) -> None:
        self.is_leaf = is_leaf
        self.root = root
        self.edges: dict[tuple[Expr, int], int] = {}
        self.places: dict[Expr, int] = {}
        self._active: set[Expr] = set()
        self._visit()
        self.owners: dict[Expr, Expr] = {root: root}
        self._assign()
        self.members: dict[Expr, list[Expr]] = {}
        for node in self.order:
            self.members.setdefault(self.owners[node], []).append(node)

    def parts(self, node: Expr) -> list[tuple[int, Expr]]:
        """The positions and children through which a derivative flows to a leaf."""
        if self.is_leaf(node):
            return []
        return [
            (position, part)
            for position, part in enumerate(below(node))
            if part in self._active and not _is_flat(node, position)
        ]

    def _visit(self) -> None:
        """Children before parents; edges in the order of the text, left to right."""
        self.order: list[Expr] = []
        entered: set[Expr] = set()
        todo: list[tuple[Expr, tuple[Expr, int] | None, bool]] = [
            (self.root, None, False)
        ]
        while todo:
            node, edge, finished = todo.pop()
            if finished:
                self._finish(node)
                continue
            if edge is not None:
                self.places.setdefault(node, len(self.edges))
                self.edges[edge] = len(self.edges)
            if node in entered:
                continue
            entered.add(node)
            todo.append((node, None, True))
            parts = () if self.is_leaf(node) else below(node)
            for position in reversed(range(len(parts))):
                todo.append((parts[position], (node, position), False))

    def _finish(self, node: Expr) -> None:
        if self.is_leaf(node) or self.parts(node):
            self._active.add(node)
            self.order.append(node)

    def _assign(self) -> None:
        """Assign owners from above; nodes that only a step uses keep none and are
        dropped."""
        for node in reversed(self.order):
            owner = self.owners.get(node)
            if owner is None:
                continue
            for _, part in self.parts(node):
                if (
                    isinstance(node, Select)
                    or self.owners.setdefault(part, owner) != owner
                ):
                    self.owners[part] = part
        self.order = [node for node in self.order if node in self.owners]


def _is_flat(node: Expr, position: int) -> bool:
    """True if the derivative is 0 wherever it exists (steps)."""
    return isinstance(node, Apply) and partial(node.op, position) == ZERO


# --- sweeps ---------------------------------------------------------------------------


Gradient: TypeAlias = dict[Expr, Expr]
"""By leaf, in the order in which the leaves are met; 0 where there is none."""

Backward: TypeAlias = Callable[[Rule, int], Expr]
"""The closed cotangent of a rule's input by its position."""


def gradient(
    expr: Expr, is_leaf: Callable[[Expr], bool], backward: Backward
) -> Gradient:
    """∂expr/∂leaf for every leaf below ``expr``; Underivable where there is none.

    Calls below ``expr`` that are not leaves have linear backwards.
    """
    return _Sweeps(Regions(expr, is_leaf), backward).run()


class _Sweeps:
    """One sweep for each owner, those further down first."""

    def __init__(self, regions: Regions, backward: Backward) -> None:
        self.regions = regions
        self.backward = backward
        self.known: dict[Expr, Gradient] = {}

    def run(self) -> Gradient:
        if self.regions.root not in self.regions.owners or not self.regions.order:
            return {}
        for node in self.regions.order:
            if self.regions.owners[node] == node:
                self.known[node] = self._of(node)
        return self.known[self.regions.root]

    def _of(self, root: Expr) -> Gradient:
        if self.regions.is_leaf(root):
            return {root: ONE}
        if isinstance(root, Select):
            return self._select(root)
        return self._sweep(root)

    def _select(self, node: Select) -> Gradient:
        then = self.known.get(node.then, {})
        other = self.known.get(node.other, {})
        leaves = dict.fromkeys((*then, *other))
        return {
            leaf: select(node.condition, then.get(leaf, ZERO), other.get(leaf, ZERO))
            for leaf in leaves
        }

    def _sweep(self, root: Expr) -> Gradient:
        """Reverse accumulation within the nodes that ``root`` owns."""
        terms: dict[Expr, list[tuple[int, Expr]]] = {root: [(0, ONE)]}
        result: dict[Expr, list[tuple[int, Expr]]] = {}
        for node in reversed(self._reached_nodes(root)):
            above = _sum(terms.get(node, []))
            if above == ZERO:
                continue
            if node != root and self._is_atom(node, root):
                place = self.regions.places[node]
                for leaf, factor in self._atom(node).items():
                    result.setdefault(leaf, []).append((place, times(above, factor)))
                if self.regions.is_leaf(node):
                    result.setdefault(node, []).extend(terms[node])
                continue
            for position, part in self.regions.parts(node):
                term = self._through(above, node, position)
                edge = self.regions.edges[(node, position)]
                terms.setdefault(part, []).append((edge, term))
        found = {leaf: _sum(parts) for leaf, parts in result.items()}
        return {leaf: value for leaf, value in found.items() if value != ZERO}

    def _reached_nodes(self, root: Expr) -> list[Expr]:
        """The owned nodes and, before them, the atoms at which the sweep ends."""
        owned = self.regions.members[root]
        inside = set(owned)
        atoms = {
            part: None
            for node in owned
            if not isinstance(node, Select) or node is root
            for _, part in self.regions.parts(node)
            if part not in inside
        }
        return [*atoms, *owned]

    def _is_atom(self, node: Expr, root: Expr) -> bool:
        return (
            self.regions.is_leaf(node)
            or isinstance(node, Select)
            or self.regions.owners[node] != root
        )

    def _atom(self, node: Expr) -> Gradient:
        if self.regions.is_leaf(node):
            return {}
        if isinstance(node, Select) and node not in self.known:
            self.known[node] = self._select(node)
        return self.known[node]

    def _through(self, above: Expr, node: Expr, position: int) -> Expr:
        match node:
            case Apply():
                return through(above, node, position)
            case Call(rule=rule, output=output, args=args):
                local = self._callee(rule, output, position)
                values = zip((i.name for i in rule.inputs), args, strict=True)
                return times(above, substitute(local, dict(values)))
            case _:
                raise Underivable(node, position)

    def _callee(self, rule: Rule, output: int, position: int) -> Expr:
        """The factor at the upstream gradient of one output in a rule's backward."""
        if not rule.inputs[position].takes_gradient:
            return ZERO
        upstream = frozenset(rule.cotangents)
        name = f"d{rule.outputs[output].name}"
        return coefficient(self.backward(rule, position), name, upstream)


def _sum(terms: list[tuple[int, Expr]]) -> Expr:
    """Contributions in the order of the text."""
    values = [term for _, term in sorted(terms, key=lambda pair: pair[0])]
    return reduce(plus, values) if values else ZERO


# --- partial derivatives --------------------------------------------------------------


class Underivable(Exception):
    """``expr`` has no derivative that we know of by its argument ``position``."""

    def __init__(self, expr: Expr, position: int = 0) -> None:
        super().__init__(f"no derivative: {type(expr).__name__}")
        self.expr = expr
        self.position = position


def through(above: Expr, node: Apply, position: int) -> Expr:
    """``above * ∂node/∂argument``, the factors of the table's formula in its order."""
    special = _SPECIAL.get((node.op, position))
    local = special(node) if special else None
    if local is not None:
        return times(above, local)
    form = partial(node.op, position)
    if form is None:
        raise Underivable(node, position)
    names = dict(zip(primitive(node.op).params, node.args, strict=True))
    names["out"] = node
    return _multiply(above, form, names)


def _multiply(above: Expr, form: Expr, names: dict[str, Expr]) -> Expr:
    """The formula's factors are put in one by one: an argument that is a product
    itself stays together, as the author wrote it."""
    form, tail = _factors(form)
    if isinstance(form, Apply) and form.op == "neg":
        above, form = negate(above), form.args[0]
    result = _factor(above, put_in(form, names))
    for op, factor in tail:
        value = put_in(factor, names)
        if op == "mul":
            result = _factor(result, value)
        else:
            result = times(result, fold(Apply("div", (ONE, value))))
    return result


def _factor(above: Expr, value: Expr) -> Expr:
    """Like ``times``, but a product in ``value`` stays one factor."""
    match (above, value):
        case (Const(), _) | (_, Const()):
            return times(above, value)
        case (_, Apply(op="mul" | "div", args=(first, _))) if not isinstance(
            first, Const
        ):
            return Apply("mul", (above, value))
        case _:
            return times(above, value)


def _power(node: Apply) -> Expr | None:
    """A constant exponent: ``3 * x**2``, where the table must think of any; or one that
    is never 0, whatever becomes of it in floating point, so that nobody need ask."""
    base, exponent = node.args
    match exponent:
        case Const(value=value):
            less: Expr = Const(value - 1)
        case Apply(op="exp"):
            less = Apply("sub", (exponent, ONE))
        case _:
            return None
    return times(exponent, fold(Apply("pow", (base, less))))


def _divisor(node: Apply) -> Expr | None:
    """A constant over ``y``: ``-c / y²`` is what one writes, and no less accurate."""
    number, by = node.args
    if not isinstance(number, Const):
        return None
    return Apply("div", (Const(-number.value), Apply("square", (by,))))


_SPECIAL = {("pow", 0): _power, ("div", 1): _divisor}


# --- linearity ------------------------------------------------------------------------
#
# Every true cotangent is linear in the upstream gradients; an override need not be (a
# clipped or a constant gradient).


def is_linear(expr: Expr, upstream: frozenset[str]) -> bool:
    """True if ``expr`` is shown to be homogeneous and linear in these names (0 is)."""
    free: set[Expr] = set()  # nodes without any of the names
    linear: set[Expr] = {ZERO}
    for node in nodes(expr):
        if isinstance(node, Ref) and node.name in upstream:
            linear.add(node)
        elif all(child in free for child in children(node)):
            free.add(node)
        elif _keeps(node, free, linear):
            linear.add(node)
    return expr in linear


def _keeps(node: Expr, free: set[Expr], linear: set[Expr]) -> bool:
    match node:
        case Apply(op="add" | "sub" | "neg", args=args):
            return all(arg in linear for arg in args)
        case Apply(op="mul", args=(a, b)):
            return (a in linear and b in free) or (a in free and b in linear)
        case Apply(op="div", args=(a, b)):
            return a in linear and b in free
        case Select(condition=condition, then=then, other=other):
            return condition in free and then in linear and other in linear
        case _:
            return False


def coefficient(expr: Expr, name: str, upstream: frozenset[str]) -> Expr:
    """The coefficient of ``name`` in a linear ``expr``."""
    values = {other: ONE if other == name else ZERO for other in upstream}
    return tidy(substitute(expr, values))


# --- sums and products ----------------------------------------------------------------
#
# Sums and products of derivatives, built as one would write them by hand. These builders
# may regroup (what they join is ours, not the user's text): constants come first and are
# merged, a sign stands at the first factor, ``a * (1 / b)`` is ``a / b``, and a product
# with a conditional goes into its branches, so that a branch that contributes nothing is
# exactly 0 and cannot turn an infinity into a NaN.


_LEAVES = 4  # branches that are not 0, beyond which a product stays outside
_MINUS_ONE = Fraction(-1)

_Tail: TypeAlias = tuple[tuple[str, Expr], ...]
"""Factors and divisors applied to a first factor, in order: ``("div", x)``. It is the
layout of a text, ``a / b * c`` and not ``a * c / b``, which a `Product` does not keep."""


def times(left: Expr, right: Expr) -> Expr:
    """``left * right``; ``left`` is what comes first in the text."""
    if ZERO in (left, right):
        return ZERO
    if isinstance(right, Const):
        return scale(right.value, left)
    if isinstance(left, Const):
        return scale(left.value, right)
    return _into_branches(left, right) or _product(left, right)


def plus(left: Expr, right: Expr) -> Expr:
    """``left + right``, as a difference where one of the two is negative."""
    if ZERO in (left, right):
        return right if left == ZERO else left
    match (left, right):
        case (Select(condition=c, then=t, other=o), Select(condition=d)) if c == d:
            return select(c, plus(t, right.then), plus(o, right.other))
    if left == right:
        return scale(Fraction(2), left)
    if _is_negative(right):
        return fold(Apply("sub", (left, negate(right))))
    if _is_negative(left):
        return fold(Apply("sub", (right, negate(left))))
    return fold(Apply("add", (left, right)))


def put_in(form: Expr, values: Mapping[str, Expr]) -> Expr:
    """A formula with its names substituted; its own signs and constants are merged with
    those of the values (``2 * x`` of ``3 * t`` is ``6 * t``)."""
    done: dict[Expr, Expr] = {}
    for node in nodes(form):
        parts = tuple(done[child] for child in children(node))
        match node:
            case Ref(name=name, indices=()):
                done[node] = values.get(name, node)
            case Apply(op="mul"):
                done[node] = times(*parts)
            case Apply(op="neg"):
                done[node] = negate(*parts)
            case _:
                done[node] = fold(with_children(node, parts))
    return done[form]


def select(condition: Expr, then: Expr, other: Expr) -> Expr:
    """One branch or the other; no conditional when they are the same."""
    return fold(Select(condition, then, other))


def negate(expr: Expr) -> Expr:
    """``-expr`` with the sign at the first factor."""
    return scale(_MINUS_ONE, expr)


def scale(factor: Fraction, expr: Expr) -> Expr:
    """``factor * expr``, merged with the constant at the front."""
    if factor in (0, 1):
        return expr if factor else ZERO
    if isinstance(expr, Select) and _leaves(expr) <= _LEAVES:
        then, other = scale(factor, expr.then), scale(factor, expr.other)
        return select(expr.condition, then, other)
    first, tail = _factors(expr)
    match first:
        case Const(value=value):
            return _join(Const(factor * value), tail)
        case Apply(op="neg", args=(inner,)):
            return scale(-factor, _join(inner, tail))
        case _:
            return _join(fold(Apply("mul", (Const(factor), first))), tail)


def _product(left: Expr, right: Expr) -> Expr:
    """The factors of ``right`` one after the other behind ``left``."""
    first, tail = _factors(right)
    match first:
        case Const(value=value):
            left = scale(value, left)
        case Apply(op="neg", args=(inner,)):
            left = _product(negate(left), inner)
        case _:
            left = _behind(left, first)
    return _join(left, tail)


def _behind(left: Expr, factor: Expr) -> Expr:
    """``left * factor``; ``1 / b * factor`` is ``factor / b``."""
    match left:
        case Apply(op="div", args=(Const() as number, by)):
            return Apply("div", (times(number, factor), by))
        case _ if left == factor:
            return Apply("square", (factor,))
        case Apply(op="neg", args=(inner,)) if inner == factor:
            return Apply("neg", (Apply("square", (factor,)),))
        case _:
            return Apply("mul", (left, factor))


def _factors(expr: Expr) -> tuple[Expr, _Tail]:
    """The first factor of a product and what follows it."""
    tail: list[tuple[str, Expr]] = []
    while isinstance(expr, Apply) and expr.op in ("mul", "div"):
        tail.append((expr.op, expr.args[1]))
        expr = expr.args[0]
    return expr, tuple(reversed(tail))


def _join(first: Expr, tail: _Tail) -> Expr:
    for op, factor in tail:
        if first == Const(_MINUS_ONE) and op == "mul":
            first = negate(factor)
        elif op == "div":
            first = _quotient(first, factor)
        else:
            first = fold(Apply(op, (first, factor)))
    return first


def _quotient(above: Expr, factor: Expr) -> Expr:
    """``above / factor``, cancelled when the factor stands at either end."""
    match above:
        case _ if above == factor:
            return ONE
        case Apply(op="mul", args=(rest, last)) if last == factor:
            return rest
        case Apply(op="mul", args=(first, rest)) if first == factor:
            return rest
        case _:
            return fold(Apply("div", (above, factor)))


def _is_negative(expr: Expr) -> bool:
    """True if a term begins with a minus."""
    match _factors(expr)[0]:
        case Apply(op="neg"):
            return True
        case Const(value=value):
            return value < 0
        case _:
            return False


def _into_branches(left: Expr, right: Expr) -> Expr | None:
    """The product distributed over conditionals, unless that would multiply the
    text."""
    if not isinstance(left, Select) and not isinstance(right, Select):
        return None
    if _leaves(left) * _leaves(right) > _LEAVES:
        return None
    match (left, right):
        case (Select(condition=c, then=t, other=o), Select(condition=d)) if c == d:
            return select(c, times(t, right.then), times(o, right.other))
        case (_, Select(condition=c, then=t, other=o)):
            return select(c, times(left, t), times(left, o))
        case (Select(condition=c, then=t, other=o), _):
            return select(c, times(t, right), times(o, right))
    return None


def _leaves(expr: Expr) -> int:
    """The number of nonzero branches of a (nested) conditional; inexact past the
    limit."""
    count, todo = 0, [expr]
    while todo and count <= _LEAVES:
        node = todo.pop()
        if isinstance(node, Select):
            todo += (node.then, node.other)
        elif node != ZERO:
            count += 1
    return count
