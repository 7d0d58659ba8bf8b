"""One rule in NumPy: a class with its formulas, and three public functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gradspec.ir.rule import Input, Kind, Output
from gradspec.plan.arrays import Expr, is_whole, names
from gradspec.plan.layer import class_name
from gradspec.plan.plan import Term
from gradspec.plan.program import Program
from gradspec.targets import trace as traces
from gradspec.targets.docstring import docstring, sentence
from gradspec.targets.expressions import Scope, render, render_atom
from gradspec.targets.lines import Lines, assignments, indented, tightened
from gradspec.targets.numpy.dialect import NUMPY, scope_of
from gradspec.targets.page import Page
from gradspec.targets.signature import (
    listed,
    pairs,
    parameters,
    pattern,
    returned,
    shaped,
    tupled,
)
from gradspec.targets.target import Definition

_KINDS = {
    Kind.NOGRAD: "nograd",
    Kind.INT: "integer",
    Kind.BOOL: "boolean",
    Kind.STATIC: "number",
    Kind.STATIC_INT: "whole",
}
_NUMBERS = {Kind.STATIC: "float", Kind.STATIC_INT: "int"}


def definitions(program: Program, page: Page, *, trace: bool) -> list[Definition]:
    """The class ``_F``, and ``f``, ``f_vjp`` and ``f_jvp``."""
    scope = scope_of(program, page)
    own = page.fresh(f"_{class_name(program.name)}")
    vjp, jvp = page.fresh(f"{program.name}_vjp"), page.fresh(f"{program.name}_jvp")
    return [
        Definition(_class(program, own, scope, trace)),
        Definition(_value(program, own, page), (program.name,)),
        Definition(_vjp(program, own, vjp, page), (vjp,)),
        Definition(_jvp(program, own, jvp, page), (jvp,)),
    ]


# --- the class -------------------------------------------------------------------------


def _class(program: Program, own: str, scope: Scope, trace: bool) -> Lines:
    rule = scope.page.core("Rule")
    result = returned(program, scope.page.core("Array"))
    words = [f'name="{program.name}"', *_keywords(program, scope.page)]
    here = program, scope.page
    back = replace(scope, like=next(iter(program.cotangents), scope.like))
    methods = [
        _method("value", program.arguments, _forward(program, scope, trace), *here),
        *_residuals(program, scope.page, trace),
        _method(
            "pullback",
            _pulled_from(program, trace),
            _backward(program, back, trace),
            *here,
        ),
        *_pushforward(program, scope, trace),
    ]
    body = [line for method in methods for line in (*method, "")]
    header = f"class {own}({rule}[{result}], {', '.join(words)}):"
    return [header, *indented(body[:-1])]


def _keywords(program: Program, page: Page) -> Iterable[str]:
    kinds = [(i.name, _KINDS[i.kind]) for i in program.inputs if i.kind in _KINDS]
    if kinds:
        yield f"kinds={{{pairs(kinds)}}}"
    axes = [(i.name, pattern(i)) for i in shaped(program)]
    if axes:
        yield f"axes={{{pairs(axes)}}}"
    if program.constant:
        yield f"constant=({', '.join(map(str, program.constant))},)"
    if program.is_double:
        page.use(NUMPY)
        yield "least=np.float64"
    if program.residual_locals:
        yield f"extra={len(program.residual_locals)}"


def _method(
    name: str, parameters_: Iterable[str], body: Lines, program: Program, page: Page
) -> Lines:
    """A method; results of NumPy's operators have no narrower type than Any."""
    any_, array = page.own("typing", "Any"), page.core("Array")
    numbers = {i.name: _NUMBERS[i.kind] for i in program.statics}
    typed = [f"{n}: {numbers.get(n.lstrip('_'), array)}" for n in parameters_]
    header = f"def {name}({', '.join(typed)}) -> {any_}:"
    return ["@staticmethod", header, *indented(tightened(body))]


def _forward(program: Program, scope: Scope, trace: bool) -> Lines:
    block = program.forward
    results = [
        _output(program, output, value, scope)
        for output, value in zip(program.outputs, block.results, strict=True)
    ]
    lines = [
        *_sizes(program, program.forward_values, program.arguments),
        *assignments(block.statements, scope),
    ]
    if trace:
        names_ = [o.name for o in program.outputs]
        lines += [
            *(f"{n} = {r}" for n, r in zip(names_, results, strict=True) if n != r),
            f"print({traces.pieces(program, traces.ends(program), ' =')})",
        ]
        results = names_
    return [*lines, f"return {', '.join([*results, *program.residual_locals])}"]


def _output(program: Program, output: Output, value: Expr, scope: Scope) -> str:
    """The text of an output; a number takes the shape to which its inputs broadcast."""
    kinds = {Kind.INT: "np.int64", Kind.BOOL: "bool"}
    text = render(value, scope)
    if not program.may_be_number(value):
        if output.kind is Kind.INT and not is_whole(value, scope.positions):
            scope.page.use(NUMPY)
            return f"{render_atom(value, scope)}.astype(np.int64)"
        return text
    made = f"{scope.page.core('filled')}({text}, {', '.join(program.like(output))})"
    if output.kind not in kinds:
        return made
    scope.page.use(NUMPY)
    return f"{made}.astype({kinds[output.kind]})"


def _residuals(program: Program, page: Page, trace: bool) -> Iterable[Lines]:
    """The method ``residuals``, if the residuals are not simply the inputs."""
    kept = _residual_names(program, trace)
    if kept == program.arguments:
        return
    given = [*program.arguments, *(o.name for o in program.outputs)]
    given += program.residual_locals
    header = [name if name in kept else f"_{name}" for name in given]
    body = [f"return {tupled(kept) or '()'}"]
    yield _method("residuals", header, body, program, page)


def _residual_names(program: Program, trace: bool) -> list[str]:
    """The unchanged inputs, or the outputs, locals and other forward values in use."""
    used = {*program.backward.residuals, *program.backward.statics}
    used |= {*names(*program.pushed_values)}
    if trace:
        used |= {*program.slopes, *names(*program.shown_values)}
    ends = [*program.arguments, *(o.name for o in program.outputs)]
    kept = [n for n in (*ends, *program.residual_locals) if n in used]
    kept += [n for n in _sized_by(program, kept) if n not in kept]
    return program.arguments if set(kept) <= set(program.arguments) else kept


def _sized_by(program: Program, kept: Iterable[str]) -> list[str]:
    """Inputs of which only a size is needed."""
    pulled = program.backward_values, {*kept, *program.cotangents}
    pushed = program.pushed_values, {*kept}
    found = []
    for values, there in (pulled, pushed):
        for size in program.sizes:
            is_used = size.name in names(*values)
            if is_used and not any(place in there for place, _ in size.places):
                found.append(size.places[0][0])
    return list(dict.fromkeys(found))


def _pulled_from(program: Program, trace: bool) -> list[str]:
    kept = _residual_names(program, trace)
    own = {array for _, array, _ in program.sizes_of(program.backward_values, kept)}
    own |= {n for g in program.groups for n in _reduced_to(*g)}
    own |= {*names(*program.backward_values)}
    zero = [i.name for i, g in program.groups if g == ()]
    if trace:
        own |= {*program.slopes, *names(*program.shown_values), *program.cotangents}
    if any(program.takes_shape(t) for _, group in program.groups for t in group or ()):
        own |= {*program.cotangents}
    return [
        name if name in own or name in zero else f"_{name}"
        for name in (*kept, *program.cotangents)
    ]


def _reduced_to(i: Input, group: tuple[Term, ...] | None) -> list[str]:
    return [i.name] if group and len(group) > 1 else []


def _backward(program: Program, scope: Scope, trace: bool) -> Lines:
    kept = [*_residual_names(program, trace), *program.cotangents]
    found = {i.name: _gradient(program, i, g, scope) for i, g in program.groups}
    lines = [
        *_sizes(program, program.backward_values, kept),
        *assignments(program.backward.statements, scope),
    ]
    if trace:
        lines += [f"d{n} = {text}" for n, text in found.items() if text != "None"]
        for name in program.slopes:
            for shown in traces.terms(program, name, f"d{name}", scope):
                lines.append(f"print({traces.pieces(program, shown, ' =')})")
        found = {n: "None" if t == "None" else f"d{n}" for n, t in found.items()}
    return [*lines, f"return {', '.join(found.values())}"]


def _gradient(
    program: Program, i: Input, group: tuple[Term, ...] | None, scope: Scope
) -> str:
    if group is None:
        return "None"
    if not group:
        scope.page.use(NUMPY)
        return f"np.zeros_like({i.name})"
    texts = [_term(program, term, scope) for term in group]
    if len(texts) == 1:
        return texts[0]
    reduce = scope.page.core("sum_to")
    return " + ".join(f"{reduce}({text}, {i.name})" for text in texts)


def _term(program: Program, term: Term, scope: Scope) -> str:
    """A term of a gradient; one without a cotangent has the shape of the outputs."""
    text = render(term.value, scope)
    if not program.takes_shape(term):
        return text
    return f"{scope.page.core('filled')}({text}, {', '.join(program.cotangents)})"


def _sizes(program: Program, values: Iterable[Expr], known: Iterable[str]) -> Lines:
    found = program.sizes_of(values, known)
    return [f"{size} = {array}.shape[{axis}]" for size, array, axis in found]


def _pushforward(program: Program, scope: Scope, trace: bool) -> Iterable[Lines]:
    block = program.pushforward
    if block is None:
        return
    kept, values = _residual_names(program, trace), program.pushed_values
    moved = [f"{i.name}_dot" for i in program.tensors if i.kind is Kind.FLOAT]
    scope = replace(scope, like=next(iter(moved), scope.like))
    dots = [_tangent(program, value, scope) for value in block.results]
    body = [
        *_sizes(program, values, kept),
        *assignments(block.statements, scope),
        f"return {', '.join(dots)}",
    ]
    own = {array for _, array, _ in program.sizes_of(values, kept)} | {*names(*values)}
    given = [n if n in own else f"_{n}" for n in (*kept, *moved)]
    yield _method("pushforward", given, body, program, scope.page)


def _tangent(program: Program, value: Expr, scope: Scope) -> str:
    text = render(value, scope)
    if program.may_be_number(value):
        scope.page.use(NUMPY)
        return f"np.asarray({text})"
    return text


# --- the public functions --------------------------------------------------------------


def _call(program: Program, own: str) -> str:
    return f"{own}({', '.join(program.arguments)})"


def _value(program: Program, own: str, page: Page) -> Lines:
    like = page.own("numpy.typing", "ArrayLike")
    result = returned(program, page.core("Array"))
    return [
        f"def {program.name}({parameters(program, like)}) -> {result}:",
        docstring(program.docs),
        f"    return {_call(program, own)}.result()",
    ]


def _vjp(program: Program, own: str, name: str, page: Page) -> Lines:
    like = page.own("numpy.typing", "ArrayLike")
    result = returned(program, page.core("Array"))
    kind = f"tuple[{result}, {page.core('Pullback')}]"
    call = f"{program.name}({', '.join(i.name for i in program.tensors)})"
    gradients = [f"d{i.name}" if i.takes_gradient else "None" for i in program.tensors]
    given = listed(program.cotangents)
    text = f"``{call}``, and its pullback from {given} to ({', '.join(gradients)})."
    if len(gradients) == 1:
        text = text.replace(f"({gradients[0]})", f"({gradients[0]},)")
    return [
        f"def {name}({parameters(program, like)}) -> {kind}:",
        sentence(text, 1),
        f"    return {_call(program, own)}.vjp()",
    ]


def _jvp(program: Program, own: str, name: str, page: Page) -> Lines:
    like = page.own("numpy.typing", "ArrayLike")
    result = returned(program, page.core("Array"))
    primals, tangents = program.local("primals"), program.local("tangents")
    params = [
        f"{primals}: {page.core('Primals')}",
        f"{tangents}: {page.core('Tangents')}",
    ]
    statics = parameters(program, like).partition("*, ")[2]
    params += ["*", statics] if statics else []
    header = f"def {name}({', '.join(params)}) -> tuple[{result}, {result}]:"
    if program.pushforward is None:
        reason = program.no_pushforward or "no input takes a gradient"
        return [
            header,
            sentence(f"Not available: {reason}.", 1),
            f'    raise NotImplementedError("{name}: {reason}")',
        ]
    given = [f"*{primals}", *(i.name for i in program.statics)]
    return [
        header,
        sentence(
            f"``{program.name}`` at the primals, and its derivative along the tangents.",
            1,
        ),
        f"    return {own}({', '.join(given)}).jvp({tangents})",
    ]
