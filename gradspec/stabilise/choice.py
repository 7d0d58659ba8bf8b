"""Candidates for one function, and the selection among them by measurement.

A form that is good at every point is kept as written. Else the cheapest good candidate
is selected; if none is good, the one with the fewest faults, provided that it repairs
more points than it spoils. The same text serves float32 and float64, so both count.

Rewrite rules find most candidates. Algebra adds conjugates of sums with a root, sums of
fractions over one denominator, and the factor of a cotangent gathered into one fraction.
None is trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

from gradspec.derive.chain import coefficient, is_linear, negate, times
from gradspec.ir.expr import ZERO, Apply, Call, Const, Expr, Reduce, Ref, Select
from gradspec.ir.rule import Rule
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import children, memo, names, nodes, size, transform
from gradspec.primitives.lookup import primitive
from gradspec.stabilise.accuracy_model import Score, Trial
from gradspec.stabilise.names import Names, Quantity
from gradspec.stabilise.rewriting import FEW, Holds, Search, replace_in
from gradspec.symbolic.gather import factored_fraction

_PRICE = 3
"""Points to be repaired for each one that is spoiled."""

_WORTH = 0.25
"""The fraction of the faults that a longer candidate, still bad, must repair."""

_SELECT = 3.7  # multiplications of a float32 array (`np.where`, measured)
_CALL = 10.0
_REDUCTIONS = {"logsumexp": 26.0, "norm": 16.0}
"""Costs of an element: an exponential and a logarithm; its size, a quotient, a root."""


def cost(expr: Expr) -> float:
    """The cost of an expression in multiplications of an array, shared operations once,
    plus 1 for each node: a pass over memory, and something to read.
    """
    return sum(1.0 + _cost(node) for node in nodes(expr))


def _cost(node: Expr) -> float:
    match node:
        case Apply(op=op):
            return primitive(op).cost
        case Select():
            return _SELECT
        case Call():
            return _CALL
        case Reduce(op=op):
            return _REDUCTIONS.get(op, 0.0)
        case _:
            return 0.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate for a value, with a score for each trial, float32 first."""

    form: Expr
    scores: tuple[Score, ...]

    @property
    def is_good(self) -> bool:
        return all(score.is_good for score in self.scores)

    @property
    def faults(self) -> tuple[int, ...]:
        """Bad points in the core, bad points, gaps and infinities, over all trials."""
        columns = zip(*(score.faults for score in self.scores), strict=True)
        return tuple(map(sum, columns))

    @property
    def lost(self) -> int:
        """Points at which the value is not a number, over all trials."""
        return sum(
            score.gaps + int(np.isinf(score.errors).sum()) for score in self.scores
        )

    def spoils(self, other: Candidate) -> int:
        """Points that are bad here and not in ``other``."""
        pairs = zip(self.scores, other.scores, strict=True)
        return sum(one.spoils(two) for one, two in pairs)


@dataclass(frozen=True, slots=True)
class Choice:
    """The candidate as written, and the selected one."""

    written: Candidate
    selected: Candidate

    @property
    def is_good(self) -> bool:
        return self.selected.is_good

    def settle(self) -> Choice:
        """The written form, if the selected one costs more, is still bad and repairs
        little: no point without a number, and less than a quarter of any fault.
        """
        before, after = self.written, self.selected
        if after.is_good or cost(after.form) <= cost(before.form):
            return self
        pairs = zip(before.faults[1:], after.faults[1:], strict=True)
        is_much = any(was and was - now >= _WORTH * was for was, now in pairs)
        return self if is_much or after.lost < before.lost else Choice(before, before)


class Contest:
    """The comparison of candidates for one quantity. A candidate with more faults in
    the first trial than the best has in all is not measured in the others.
    """

    def __init__(self, trials: tuple[Trial, ...], written: Expr) -> None:
        self.trials = trials
        self._known: dict[Expr, Candidate | None] = {}
        scores = tuple(trial.score(written) for trial in trials)
        self._known[written] = self.written = Candidate(written, scores)

    @property
    def measured(self) -> tuple[Candidate, ...]:
        """All candidates measured in every trial."""
        return tuple(found for found in self._known.values() if found is not None)

    def choose(self, forms: Iterable[Expr], held: Candidate | None = None) -> Choice:
        """The best of ``forms``, of ``held`` (the choice so far) and of the written
        form.
        """
        best = held or self.written
        is_first_good = best.is_good
        for form in sorted(dict.fromkeys((best.form, *forms)), key=cost):
            found = self._measure(form, best)
            if found is None or not self._is_fair(found):
                continue
            if found.is_good or found.faults < best.faults:
                best = found
            if best.is_good and (found.is_good or not is_first_good):
                break
        return Choice(self.written, best)

    def _measure(self, form: Expr, best: Candidate) -> Candidate | None:
        if form not in self._known:
            first = self.trials[0].score(form)
            self._known[form] = None
            if first.faults <= best.faults:
                others = (trial.score(form) for trial in self.trials[1:])
                self._known[form] = Candidate(form, (first, *others))
        return self._known[form]

    def _is_fair(self, found: Candidate) -> bool:
        """True if it repairs enough for what it spoils, and loses no digits where
        elements are alike.
        """
        if any(score.loses for score in found.scores):
            return False
        spoiled = found.spoils(self.written)
        return spoiled * _PRICE <= self.written.spoils(found) if spoiled else True


# --- for `gradspec audit --explain` ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tried:
    """One choice, and all candidates measured for it."""

    choice: Choice
    measured: tuple[Candidate, ...]


_listener: ContextVar[list[Tried] | None] = ContextVar("tried", default=None)


@contextmanager
def listening() -> Iterator[list[Tried]]:
    """Record the choices made inside, in order."""
    heard: list[Tried] = []
    token = _listener.set(heard)
    try:
        yield heard
    finally:
        _listener.reset(token)


def note(tried: Tried) -> None:
    """Record a choice for every active listener."""
    heard = _listener.get()
    if heard is not None:
        heard.append(tried)


_LARGEST = 60
"""Size in nodes beyond which an expression is not transformed by algebra."""

_COSTLIER, _ROOM = 1.25, 20.0
"""Bounds on the cost of a candidate with inlined locals, relative to the text."""

_SMALLEST = 5
_GROWTH = 1.2  # how much longer a gathered factor may be


class Proposals:
    """Candidates for the values of an elementwise rule. ``near`` and ``far`` take a
    candidate, the quantity it evaluates, and the rule as selected so far.
    """

    def __init__(self, search: Search, written: Rule) -> None:
        self._search = search
        self._upstream = frozenset(output.cotangent for output in written.outputs)

    def near(self, form: Expr, of: Quantity, chosen: Rule) -> Iterator[Expr]:
        """Rewrites of a candidate; for a derived one also of its other derivations."""
        if of.is_derived:
            for start in dict.fromkeys((form, tidy(of.value), *of.others)):
                yield from self._of_cotangent(start)
        else:
            yield from self._rewritten(form)

    def far(self, form: Expr, of: Quantity, chosen: Rule) -> Iterator[Expr]:
        """Rewrites of a candidate with names inlined, from the author's text and from our
        derivation, unless that is much longer.
        """
        values = Names(chosen, chosen.exacts)
        whole, first = values.close(form), values.close(tidy(of.value))
        most = _COSTLIER * cost(first) + _ROOM
        for start in dict.fromkeys((whole, first, *of.others)):
            found = self._of_cotangent(start)
            yield from (form for form in found if cost(form) <= most)

    def _rewritten(self, start: Expr) -> Iterator[Expr]:
        yield from self._search.forms(start)
        if size(start) <= _LARGEST:
            conjugate = _with_conjugate(start, self._search.holds)
            for form in (conjugate, _over_one_denominator(start)):
                if form != start:
                    yield from self._search.forms(form, FEW)

    def _of_cotangent(self, start: Expr) -> Iterator[Expr]:
        """The expression, also with the factor of a cotangent gathered into one
        fraction.
        """
        yield from self._rewritten(start)
        for form in _with_gathered_factor(start, self._upstream):
            yield from self._search.forms(form, FEW)


def _over_one_denominator(expr: Expr) -> Expr:
    """``1 / (x + 1) - 1 / x`` becomes ``-1 / (x * (x + 1))``, free of cancellation."""
    form, todo = expr, [expr]
    while todo:
        node = todo.pop()
        if (
            isinstance(node, Apply)
            and node.op in ("add", "sub")
            and _has_quotient(node)
        ):
            new = _gather(node)
            if new is not None and size(new) <= _GROWTH * size(node):
                form = replace_in(form, node, new)
                continue
        todo += children(node)
    return form


def _has_quotient(expr: Expr) -> bool:
    """True if a term is a quotient."""
    match expr:
        case Apply(op="add" | "sub" | "mul" | "neg", args=parts):
            return any(map(_has_quotient, parts))
        case _:
            return isinstance(expr, Apply) and expr.op in ("div", "rsqrt")


@memo(1024)
def _gather(expr: Expr) -> Expr | None:
    form = (
        None
        if any(isinstance(n, Select) for n in nodes(expr))
        else factored_fraction(expr)
    )
    return None if form is None else tidy(form)


def _with_conjugate(expr: Expr, holds: Holds) -> Expr:
    """Replace the first conjugate: ``-b + sqrt(b**2 - a * c)`` is ``-a * c / (b +
    sqrt(b**2 - a * c))`` for positive ``b``. The conditional stands outermost, so that
    common factors of the conjugate and the rest cancel.
    """
    for node in nodes(expr):
        found = _conjugate(node)
        if found is not None:
            unlike, new = found
            mended = replace_in(expr, node, new)
            short = _gather(mended)
            if short is not None and size(short) < size(mended):
                mended = short
            return mended if holds(unlike) else Select(unlike, mended, expr)
    return expr


def _conjugate(node: Expr) -> tuple[Expr, Expr] | None:
    """A sum with a root, ``root - u`` or ``u - root``, as the quotient by ``root + u``,
    which does not cancel where ``u`` is positive: that condition, and the quotient.
    """
    match node:
        case Apply(op="add", args=(p, Apply(op="sqrt") as root)):
            u, is_minus = negate(p), False
        case Apply(op="add", args=(Apply(op="sqrt") as root, p)):
            u, is_minus = negate(p), False
        case Apply(op="sub", args=(Apply(op="sqrt") as root, u)):
            is_minus = False
        case Apply(op="sub", args=(u, Apply(op="sqrt") as root)):
            is_minus = True
        case _:
            return None
    square = root.args[0]
    rest = _gather(Apply("sub", (square, Apply("square", (u,)))))
    if rest is None or size(rest) >= size(square) or not names(u):
        return None
    match u:
        case Apply(op="neg", args=(v,)):
            unlike, below = Apply("lt", (v, ZERO)), Apply("sub", (root, v))
        case Apply(op="mul", args=(Const(value=value), v)) if value:
            unlike = Apply("gt" if value > 0 else "lt", (v, ZERO))
            below = Apply("add", (u, root))
        case _:
            unlike, below = Apply("gt", (u, ZERO)), Apply("add", (u, root))
    quotient = fold(Apply("div", (rest, below)))
    return unlike, negate(quotient) if is_minus else quotient


# --- the factor of a cotangent -------------------------------------------------------------


def _with_gathered_factor(expr: Expr, upstream: frozenset[str]) -> Iterator[Expr]:
    for name, factor in _factor(expr, upstream):
        if not _SMALLEST < size(factor) <= _LARGEST:
            return
        form = factor
        for part in _branches(factor):
            if not any(map(_is_foreign, nodes(part))):
                new = _gather(transform(part, _signed))
                form = form if new is None else replace_in(form, part, new)
        if form != factor and size(form) <= _GROWTH * size(factor):
            yield times(Ref(name), form)


def _factor(expr: Expr, upstream: frozenset[str]) -> Iterator[tuple[str, Expr]]:
    """The one upstream cotangent that an expression is linear in, and its factor."""
    used = sorted(upstream & names(expr))
    if len(used) == 1 and is_linear(expr, upstream):
        yield used[0], coefficient(expr, used[0], upstream)


def _signed(node: Expr) -> Expr:
    """``|u|`` as ``u * sign(u)``, so that algebra relates the two (a rewrite rule makes
    it ``|u|`` again).
    """
    match node:
        case Apply(op="abs", args=(u,)):
            return Apply("mul", (u, Apply("sign", (u,))))
        case _:
            return node


def _branches(expr: Expr) -> list[Expr]:
    """The branches of (nested) conditionals at the root."""
    found: list[Expr] = []
    todo = [expr]
    while todo:
        node = todo.pop()
        if isinstance(node, Select):
            todo += (node.other, node.then)
        elif size(node) > _SMALLEST and node not in found:
            found.append(node)
    return found


def _is_foreign(node: Expr) -> bool:
    match node:
        case Select() | Call():
            return True
        case Apply(op=op):
            return primitive(op).sympy is None  # there is no algebra of steps here
        case _:
            return False
