"""A normal form for expressions with sums over indices: polynomials in atoms.

A term is a rational times powers of atoms (references, sums, other functions of
polynomials); a condition is an atom that is 0 or 1. Products are multiplied out,
exponentials of sums are products of exponentials, sums over indices are sums of terms,
each split into factors that no index connects, their bound indices renamed and ordered
in the one way that comes first. So equal normal forms are equal for all sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, islice, permutations, product

from gradspec.derive.indexed_algebra import Algebra
from gradspec.derive.indexed_deltas import is_index
from gradspec.derive.indexed_scopes import AT, Fresh, free, refreshed, replaced
from gradspec.derive.indexed_terms import (
    UNIT,
    Poly,
    Term,
    TooLarge,
    add,
    constant,
    first_term,
    scaled,
    single,
    text,
    written,
)
from gradspec.ir import calls
from gradspec.ir.expr import (
    ONE,
    ZERO,
    Apply,
    Bound,
    Const,
    Expr,
    Idx,
    Reduce,
    Ref,
    Select,
    Size,
)
from gradspec.ir.walk import children, nodes, with_children

_ORDERS = 24  # orders of the bound indices of one sum that are tried
_STEPS = 20_000  # nodes brought to normal form for one question: a few seconds
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def canonical(expr: Expr) -> Expr:
    """The normal form of a closed expression (locals in place); the expression itself
    if it is too large for that."""
    try:
        return written(_Normal(Effort()).poly(_fresh(expr)))
    except (TooLarge, RecursionError):
        return expr


class Effort:
    """How much work may be spent on questions that belong together."""

    def __init__(self, steps: int = _STEPS) -> None:
        self.left = steps

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooLarge


def is_zero(expr: Expr, effort: Effort | None = None) -> bool:
    """Whether a closed expression is seen to be 0 for all sizes."""
    try:
        normal = _Normal(effort or Effort())
        return not normal.cleared(normal.poly(_fresh(expr)))
    except (TooLarge, RecursionError):
        return False


def _fresh(expr: Expr) -> Expr:
    return refreshed(calls.expand(expr), {}, Fresh("?"))


# --- the normal form ------------------------------------------------------------------


class _Normal(Algebra):
    def __init__(self, effort: Effort) -> None:
        super().__init__()
        self.effort = effort
        self.known: dict[Expr, Poly] = {}

    def poly(self, expr: Expr) -> Poly:
        if expr not in self.known:
            self.effort.spend()
            self.known[expr] = self._poly(expr)
        return self.known[expr]

    def _poly(self, expr: Expr) -> Poly:
        match expr:
            case Const(value=value):
                return constant(value)
            case Idx() | Size():
                return single(expr)
            case Ref():
                return single(self._below(expr))
            case Apply():
                return self._apply(expr)
            case Select(condition=condition, then=then, other=other):
                holds = self.truth(condition)
                rest = add(constant(1), holds, -UNIT)
                first = self.times(holds, self.poly(then))
                return add(first, self.times(rest, self.poly(other)))
            case Reduce():
                return self._reduce(expr)
            case _:
                return single(self._below(expr))

    def _below(self, expr: Expr) -> Expr:
        return with_children(expr, tuple(self.form(c) for c in children(expr)))

    def form(self, expr: Expr) -> Expr:
        return written(self.poly(expr))

    def _apply(self, node: Apply) -> Poly:
        args = node.args
        match node.op:
            case "add":
                return add(self.poly(args[0]), self.poly(args[1]))
            case "sub":
                return add(self.poly(args[0]), self.poly(args[1]), -UNIT)
            case "neg":
                return add({}, self.poly(args[0]), -UNIT)
            case "mul":
                return self.times(self.poly(args[0]), self.poly(args[1]))
            case "div":
                inverse = self.power(self.poly(args[1]), -UNIT)
                return self.times(self.poly(args[0]), inverse)
            case "square":
                return self.power(self.poly(args[0]), Fraction(2))
            case "sqrt":
                return self.power(self.poly(args[0]), Fraction(1, 2))
            case "rsqrt":
                return self.power(self.poly(args[0]), Fraction(-1, 2))
            case "pow" if isinstance(args[1], Const):
                return self.power(self.poly(args[0]), args[1].value)
            case "exp":
                return self.exponential(self.poly(args[0]))
            case "log":
                return self.logarithm(self.poly(args[0]))
            case op if op in (*_COMPARISONS, "and", "or", "not", AT):
                return self.truth(node)
            case "sigmoid":
                growth = self.exponential(add({}, self.poly(args[0]), -UNIT))
                return self.power(add(constant(1), growth), -UNIT)
            case "tanh":
                twice = add({}, self.poly(args[0]), Fraction(-2))
                growth = self.exponential(twice)
                below = self.power(add(constant(1), growth), -UNIT)
                above = add(constant(1), growth, -UNIT)
                return self.times(above, below)
            case _:
                return single(self._below(node))

    # --- conditions ------------------------------------------------------------------

    def truth(self, condition: Expr) -> Poly:
        """1 where the condition holds, else 0."""
        match condition:
            case Apply(op="and", args=(a, b)):
                return self.times(self.truth(a), self.truth(b))
            case Apply(op="or", args=(a, b)):
                left, right = self.truth(a), self.truth(b)
                both = self.times(left, right)
                return add(add(left, right), both, -UNIT)
            case Apply(op="not", args=(a,)):
                return add(constant(1), self.truth(a), -UNIT)
            case Apply(op="le" | "ge" as op, args=(a, b)) if is_index(a) and is_index(
                b
            ):
                small, large = (a, b) if op == "le" else (b, a)
                return self._less(small, Apply("add", (large, ONE)))
            case Apply(op="lt", args=(a, b)):
                return self._less(a, b)
            case Apply(op="gt", args=(a, b)):
                return self._less(b, a)
            case Apply(op="ge", args=(a, b)):
                return add(constant(1), self._less(a, b), -UNIT)
            case Apply(op="le", args=(a, b)):
                return add(constant(1), self._less(b, a), -UNIT)
            case Apply(op="eq", args=(a, b)):
                return self._equal(a, b)
            case Apply(op="ne", args=(a, b)):
                return add(constant(1), self._equal(a, b), -UNIT)
            case Apply(op=op, args=(a, b)) if op == AT:
                return single(Apply(AT, (self.form(a), self.form(b))))
            case _:
                return single(Apply("eq", (self.form_of(condition), ONE)))

    def form_of(self, condition: Expr) -> Expr:
        if isinstance(condition, Apply):
            return self._below(condition)
        return self.form(condition)

    def _less(self, a: Expr, b: Expr) -> Poly:
        difference = add(self.poly(a), self.poly(b), -UNIT)
        if set(difference) <= {()}:
            return constant(1 if difference.get((), Fraction(0)) < 0 else 0)
        return single(Apply("lt", (written(scaled(difference)), ZERO)))

    def _equal(self, a: Expr, b: Expr) -> Poly:
        difference = add(self.poly(a), self.poly(b), -UNIT)
        if set(difference) <= {()}:
            return constant(0 if difference else 1)
        unit = scaled(difference)
        if unit[first_term(unit)] < 0:
            unit = add({}, unit, -UNIT)
        return single(Apply("eq", (written(unit), ZERO)))

    # --- reductions ------------------------------------------------------------------

    def _reduce(self, node: Reduce) -> Poly:
        where = None if node.where is None else self.truth(node.where)
        match node.op:
            case "sum":
                return self._summed(node.bounds, node.body, where)
            case "mean":
                whole = self._summed(node.bounds, node.body, where)
                count = self._summed(node.bounds, ONE, where)
                return self.times(whole, self.power(count, -UNIT))
            case "logsumexp":
                body = Apply("exp", (node.body,))
                return self.logarithm(self._summed(node.bounds, body, where))
            case _:
                return single(self._other(node, where))

    def _other(self, node: Reduce, where: Poly | None) -> Expr:
        if node.op in ("max", "min", "peak") and where is None:
            used = free(self.form(node.body))
            if not any(b.index in used for b in node.bounds):
                return self.form(node.body)
        body, test = self.form(node.body), None if where is None else written(where)
        return self._ordered(node.op, node.bounds, body, test)

    def _ordered(
        self, op: str, bounds: tuple[Bound, ...], body: Expr, where: Expr | None
    ) -> Expr:
        """The same with its indices renamed and in the order that comes first."""
        parts = (body,) if where is None else (body, where)
        height = 1 + max(_height(part) for part in parts)
        best: Expr | None = None
        for order in islice(_orders(bounds), _ORDERS):
            new = tuple(Bound(f"{height}.{k}", b.axis) for k, b in enumerate(order))
            pairs = zip(order, new, strict=True)
            at: dict[str, Expr] = {b.index: Idx(n.index) for b, n in pairs}
            test = None if where is None else self.form(_put(where, at))
            made = Reduce(op, new, self.form(_put(body, at)), test)
            if best is None or text(made) < text(best):
                best = made
        assert best is not None
        return best

    def _summed(
        self, bounds: tuple[Bound, ...], body: Expr, where: Poly | None
    ) -> Poly:
        terms = self.poly(body)
        if where is not None:
            terms = self.times(terms, where)
        found: Poly = {}
        for term, number in terms.items():
            found = add(found, self._sum_of(bounds, term), number)
        return found

    def _sum_of(self, bounds: tuple[Bound, ...], term: Term) -> Poly:
        """One term: sums in it are taken in, then it is split."""
        factors: list[tuple[Expr, Fraction]] = []
        fresh = Fresh("!")
        taken = {name for atom, _ in term for name in _all_indices(atom)}
        for atom, power in term:
            depends = any(b.index in free(atom) for b in bounds)
            if isinstance(atom, Reduce) and atom.op == "sum" and power == 1 and depends:
                new = tuple(Bound(_unused(fresh, taken), b.axis) for b in atom.bounds)
                pairs = zip(atom.bounds, new, strict=True)
                at: dict[str, Expr] = {b.index: Idx(n.index) for b, n in pairs}
                inner = self.poly(_put(atom.body, at))
                if len(inner) != 1:
                    factors.append((atom, power))
                    continue
                ((below, number),) = inner.items()
                if number != 1:
                    factors.append((atom, power))
                    continue
                bounds = (*bounds, *new)
                factors += below
            else:
                factors.append((atom, power))
        return self._split(*self._collapsed(bounds, factors))

    def _collapsed(
        self, bounds: tuple[Bound, ...], factors: list[tuple[Expr, Fraction]]
    ) -> tuple[tuple[Bound, ...], list[tuple[Expr, Fraction]]]:
        """A sum over an index that a condition ties to another has one term."""
        for atom, _ in factors:
            solved = _solved(atom, bounds)
            if solved is not None:
                bound, value = solved
                left = tuple(b for b in bounds if b != bound)
                made: Poly = {(): UNIT}
                for other, power in factors:
                    if other != atom:
                        there = self.poly(_put(other, {bound.index: value}))
                        made = self.times(made, self.power(there, power))
                if len(made) == 1:
                    ((term, number),) = made.items()
                    if number == 1:
                        return self._collapsed(left, list(term))
        return bounds, factors

    def _split(
        self, bounds: tuple[Bound, ...], factors: list[tuple[Expr, Fraction]]
    ) -> Poly:
        found: Poly = {(): UNIT}
        groups: list[tuple[list[Bound], list[tuple[Expr, Fraction]]]] = [
            ([b], []) for b in bounds
        ]
        for atom, power in factors:
            used = free(atom)
            touched = [g for g in groups if any(b.index in used for b in g[0])]
            if not touched:
                found = self.times(found, self._expanded(((atom, power),)))
                continue
            first, *others = touched
            for other in others:
                first[0].extend(other[0])
                first[1].extend(other[1])
            groups = [g for g in groups if g not in others]
            first[1].append((atom, power))
        for group, parts in groups:
            found = self.times(found, self._group(tuple(group), parts))
        return found

    def _group(
        self, bounds: tuple[Bound, ...], parts: list[tuple[Expr, Fraction]]
    ) -> Poly:
        if not parts:
            (bound,) = bounds
            if isinstance(bound.axis, int):
                return constant(bound.axis)
            return single(Size(bound.axis))
        ordered = tuple(sorted(parts, key=lambda pair: (text(pair[0]), pair[1])))
        body = written({ordered: UNIT})
        return single(self._ordered("sum", bounds, body, None))


def _solved(atom: Expr, bounds: tuple[Bound, ...]) -> tuple[Bound, Expr] | None:
    """The summed index that stands where a reference points, and where that is."""
    match atom:
        case Apply(op=op, args=(index, Idx(name=name))) if op == AT:
            for bound in bounds:
                if bound.index == name and name not in free(index):
                    return bound, index
    return None


def _orders(bounds: tuple[Bound, ...]) -> Iterator[tuple[Bound, ...]]:
    """Those that may come first: by axis, and every order where they share one."""
    by_axis: dict[str, list[Bound]] = {}
    for bound in bounds:
        by_axis.setdefault(str(bound.axis), []).append(bound)
    groups = (permutations(by_axis[axis]) for axis in sorted(by_axis))
    for parts in product(*groups):
        yield tuple(chain(*parts))


def _put(expr: Expr, values: dict[str, Expr]) -> Expr:
    return replaced(expr, values)


def _height(expr: Expr) -> int:
    found: dict[Expr, int] = {}
    for node in nodes(expr):
        below = max((found[child] for child in children(node)), default=0)
        found[node] = below + (1 if isinstance(node, Reduce) else 0)
    return found[expr]


def _all_indices(expr: Expr) -> set[str]:
    return {n.name for n in nodes(expr) if isinstance(n, Idx)}


def _unused(fresh: Fresh, taken: set[str]) -> str:
    while (name := fresh()) in taken:
        continue
    taken.add(name)
    return name
