"""What a target has no function for, written out; and what it cannot do at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from gradspec.plan.array import Expr, Op, children, names, nodes, substitute
from gradspec.plan.plan import Gradient, RulePlan
from gradspec.plan.translate import Types, rebuilt, translate
from gradspec.primitives.formula import formula
from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Expand, Missing

_NONE: Mapping[str, str] = MappingProxyType({})


def expander(
    target: str, scalars: frozenset[str], instead: Mapping[str, str] = _NONE
) -> Callable[[Expr], Expr]:
    """Writes out, all the way down, the primitives that ``target`` spells by a formula,
    or ``instead`` has one for.

    ``scalars`` are the names of Python numbers: what depends on those alone is computed
    in plain Python, and written out where `math` has no function for it.
    """

    def expand(expr: Expr) -> Expr:
        done: dict[Expr, Expr] = {}
        for node in nodes(expr):
            value = rebuilt(node, tuple(done[child] for child in children(node)))
            done[node] = _expanded(value)
        return done[expr]

    def _expanded(value: Expr) -> Expr:
        if not isinstance(value, Op):
            return value
        text = _formula(value, target, scalars, instead)
        if text is None:
            return value
        params = primitive(value.primitive).params
        holes = dict(zip(params, value.args, strict=True))
        numbers = {p for p, arg in holes.items() if set(names(arg)) <= scalars}
        types = Types(frozenset(numbers), frozenset(), frozenset())
        return expand(substitute(translate(formula(text), types), holes))

    return expand


def then(
    expand: Callable[[Expr], Expr], mended: Callable[[Expr], Expr]
) -> Callable[[Expr], Expr]:
    """What ``expand`` gives, each node put in other words by ``mended``, from below."""

    def expanded(expr: Expr) -> Expr:
        done: dict[Expr, Expr] = {}
        for node in nodes(expand(expr)):
            parts = tuple(done[part] for part in children(node))
            done[node] = mended(rebuilt(node, parts))
        return done[node]

    return expanded


def _formula(
    value: Op, target: str, scalars: frozenset[str], instead: Mapping[str, str]
) -> str | None:
    row = primitive(value.primitive)
    if set(names(value)) <= scalars:
        return None if "python" in row.spellings else row.meaning
    if value.primitive in instead:
        return instead[value.primitive]
    spelling = row.spellings.get(target)
    return spelling.formula if isinstance(spelling, Expand) else None


def missing(
    exprs: Iterable[Expr], target: str, scalars: frozenset[str]
) -> tuple[tuple[str, str], ...]:
    """The primitives that the target cannot do, each with the reason, in order."""
    found: dict[str, str] = {}
    for node in nodes(*exprs):
        if isinstance(node, Op) and not (
            set(names(node)) <= scalars
            and "python" in primitive(node.primitive).spellings
        ):
            spelling = primitive(node.primitive).spellings.get(target)
            if spelling is None:
                found[node.primitive] = "it has no such function"
            elif isinstance(spelling, Missing):
                found[node.primitive] = spelling.reason
    return tuple(found.items())


def with_slopes(plan: RulePlan, expand: Callable[[Expr], Expr]) -> RulePlan:
    """The rule with the local derivatives, which a traced module prints, in the target's
    words."""

    def expanded(gradient: Gradient) -> Gradient:
        slopes = tuple(local and expand(local) for local in gradient.locals)
        return replace(gradient, locals=slopes)

    return replace(plan, gradients=tuple(g and expanded(g) for g in plan.gradients))
