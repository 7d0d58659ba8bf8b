"""The domain: is it satisfiable, is the rule defined on it, and are its constants?"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from gradspec.checks.diagnosis.mending import assuming
from gradspec.checks.instances import Instance, Instances, Point, said
from gradspec.diagnostics import Diagnostic, error, warning
from gradspec.ir.expr import Apply, Const, Expr
from gradspec.ir.rule import Declared, Override, Rule
from gradspec.ir.text import show
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import children, expand, nodes, substitute
from gradspec.primitives.formula import formula
from gradspec.primitives.lookup import primitive
from gradspec.source import Span
from gradspec.symbolic.enclose import defined, enclose, program
from gradspec.symbolic.neighbours import beside

_MOST = 4  # conditions that are tried


def check(rule: Rule, known: Instances) -> Iterator[Diagnostic]:
    """Diagnostics for assumptions that no point satisfies, and for undefined points."""
    every = (*known.small, *known.larger)
    defined_at = known.usual if known.usual and known.usual.points else None
    seen = defined_at or next((one for one in every if one.points), None)
    if seen is not None:
        usual = (p for p in seen.survey.undefined if _has_defaults(seen, p))
        hole = next((p for p in usual if _is_wide(seen, p)), None)
        if hole is not None and rule.tensor_inputs:
            yield _undefined(seen, hole)
        return
    undefined = next((one for one in every if one.survey.undefined), None)
    if undefined is not None:
        if not any(constants(rule)):  # a constant would be to blame, and is reported
            yield _nowhere(undefined, undefined.survey.undefined[0])
    elif not every and known.gaps:
        yield _without_elements(rule, known)
    elif rule.assumes:
        yield _unsatisfiable(rule)


def _unsatisfiable(rule: Rule) -> Diagnostic:
    return error(
        "GS410",
        f"nothing satisfies the assumptions of {rule.name}",
        rule.source,
        rule.assumes[-1].span,
        label="no values of the inputs were found for which all assumptions hold",
        help="correct or remove an assumption",
    )


def _without_elements(rule: Rule, known: Instances) -> Diagnostic:
    """A diagnostic: at no size every element exists."""
    fault = known.gaps[-1].fault
    return error(
        "GS420",
        f"{rule.name} uses elements that do not exist, at every size",
        rule.source,
        fault.span or rule.name_span,
        label=f"`{fault.name}` is outside its axis",
        help="narrow the range, `sum(… for i if i < n - 1)`, or give the border a"
        " value of its own, `… if i < n - 1 else …`",
    )


def _has_defaults(seen: Instance, point: Point) -> bool:
    """True if statics have their defaults; other values are our choice, not the
    author's."""
    statics = seen.rule.static_inputs
    return all(s.default is None or point[s.name] == s.default for s in statics)


def _is_wide(seen: Instance, point: Point) -> bool:
    """True if undefined nearby too: an isolated pole is no part of the domain."""
    forward = tuple(seen.forward.values())
    if not _is_singular(forward, point):
        return False
    near = [
        place
        for variable in seen.rule.tensor_inputs
        for place in beside(point, variable.name, seen.assumed)
    ]
    return bool(near) and all(_is_singular(forward, place) for place in near)


def _is_singular(forward: tuple[Expr, ...], point: Point) -> bool:
    return any(program(value).is_singular(point) for value in forward)


def _undefined(seen: Instance, point: Point) -> Diagnostic:
    rule, written, bad = seen.rule, seen.written, _bad(seen, point)
    texts = [let.value for let in written.forward]
    if written.is_elementwise:
        texts = [seen.forward[bad]]
    found = (n for text in texts for n in nodes(expand(text)) if isinstance(n, Apply))
    needed = tuple(dict.fromkeys(filter(None, map(_needed, found))))[:_MOST]
    conditions = dict.fromkeys((*needed, " and ".join(needed))) if needed else {}
    fixes = tuple(assuming(written, text) for text in conditions)
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


def _nowhere(seen: Instance, point: Point) -> Diagnostic:
    """An error, since nothing can be checked of such a rule."""
    rule, bad = seen.rule, _bad(seen, point)
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


def _bad(seen: Instance, point: Point) -> str:
    """The output that is undefined there."""
    bad = (n for n, v in seen.forward.items() if program(v).is_singular(point))
    return next(bad, seen.rule.outputs[0].name)


def _span(rule: Rule, name: str) -> Span:
    return next(let.span for let in rule.forward if let.name == name)


def _needed(node: Apply) -> str:
    """The condition under which an operation is defined, if the table of primitives has
    one: the logarithm of `1 - p` needs `1 - p > 0`."""
    row = primitive(node.op)
    if not row.domain:
        return ""
    arguments = dict(zip(row.params, node.args, strict=True))
    return show(tidy(substitute(formula(row.domain), arguments)))


# --- constants ---------------------------------------------------------------------------


def constants(rule: Rule) -> Iterator[Diagnostic]:
    """Diagnostics for constants without a value in float64: a target would fail on
    them."""
    for fault in dict.fromkeys(f for root in _written(rule) for f in _faults(root)):
        if fault.span is not None:
            value = enclose(fault, {})
            is_large = value is not None and not value.is_nan()
            what = "is beyond the range of float64" if is_large else "is not a number"
            yield error(
                "GS414",
                f"a constant of {rule.name} {what}",
                rule.source,
                fault.span,
                help="correct it; infinity is written `inf`",
            )


def _written(rule: Rule) -> Iterator[Expr]:
    """The written expressions that a target evaluates."""
    yield from (let.value for let in (*rule.forward, *rule.backward_locals))
    yield from (s.value for s in rule.surrogates)
    yield from (e.value for e in rule.backward if isinstance(e, Declared | Override))


def _faults(root: Expr) -> Iterator[Expr]:
    """The smallest operations on numbers alone that are undefined. (`inf` is no number:
    operations on it are intended.)
    """
    numbers: set[Expr] = set()
    for node in nodes(root):
        is_operation = isinstance(node, Apply) and node.op != "inf"
        if isinstance(node, Const):
            numbers.add(node)
        elif is_operation and all(part in numbers for part in children(node)):
            if _is_sound(node):
                numbers.add(node)
            else:
                yield node


def _is_sound(constant: Expr) -> bool:
    value = enclose(constant, {})
    if value is None or value is True or value is False:
        return True
    return defined(value) and abs(value) < sys.float_info.max
