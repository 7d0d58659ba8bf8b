"""Undefined rules: no type, no shape, no derivation, missing elements, an empty domain,
a domain on which they are not defined, and constants without a value.

The batch axes of an output are those of the inputs that it depends on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import combinations

from gradspec.checks.diagnosis.wording import assuming
from gradspec.checks.instances import Instance, Instances, Point, instances, stem
from gradspec.diagnostics import Diagnostic, error, warning
from gradspec.ir.expr import Apply, Const, Expr, Idx, Ref, show
from gradspec.ir.rule import Rule
from gradspec.ir.tidy import tidy
from gradspec.ir.unroll import Sizes, is_beyond, partial, unrolled_at
from gradspec.ir.walk import children, expand, names, nodes, substitute
from gradspec.primitives.lookup import formula, primitive
from gradspec.symbolic.borders.limits import beside
from gradspec.symbolic.compare import point_text
from gradspec.symbolic.enclose import enclose, is_defined, program

# --- shapes ------------------------------------------------------------------------------


def shapeless(rule: Rule) -> Iterator[Diagnostic]:
    """Diagnostics for rules without a meaning, which cannot be checked further."""
    values = {let.name: let.value for let in rule.forward}
    if rule.has_axes:  # else an output, or a gradient, has the shape of inputs
        yield from _typeless(rule, values)
        yield from _countless(rule, values)


def _typeless(rule: Rule, values: dict[str, Expr]) -> Iterator[Diagnostic]:
    """Diagnostics for outputs with no input to take their dtype and batch axes from."""
    if not any(i.kind.is_real for i in rule.tensor_inputs):
        yield error(
            "GS252",
            f"{rule.name} has no floating input",
            rule.source,
            rule.name_span,
            label="there is nothing to differentiate, and no type for its results",
            help="give it a floating input, or compute this outside of a rule",
        )
    for output in rule.outputs:
        used = _dependencies(Ref(output.name), values)
        if used.isdisjoint(i.name for i in rule.tensor_inputs):
            yield error(
                "GS251",
                f"output {output.name} of {rule.name} depends on no tensor",
                rule.source,
                output.span,
                label="nothing tells its batch axes, its type and its device",
                help="leave it out, for it needs no rule, or make it depend on an input",
            )


def _countless(rule: Rule, values: dict[str, Expr]) -> Iterator[Diagnostic]:
    """Diagnostics for an override that uses no upstream gradient, and no tensor or only
    one without the batch axes of others: its broadcast count is ambiguous.
    """
    lets = values | {let.name: let.value for let in rule.backward_locals}
    upstream = {o.cotangent for o in rule.outputs}
    tensors = {i.name for i in rule.tensor_inputs}
    batched = {i.name for i in rule.tensor_inputs if i.shape.batch}
    for name, entry in rule.overrides.items():
        reached = _dependencies(entry.value, lets)
        is_lost = bool(batched - {name})
        if not reached & upstream and (is_lost or not reached & tensors):
            yield error(
                "GS253",
                f"the override of {entry.name} of {rule.name} uses no upstream"
                " gradient",
                rule.source,
                entry.span,
                label="nothing tells over which batch axes it counts",
                help="multiply it by the upstream gradient of an output, or leave the"
                " `...` out",
            )


def _dependencies(expr: Expr, values: dict[str, Expr]) -> set[str]:
    """The names that a value depends on in the end."""
    todo, found = set(names(expr)), set[str]()
    while todo:
        name = todo.pop()
        found.add(name)
        todo |= (names(values[name]) if name in values else set()) - found
    return found


def missing_elements(rule: Rule) -> Iterator[Diagnostic]:
    """Diagnostics for an element that is used at some size at which it does not
    exist."""
    found = partial(rule)
    for gap in instances(rule).gaps if found else ():
        element = gap.fault.through
        is_told = element is not None and not is_beyond(rule, gap)
        if element is not None and is_told and stem(element.name) in found:
            where = ", ".join(f"{axis} = {size}" for axis, size in gap.sizes.items())
            local = stem(element.name)
            yield error(
                "GS250",
                f"{rule.name} uses an element of {local} that does not exist",
                rule.source,
                element.span or rule.name_span,
                label=f"`{element.name}` needs `{gap.fault.name}`, which is outside its"
                f" axis at {where}",
                help=f"use {local} only where it exists, `… if i < n - 1`, or say for"
                " which sizes the rule is meant, `assume n > 2`",
            )
            return


def lasting_gaps(rule: Rule) -> Iterator[Diagnostic]:
    """Diagnostics for an element that does not exist however long an axis is: of
    ``x[t - 2] if t > 0``, at all sizes but 1. A stencil that is longer than its axis
    lacks elements at small sizes only."""
    forward = rule.keep((*rule.forward, *rule.surrogates))
    every = [n for one in forward.definitions for n in nodes(one.value)]
    indices = [i for n in every if isinstance(n, Ref) for i in n.indices]
    if all(isinstance(index, Const | Idx) for index in indices):
        return
    number = max((int(abs(n.value)) for n in every if isinstance(n, Const)), default=0)
    terms = max(sum(len(children(n)) for n in nodes(index)) for index in indices)
    seen = {tuple(gap.sizes.values()): gap.sizes for gap in instances(forward).missed}
    for sizes in sorted(seen.values(), key=lambda sizes: sum(sizes.values())):
        made, gaps = unrolled_at(forward, sizes)
        if made or not gaps or any(is_beyond(forward, gap) for gap in gaps):
            continue
        fault, most = gaps[0].fault, max(sizes.values())
        far = number + terms * most + 2, (number + terms) * most + 2
        if _are_gaps_at_longer_axes(forward, sizes, far):
            where = ", ".join(f"{axis} = {size}" for axis, size in sizes.items())
            yield error(
                "GS420",
                f"{rule.name} uses an element that does not exist, however long the axes",
                rule.source,
                fault.span or rule.name_span,
                label=f"`{fault.name}` is outside its axis at {where}, and longer axes do"
                " not have it either",
                help="narrow the condition, so that it holds only where the element exists:"
                " `x[t - 2] if t > 1 else 0`; or say for which sizes the rule is meant, with"
                " `assume`",
            )
            return


def _are_gaps_at_longer_axes(forward: Rule, sizes: Sizes, far: tuple[int, ...]) -> bool:
    """True if an element lacks at further sizes, too: all axes are a little longer, or
    any of them are, or are by far; False where that gives too many elements to see.
    """
    if len(sizes) > _MOST:
        return False
    for count in range(1, len(sizes) + 1):
        for axes in combinations(sizes, count):
            known = []
            is_part = count < len(sizes) or count == 1
            for more in (1, 2, *(far if is_part else ())):
                longer = {axis: sizes[axis] + more for axis in axes}
                made, gaps = unrolled_at(forward, {**sizes, **longer})
                if made:
                    return False
                known += [more] if gaps else []
            if is_part and far[0] not in known:
                return False
    return True


# --- the domain --------------------------------------------------------------------------

_MOST = 4  # conditions that are tried, axes that are made longer


def check(rule: Rule, known: Instances) -> Iterator[Diagnostic]:
    """Diagnostics for assumptions that no point satisfies, and for undefined points."""
    every = (*known.small, *known.larger)
    defined_at = known.usual if known.usual and known.usual.points else None
    seen = defined_at or next((one for one in every if one.points), None)
    if seen is not None and seen.equations:
        return
    unsolved = next((one for one in every if one.equations and one.survey.points), None)
    if seen is None and unsolved is not None:
        yield _unsolved_error(unsolved)
        return
    if seen is not None:
        usual = (p for p in seen.survey.undefined if _has_defaults(seen, p))
        hole = next((p for p in usual if _is_wide(seen, p)), None)
        if hole is not None and rule.tensor_inputs:
            yield _undefined_warning(seen, hole)
        return
    undefined = next((one for one in every if one.survey.undefined), None)
    if undefined is not None:
        if not any(constants(rule)):  # a constant would be to blame, and is reported
            yield _nowhere(undefined, undefined.survey.undefined[0])
    elif not every and known.gaps:
        fault = known.gaps[-1].fault
        yield error(
            "GS420",
            f"{rule.name} uses elements that do not exist, at every size",
            rule.source,
            fault.span or rule.name_span,
            label=f"`{fault.name}` is outside its axis",
            help="narrow the range, `sum(… for i if i < n - 1)`, or give the border a"
            " value of its own, `… if i < n - 1 else …`",
        )
    elif rule.assumes:
        yield error(
            "GS410",
            f"nothing satisfies the assumptions of {rule.name}",
            rule.source,
            rule.assumes[-1].span,
            label="no values of the inputs were found for which all assumptions hold",
            help="correct or remove an assumption",
        )


def _unsolved_error(seen: Instance) -> Diagnostic:
    """An error, since nothing can be checked of such a rule."""
    rule = seen.written
    one = next(d for d in rule.definitions if d.is_equation)
    return error(
        "GS269",
        f"no solution of the equations of {rule.name} was found",
        rule.source,
        one.span,
        label=f"no {one.name} at any of {len(seen.survey.points)} points",
        help="correct the equation; or say with `from` where Newton's method starts, and"
        " with `assume` which solution is meant",
    )


def _has_defaults(seen: Instance, point: Point) -> bool:
    """True if statics have their defaults; other values are our choice, not the
    author's."""
    statics = seen.rule.static_inputs
    return all(s.default is None or point[s.name] == s.default for s in statics)


def _is_wide(seen: Instance, point: Point) -> bool:
    """True if undefined nearby too: an isolated pole is no part of the domain."""
    near = [
        place
        for variable in seen.rule.tensor_inputs
        for place in beside(point, variable.name, seen.assumed)
    ]
    return bool(near) and all(_singular(seen, place) for place in (point, *near))


def _singular(seen: Instance, point: Point) -> str:
    """The first output that is undefined at the point, if any."""
    bad = (n for n, v in seen.forward.items() if program(v).is_singular(point))
    return next(bad, "")


def _undefined_warning(seen: Instance, point: Point) -> Diagnostic:
    rule, written, bad = seen.rule, seen.written, _singular(seen, point)
    texts = [let.value for let in written.forward]
    if not written.has_axes:
        texts = [seen.forward[bad]]
    found = (n for text in texts for n in nodes(expand(text)) if isinstance(n, Apply))
    needed = tuple(dict.fromkeys(filter(None, map(_needed_condition, found))))[:_MOST]
    conditions = dict.fromkeys((*needed, " and ".join(needed))) if needed else {}
    return warning(
        "GS411",
        f"{bad} of {rule.name} is not defined on the whole domain",
        rule.source,
        next(let.span for let in rule.forward if let.name == bad),
        label=f"undefined at {point_text(point, tuple(i.name for i in rule.inputs))}",
        help="or narrow the domain with an `assume`, or give the other inputs a value with a"
        " conditional",
        tries=(tuple(assuming(written, text) for text in conditions),),
    )


def _nowhere(seen: Instance, point: Point) -> Diagnostic:
    """An error, since nothing can be checked of such a rule."""
    rule, bad = seen.rule, _singular(seen, point) or seen.rule.outputs[0].name
    place = point_text(point, tuple(i.name for i in rule.inputs))
    return error(
        "GS440",
        f"{bad} of {rule.name} is defined nowhere",
        rule.source,
        next(let.span for let in rule.forward if let.name == bad),
        label=f"undefined at {place}, and wherever else it was tried",
        help="correct the formula; if it is defined on a narrow range only, say so with"
        " `assume …`",
    )


def _needed_condition(node: Apply) -> str:
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
    written = [d.value for d in rule.definitions if not d.is_derived]
    for fault in dict.fromkeys(f for root in written for f in _faults(root)):
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
    return is_defined(value) and abs(value) < sys.float_info.max
