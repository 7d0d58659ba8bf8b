"""Names of values: invented names, and names that collide and must change."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from gradspec.diagnostics import Diagnostic, error
from gradspec.plan.arrays import (
    Expr,
    Literal,
    Name,
    Op,
    Pick,
    Softmax,
    ToFloat,
    Where,
    substitute,
)
from gradspec.plan.plan import Assign, AxisSize, Gradient, RulePlan, Term

# --- invented names -------------------------------------------------------------------
#
# Short descriptive names for values that the author did not name.


_LONGEST = 20
_FUNCTIONS = {"neg": "neg", "square": "square", "abs": "abs", "not": "not"}
_PAIRS = {"add": "plus", "sub": "minus", "mul": "times", "div": "over"}
_ROLES = {
    "add": "total",
    "sub": "difference",
    "mul": "product",
    "div": "ratio",
    "pow": "power",
    "square": "squared",
}
_MASKS = {"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"}
_LETTERS = "tuvwrsq"
_NUMBERS = {0: "zero", 1: "one", 2: "two"}


class Namer:
    """Gives each value a name of its own; equal values get equal names."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken) | set(keyword.kwlist) | set(dir(builtins))

    def name(self, value: Expr) -> str:
        """An unused name for ``value``."""
        return self._first(_candidates(value))

    def _first(self, candidates: Iterator[str]) -> str:
        name = next(name for name in candidates if name not in self._taken)
        self._taken.add(name)
        return name


def _candidates(value: Expr) -> Iterator[str]:
    apt = _apt(value)
    if apt:
        yield apt
    role = _role(value)
    if role:
        yield role
    yield from _LETTERS
    number = 2
    while True:
        yield f"{role or 't'}{number}"
        number += 1


def _role(value: Expr) -> str:
    match value:
        case Op(primitive=op) if op in _MASKS:
            return "mask"
        case Op(primitive=op):
            return _ROLES.get(op, op)
        case ToFloat(arg=Op()):
            return "indicator"
        case Where():
            return "branch"
        case Softmax():
            return "softmax"
        case _:
            return ""


def _apt(value: Expr) -> str:
    """A short descriptive name: ``exp_x``, ``one_minus_p``, ``x_squared``, ``x0``."""
    match value:
        case ToFloat(arg=Name(id=a)):
            return _short(f"float_{a}")
        case Pick(arg=Name(id=a), at=Literal(value=at)):
            return _short(f"{a}{at}")
        case Op(primitive="mul", args=(Name(id=a), Name(id=b))) if a == b:
            return _short(f"{a}_squared")
        case Op(primitive="square", args=(Name(id=a),)):
            return _short(f"{a}_squared")
        case Op(primitive="div", args=(Literal(value=one), Name(id=a))) if one == 1:
            return _short(f"inv_{a}")
        case Op(primitive="mul", args=(Name(id=a), Name(id=b))):
            return _short(f"{a}_{b}")
        case Op(primitive=op, args=(left, right)) if op in _PAIRS:
            a, b = _word(left), _word(right)
            return _short(f"{a}_{_PAIRS[op]}_{b}") if a and b else ""
        case Op(primitive=op, args=(arg,)) if op not in _MASKS:
            word = _word(arg)
            return _short(f"{_FUNCTIONS.get(op, op)}_{word}") if word else ""
        case _:
            return ""


def _word(value: Expr) -> str:
    match value:
        case Name(id=name):
            return name
        case Literal(value=number) if number in _NUMBERS:
            return _NUMBERS[int(number)]
        case Op(primitive="neg", args=(Name(id=name),)):
            return f"neg_{name}"
        case _:
            return ""


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else ""


# --- names that the text of a target has ----------------------------------------------
#
# Names of a rule's own values that collide with names in the emitted text.


def collisions(
    plan: RulePlan, target: str, reserved: frozenset[str]
) -> Iterator[Diagnostic]:
    """GS503 for a rule, or an input of it, whose name the emitted text needs: it is
    public and cannot be renamed.
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
    """The plan with ``np`` renamed to ``np_`` where ``np`` is reserved; likewise every
    output, local and size whose name, gradient or tangent collides.
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
