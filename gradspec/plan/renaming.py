"""Names of a rule's own values that the target's text needs for itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from gradspec.diagnostics import Diagnostic, error
from gradspec.plan.array import Expr, Name, substitute
from gradspec.plan.plan import Assign, AxisSize, Gradient, RulePlan, Term


def collisions(
    plan: RulePlan, target: str, reserved: frozenset[str]
) -> Iterator[Diagnostic]:
    """GS503 for a rule, or an input of it, whose name the target's text needs: it is
    public, so that it cannot be another one.
    """
    others = {i.name for i in plan.inputs}
    if plan.name in reserved:
        yield _name_in_use(plan, f"the rule {plan.name}", plan.name, target)
    for i in plan.inputs:
        if i.name in reserved:
            yield _name_in_use(
                plan, f"the input {i.name} of {plan.name}", i.name, target
            )
        elif i.name.removesuffix("_dot") in others - {i.name}:
            yield error(
                "GS503",
                f"{plan.name} has inputs {i.name.removesuffix('_dot')} and {i.name}",
                plan.source,
                plan.span,
                label=f"{i.name} is the name of the other's tangent in emitted modules",
                help="give the input another name",
            )


def _name_in_use(plan: RulePlan, what: str, name: str, target: str) -> Diagnostic:
    return error(
        "GS503",
        f"{what} cannot be emitted for {target}: modules use the name {name} themselves",
        plan.source,
        plan.span,
        help=f"give it another name, or leave {target} out of --target for this file",
    )


def renamed(plan: RulePlan, reserved: frozenset[str]) -> RulePlan:
    """The plan with ``np`` called ``np_`` where ``np`` is reserved; so for every output,
    local and size whose name, gradient or tangent collides.
    """
    inputs = frozenset(i.name for i in plan.inputs)
    names = _names(plan)
    changed = {n: _free(n, reserved, names) for n in names if n not in inputs}
    changed = {old: new for old, new in changed.items() if old != new}
    return _with_names(plan, changed) if changed else plan


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
        asked=tuple(map(name, plan.asked)),
        recomputed=tuple(map(name, plan.recomputed)),
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
