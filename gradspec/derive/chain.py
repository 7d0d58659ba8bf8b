"""The derivatives of one expression by its leaves, by reverse accumulation.

Every sweep starts with 1 at the node that it differentiates, so results are factors
without an upstream gradient: ``dy * factor`` is the cotangent, and reads as one would
write it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TypeAlias

from gradspec.derive.build import negate, plus, put_in, select, times
from gradspec.ir.expr import ONE, ZERO, Apply, Call, Const, Expr, Reduce, Ref, Select
from gradspec.ir.rule import Rule
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import children, nodes, substitute
from gradspec.primitives.formula import partial
from gradspec.primitives.lookup import primitive

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
        for node in reversed(self._reached(root)):
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

    def _reached(self, root: Expr) -> list[Expr]:
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
        upstream = frozenset(f"d{o.name}" for o in rule.outputs if o.takes_gradient)
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
    return _multiplied(above, form, names)


def _multiplied(above: Expr, form: Expr, names: dict[str, Expr]) -> Expr:
    """The formula's factors are put in one by one: an argument that is a product
    itself stays together, as the author wrote it."""
    factors: list[tuple[str, Expr]] = []
    while isinstance(form, Apply) and form.op in ("mul", "div"):
        factors.append((form.op, form.args[1]))
        form = form.args[0]
    if isinstance(form, Apply) and form.op == "neg":
        above, form = negate(above), form.args[0]
    result = _factor(above, put_in(form, names))
    for op, factor in reversed(factors):
        value = put_in(factor, names)
        result = _factor(result, value) if op == "mul" else _quotient(result, value)
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


def _quotient(above: Expr, value: Expr) -> Expr:
    return times(above, fold(Apply("div", (ONE, value))))


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
