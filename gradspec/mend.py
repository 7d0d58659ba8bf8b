"""Suggested fixes, tried around the pipeline before they are reported.

Each is one change to the text of a rule. The changed rule must parse, lower and check
without the finding and without an error that was not there before, and its outputs must
keep their values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations

from gradspec.checks.check import check
from gradspec.checks.diagnosis.wording import probably
from gradspec.checks.instances import Instance, Point, elementwise, instances
from gradspec.derive.complete import complete
from gradspec.diagnostics import Diagnostic, Fix, Outcome
from gradspec.ir.expr import Call, Expr
from gradspec.ir.rule import Complete, Judged, Rule, Status
from gradspec.ir.unroll import is_too_large
from gradspec.ir.walk import nodes, size
from gradspec.lower.context import Findings
from gradspec.lower.module import Extern, Function, Library, LoweredModule
from gradspec.lower.rules import lower_rule
from gradspec.source import Source, Span
from gradspec.symbolic.borders.limits import beside
from gradspec.symbolic.compare import Relation, compare
from gradspec.symbolic.enclose import enclose, is_defined
from gradspec.symbolic.limit import Effort
from gradspec.syntax.nodes import Item, Module, Named, RuleDef
from gradspec.syntax.parse import parse

AGAIN = 0.1
"""The budget for proofs of a rule that is changed by a suggestion."""

Check = Callable[[Complete], Outcome[Judged]]
"""A check of a complete rule."""

_WRONG = frozenset(["GS403", "GS432", "GS434"])
"""Warnings about values that are wrong at single points."""

_TRIES = 24  # of suggestions, in all
_LOOK = 5  # nodes of the instances that make the check of a changed rule one step
_LONGEST = 20_000  # characters of an item whose names are changed to try it
_NAMINGS = 6  # changes of names in a module that are tried, in all
_MOST = 32  # points at which values are compared
_NEAR = 1e-6  # how near a limit is to the values beside it


def check_and_mend(
    rule: Complete, budget: float = 10.0, defs: tuple[Function | Extern, ...] = ()
) -> Outcome[Judged]:
    """The checked rule, whose diagnostics suggest only fixes that work. ``budget``: the
    effort of proofs, and of trying fixes; ``defs`` are those that the text of the rule
    may call, of its file and of others."""
    outcome = check(rule, budget)
    again = partial(check, budget=min(budget / 10, AGAIN))
    told = keep_fixes_that_work(rule, outcome.diagnostics, again, budget, defs)
    return replace(outcome, diagnostics=told)


def keep_fixes_that_work(
    rule: Rule,
    found: tuple[Diagnostic, ...],
    check: Check,
    budget: float = 4.0,
    defs: tuple[Function | Extern, ...] = (),
) -> tuple[Diagnostic, ...]:
    """The diagnostics of a rule, each with the suggestions that fix it. Suggestions
    beyond the number of tries are dropped; ``budget`` bounds those for large rules."""
    if not any(one.tries for one in found):
        return found
    effort = Effort.of(budget)
    steps = max(effort.steps // _TRIES, 1 + _weight(rule) // _LOOK)

    def try_fix(one: Diagnostic, fix: Fix) -> Fix | None:
        if not effort.take(steps):
            return None
        changed = _changed_rule(rule, fix, defs)
        judged = _judged_change(rule, one, changed, _of_others(one, found), check)
        if judged is None:
            return None
        return replace(fix, is_safe=_is_safe(rule, fix, judged))

    return tuple(_with_suggestions(rule, one, partial(try_fix, one)) for one in found)


def _weight(rule: Rule) -> int:
    """The nodes of everything that a check of the rule compares."""
    if is_too_large(rule):
        return 0
    forms = (
        form
        for one in instances(rule).every
        for part in (one.forward, one.stated, one.derived)
        for form in part.values()
    )
    return sum(map(size, forms))


def _of_others(found: Diagnostic, every: tuple[Diagnostic, ...]) -> frozenset[str]:
    """The headlines of diagnostics about other lines."""
    place = [label.span for label in found.labels[:1]]
    return frozenset(
        d.headline for d in every if [label.span for label in d.labels[:1]] != place
    )


def _with_suggestions(
    rule: Rule, found: Diagnostic, try_fix: Callable[[Fix], Fix | None]
) -> Diagnostic:
    """The diagnostic with its verified suggestions, as fixes and as help."""
    if not found.tries:
        return found
    good = [next(filter(None, map(try_fix, group)), None) for group in found.tries]
    said = [fix for fix in good if fix is not None]
    help = ", or ".join(fix.words for fix in said if fix.words)
    guilty = [fix.guilty for fix in said if fix.guilty is not None]
    return replace(
        found,
        labels=(*found.labels, *(probably(rule, span) for span in guilty)),
        notes=(*found.notes, *(fix.note for fix in said if fix.note)),
        help=_with_alternative(help, found.help),
        fixes=tuple(said),
        tries=(),
    )


def _with_alternative(help: str, rest: str) -> str:
    """Text with ``rest`` as an alternative (``or …``) or as a remark on all of them."""
    if not help:
        return rest.removeprefix("or ")
    return f"{help}{', ' if rest.startswith('or ') else '; '}{rest}"


def _judged_change(
    rule: Rule,
    found: Diagnostic,
    changed: Complete | None,
    known: frozenset[str],
    check: Check,
) -> Judged | None:
    """The changed rule, judged; None if the change does not mend it."""
    if changed is None:
        return None
    outcome = check(changed)
    if found.headline in {d.headline for d in outcome.diagnostics}:
        return None
    new = (d for d in outcome.diagnostics if d.headline not in known)
    if any(d.is_error or d.code in _WRONG for d in new):
        return None
    kept = changed.forward == rule.forward or _keeps_values(rule, changed)
    return outcome.value if kept else None


def _is_safe(rule: Rule, fix: Fix, judged: Judged) -> bool:
    """True if the forward pass stays, the gradients that the change may concern are
    proved, and no comment is lost."""
    changed = {
        d.input
        for d in rule.backward
        if d.span.start <= fix.span.start and fix.span.end <= d.span.end
    }
    open_ = {v.input for v in judged.verdicts if v.status is Status.AGREES}
    is_proved = not (open_ & changed if changed else open_)
    is_kept = judged.rule.forward == rule.forward
    has_comment = "#" in rule.source.slice(fix.span)
    return fix.is_safe and is_proved and is_kept and not has_comment


# --- names -------------------------------------------------------------------------------


def keep_namings_that_work(
    module: Module,
    found: tuple[Diagnostic, ...],
    lower: Callable[[Module], Outcome[LoweredModule]],
) -> tuple[Diagnostic, ...]:
    """What `lower` found in a module, each with the changes of its text that leave fewer
    errors."""
    left = _NAMINGS

    def errors(*items: Item) -> int:
        outcome = lower(replace(module, items=items))
        return sum(one.is_error for one in outcome.diagnostics)

    def mends(fix: Fix) -> bool:
        old = [i for i in module.items if i.span.start <= fix.span.start < i.span.end]
        span = old[0].span if old else Span(fix.span.start, fix.span.start)
        end = span.end + len(fix.text) - (fix.span.end - fix.span.start)
        text = fix.apply_to(module.source.text)[span.start : end]
        if len(text) > _LONGEST:
            return False
        changed = parse(Source(module.source.path, f"{text}\n"))
        if changed.value is None or changed.failed:
            return False
        words = {*re.findall(r"\w+", text)} if old else {_name(i) for i in module.items}
        others = [i for i in module.items if i not in old and _name(i) in (*words, "")]
        return errors(*changed.value.items, *others) < errors(*old, *others)

    told = []
    for one in found:
        tried = one.fixes[:left]
        left -= len(tried)
        told.append(replace(one, fixes=tuple(filter(mends, tried))))
    return tuple(told)


def _name(item: Item) -> str:
    """Its name; empty for an import."""
    return item.name if isinstance(item, Named) else ""


# --- the changed rule --------------------------------------------------------------------


def _changed_rule(
    rule: Rule, fix: Fix, defs: tuple[Function | Extern, ...]
) -> Complete | None:
    """The rule with one change, complete; None if its text is invalid."""
    start, text = rule.span.start, rule.text
    if not rule.span.start <= fix.span.start <= fix.span.end <= rule.span.end:
        return None
    text = text[: fix.span.start - start] + fix.text + text[fix.span.end - start :]
    module = parse(Source(rule.source.path, text + "\n"))
    if module.value is None or module.failed or len(module.value.items) != 1:
        return None
    (node,) = module.value.items
    if not isinstance(node, RuleDef):
        return None
    findings = Findings(module.value.source)
    lowered = lower_rule(node, _library(rule, defs), findings)
    if lowered is None or any(d.is_error for d in findings.diagnostics):
        return None
    return complete(lowered).value


def _library(rule: Rule, defs: tuple[Function | Extern, ...]) -> Library:
    """The defs, and the rules that it calls."""
    items: tuple[Rule | Function | Extern, ...] = (*defs, *_called_rules(rule))
    return Library({item.name: item for item in items}, rule.name)


def _called_rules(rule: Rule) -> Iterator[Rule]:
    for definition in rule.definitions:
        for node in nodes(definition.value):
            if isinstance(node, Call):
                yield node.rule


# --- values ------------------------------------------------------------------------------


def _keeps_values(rule: Rule, changed: Rule) -> bool:
    """True if the change keeps the value of each output wherever it is defined, and
    gives it the limit from every side where it is not. (The sampled points are those at
    which the conditions of the changed rule decide.)"""
    if rule.has_axes:
        return False
    old, new = elementwise(rule), elementwise(changed)
    points = (*old.points, *new.points, *_with_zeros(new))
    names = [output.name for output in rule.outputs if output.takes_gradient]
    pairs = [(old.forward[name], new.forward[name]) for name in names]
    return all(_keeps_value(old, *pair, point) for point in points for pair in pairs)


def _with_zeros(seen: Instance) -> Iterator[Point]:
    """Points with one or two inputs 0, and the others not."""
    variables = [variable.name for variable in seen.rule.tensor_inputs]
    for point in seen.points:
        for some in (*combinations(variables, 1), *combinations(variables, 2)):
            yield {**point, **dict.fromkeys(some, Fraction(0))}


def _keeps_value(seen: Instance, old: Expr, new: Expr, point: Point) -> bool:
    match compare(old, new, point).relation:
        case Relation.DIFFERENT | Relation.RIGHT_UNDEFINED:
            return False
        case Relation.LEFT_UNDEFINED:
            value = enclose(new, point)
            sides = (
                enclose(old, near)
                for variable in seen.rule.tensor_inputs
                for near in beside(point, variable.name, seen.assumed)
            )
            return all(not is_defined(s) or abs(s - value) < _NEAR for s in sides)
        case _:
            return True
