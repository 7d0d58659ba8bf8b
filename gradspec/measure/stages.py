"""The stages of a rule as text, for `compile --emit`: the complete rule with its verdicts
and evaluations, the plan of its arrays, and its program for a target.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from gradspec.diagnostics import Outcome
from gradspec.driver import cache
from gradspec.driver.discover import Entry
from gradspec.driver.load import chosen_rules
from gradspec.driver.run import gather_outcomes, run_within_budget
from gradspec.ir.expr import (
    ATOM,
    ZERO,
    Apply,
    Axes,
    Expr,
    Idx,
    Ref,
    Select,
    Text,
    choice_text,
    index_text,
    number_text,
    operation_text,
    show,
)
from gradspec.ir.plain import use_shelf
from gradspec.ir.rule import (
    UNBOUNDED,
    Chosen,
    Definition,
    Input,
    Kind,
    Output,
    Role,
    Rule,
    Signature,
)
from gradspec.ir.unroll import axes_of
from gradspec.ir.walk import deep, nodes
from gradspec.options import Options
from gradspec.plan import arrays
from gradspec.plan.arrays import Einsum, Literal, Name, Node, Op, Reduce, ToFloat, Where
from gradspec.plan.closing import NotEmitted
from gradspec.plan.extents import forward_extents
from gradspec.plan.plan import Assign, AxisSize, RulePlan, Term
from gradspec.plan.planning import plan_rule, verdict_text
from gradspec.plan.program import Program, program
from gradspec.targets import target_named

INDENT = "    "


def of_file(stage: str, options: Options, entry: Entry) -> Outcome[tuple[str, ...]]:
    """A text for each rule of a file that has been compiled without errors; of programs,
    for each target."""
    with use_shelf(cache.rules()), deep():
        return gather_outcomes(
            run_within_budget(
                *(chosen.rule, "printing", options),
                partial(_texts, stage, chosen, options.targets),
            )
            for chosen in chosen_rules(entry, options)
        )


def _texts(stage: str, chosen: Chosen, targets: tuple[str, ...]) -> str:
    if stage == "rule":
        return rule_text(chosen)
    try:
        plan = plan_rule(chosen)
    except NotEmitted as reason:
        return f"# {chosen.rule.name} is checked but not emitted: {reason}"
    if stage == "plan":
        return plan_text(plan)
    programs = (
        program_text(program(plan, target_named(target).OPERATORS), target)
        for target in targets
    )
    return "\n\n".join(programs)


def _header(kind: str, name: str, ends: Signature) -> str:
    """``rule softmax(x[n]) -> y[n]``."""
    inputs = ", ".join(map(_variable, ends.inputs))
    outputs = ", ".join(map(_variable, ends.outputs))
    several = len(ends.outputs) > 1
    return f"{kind} {name}({inputs}) -> {f'({outputs})' if several else outputs}"


def _variable(variable: Input | Output) -> str:
    shape, text = variable.shape, variable.name
    if not shape.is_elementwise and not variable.kind.is_static:
        text += _indices([*["..."] * shape.batch, *map(str, shape.axes)])
    if isinstance(variable, Output):
        return text
    if variable.initial is not None:
        return f"{text}: param = {number_text(variable.initial)[0]}"
    if variable.kind is not Kind.FLOAT:
        text += f": {variable.kind.value}"
    if variable.default is None:
        return text
    infinity = {UNBOUNDED: "inf", -UNBOUNDED: "-inf"}.get(variable.default)
    return f"{text} = {infinity or number_text(variable.default)[0]}"


def _indices(names: Iterable[str]) -> str:
    return f"[{', '.join(names)}]"


def _block(title: str, lines: Iterable[str]) -> Iterator[str]:
    """The lines below their title; nothing where there are none."""
    listed = [f"{INDENT}{line}" for line in lines]
    return iter([f"{title}:", *listed] if listed else [])


# --- the rule -------------------------------------------------------------------------


def rule_text(chosen: Chosen) -> str:
    """The complete rule in its own language. Comments have the verdicts, and evaluations
    that were chosen with their reasons.
    """
    return "\n".join(
        _block(_header("rule", chosen.rule.name, chosen.rule), _clauses(chosen))
    )


def _clauses(chosen: Chosen) -> Iterator[str]:
    rule = chosen.judged.rule
    for assume in rule.assumes:
        yield f"assume {show(assume.condition)}"
    verdicts = {f"d{v.input}": verdict_text(v) for v in chosen.judged.verdicts}
    others = {(d.role, d.name): d for d in chosen.rule.definitions}
    for definition in rule.definitions:
        other = others.pop((definition.role, definition.name), definition)
        verdict = verdicts.get(definition.name, "")
        is_told = verdict and definition.role is Role.COTANGENT
        yield _definition(definition, rule) + f"  # {verdict}" * bool(is_told)
        yield from _evaluation(definition, other, chosen)
    for definition in others.values():
        yield f"# evaluated with {_definition(definition, rule)}"
    for word, names in (("save", rule.saves), ("recompute", rule.recomputes)):
        if names:
            yield f"{word} {', '.join(names)}"
    for example in rule.examples:
        yield " ".join(rule.source.slice(example.span).split())


def _definition(definition: Definition, rule: Rule) -> str:
    name = definition.name
    axes = axes_of(rule)
    if definition.role in (Role.LOCAL, Role.BACKWARD_LOCAL) and definition.indices:
        pairs = zip(definition.indices, definition.axes, strict=True)
        over = (definition.value,)
        name += _indices(index_text(i, axis, over, axes) for i, axis in pairs)
    elif definition.indices:
        name += _indices(definition.indices)
    words = {Role.SURROGATE: "surrogate "}.get(definition.role, "")
    if definition.is_equation:
        return f"solve {name}{_equation(definition, axes)}"
    words += "override " * definition.is_override
    words += "exact " * (definition.name in rule.exacts and not words)
    because = f' because "{definition.reason}"' * definition.is_override
    return f"{words}{name} = {show(definition.value, axes)}{because}"


def _equation(definition: Definition, axes: Axes) -> str:
    """What follows the name: both sides, where the value is the unknown without their
    difference."""
    own: Expr = Ref(definition.name, tuple(map(Idx, definition.indices)))
    said, value = "", definition.value
    if definition.start is not None:
        said += f" from {show(definition.start, axes)}"
    if isinstance(value, Select) and value.other == ZERO:
        said, value = f"{said} if {show(value.condition, axes)}", value.then
    match value:
        case Apply("sub", (unknown, Apply("sub", (left, right)))) if unknown == own:
            return f"{said}: {show(left, axes)} == {show(right, axes)}"
        case _:
            return f"{said}: {show(own, axes)} == {show(value, axes)}"


def _evaluation(
    written: Definition, other: Definition, chosen: Chosen
) -> Iterator[str]:
    if show(other.value) != show(written.value):
        reasons = (r.reason for r in chosen.rewrites if r.name == written.name)
        reason = "; ".join(reason for reason in reasons if reason)
        yield f"# evaluated as {show(other.value, axes_of(chosen.rule))}"
        if reason:
            yield f"#   {reason}"
    if written.name in chosen.wide and written.role in (Role.OUTPUT, Role.COTANGENT):
        yield "#   in float64"


# --- the plan -------------------------------------------------------------------------


def plan_text(plan: RulePlan) -> str:
    """Array statements with the axes of their values."""
    extents = forward_extents(plan)

    def shaped(name: str, value: arrays.Expr, sign: str = "=") -> str:
        extent = extents.of(value)
        axes = ["..."] * extent.batched + [array_text(size) for size in extent.sizes]
        return f"{name}{_indices(axes) if axes else ''} {sign} {array_text(value)}"

    def forward() -> Iterator[str]:
        for let in (*plan.constants, *plan.forward):
            extents.define(let.name, let.value)
            yield from _comments(dict(plan.comments).get(let.name, let.comment))
            yield shaped(let.name, let.value)

    def behind() -> Iterator[str]:
        for let in plan.backward_locals:
            extents.define(let.name, let.value)
            yield shaped(let.name, let.value)
        for gradient in plan.gradients:
            if gradient is not None:
                name = f"d{gradient.input}"
                yield from _comments(dict(plan.comments).get(name, ""))
                sign = "=" if len(gradient.terms) == 1 else "+="
                for term in gradient.terms:
                    yield shaped(name, term.value, sign) + _spans(term, gradient.input)
                if not gradient.terms:
                    yield f"{name} = 0"

    def along() -> Iterator[str]:
        for output, value in zip(plan.outputs, plan.tangents or (), strict=True):
            if output.takes_gradient:
                yield shaped(f"{output.name}_dot", value)

    lines = [
        *_sizes(plan.sizes),
        *_block("forward", forward()),
        *([f"keeps: {', '.join(plan.saved)}"] if plan.saved else []),
        *_block("gradients", behind()),
        *(_block("tangents", along()) if plan.tangents is not None else ()),
        *([f"no tangents: {plan.no_tangents}"] if plan.no_tangents else []),
        *([f"in float64: {', '.join(plan.wide)}"] if plan.wide else []),
    ]
    header = f"{_header('plan', plan.name, plan)}, {plan.nature.value}"
    return "\n".join(_block(header, lines))


def _sizes(sizes: Iterable[AxisSize]) -> Iterator[str]:
    for size in sizes:
        places = ", ".join(f"{name}.shape[{axis}]" for name, axis in size.places)
        yield f"{size.name} = {places}" if places else size.name


def _spans(term: Term, input: str) -> str:
    """A comment on the shape that is reduced to that of the input."""
    others = [name for name in term.spans if name != input]
    return f"  # in the shape of {', '.join(term.spans)}" if others else ""


def _comments(text: str) -> Iterator[str]:
    return iter([f"# {text}"] if text else [])


# --- the program ----------------------------------------------------------------------


def program_text(whole: Program, target: str) -> str:
    """Named statements of the passes for one target."""

    def passes() -> Iterator[str]:
        yield from _sizes(whole.sizes)
        outputs = [o.name for o in whole.outputs]
        ahead = _results(outputs, whole.forward.results, whole.comments)
        yield from _block("forward", [*_steps(whole.forward.statements), *ahead])
        behind = whole.backward
        if behind.residuals:
            yield f"keeps: {', '.join(behind.residuals)}"
        gradients = [
            line for group in whole.groups for line in _gradient(*group, whole)
        ]
        yield from _block("backward", [*_steps(behind.statements), *gradients])
        if whole.pushforward:
            tangents = [f"{o.name}_dot" for o in whole.outputs if o.takes_gradient]
            pushed = _results(tangents, whole.pushforward.results, {})
            steps = _steps(whole.pushforward.statements)
            yield from _block("pushforward", [*steps, *pushed])
        elif whole.no_pushforward:
            yield f"no pushforward: {whole.no_pushforward}"
        if whole.pushes:
            named = [
                f"slope of d{name} by {', '.join(upstream)}"
                for name, parts in whole.slopes.items()
                for upstream, slope in parts
                if slope is not None
            ]
            slopes = _results(named, whole.pushes.results, {})
            yield from _block("slopes", [*_steps(whole.pushes.statements), *slopes])
        if whole.double:
            yield f"in float64: {', '.join(sorted(whole.double))}"

    linear = "" if whole.is_linear else ", not linear in its upstream gradients"
    header = _header("program", whole.name, whole)
    return "\n".join(
        _block(f"{header} for {target}, {whole.kind.value}{linear}", passes())
    )


def _steps(statements: Iterable[Assign]) -> Iterator[str]:
    for step in statements:
        yield from _comments(step.comment)
        yield f"{step.name} = {array_text(step.value)}"


def _results(
    names: Iterable[str], values: Iterable[arrays.Expr], comments: Mapping[str, str]
) -> Iterator[str]:
    """Results by name, but for those that statements have named so."""
    for name, value in zip(names, values, strict=True):
        if value != Name(name):
            yield from _comments(comments.get(name, ""))
            yield f"{name} = {array_text(value)}"


def _gradient(
    variable: Input, terms: tuple[Term, ...] | None, whole: Program
) -> Iterator[str]:
    name = f"d{variable.name}"
    if terms == ():
        yield f"{name} = 0"
    for term in terms or ():
        yield from _comments(term.comment)
        sign = "=" if len(terms or ()) == 1 else "+="
        yield f"{name} {sign} {array_text(term.value)}{_spans(term, variable.name)}"


# --- array expressions ----------------------------------------------------------------


def array_text(expr: arrays.Expr) -> str:
    """An array expression: operators as in the language, operations on axes as functions
    whose plain data are keywords.
    """
    known: dict[Node, Text] = {}
    for node in nodes(expr):
        known[node] = _array(node, known)
    return known[expr][0]


def _array(node: arrays.Expr, known: dict[Node, Text]) -> Text:
    match node:
        case Name(id=name):
            return name, ATOM
        case Literal(value=value):
            return number_text(value)
        case Op(primitive=op, args=args):
            return operation_text(op, tuple(known[arg] for arg in args))
        case Where(condition=condition, then=then, other=other):
            return choice_text(known[condition], known[then], known[other])
        case ToFloat(arg=arg):
            return f"float({known[arg][0]})", ATOM
        case Einsum(args=args, inputs=inputs, output=output):
            parts = ", ".join(known[arg][0] for arg in args)
            return f"einsum({','.join(inputs)}->{output}, {parts})", ATOM
        case _:
            name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(node).__name__).lower()
            values = {key: getattr(node, key) for key in node.__match_args__}
            if isinstance(node, Reduce):
                name = values.pop("op")
            parts = ", ".join(_arguments(values, known))
            return f"{name}({parts})", ATOM


def _arguments(values: Mapping[Any, Any], known: dict[Node, Text]) -> Iterator[str]:
    for key, value in values.items():
        match value:
            case Node() if key in ("arg", "value", "index"):
                yield known[value][0]
            case Node():
                yield f"{key}={known[value][0]}"
            case (Node(), *_):
                yield from (known[part][0] for part in value)
            case bool():
                yield from [key] * value
            case (only,):
                yield f"{key}={only}"
            case _:
                yield f"{key}={value}"
