"""Emitting a module: which target, what it cannot do, and whose names collide."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib import import_module
from importlib.metadata import entry_points
from typing import cast

from gradspec.diagnostics import Diagnostic, Outcome, error, warning
from gradspec.plan.account import Account
from gradspec.plan.array import Expr
from gradspec.plan.plan import ModulePlan, RulePlan
from gradspec.plan.renaming import renamed
from gradspec.plan.shadowing import bare
from gradspec.targets import GROUP, TARGETS, outside_targets
from gradspec.targets.expansion import expander, missing
from gradspec.targets.signature import scalars
from gradspec.targets.target import EmittedModule, Target

_ELEMENTWISE = "rules whose inputs and outputs have no named axes are emitted"
_MODULES = frozenset(["math", "special"])
"""Imported where the table's spellings ask for them."""


def emit_module(plan: ModulePlan, name: str, *, trace: bool) -> Outcome[EmittedModule]:
    """See :func:`gradspec.targets.emit`."""
    target = _target(name)
    able, found = _able(plan, name, target)
    if not able.rules:
        return Outcome(None, found)
    text = target.traced_module(able) if trace else target.module(able)
    return Outcome(EmittedModule(name, plan.path, text), found)


def accounts(plan: ModulePlan, name: str) -> tuple[Account, ...]:
    """What the rules cost that the target emits; none if it does not tell."""
    target = _target(name)
    tell: Callable[[RulePlan], Account] | None = getattr(target, "account", None)
    if tell is None:
        return ()
    able, _ = _able(plan, name, target)
    told = map(tell, able.rules)
    return tuple(replace(account, rule=bare(account.rule)) for account in told)


def transposes(name: str) -> bool:
    """Whether the target is told tangents, and transposes them."""
    return getattr(_target(name), "TRANSPOSES_TANGENTS", False)


def _able(
    plan: ModulePlan, name: str, target: Target
) -> tuple[ModulePlan, tuple[Diagnostic, ...]]:
    """The plan of the rules that the target can do, in its names; why not of others."""
    found: list[Diagnostic] = [*_not_yet(plan)]
    rules: list[RulePlan] = []
    for rule in plan.rules:
        if rule.is_ranked and not getattr(target, "EMITS_NAMED_AXES", False):
            found.append(_without_axes(rule, name))
            continue
        faults = tuple(_missing(rule, name))
        found += faults
        if not faults:
            names = tuple(other.name for other in plan.rules)
            rules.append(renamed(rule, target.RESERVED | _MODULES, names))
    return replace(plan, rules=tuple(rules)), tuple(found)


def _target(name: str) -> Target:
    if name in TARGETS:
        return cast(Target, import_module(f"gradspec.targets.{name}"))
    for point in entry_points(group=GROUP, name=name):
        return cast(Target, point.load())
    known = ", ".join((*TARGETS, *outside_targets()))
    raise ValueError(f"{name!r} is not a target; there are {known}")


def _missing(rule: RulePlan, target: str) -> Iterable[Diagnostic]:
    numbers = scalars(rule)
    expand = expander(target, numbers)
    exprs = [expand(value) for value in _expressions(rule)]
    for name, reason in missing(exprs, target, numbers):
        yield error(
            "GS501",
            f"{rule.name} needs {name}, which {target} does not have: {reason}",
            rule.source,
            rule.span,
            help=f"write it with functions that {target} has, or leave {target} out of"
            " --target for this file",
        )


def _expressions(rule: RulePlan) -> Iterable[Expr]:
    yield from (let.value for let in (*rule.constants, *rule.forward))
    yield from (gradient.whole for gradient in rule.gradients if gradient)


def _without_axes(rule: RulePlan, target: str) -> Diagnostic:
    return warning(
        "GS502",
        f"{rule.name} is checked but not emitted for {target}: {target} has no named"
        " axes yet",
        rule.source,
        rule.span,
        help=_ELEMENTWISE,
    )


def _not_yet(plan: ModulePlan) -> Iterable[Diagnostic]:
    for unplanned in plan.unplanned:
        yield warning(
            "GS502",
            f"{unplanned.rule} is checked but not emitted: {unplanned.reason}",
            unplanned.source,
            unplanned.span,
            help="`gradspec explain GS502` tells what cannot be emitted yet",
        )
