"""One rule in NumPy: a class with its formulas, and three public functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gradspec.ir.rule import Kind, Output, class_name
from gradspec.plan.arrays import Expr, is_whole
from gradspec.plan.program import Program
from gradspec.targets import lines as traces
from gradspec.targets.expressions import Scope, render, render_atom, scope_of
from gradspec.targets.lines import (
    Lines,
    assignments,
    checks,
    docstring,
    forward,
    gradient,
    gradient_marks,
    indent_lines,
    keywords,
    kinds_of,
    mark_unused,
    name_or_tuple,
    parameters,
    residual_names,
    residuals,
    result_type,
    sentence,
    sizes,
    tighten,
    value_mark,
)
from gradspec.targets.numpy.dialect import DIALECT
from gradspec.targets.target import Definition, Page

_NUMBERS = {Kind.STATIC: "float", Kind.STATIC_INT: "int"}


def definitions(program: Program, page: Page, *, trace: bool) -> list[Definition]:
    """The class ``_F``, and ``f``, ``f_vjp`` and ``f_jvp``."""
    scope = scope_of(program, page, DIALECT)
    own = page.fresh(f"_{class_name(program.name)}")
    vjp, jvp = f"{program.name}_vjp", f"{program.name}_jvp"
    return [
        Definition(_class(program, own, scope, trace)),
        Definition(_value(program, own, page), (program.name,)),
        Definition(_vjp(program, own, vjp, page), (vjp,)),
        Definition(_jvp(program, own, jvp, page), (jvp,)),
    ]


# --- the class -------------------------------------------------------------------------


def _class(program: Program, own: str, scope: Scope, trace: bool) -> Lines:
    rule = scope.page.core("Rule")
    result = result_type(program, scope.page.core("Array"))
    words = [f'name="{program.name}"', *_keywords(program, scope.page)]
    here = program, scope.page
    back = replace(scope, like=next(iter(program.cotangents), scope.like))
    backward = _backward(program, back, trace)
    given = [*_residual_names(program, trace), *program.cotangents]
    methods = [
        _method(
            "value",
            program.arguments,
            _forward(program, scope, trace),
            *here,
            value_mark(program, scope.page),
        ),
        *_residuals(program, scope.page, trace),
        _method(
            "pullback",
            mark_unused(given, backward),
            backward,
            *here,
            gradient_marks(program, scope.page),
        ),
        *_pushforward(program, scope, trace),
    ]
    body = [line for method in methods for line in (*method, "")]
    header = f"class {own}({rule}[{result}], {', '.join(words)}):"
    return [header, *indent_lines(body[:-1])]


def _keywords(program: Program, page: Page) -> Iterable[str]:
    yield from keywords(program, kinds_of(program))
    if program.constant:
        yield f"constant={program.constant}"
    if program.is_double:
        yield "least=np.float64"
    if program.residual_locals:
        yield f"extra={len(program.residual_locals)}"


def _method(
    name: str,
    parameters_: Iterable[str],
    body: Lines,
    program: Program,
    page: Page,
    marks: Iterable[str] = (),
) -> Lines:
    """A method: its results, which the type checker does not know, go to the runtime."""
    array = page.core("Array")
    numbers = {i.name: _NUMBERS[i.kind] for i in program.static_inputs}
    typed = [f"{n}: {numbers.get(n.lstrip('_'), array)}" for n in parameters_]
    header = f"def {name}({', '.join(typed)}) -> object:"
    return ["@staticmethod", *marks, header, *indent_lines(tighten(body))]


def _forward(program: Program, scope: Scope, trace: bool) -> Lines:
    pairs = zip(program.outputs, program.forward.results, strict=True)
    results = [_output(program, output, value, scope) for output, value in pairs]
    shown = f"print({traces.pieces(program, traces.ends(program), ' =')})"
    return forward(program, results, scope, [shown] if trace else [])


def _output(program: Program, output: Output, value: Expr, scope: Scope) -> str:
    """The text of an output; a number takes the shape to which its inputs broadcast."""
    kinds = {Kind.INT: "np.int64", Kind.BOOL: "bool"}
    text = render(value, scope)
    if not program.may_be_number(value):
        if output.kind is Kind.INT and not is_whole(value, program.positions):
            return f"{render_atom(value, scope)}.astype(np.int64)"
        return text
    made = f"{scope.page.core('broadcast_full')}({text}, {', '.join(program.like(output))})"
    if output.kind not in kinds:
        return made
    return f"{made}.astype({kinds[output.kind]})"


def _residual_names(program: Program, trace: bool) -> list[str]:
    return residual_names(program, trace, program.cotangents)


def _residuals(program: Program, page: Page, trace: bool) -> Iterable[Lines]:
    """The method ``residuals``, if the residuals are not simply the inputs."""
    kept = _residual_names(program, trace)
    if kept != program.arguments:
        header, result = residuals(program, kept)
        yield _method("residuals", header, [f"return {result}"], program, page)


def _backward(program: Program, scope: Scope, trace: bool) -> Lines:
    kept = [*_residual_names(program, trace), *program.cotangents]
    found = {
        i.name: gradient(program, i, g, scope, "np.zeros_like")
        for i, g in program.groups
    }
    lines = [
        *sizes(program, program.backward.values, kept),
        *assignments(program.backward.statements, scope),
    ]
    if trace:
        lines += [f"d{n} = {text}" for n, text in found.items() if text != "None"]
        for name in program.slopes:
            for shown in traces.terms(program, name, f"d{name}", scope):
                lines.append(f"print({traces.pieces(program, shown, ' =')})")
        found = {n: "None" if t == "None" else f"d{n}" for n, t in found.items()}
    return [*lines, f"return {', '.join(found.values())}"]


def _pushforward(program: Program, scope: Scope, trace: bool) -> Iterable[Lines]:
    block = program.pushforward
    is_pullback = program.is_symmetric and not program.gradient_kernels
    if block is None or (is_pullback and not trace):
        return
    kept, values = _residual_names(program, trace), program.pushed_values
    moved = [f"{i.name}_dot" for i in program.tensor_inputs if i.kind is Kind.FLOAT]
    scope = replace(scope, like=next(iter(moved), scope.like))
    dots = [_tangent(program, value, scope) for value in block.results]
    body = [
        *sizes(program, values, kept),
        *assignments(block.statements, scope),
        f"return {', '.join(dots)}",
    ]
    given = mark_unused([*kept, *moved], body)
    yield _method("pushforward", given, body, program, scope.page)


def _tangent(program: Program, value: Expr, scope: Scope) -> str:
    text = render(value, scope)
    if program.may_be_number(value):
        return f"np.asarray({text})"
    return text


# --- the public functions --------------------------------------------------------------


def _call(program: Program, own: str) -> str:
    return f"{own}({', '.join(program.arguments)})"


def _value(program: Program, own: str, page: Page) -> Lines:
    like = page.own("numpy.typing", "ArrayLike")
    result = result_type(program, page.core("Array"))
    return [
        f"def {program.name}({parameters(program, like)}) -> {result}:",
        docstring(program.docs),
        *indent_lines(checks(program, page)),
        f"    return {_call(program, own)}.result()",
    ]


def _vjp(program: Program, own: str, name: str, page: Page) -> Lines:
    like = page.own("numpy.typing", "ArrayLike")
    result = result_type(program, page.core("Array"))
    kind = f"tuple[{result}, {page.core('Pullback')}]"
    call = f"{program.name}({', '.join(i.name for i in program.tensor_inputs)})"
    gradients = [
        i.cotangent if i.takes_gradient else "None" for i in program.tensor_inputs
    ]
    given = name_or_tuple(program.cotangents)
    text = f"``{call}``, and its pullback from {given} to ({', '.join(gradients)})."
    if len(gradients) == 1:
        text = text.replace(f"({gradients[0]})", f"({gradients[0]},)")
    return [
        f"def {name}({parameters(program, like)}) -> {kind}:",
        sentence(text, 1),
        *indent_lines(checks(program, page)),
        f"    return {_call(program, own)}.vjp()",
    ]


def _jvp(program: Program, own: str, name: str, page: Page) -> Lines:
    like = page.own("numpy.typing", "ArrayLike")
    result = result_type(program, page.core("Array"))
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
    given = [f"*{primals}", *(i.name for i in program.static_inputs)]
    return [
        header,
        sentence(
            f"``{program.name}`` at the primals, and its derivative along the tangents.",
            1,
        ),
        *indent_lines(checks(program, page, f"*{primals}")),
        f"    return {own}({', '.join(given)}).jvp({tangents})",
    ]
