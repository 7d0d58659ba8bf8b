"""Is the domain what its author thinks: satisfiable, and is the rule defined on it?"""

from __future__ import annotations

from collections.abc import Iterator

from gradspec.checks import constants
from gradspec.checks.mending import assuming
from gradspec.checks.subject import Point, Subject, said
from gradspec.diagnostics import Diagnostic, error, warning
from gradspec.ir.calls import expand
from gradspec.ir.expr import Apply, Expr
from gradspec.ir.rule import Rule
from gradspec.ir.text import show
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import nodes, substitute
from gradspec.primitives.formula import formula
from gradspec.primitives.lookup import primitive
from gradspec.source import Span
from gradspec.symbolic.enclose import program
from gradspec.symbolic.neighbours import beside

_MOST = 4  # conditions that are tried


def check(subject: Subject, ranked: Rule | None = None) -> Iterator[Diagnostic]:
    """``ranked``: the rule over axes of which the subject is the elements at some sizes."""
    rule, survey = subject.rule, subject.survey
    if not survey.points and not survey.undefined:
        if subject.rule.assumes:
            yield unsatisfiable(subject.rule)
    elif not survey.points and any(constants.check(subject)):
        return  # a constant is to blame, and told of
    elif not survey.points:
        yield _nowhere(subject, survey.undefined[0])
    else:
        usual = (p for p in survey.undefined if _has_defaults(subject, p))
        hole = next((p for p in usual if _is_wide(subject, p)), None)
        if hole is not None and rule.tensor_inputs:
            yield _undefined(subject, hole, ranked)


def unsatisfiable(rule: Rule) -> Diagnostic:
    last = rule.assumes[-1]
    return error(
        "GS410",
        f"nothing satisfies the assumptions of {rule.name}",
        rule.source,
        last.span,
        label="no values of the inputs were found for which all assumptions hold",
        help="correct or remove an assumption",
    )


def _has_defaults(subject: Subject, point: Point) -> bool:
    """Statics other than the default are our choice, not the author's."""
    statics = subject.rule.static_inputs
    return all(s.default is None or point[s.name] == s.default for s in statics)


def _is_wide(subject: Subject, point: Point) -> bool:
    """Undefined beside the point too: an isolated pole is no part of the domain."""
    forward = tuple(subject.forward.values())
    if not _is_singular(forward, point):
        return False
    near = [
        place
        for variable in subject.rule.tensor_inputs
        for place in beside(point, variable.name, subject.assumed)
    ]
    return bool(near) and all(_is_singular(forward, place) for place in near)


def _is_singular(forward: tuple[Expr, ...], point: Point) -> bool:
    return any(program(value).is_singular(point) for value in forward)


def _undefined(subject: Subject, point: Point, ranked: Rule | None) -> Diagnostic:
    rule, bad = subject.rule, _bad(subject, point)
    value = subject.forward[bad]
    texts = (value,) if ranked is None else (let.value for let in ranked.forward)
    found = (n for text in texts for n in nodes(expand(text)) if isinstance(n, Apply))
    needed = tuple(dict.fromkeys(filter(None, map(_needed, found))))[:_MOST]
    conditions = dict.fromkeys((*needed, " and ".join(needed))) if needed else {}
    fixes = tuple(assuming(ranked or rule, text) for text in conditions)
    return warning(
        "GS411",
        f"{bad} of {rule.name} is not defined on the whole domain",
        rule.source,
        _span(rule, bad),
        label=f"undefined at {_place(rule, point)}",
        help="or narrow the domain with an `assume`, or give the other inputs a value with a"
        " conditional",
        fixes=(fixes,),
    )


def _nowhere(subject: Subject, point: Point) -> Diagnostic:
    """Nothing can be checked of such a rule, so it does not pass."""
    rule, bad = subject.rule, _bad(subject, point)
    return error(
        "GS440",
        f"{bad} of {rule.name} is defined nowhere",
        rule.source,
        _span(rule, bad),
        label=f"undefined at {_place(rule, point)}, and wherever else it was tried",
        help="correct the formula; if it is defined on a narrow range only, say so with"
        " `assume …`",
    )


def _place(rule: Rule, point: Point) -> str:
    return said(point, tuple(i.name for i in rule.inputs))


def _bad(subject: Subject, point: Point) -> str:
    """The output that has no value there."""
    bad = (n for n, v in subject.forward.items() if program(v).is_singular(point))
    return next(bad, subject.rule.outputs[0].name)


def _span(rule: Rule, name: str) -> Span:
    return next(let.span for let in rule.forward if let.name == name)


def _needed(node: Apply) -> str:
    """The condition under which an operation is defined, if the table of primitives has
    one: the logarithm of `1 - p` needs `1 - p > 0`."""
    row = primitive(node.op)
    if not row.domain:
        return ""
    return show(tidy(substitute(formula(row.domain), _arguments(row.params, node))))


def _arguments(params: tuple[str, ...], node: Apply) -> dict[str, Expr]:
    return dict(zip(params, node.args, strict=True))
