"""Names of the author that a target's text needs for itself get an underscore."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from gradspec.plan.array import Expr, Name, substitute
from gradspec.plan.plan import Assign, AxisSize, Gradient, RulePlan, Term
from gradspec.plan.shadowing import marked


def renamed(
    plan: RulePlan, reserved: frozenset[str], rules: tuple[str, ...] = ()
) -> RulePlan:
    """The plan with ``np`` called ``np_`` where ``np`` is reserved; so for every input,
    output and local whose name, gradient or tangent collides, and for the rule, which
    takes the name of none of the ``rules`` of its module. Names that Python has are marked.
    """
    names = _names(plan)
    changed = {name: marked(_free(name, reserved, names)) for name in names}
    changed = {old: new for old, new in changed.items() if old != new}
    name = plan.name
    while name in reserved or (name != plan.name and name in rules):
        name += "_"
    name = marked(name)
    if not changed and name == plan.name:
        return plan
    double = plan.double and replace(_with_names(plan.double, changed), name=name)
    return replace(_with_names(plan, changed), name=name, double=double)


def _names(plan: RulePlan) -> tuple[str, ...]:
    lets = (*plan.constants, *plan.forward, *plan.backward_locals)
    ends = [*(i.name for i in plan.inputs), *(o.name for o in plan.outputs)]
    sizes = (size.name for size in plan.sizes)
    return tuple(dict.fromkeys([*ends, *(let.name for let in lets), *sizes]))


def _free(name: str, reserved: frozenset[str], taken: tuple[str, ...]) -> str:
    tangents = {f"{other}_dot" for other in taken}
    free = name
    while (
        free in reserved
        or f"d{free}" in reserved
        or free in tangents
        or (free != name and free in taken)
    ):
        free += "_"
    return free


def _with_names(plan: RulePlan, changed: Mapping[str, str]) -> RulePlan:
    every = {**changed}
    every |= {f"d{old}": f"d{new}" for old, new in changed.items()}
    every |= {f"{old}_dot": f"{new}_dot" for old, new in changed.items()}
    values = {old: Name(new) for old, new in every.items()}

    def name(old: str) -> str:
        return every.get(old, old)

    def value(expr: Expr) -> Expr:
        return substitute(expr, values)

    def lets(assigns: tuple[Assign, ...]) -> tuple[Assign, ...]:
        return tuple(Assign(name(a.name), value(a.value), a.comment) for a in assigns)

    return replace(
        plan,
        inputs=tuple(replace(i, name=name(i.name)) for i in plan.inputs),
        outputs=tuple(replace(o, name=name(o.name)) for o in plan.outputs),
        constants=lets(plan.constants),
        forward=lets(plan.forward),
        backward_locals=lets(plan.backward_locals),
        gradients=tuple(g and _gradient(g, name, value) for g in plan.gradients),
        saved=tuple(name(saved) for saved in plan.saved),
        asked=tuple(name(saved) for saved in plan.asked),
        wide=tuple(name(result) for result in plan.wide),
        tangents=plan.tangents and tuple(value(t) for t in plan.tangents),
        surrogates=lets(plan.surrogates),
        comments=tuple((name(where), text) for where, text in plan.comments),
        sizes=tuple(
            AxisSize(name(s.name), tuple((name(of), at) for of, at in s.places))
            for s in plan.sizes
        ),
    )


def _gradient(
    gradient: Gradient, name: Callable[[str], str], value: Callable[[Expr], Expr]
) -> Gradient:
    return Gradient(
        name(gradient.input),
        value(gradient.whole),
        tuple(_term(term, name, value) for term in gradient.terms),
        tuple(local and value(local) for local in gradient.locals),
    )


def _term(
    term: Term, name: Callable[[str], str], value: Callable[[Expr], Expr]
) -> Term:
    return replace(
        term,
        value=value(term.value),
        upstream=tuple(name(u) for u in term.upstream),
        spans=tuple(name(s) for s in term.spans),
    )
