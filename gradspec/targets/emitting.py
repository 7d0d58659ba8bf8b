"""Emission of a module: choice of target, unsupported rules, colliding names."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import entry_points
from typing import cast

from gradspec.diagnostics import Diagnostic, Outcome, error, warning
from gradspec.plan.arrays import Expr
from gradspec.plan.cost import cost_summary
from gradspec.plan.expansion import missing
from gradspec.plan.names import collisions, renamed
from gradspec.plan.plan import ModulePlan, RulePlan
from gradspec.plan.program import Operators, Program, program
from gradspec.targets import GROUP, TARGETS, outside_targets
from gradspec.targets.module import module_text
from gradspec.targets.page import Page
from gradspec.targets.target import Emitted, Target


def emit_module(
    plan: ModulePlan, name: str, *, trace: bool, costs: bool
) -> Outcome[Emitted]:
    """See :func:`gradspec.targets.emit`."""
    target = _target(name)
    found: list[Diagnostic] = [*_unplanned(plan)]
    programs: list[Program] = []
    for rule in plan.rules:
        faults = tuple(_faults(rule, target.OPERATORS))
        found += faults
        if not faults:
            programs.append(_program(rule, target.OPERATORS))
    if not programs:
        return Outcome(None, tuple(found))
    names = {p.name for p in programs}.union(*(p.variables for p in programs))
    page = Page(plan.path, names)
    definitions = [
        d for p in programs for d in target.definitions(p, page, trace=trace)
    ]
    module = Emitted(
        name,
        plan.path,
        module_text(plan, page, definitions),
        page.runtime,
        tuple(map(cost_summary, programs)) if costs else (),
    )
    return Outcome(module, tuple(found))


def by_slope(name: str) -> bool:
    """True if the target takes tangents, and transposes them to gradients."""
    return _target(name).OPERATORS.by_slope


def _program(rule: RulePlan, operators: Operators) -> Program:
    return program(renamed(rule, operators.reserved), operators)


def _target(name: str) -> Target:
    if name in TARGETS:
        return cast(Target, import_module(f"gradspec.targets.{name}"))
    for point in entry_points(group=GROUP, name=name):
        return cast(Target, point.load())
    known = ", ".join((*TARGETS, *outside_targets()))
    raise ValueError(f"{name!r} is not a target; there are {known}")


def _faults(rule: RulePlan, operators: Operators) -> Iterable[Diagnostic]:
    target = operators.target
    yield from collisions(rule, target, operators.reserved)
    for name, reason in missing([*_expressions(rule)], target):
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


def _unplanned(plan: ModulePlan) -> Iterable[Diagnostic]:
    for unplanned in plan.unplanned:
        yield warning(
            "GS502",
            f"{unplanned.rule} is checked but not emitted: {unplanned.reason}",
            unplanned.source,
            unplanned.span,
            help="`gradspec explain GS502` tells what cannot be emitted yet",
        )
