"""Diagnostics for undefined rules: no type, no shape, no derivation, missing elements.

The batch axes of an output are those of the inputs that it depends on.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradspec.checks.instances import instances, stem
from gradspec.diagnostics import Diagnostic, error
from gradspec.ir.expr import Expr, Ref
from gradspec.ir.rule import Input, Kind, Output, Override, Pending, Rule
from gradspec.ir.unroll import partial
from gradspec.ir.walk import names

_FLOATING = (Kind.FLOAT, Kind.NOGRAD)


def check(rule: Rule) -> Iterator[Diagnostic]:
    values = {let.name: let.value for let in rule.forward}
    if not rule.is_elementwise:  # else an output has the shape of all inputs
        yield from _typeless(rule, values)
    yield from _overrides(rule, values)
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        if isinstance(entry, Pending) and variable.takes_gradient:
            yield _underivable(rule, variable)


def _typeless(rule: Rule, values: dict[str, Expr]) -> Iterator[Diagnostic]:
    """Diagnostics for outputs with no input to take their dtype and batch axes from."""
    if not any(i.kind in _FLOATING for i in rule.tensor_inputs):
        yield _nothing_floating(rule)
    for output in rule.outputs:
        used = _reached(Ref(output.name), values)
        if used.isdisjoint(i.name for i in rule.tensor_inputs):
            yield _without_tensor(rule, output)


def _reached(expr: Expr, values: dict[str, Expr]) -> set[str]:
    """The names that a value depends on in the end."""
    todo, found = set(names(expr)), set[str]()
    while todo:
        name = todo.pop()
        found.add(name)
        todo |= (names(values[name]) if name in values else set()) - found
    return found


def _nothing_floating(rule: Rule) -> Diagnostic:
    return error(
        "GS252",
        f"{rule.name} has no floating input",
        rule.source,
        rule.name_span,
        label="there is nothing to differentiate, and no type for its results",
        help="give it a floating input, or compute this outside of a rule",
    )


def _underivable(rule: Rule, variable: Input) -> Diagnostic:
    return error(
        "GS255",
        f"d{variable.name} of {rule.name} cannot be derived",
        rule.source,
        variable.span,
        label="it goes through a call of a rule with several outputs whose backward is"
        " not linear in their upstream gradients",
        help=f"declare d{variable.name}, or call a rule with one output",
    )


def _without_tensor(rule: Rule, output: Output) -> Diagnostic:
    return error(
        "GS251",
        f"output {output.name} of {rule.name} depends on no tensor",
        rule.source,
        output.span,
        label="nothing tells its batch axes, its type and its device",
        help="leave it out, for it needs no rule, or make it depend on an input",
    )


def _overrides(rule: Rule, values: dict[str, Expr]) -> Iterator[Diagnostic]:
    """Diagnostics for an override that uses no upstream gradient, and no tensor or only
    one without the batch axes of others: its broadcast count is ambiguous.
    """
    lets = values | {let.name: let.value for let in rule.backward_locals}
    upstream = {f"d{o.name}" for o in rule.outputs}
    tensors = {i.name for i in rule.tensor_inputs}
    if rule.is_elementwise:
        return  # a gradient has the shape of its input, whatever it uses
    others = [i for i in rule.tensor_inputs if i.shape.batch]
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        if not isinstance(entry, Override) or not variable.takes_gradient:
            continue
        reached = _reached(entry.value, lets)
        is_lost = any(o.name != variable.name for o in others)
        if not reached & upstream and (is_lost or not reached & tensors):
            yield _unused(rule, variable, entry)


def _unused(rule: Rule, variable: Input, entry: Override) -> Diagnostic:
    return error(
        "GS253",
        f"the override of d{variable.name} of {rule.name} uses no upstream gradient",
        rule.source,
        entry.span,
        label="nothing tells over which batch axes it counts",
        help="multiply it by the upstream gradient of an output, or leave the `...` out",
    )


# --- elements of locals ------------------------------------------------------------------


def missing_elements(rule: Rule) -> Iterator[Diagnostic]:
    """Diagnostics for an element that is used at some size at which it does not
    exist."""
    found = partial(rule)
    for gap in instances(rule).gaps if found else ():
        element = gap.fault.through
        if element is None or stem(element.name) not in found:
            continue
        where = ", ".join(f"{axis} = {size}" for axis, size in gap.sizes.items())
        local = stem(element.name)
        yield error(
            "GS250",
            f"{rule.name} uses an element of {local} that does not exist",
            rule.source,
            element.span or rule.name_span,
            label=f"`{element.name}` needs `{gap.fault.name}`, which is outside its axis"
            f" at {where}",
            help=f"use {local} only where it exists, `… if i < n - 1`, or say for which"
            " sizes the rule is meant, `assume n > 2`",
        )
        return
