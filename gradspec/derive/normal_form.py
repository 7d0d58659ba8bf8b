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
from functools import lru_cache
from itertools import chain, islice, permutations, product
from typing import TypeAlias

from gradspec.derive.scopes import (
    AT,
    Fresh,
    connected_groups,
    extent,
    refresh,
    replace_indices,
    tied,
    uses,
)
from gradspec.ir.expr import (
    EXTREMA,
    ONE,
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
from gradspec.ir.products import is_index
from gradspec.ir.walk import expand, nodes, substitute, with_children
from gradspec.primitives.lookup import formula

Term: TypeAlias = tuple[tuple[Expr, Fraction], ...]
Poly: TypeAlias = dict[Term, Fraction]

UNIT = Fraction(1)
_TERMS = 200


class TooLarge(Exception):
    """Multiplied out, the expression has too many terms."""


def add(a: Poly, b: Poly, factor: Fraction = UNIT) -> Poly:
    found = dict(a)
    for term, number in b.items():
        _gain(found, term, number if factor is UNIT else factor * number)
    return found


def _gain(found: Poly, term: Term, number: Fraction) -> None:
    """Add one term, in place."""
    total = number + found[term] if term in found else number
    if total:
        found[term] = total
        if len(found) > _TERMS:
            raise TooLarge
    else:
        found.pop(term, None)


def single(atom: Expr, power: Fraction = UNIT) -> Poly:
    return {((atom, power),): UNIT}


def constant(value: Fraction | int) -> Poly:
    return {(): Fraction(value)} if value else {}


def _unless(holds: Poly) -> Poly:
    """1 where a condition does not hold."""
    return add(constant(1), holds, -UNIT)


def merge(a: Term, b: Term) -> Term:
    """The product of two terms."""
    if not a or not b:
        return a or b
    found = dict(a)
    for atom, power in b:
        if is_condition(atom):
            found[atom] = UNIT
        else:
            found[atom] = found[atom] + power if atom in found else power
    kept = [(atom, power) for atom, power in found.items() if power]
    return tuple(sorted(kept, key=_place))


def _place(factor: tuple[Expr, Fraction]) -> tuple[str, Fraction]:
    return text(factor[0]), factor[1]


def _places(term: Term) -> list[tuple[str, Fraction]]:
    return [_place(factor) for factor in term]


def is_condition(atom: Expr) -> bool:
    return isinstance(atom, Apply) and atom.op in ("lt", "eq", AT)


@lru_cache(maxsize=1024)
def text(expr: Expr) -> str:
    """A key that orders expressions."""
    below = ",".join(text(child) for child in expr.below)
    match expr:
        case Const(value=value):
            return f"#{value}"
        case Ref(name=name):
            return f"{name}[{below}]"
        case Idx(name=name):
            return f"~{name}"
        case Size(axis=axis):
            return f"|{axis}|"
        case Apply(op=op):
            return f"{op}({below})"
        case Select():
            return f"?({below})"
        case Reduce(op=op, bounds=bounds):
            ranges = ",".join(f"{b.index}:{b.axis}" for b in bounds)
            return f"{op}<{ranges}>({below})"
        case Call(rule=rule, output=output):
            return f"{rule.name}.{output}({below})"


def expression_of(poly: Poly) -> Expr:
    """A polynomial as an expression, terms and factors in order."""
    result: Expr | None = None
    for term, number in sorted(poly.items(), key=lambda pair: _places(pair[0])):
        part: Expr = Const(number)
        for atom, power in term:
            raised = atom if power == 1 else Apply("pow", (atom, Const(power)))
            part = raised if part == ONE else Apply("mul", (part, raised))
        result = part if result is None else Apply("add", (result, part))
    return ZERO if result is None else result


def is_positive(atom: Expr) -> bool:
    match atom:
        case Size():
            return True
        case Apply(op="exp"):
            return True
        case Reduce(op="sum", body=body):
            return is_positive(body)
        case Apply(op="mul", args=args):
            return all(map(is_positive, args))
        case Const(value=value):
            return value > 0
        case _:
            return False


def first_term(poly: Poly) -> Term:
    return min(poly, key=_places)


def scale(poly: Poly) -> Poly:
    return add({}, poly, 1 / abs(poly[first_term(poly)]))


# --- the normal form ------------------------------------------------------------------


_ORDERS = 24  # orders of the bound indices of one sum that are tried
_STEPS = 20_000  # nodes brought to normal form for one question: a few seconds
_CONDITIONS = ("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", AT)
_POWERS = {"square": Fraction(2), "sqrt": Fraction(1, 2), "rsqrt": Fraction(-1, 2)}
_FORMULAS = {
    "sigmoid": "1 / (1 + exp(-x))",
    "tanh": "(1 - exp(-2 * x)) / (1 + exp(-2 * x))",
}


def is_zero(expr: Expr) -> bool:
    """True if a closed expression is shown to be 0 for all sizes."""
    return Normal().is_zero(expr)


class Normal:
    """Normal forms for related questions: ``left`` are the nodes that may still be
    brought to normal form, ``bases`` the atoms that are polynomials themselves.
    """

    def __init__(self, steps: int = _STEPS) -> None:
        self.left = steps
        self.bases: dict[Expr, Poly] = {}
        self.known: dict[Key, Poly] = {}

    def is_zero(self, expr: Expr) -> bool:
        """True if a closed expression is shown to be 0 for all sizes."""
        try:
            plain = refresh(expand(expr), {}, Fresh("?"))
            return not self.clear(self.poly(plain))
        except (TooLarge, RecursionError):
            return False

    def poly(self, expr: Expr) -> Poly:
        """The polynomial that an expression is."""
        found = self.known.get(expr.key)
        if found is None:
            self.left -= 1
            if self.left < 0:
                raise TooLarge
            found = self.known[expr.key] = self._poly(expr)
        return found

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
                first = self.times(holds, self.poly(then))
                return add(first, self.times(_unless(holds), self.poly(other)))
            case Reduce():
                return self._reduce(expr)
            case _:
                return single(self._below(expr))

    def _below(self, expr: Expr) -> Expr:
        return with_children(expr, tuple(self.form(c) for c in expr.below))

    def form(self, expr: Expr) -> Expr:
        return expression_of(self.poly(expr))

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
            case op if op in _POWERS:
                return self.power(self.poly(args[0]), _POWERS[op])
            case "pow" if isinstance(args[1], Const):
                return self.power(self.poly(args[0]), args[1].value)
            case "exp":
                return self.exponential(self.poly(args[0]))
            case "log":
                return self.logarithm(self.poly(args[0]))
            case op if op in _CONDITIONS:
                return self.truth(node)
            case op if op in _FORMULAS:
                return self.poly(substitute(formula(_FORMULAS[op]), {"x": args[0]}))
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
                return _unless(self.truth(a))
            case Apply(op="le", args=(a, b)) | Apply(op="ge", args=(b, a)):
                if is_index(a) and is_index(b):
                    return self._less(a, Apply("add", (b, ONE)))
                return _unless(self._less(b, a))
            case Apply(op="lt", args=(a, b)) | Apply(op="gt", args=(b, a)):
                if isinstance(b, Apply) and b.op == "max":
                    either = (Apply("lt", (a, c)) for c in b.args)
                    return self.truth(Apply("or", tuple(either)))
                return self._less(a, b)
            case Apply(op="eq", args=(a, b)):
                return self._equal(a, b)
            case Apply(op="ne", args=(a, b)):
                return _unless(self._equal(a, b))
            case Apply(op=op) if op == AT:
                return single(self._below(condition))
            case _:
                known = isinstance(condition, Apply)
                form = self._below(condition) if known else self.form(condition)
                return single(Apply("eq", (form, ONE)))

    def _less(self, a: Expr, b: Expr) -> Poly:
        difference = add(self.poly(a), self.poly(b), -UNIT)
        if set(difference) <= {()}:
            return constant(1 if difference.get((), Fraction(0)) < 0 else 0)
        return single(Apply("lt", (expression_of(scale(difference)), ZERO)))

    def _equal(self, a: Expr, b: Expr) -> Poly:
        difference = add(self.poly(a), self.poly(b), -UNIT)
        if set(difference) <= {()}:
            return constant(0 if difference else 1)
        unit = scale(difference)
        if unit[first_term(unit)] < 0:
            unit = add({}, unit, -UNIT)
        return single(Apply("eq", (expression_of(unit), ZERO)))

    # --- reductions ------------------------------------------------------------------

    def _reduce(self, node: Reduce) -> Poly:
        where = None if node.where is None else self.truth(node.where)
        match node.op:
            case "sum":
                return self._sum(node.bounds, node.body, where)
            case "mean":
                whole = self._sum(node.bounds, node.body, where)
                count = self._sum(node.bounds, ONE, where)
                return self.times(whole, self.power(count, -UNIT))
            case "norm":
                squares = self._sum(node.bounds, Apply("square", (node.body,)), where)
                return self.power(squares, UNIT / 2)
            case "logsumexp":
                body = Apply("exp", (node.body,))
                return self.logarithm(self._sum(node.bounds, body, where))
            case _:
                return single(self._other(node, where))

    def _other(self, node: Reduce, where: Poly | None) -> Expr:
        if node.op in EXTREMA and where is None:
            used = self.form(node.body).free
            if not any(b.index in used for b in node.bounds):
                return self.form(node.body)
        body, test = (
            self.form(node.body),
            None if where is None else expression_of(where),
        )
        return self._order(node.op, node.bounds, body, test)

    def _order(
        self, op: str, bounds: tuple[Bound, ...], body: Expr, where: Expr | None
    ) -> Expr:
        """The reduction with its indices renamed and in the order that comes first."""
        parts = (body,) if where is None else (body, where)
        height = 1 + max(_height(part) for part in parts)
        best: Expr | None = None
        for order in islice(_orders(bounds), _ORDERS):
            new = tuple(Bound(f"{height}.{k}", b.axis) for k, b in enumerate(order))
            pairs = zip(order, new, strict=True)
            at: dict[str, Expr] = {b.index: Idx(n.index) for b, n in pairs}
            test = None if where is None else self.form(replace_indices(where, at))
            made = Reduce(op, new, self.form(replace_indices(body, at)), test)
            if best is None or text(made) < text(best):
                best = made
        assert best is not None
        return best

    def _sum(self, bounds: tuple[Bound, ...], body: Expr, where: Poly | None) -> Poly:
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
            depends = any(b.index in atom.free for b in bounds)
            if isinstance(atom, Reduce) and atom.op == "sum" and power == 1 and depends:
                new = tuple(
                    Bound(_unused_name(fresh, taken), b.axis) for b in atom.bounds
                )
                pairs = zip(atom.bounds, new, strict=True)
                at: dict[str, Expr] = {b.index: Idx(n.index) for b, n in pairs}
                inner = self.poly(replace_indices(atom.body, at))
                if [*inner.values()] == [1]:
                    bounds = (*bounds, *new)
                    factors += next(iter(inner))
                    continue
            factors.append((atom, power))
        return self._split(*self._collapse(bounds, factors))

    def _collapse(
        self, bounds: tuple[Bound, ...], factors: list[tuple[Expr, Fraction]]
    ) -> tuple[tuple[Bound, ...], list[tuple[Expr, Fraction]]]:
        """A sum over an index that a condition ties to another has one term."""
        for atom, _ in factors:
            solved = tied(atom, bounds)
            if solved is not None:
                bound, value = solved
                left = tuple(b for b in bounds if b != bound)
                made: Poly = {(): UNIT}
                for other, power in factors:
                    if other != atom:
                        there = self.poly(replace_indices(other, {bound.index: value}))
                        made = self.times(made, self.power(there, power))
                if [*made.values()] == [1]:
                    return self._collapse(left, list(next(iter(made))))
        return bounds, factors

    def _split(
        self, bounds: tuple[Bound, ...], factors: list[tuple[Expr, Fraction]]
    ) -> Poly:
        found: Poly = {(): UNIT}
        inside = {b.index for b in bounds}
        for atom, power in factors:
            if inside.isdisjoint(atom.free):
                found = self.times(found, self._expand(((atom, power),)))
        for group in connected_groups(bounds, [atom for atom, _ in factors]):
            parts = [factor for factor in factors if uses(factor[0], group)]
            found = self.times(found, self._group(group, parts))
        return found

    def _group(
        self, bounds: tuple[Bound, ...], parts: list[tuple[Expr, Fraction]]
    ) -> Poly:
        if not parts:
            (bound,) = bounds
            return self.poly(extent(bound.axis))
        body = expression_of({tuple(sorted(parts, key=_place)): UNIT})
        return single(self._order("sum", bounds, body, None))

    # --- products --------------------------------------------------------------------

    def times(self, a: Poly, b: Poly) -> Poly:
        found: Poly = {}
        for left, number in a.items():
            for right, other in b.items():
                factor = number * other
                for term, part in self._expand(merge(left, right)).items():
                    _gain(found, term, part * factor)
        return found

    def _expand(self, term: Term) -> Poly:
        """Whole positive powers of what is itself a polynomial are multiplied out."""
        for position, (atom, power) in enumerate(term):
            base = self.bases.get(atom)
            if base is None or (power < 1 and len(base) > 1):
                continue
            whole = power.numerator // power.denominator
            if whole == 0:
                continue
            rest = (*term[:position], *term[position + 1 :])
            left = power - whole
            kept = merge(rest, ((atom, left),)) if left else rest
            found = self._expand(kept)
            factor = base if whole > 0 else self._inverse(base)
            for _ in range(abs(whole)):
                found = self.times(found, factor)
            return found
        return self._partial_fractions(term)

    def _partial_fractions(self, term: Term) -> Poly:
        """Partial fractions: with ``A = c + d * M``, a number and a product of
        exponentials, ``M / A`` is ``1 / d - c / (d * A)``, and ``1 / (M * A)`` is
        ``1 / (c * M) - d / (c * A)``. So what logistic functions and their derivatives
        are is one form inside of sums, too, where nothing is brought above the line.
        """
        for atom, power in term:
            base = self.bases.get(atom)
            if base is None or power > -1 or (parts := _binomial(base)) is None:
                continue
            number, growth, factor = parts
            powers = dict(term)
            if all(powers.get(a, 0) >= p for a, p in growth):
                sign, first, second = -1, UNIT / factor, -number / factor
            elif all(powers.get(a, 0) <= -p for a, p in growth):
                sign, first, second = 1, UNIT / number, -factor / number
            else:
                continue
            moved = merge(term, tuple((a, sign * p) for a, p in growth))
            less = merge(moved if sign < 0 else term, ((atom, UNIT),))
            found = add({}, self._expand(less), first)
            return add(found, self._expand(moved), second)
        return {term: UNIT}

    def _inverse(self, base: Poly) -> Poly:
        ((term, number),) = base.items()
        return {tuple((atom, -power) for atom, power in term): 1 / number}

    def power(self, poly: Poly, power: Fraction) -> Poly:
        if not poly:
            if power > 0:
                return {}
            return single(ZERO, power)
        if power.denominator == 1 and (power > 0 or len(poly) == 1):
            if abs(power) > 8:
                raise TooLarge
            found: Poly = {(): UNIT}
            factor = poly if power > 0 else self._term_inverse(poly)
            for _ in range(abs(int(power))):
                found = self.times(found, factor)
            return found
        return self._root(poly, power)

    def _term_inverse(self, poly: Poly) -> Poly:
        ((term, number),) = poly.items()
        if any(is_condition(atom) for atom, _ in term):
            return single(expression_of(poly), -UNIT)
        return {tuple((atom, -p) for atom, p in term): 1 / number}

    def _root(self, poly: Poly, power: Fraction) -> Poly:
        """A power of a sum, or a root: a positive number and positive factors that all
        terms share are taken out."""
        lead = abs(poly[first_term(poly)])
        common = self._common(poly)
        rest = add({}, self.times(poly, _reciprocal(common)), 1 / lead)
        found = {tuple((a, p * power) for a, p in common): UNIT}
        if lead != 1:
            found = self.times(found, self._number(lead, power))
        if rest == {(): UNIT}:
            return found
        atom = self._base(rest)
        return self.times(found, single(atom, power))

    def _base(self, rest: Poly) -> Expr:
        atom = expression_of(rest)
        if len(rest) > 1 or not _is_atom(rest):
            self.bases[atom] = rest
        return atom

    def _number(self, value: Fraction, power: Fraction) -> Poly:
        if power.denominator == 1:
            return constant(value ** int(power))
        atom = Const(value)
        self.bases[atom] = constant(value)
        return self._expand(((atom, power),))

    def _common(self, poly: Poly) -> Term:
        """Positive factors by which no power of them is negative, and one of each is
        0."""
        atoms = dict.fromkeys(a for term in poly for a, _ in term if is_positive(a))
        none = Fraction(0)
        shared = {a: min(dict(term).get(a, none) for term in poly) for a in atoms}
        return tuple(sorted(((a, p) for a, p in shared.items() if p), key=_place))

    def exponential(self, poly: Poly) -> Poly:
        found: Poly = {(): UNIT}
        for term, number in poly.items():
            match term:
                case ((Apply(op="log", args=(inner,)), power),) if power == 1:
                    factor = self.power(self.poly(inner), number)
                case _:
                    factor = single(
                        Apply("exp", (expression_of({term: UNIT}),)), number
                    )
            found = self.times(found, factor)
        return found

    def logarithm(self, poly: Poly) -> Poly:
        if len(poly) != 1:
            return single(Apply("log", (expression_of(poly),)))
        ((term, number),) = poly.items()
        found: Poly = {}
        rest: list[tuple[Expr, Fraction]] = []
        for atom, power in term:
            match atom:
                case Apply(op="exp", args=(inner,)):
                    found = add(found, self.poly(inner), power)
                case _ if is_positive(atom):
                    found = add(found, single(Apply("log", (atom,))), power)
                case _:
                    rest.append((atom, power))
        left: Poly = {tuple(rest): number}
        if left == {(): UNIT}:
            return found
        return add(found, single(Apply("log", (expression_of(left),))))

    # --- deciding --------------------------------------------------------------------

    def clear(self, poly: Poly) -> Poly:
        """The polynomial multiplied by the sums in its denominators, so that fractions
        can cancel."""
        for _ in range(8):
            found = self._lowest(poly)
            if found is None:
                return poly
            atom, power = found
            poly = self.times(poly, {((atom, power),): UNIT})
        return poly

    def _lowest(self, poly: Poly) -> tuple[Expr, Fraction] | None:
        """A sum in the denominator of some term, and the power that clears it."""
        for term in poly:
            for atom, power in term:
                if power < 0 and (atom in self.bases):
                    lowest = min(dict(t).get(atom, Fraction(0)) for t in poly)
                    return atom, Fraction(-(lowest.numerator // lowest.denominator))
        return None


def _binomial(poly: Poly) -> tuple[Fraction, Term, Fraction] | None:
    """A number, a product of exponentials and its factor, if a sum is of these two."""
    if len(poly) != 2 or () not in poly:
        return None
    ((growth, factor),) = ((t, n) for t, n in poly.items() if t)
    if not all(isinstance(a, Apply) and a.op == "exp" and p > 0 for a, p in growth):
        return None
    return poly[()], growth, factor


def _is_atom(poly: Poly) -> bool:
    ((term, number),) = poly.items()
    return number == 1 and len(term) == 1 and term[0][1] == 1


def _reciprocal(term: Term) -> Poly:
    return {tuple((atom, -power) for atom, power in term): UNIT}


def _orders(bounds: tuple[Bound, ...]) -> Iterator[tuple[Bound, ...]]:
    """Orders that may come first: by axis, and every order among equal axes."""
    by_axis: dict[str, list[Bound]] = {}
    for bound in bounds:
        by_axis.setdefault(str(bound.axis), []).append(bound)
    groups = (permutations(by_axis[axis]) for axis in sorted(by_axis))
    for parts in product(*groups):
        yield tuple(chain(*parts))


def _height(expr: Expr) -> int:
    found: dict[Expr, int] = {}
    for node in nodes(expr):
        below = max((found[child] for child in node.below), default=0)
        found[node] = below + (1 if isinstance(node, Reduce) else 0)
    return found[expr]


def _all_indices(expr: Expr) -> set[str]:
    return {n.name for n in nodes(expr) if isinstance(n, Idx)}


def _unused_name(fresh: Fresh, taken: set[str]) -> str:
    while (name := fresh()) in taken:
        continue
    taken.add(name)
    return name
