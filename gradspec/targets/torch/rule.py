"""One rule in PyTorch: a class with its formulas, a public function, and the
`torch.nn.Module` of a rule with params.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gradspec.ir.rule import Input, Kind, Output, class_name
from gradspec.ir.walk import nodes
from gradspec.plan.arrays import (
    Diagonal,
    Einsum,
    Expand,
    Expr,
    Name,
    Permute,
    Pick,
    Spread,
    Where,
    Window,
    names,
)
from gradspec.plan.arrays import Op as Operation
from gradspec.plan.plan import Assign, Nature, Term
from gradspec.plan.program import Program
from gradspec.primitives.lookup import primitive
from gradspec.targets import layers
from gradspec.targets import lines as traces
from gradspec.targets.expressions import Scope, is_scalar, render, render_atom, scope_of
from gradspec.targets.layers import Layer, layer
from gradspec.targets.lines import (
    Lines,
    assignment,
    assignments,
    checks,
    docstring,
    forward,
    gradient_marks,
    indent_lines,
    keywords,
    kinds_of,
    mark_unused,
    parameters,
    residual_names,
    residuals,
    result_type,
    sentence,
    sizes,
    tighten,
    value_mark,
)
from gradspec.targets.target import Definition, Page
from gradspec.targets.torch.dialect import DIALECT, is_view

_TYPES = {Kind.INT: "torch.int64", Kind.BOOL: "torch.bool"}


def definitions(program: Program, page: Page, *, trace: bool) -> list[Definition]:
    """The class ``_F``, the function ``f``, and the layer ``F`` if it has params."""
    own = page.fresh(f"_{class_name(program.name)}")
    page.own("torch", "Tensor")
    found = [
        Definition(_class(program, own, page, trace)),
        Definition(_function(program, own, page), (program.name,)),
    ]
    made = layer(program, OWN)
    return found if made is None else [*found, _layer(made)]


def _function(program: Program, own: str, page: Page) -> Lines:
    arguments = ", ".join(program.arguments)
    return [
        "@torch.fx.wrap",
        f"def {program.name}({parameters(program, 'Tensor')}) -> "
        f"{result_type(program, 'Tensor')}:",
        docstring(program.docs),
        *indent_lines(checks(program, page)),
        f"    return {own}.call({arguments})",
    ]


# --- the class -------------------------------------------------------------------------


def _class(program: Program, own: str, page: Page, trace: bool) -> Lines:
    words = [f'"{program.name}"', *_keywords(program, page)]
    methods = [_value(program, page, trace), *_residuals(program, trace)]
    if any(group is not None for group in program.backward.gradients):
        methods.append(_pullback(program, page, trace))
    else:
        methods.append(
            _method(
                "pullback",
                [program.local("needs"), *residual_names(program, trace)],
                "",
                ["return None"],
            )
        )
    if program.pushforward is None:
        methods.append(["pushforward = None"])
    elif trace or not program.is_symmetric or program.gradient_kernels:
        methods.append(_pushforward(program, page, trace))
    body = [line for method in methods for line in (*method, "")]
    return [
        f"@{page.core('rule')}({', '.join(words)})",
        f"class {own}({page.core('Rule')}):",
        *indent_lines(body[:-1]),
    ]


def _keywords(program: Program, page: Page) -> Iterator[str]:
    kinds, orders = kinds_of(program), _orders(program)
    known = {n: "known" for n in kinds if kinds[n] == "whole" and n in orders}
    yield from keywords(program, kinds | known)
    if program.kernels:  # which have the types that they are given
        yield "computed_in={}"
    elif program.is_double:
        yield f"computed_in={page.core('WIDE')}"
    if program.residual_locals:
        yield f"extra={len(program.residual_locals)}"
    if constant := _constant(program):
        yield f"constant={constant}"
    if _fills(program):
        yield "fills=True"
    if program.kind is not Nature.EXACT:
        yield "is_exact=False"
    if len(program.outputs) > 1:
        yield f"outputs={len(program.outputs)}"


def _constant(program: Program) -> tuple[int, ...]:
    """The outputs through which no gradient flows."""
    if any(group is not None for group in program.backward.gradients):
        return program.constant
    return tuple(range(len(program.outputs)))


def _orders(program: Program) -> frozenset[str]:
    """Integer statics whose values torch needs: exponents of a differentiated power,
    and orders of a polygamma.
    """
    found: set[str] = set()
    for node in nodes(*program.forward.values, *program.backward.values):
        if not isinstance(node, Operation):
            continue
        types = primitive(node.primitive).types
        for position, arg in enumerate(node.args):
            is_order = bool(types) and types[position] == "int"
            if is_order or (node.primitive == "pow" and position == 1):
                found |= set(names(arg))
    return frozenset(found)


def _method(
    name: str, given: Sequence[str], result: str, body: Lines, marks: Iterable[str] = ()
) -> Lines:
    arrow = f" -> {result}" if result else ""
    header = f"def {name}({', '.join(given)}){arrow}:"
    return ["@staticmethod", *marks, header, *indent_lines(tighten(body))]


def _typed_parameters(program: Program) -> list[str]:
    kinds = {Kind.STATIC: "float", Kind.STATIC_INT: "int"}
    inputs = (*program.tensor_inputs, *program.static_inputs)
    return [f"{i.name}: {kinds.get(i.kind, 'Tensor')}" for i in inputs]


# --- the forward pass ------------------------------------------------------------------


def _value(program: Program, page: Page, trace: bool) -> Lines:
    scope = scope_of(program, page, DIALECT)
    results = _results(program, scope)
    count = len(results) + len(program.residual_locals)
    kind = "Tensor" if count == 1 else f"tuple[{', '.join(['Tensor'] * count)}]"
    shown = _print_lines(program, traces.ends(program)) if trace else []
    return _method(
        "value",
        _typed_parameters(program),
        kind,
        forward(program, results, scope, shown),
        value_mark(program, page),
    )


def _results(program: Program, scope: Scope) -> Lines:
    results: Lines = []
    for output, value in zip(program.outputs, program.forward.results, strict=True):
        text = _result(program, output, value, scope)
        if text in results:
            text += ".clone()"  # one tensor cannot be two outputs
        results.append(text)
    return results


def _result(program: Program, output: Output, value: Expr, scope: Scope) -> str:
    """An output that is no view, which would forbid in-place operations on it."""
    text = render(value, scope)
    if program.may_be_number(value):
        like = program.like(output)
        dtype = [f"dtype={_TYPES[output.kind]}"] if output.kind in _TYPES else []
        if not program.floats and not dtype:
            dtype = ["dtype=torch.get_default_dtype()"]
        return (
            f"{scope.page.core('broadcast_full')}({', '.join([text, *like, *dtype])})"
        )
    if output.kind is Kind.INT:
        return f"{render_atom(value, scope)}.to(torch.int64)"
    if _is_part(program, value):
        return f"{render_atom(value, scope)}.clone()"
    return (
        f"{scope.page.axes('own')}({text})"
        if _is_turned(program, value, scope)
        else text
    )


def _is_part(program: Program, value: Expr) -> bool:
    """True if the value is an input, a part of one, or a permutation of one."""
    statements = {s.name: s.value for s in program.forward.statements}
    match value:
        case Name(id=name) if name in statements:
            return _is_part(program, statements[name])
        case Name(id=name):
            return name in [i.name for i in program.tensor_inputs]
        case Diagonal() | Expand() | Permute() | Pick() | Spread():
            return _is_part(program, value.arg)
        case Window(padded=False):
            return _is_part(program, value.arg)
        case Where(condition=condition) if {*names(condition)} <= program.numbers:
            return any(_is_part(program, v) for v in (value.then, value.other))
        case _:
            return False


def _is_turned(program: Program, value: Expr, scope: Scope) -> bool:
    """True if the value is a computed result in another order, or a contraction that
    is emitted as one."""
    statements = {s.name: s.value for s in program.forward.statements}
    while isinstance(value, Name) and value.id in statements:
        value = statements[value.id]
    if isinstance(value, Permute):
        return True
    return isinstance(value, Einsum) and is_view(render(value, scope))


# --- residuals -------------------------------------------------------------------------


def _residuals(program: Program, trace: bool) -> Iterator[Lines]:
    """The method ``residuals``, if the residuals are not simply the inputs."""
    kept = residual_names(program, trace)
    if kept != program.arguments:
        header, result = residuals(program, kept)
        yield _method("residuals", header, "", [f"return {result}"])


# --- the backward pass -----------------------------------------------------------------


def _fills(program: Program) -> bool:
    """True if absent cotangents must be zeros: the rule is not linear in them, or has a
    gradient without them.
    """
    terms = [t for group in program.backward.gradients for t in group or ()]
    several = len(program.cotangents) > 1
    if several and program.gradient_kernels:  # these take every cotangent
        return True
    return several and any(len(term.upstream) != 1 for term in terms)


class _Conditions:
    """The conditions under which statements of the pullback run."""

    def __init__(self, program: Program) -> None:
        moved = [i.name for i, group in program.groups if group is not None]
        self._places = {i.name: k for k, i in enumerate(program.tensor_inputs)}
        self._moved = moved if len(moved) > 1 else []
        self.needs = program.local("needs")
        may_lack = len(program.cotangents) > 1 and not _fills(program)
        self._cotangents = program.cotangents if may_lack else ()

    def of(self, inputs: Iterable[str], upstream: Iterable[str]) -> str:
        """The condition as text; empty if there is none."""
        wanted = [n for n in self._moved if n in {*inputs}]
        needs = [f"{self.needs}[{self._places[n]}]" for n in wanted]
        needs = needs if len(wanted) < len(self._moved) else []
        there = [f"{d} is not None" for d in self._cotangents if d in {*upstream}]
        asked = " or ".join(needs)
        parts = [f"({asked})" if len(needs) > 1 and there else asked] if needs else []
        return " and ".join([*parts, *there])


def _pullback(program: Program, page: Page, trace: bool) -> Lines:
    kept = residual_names(program, trace)
    like = next(iter(program.cotangents), "") or next(iter(program.floats), "")
    if len(program.cotangents) > 1 and not _fills(program):
        like = next((n for n in kept if n in program.floats), like)
    scope = scope_of(program, page, DIALECT, like)
    conditions = _Conditions(program)
    body = [
        *_nothing(program),
        *sizes(program, program.backward.values, [*kept, *program.cotangents]),
        *_shared_statements(program, conditions, scope),
    ]
    found: list[str] = []
    for i, group in program.groups:
        lines, text = _gradient(program, i, group, conditions, scope, trace)
        body += lines
        found.append(text)
    while found[-1] == "None":
        found.pop()
    body = _without_repeated_conditions(body)
    body.append(f"return {', '.join(found)}")
    asked = [conditions.needs]
    first = conditions.needs if mark_unused(asked, body) == asked else "_"
    given, marks = [*kept, *program.cotangents], gradient_marks(program, page)
    if marks:  # the types of their operators
        typed = dict(t.split(": ") for t in _typed_parameters(program))
        given = [f"{name}: {typed.get(name, 'Tensor')}" for name in given]
    return _method("pullback", [first, *given], "", body, marks)


def _without_repeated_conditions(lines: Lines) -> Lines:
    """The lines; a block goes on where the next one has the same condition."""
    joined: Lines = []
    last = ""
    for line in lines:
        if line.startswith(" ") or line != last:
            joined.append(line)
        last = last if line.startswith(" ") else line
    return joined


def _nothing(program: Program) -> Lines:
    """Gradients that are computed only on request are initialised to None."""
    if not _is_partial(program):
        return []
    moved = [i.cotangent for i, group in program.groups if group]
    return [f"{' = '.join(moved[k : k + 8])} = None" for k in range(0, len(moved), 8)]


def _is_partial(program: Program) -> bool:
    """True if a gradient may be unrequested, or a cotangent absent."""
    moved = [i for i, group in program.groups if group is not None]
    return len(moved) > 1 or (len(program.cotangents) > 1 and not _fills(program))


def _shared_statements(
    program: Program, conditions: _Conditions, scope: Scope
) -> Lines:
    """Statements that several gradients need, under the joint condition of these."""
    lines: Lines = []
    last = ""
    block: list[Assign] = []

    def flush() -> None:
        inner = assignments(block, scope)
        lines.extend([f"if {last}:", *indent_lines(inner)] if last else inner)
        block.clear()

    for step in program.backward.statements:
        condition = conditions.of(step.inputs, step.upstream)
        if condition != last and block:
            flush()
        last = condition
        block.append(step)
    if block:
        flush()
    return lines


def _gradient(
    program: Program,
    i: Input,
    group: tuple[Term, ...] | None,
    conditions: _Conditions,
    scope: Scope,
    trace: bool,
) -> tuple[Lines, str]:
    """Statements for the gradient of an input, and its text."""
    if group is None:
        return [], "None"
    if not group:
        return [], f"torch.zeros_like({i.name})"
    name = i.cotangent
    several = len(group) > 1
    if not _is_partial(program) and not several and not trace:
        comment = [f"# {line}" for line in group[0].comment.splitlines()]
        return comment, _term(program, i, group[0], scope, several)
    lines: Lines = []
    for place, term in enumerate(group):
        text = _term(program, i, term, scope, several)
        if place:
            text = f"{scope.page.core('plus')}({name}, {text})"
        part = [*(f"# {line}" for line in term.comment.splitlines())]
        part += [f"{name} = {text}"] if text != name else []
        if trace:
            slope = program.slopes[i.name][place][1]
            is_number = slope is not None and is_scalar(slope, scope)
            shown = traces.terms(program, i.name, name, scope)[place]
            part += _print_lines(
                program, shown, dict(shown)["current"] if is_number else ""
            )
        condition = conditions.of([i.name], term.upstream)
        lines += (
            [f"if {condition}:", *indent_lines(part)] if condition and part else part
        )
    return lines, name


def _term(program: Program, i: Input, term: Term, scope: Scope, several: bool) -> str:
    """One term. Autograd sums a gradient to the shape of its input; terms of several
    shapes must be summed before they are added.
    """
    text = render(term.value, scope)
    if program.takes_shape(term):
        like = [d for d in program.cotangents if d in term.upstream]
        like = [i.name] if program.has_axes else like or list(program.cotangents)
        text = f"{scope.page.core('broadcast_full')}({text}, {', '.join(like)})"
    is_wider = several and {*term.spans} - {i.name}
    return f"{scope.page.core('sum_to')}({text}, {i.name})" if is_wider else text


# --- the forward mode ------------------------------------------------------------------


def _pushforward(program: Program, page: Page, trace: bool) -> Lines:
    block = program.pushforward
    assert block is not None
    kept = residual_names(program, trace)
    dots = [f"{i.name}_dot" for i in program.tensor_inputs if i.kind is Kind.FLOAT]
    scope = scope_of(program, page, DIALECT, dots[0])
    texts = [_tangent(program, value, scope) for value in block.results]
    body = [
        *sizes(program, program.pushed_values, [*kept, *program.floats, *dots]),
        *assignments(block.statements, scope),
        f"return {', '.join(texts)}",
    ]
    return _method("pushforward", [*kept, *dots], "", body)


def _tangent(program: Program, value: Expr, scope: Scope) -> str:
    text = render(value, scope)
    if program.may_be_number(value):
        return f"{scope.page.core('scalar_like')}({scope.like}, {text})"
    return text


def _print_lines(program: Program, values: traces.Shown, number: str = "") -> Lines:
    """Lines that print values; for tensors, their data alone. The text of a slope that
    is a ``number`` is not a tensor.
    """
    lines: Lines = []
    found: traces.Shown = []
    plain = {number, *(i.name for i in program.static_inputs)}
    for label, text in values:
        name = program.local("current") if label == "current" else text
        lines += assignment(name, text)
        found.append((label, name if text in plain else f"{name}.detach()"))
    return [*lines, f'print({traces.pieces(program, found, " = ")}, sep="")']


# --- the layer -------------------------------------------------------------------------


OWN = """
T_destination add_module apply bfloat16 buffers call_super_init children compile cpu
cuda double dump_patches eval extra_repr float forward get_buffer get_extra_state
get_parameter get_submodule half ipu load_state_dict modules mtia named_buffers
named_children named_modules named_parameters parameters register_backward_hook
register_buffer register_forward_hook register_forward_pre_hook
register_full_backward_hook register_full_backward_pre_hook
register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module
register_parameter register_state_dict_post_hook register_state_dict_pre_hook
requires_grad_ reset_parameters set_extra_state set_submodule share_memory state_dict
to to_empty train training type xpu zero_grad
self device dtype shape torch super tuple isinstance int getattr
"""
"""Names in the class and its methods."""


def _layer(layer: Layer) -> Definition:
    """The class, which holds the params and calls the function."""
    data = ", ".join(f"{layer.public(i.name)}: Tensor" for i in layer.data)
    params = layers.listing(layer.public(i.name) for i in layer.params)
    arguments = [
        *layers.arguments(layer, layer.sizes, layers.statics(layer)),
        "device: torch.device | str | None = None",
        "dtype: torch.dtype | None = None",
    ]
    lines = [
        f"class {layer.name}(torch.nn.Module):",
        sentence(f"`{layer.program.name}` with a learned {params}.", 1),
        "",
        f"    def __init__({', '.join(['self', *arguments])}) -> None:",
        *indent_lines(indent_lines(_constructor(layer))),
        "",
        "    def reset_parameters(self) -> None:",
        sentence("Every parameter as in a new layer.", 2),
        "        for name, value in self._initial.items():",
        "            torch.nn.init.constant_(getattr(self, name), value)",
        "",
        f"    def forward(self, {data}) -> {result_type(layer.program, 'Tensor')}:",
        f"        return {layers.call(layer)}",
        "",
        "    def extra_repr(self) -> str:",
        *indent_lines(indent_lines(_representation(layer))),
    ]
    return Definition(lines, (layer.name,))


def _constructor(layer: Layer) -> Lines:
    lines = ["super().__init__()", *layers.stored_arguments(layer, layer.sizes)]
    for i in layer.params:
        empty = f"torch.empty({layers.shape(layer, i)}, device=device, dtype=dtype)"
        lines.append(f"self.{layer.public(i.name)} = torch.nn.Parameter({empty})")
    return [*lines, "self.reset_parameters()"]


def _representation(layer: Layer) -> Lines:
    """The constructor arguments; for params their initial values."""
    sizes = [f"{layer.public(n)}={{self.{layer.public(n)}}}" for n in layer.sizes]
    free = [f"{layers.SHAPE}={{self.{layers.SHAPE}}}"] if layer.is_free else []
    names = [layer.public(i.name) for i in layer.program.static_inputs]
    fixed = [f"{name}={{self.{name}}}" for name in names]
    text = ", ".join([*sizes, *free, *fixed])
    first = f'f"{text}", ' if text else ""
    return [
        'started = (f"{name}={value}" for name, value in self._initial.items())',
        f'return ", ".join([{first}*started])',
    ]
