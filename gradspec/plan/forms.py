"""Equations of a known form, whose solution is a routine of every framework.

A form is a row of a table. It is found up to the names of indices, the order of factors
and of sides, and further axes; in the transposed matrix, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import permutations

from gradspec.derive.scopes import replace_indices
from gradspec.ir.expr import ZERO, Apply, Expr, Idx, Reduce, Ref, Select
from gradspec.ir.products import terms, total
from gradspec.ir.rule import Assume, Definition
from gradspec.ir.walk import names
from gradspec.plan import arrays
from gradspec.plan.axes import Value, permute
from gradspec.plan.recurrence import Translate
from gradspec.plan.translation import Known


@dataclass(frozen=True, slots=True)
class Form:
    """The equations ``sum(x[…] * x[…] for k) == a[i, j]`` in the lower half of ``x``,
    which is 0 elsewhere and has a positive diagonal. ``factors`` are the indices of the
    two; ``x`` is ``routine`` of ``a``, of which the lower half alone is read, also as
    the other half.
    """

    routine: str
    factors: tuple[str, str]


FORMS = (Form("cholesky", ("ik", "jk")),)


def known_solution(
    let: Definition,
    assumes: Iterable[Assume],
    view: Mapping[str, Known],
    translate: Translate,
) -> Value | None:
    """The value of a state whose equation has a form; None if it has none."""
    sides = _sides(let)
    if sides is None:
        return None
    condition, product, right = sides
    places = range(len(let.indices))
    positive = [a.condition for a in assumes if let.name in names(a.condition)]
    for row, column in permutations(places, 2):
        i, j = Idx(let.indices[row]), Idx(let.indices[column])
        factors = _factors(product, let, row, column)
        form = next((f for f in FORMS if [*f.factors] == factors), None)
        is_diagonal = any(_is_positive(one, let.name, row, column) for one in positive)
        if form is None or not is_diagonal or condition not in _orders(j, i):
            continue
        front = (let.indices[place] for place in places if place not in (row, column))
        order = (*front, i.name, j.name)
        # the derivatives of the frameworks are those of symmetric matrices
        mirrored = replace_indices(right, {i.name: j, j.name: i})
        whole = Select(condition, right, mirrored)
        axes = dict(zip(let.indices, let.axes, strict=True))
        given = translate(whole, order, [axes[index] for index in order], view)
        made = arrays.Factor(given.expr, form.routine)
        return Value(permute(made, order, let.indices), let.indices, given.batched)
    return None


def _sides(let: Definition) -> tuple[Expr, Expr, Expr] | None:
    """The condition of an equation, its only term that has the state, and what that is
    equal to."""
    own = Ref(let.name, tuple(map(Idx, let.indices)))
    match let.value:
        case Select(condition, Apply("sub", (first, gap)), other) if (
            first == own and other == ZERO
        ):
            found = terms(gap)
        case _:
            return None
    unknown = [(sign, term) for sign, term in found if let.name in names(term)]
    if len(unknown) != 1:
        return None
    ((is_minus, product),) = unknown
    known = [(sign == is_minus, t) for sign, t in found if let.name not in names(t)]
    return condition, product, total(known)


def _factors(product: Expr, let: Definition, row: int, column: int) -> list[str] | None:
    """The indices of the two factors of a sum, in order: of the state's row and column,
    and ``k``."""
    match product:
        case Reduce("sum", (bound,), Apply("mul", (Ref() as one, Ref() as other))):
            pass
        case _:
            return None
    letters = dict(
        zip((let.indices[row], let.indices[column], bound.index), "ijk", strict=True)
    )
    where = product.where
    last = (Idx(let.indices[place]) for place in (row, column))
    if where is not None and not any(
        where in _orders(Idx(bound.index), index) for index in last
    ):
        return None
    found = []
    for ref in (one, other):
        if ref.name != let.name or not _is_plain(ref):
            return None
        at = [index.name for index in ref.indices if isinstance(index, Idx)]
        pairs = enumerate(zip(at, let.indices, strict=True))
        if any(a != b for place, (a, b) in pairs if place not in (row, column)):
            return None
        found.append("".join(letters.get(at[place], "?") for place in (row, column)))
    return sorted(found)


def _is_plain(ref: Ref) -> bool:
    return all(isinstance(index, Idx) for index in ref.indices)


def _orders(small: Expr, large: Expr) -> tuple[Expr, Expr]:
    """The ways to write ``small <= large``."""
    return Apply("le", (small, large)), Apply("ge", (large, small))


def _is_positive(condition: Expr, name: str, row: int, column: int) -> bool:
    """True if a condition says that the diagonal of a matrix is positive."""
    match condition:
        case Apply("gt" | "ge", (Ref() as ref, bound)) if bound == ZERO:
            pass
        case Apply("lt" | "le", (bound, Ref() as ref)) if bound == ZERO:
            pass
        case _:
            return False
    once = {index for place, index in enumerate(ref.indices) if place != column}
    return (
        ref.name == name
        and _is_plain(ref)
        and ref.indices[row] == ref.indices[column]
        and len(once) == len(ref.indices) - 1
    )
