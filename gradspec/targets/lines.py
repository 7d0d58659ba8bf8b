"""Source text as a list of logical lines, indented by four spaces a level: statements,
signatures, docstrings, and the values that a traced module prints.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from gradspec.ir.rule import Input, Kind
from gradspec.plan.arrays import Expr, names
from gradspec.plan.plan import Assign, Docs, Note, Term
from gradspec.plan.program import Program
from gradspec.source import escape
from gradspec.targets.expressions import Scope, numeral, render
from gradspec.targets.layout import WIDTH
from gradspec.targets.target import Page

Lines: TypeAlias = list[str]


def indent_lines(lines: Iterable[str]) -> Lines:
    """One level deeper; empty lines stay empty."""
    return [f"    {line}" if line else line for line in lines]


def assignment(name: str, value: str, comment: str = "") -> Lines:
    """``name = value`` under its comment; nothing if the value is the name itself."""
    if name == value:
        return []
    return [*(f"# {line}" for line in comment.splitlines()), f"{name} = {value}"]


def assignments(statements: Iterable[Assign], scope: Scope) -> Lines:
    """The statements of a pass, in order."""
    return [
        line
        for s in statements
        for line in assignment(s.name, render(s.value, scope), s.comment)
    ]


def unpacking(targets: list[str], source: str) -> Lines:
    """``a, _, b = source``; nothing if no part is wanted."""
    if set(targets) == {"_"}:
        return []
    left = ", ".join(targets)
    return [f"({left},) = {source}" if len(targets) == 1 else f"{left} = {source}"]


_IDENTIFIER = re.compile(r"[^\W\d]\w*")


def mark_unused(parameters: Iterable[str], body: Lines) -> list[str]:
    """The parameters; those that the body does not use begin with an underscore."""
    code = (line for line in body if not line.lstrip().startswith("#"))
    used = {word for line in code for word in _IDENTIFIER.findall(line)}
    return [name if name in used else f"_{name}" for name in parameters]


def tighten(lines: Lines) -> Lines:
    """``return f(x)`` where the last two lines are ``y = f(x)`` and ``return y``."""
    if len(lines) < 2 or not lines[-1].startswith("return "):
        return lines
    name = lines[-1].removeprefix("return ")
    before = lines[-2].removeprefix(f"{name} = ")
    if before == lines[-2] or not name.isidentifier():
        return lines
    return [*lines[:-2], f"return {before}"]


# --- signatures ------------------------------------------------------------------------


_KINDS = {
    Kind.NOGRAD: "nograd",
    Kind.INT: "integer",
    Kind.BOOL: "boolean",
    Kind.STATIC: "number",
    Kind.STATIC_INT: "whole",
}


def parameters(program: Program, tensor: str) -> str:
    """Tensors, then keyword-only statics: ``x: T, *, k: float = 1.0``."""
    tensors = [f"{i.name}: {tensor}" for i in program.tensor_inputs]
    statics = [_static(i) for i in program.static_inputs]
    return ", ".join([*tensors, *(["*"] if statics else []), *statics])


def _static(i: Input) -> str:
    kind = "int" if i.kind is Kind.STATIC_INT else "float"
    if i.default is None:
        return f"{i.name}: {kind}"
    if kind == "int" and i.default.denominator == 1:
        return f"{i.name}: int = {i.default.numerator}"
    return f"{i.name}: {kind} = {numeral(i.default)[0]}"


def pattern(i: Input) -> str:
    """The declared axes of an input as a string: ``"... n"``, ``"n d"``, ``""``."""
    return " ".join(["..."] * i.shape.batch + [str(axis) for axis in i.shape.axes])


def shaped_inputs(program: Program) -> tuple[Input, ...]:
    """The tensor inputs whose declared shape has more than batch axes."""
    return tuple(i for i in program.tensor_inputs if not i.shape.is_elementwise)


def pairs(found: Iterable[tuple[str, str]]) -> str:
    """``"x": "... n", "t": ""``: the entries of a dictionary display."""
    return ", ".join(f'"{name}": "{word}"' for name, word in found)


def keywords(program: Program, kinds: Mapping[str, str]) -> Iterator[str]:
    """The kinds of inputs that are not floating, and declared shapes, for a runtime."""
    if kinds:
        yield f"kinds={{{pairs(kinds.items())}}}"
    axes = [(i.name, pattern(i)) for i in shaped_inputs(program)]
    axes += [(i.name, "size") for i in program.static_inputs if i.is_size]
    if axes:
        yield f"axes={{{pairs(axes)}}}"


def kinds_of(program: Program) -> dict[str, str]:
    """The kind of each input that is not floating."""
    return {i.name: _KINDS[i.kind] for i in program.inputs if i.kind in _KINDS}


def result_type(program: Program, tensor: str) -> str:
    """The type of the results."""
    if len(program.outputs) == 1:
        return tensor
    return f"tuple[{', '.join(tensor for _ in program.outputs)}]"


def name_or_tuple(names: Iterable[str]) -> str:
    """``x`` of one name, ``(x, y)`` of several."""
    names = tuple(names)
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def tuple_items(names: Iterable[str]) -> str:
    """``(x,)`` of one name, ``x, y`` of several."""
    names = tuple(names)
    return f"({names[0]},)" if len(names) == 1 else ", ".join(names)


# --- passes ----------------------------------------------------------------------------


def sizes(program: Program, values: Iterable[Expr], known: Iterable[str]) -> Lines:
    """Assign the sizes that the values use, each from a known array."""
    found = program.sizes_of(values, known)
    return [f"{size} = {array}.shape[{axis}]" for size, array, axis in found]


def forward(program: Program, results: list[str], scope: Scope, shown: Lines) -> Lines:
    """The forward pass, which returns the results and the locals kept. In a trace the
    results have names, and ``shown`` prints them.
    """
    lines = [
        *sizes(program, program.forward.values, program.arguments),
        *assignments(program.forward.statements, scope),
    ]
    if shown:
        outputs = [output.name for output in program.outputs]
        for name, text in zip(outputs, results, strict=True):
            lines += assignment(name, text)
        lines, results = [*lines, *shown], outputs
    return [*lines, f"return {', '.join([*results, *program.residual_locals])}"]


def residual_names(
    program: Program, trace: bool, known: Iterable[str] = ()
) -> list[str]:
    """The unchanged inputs, or the inputs, outputs and locals that later passes use.
    The backward pass may read sizes from ``known`` arrays as well.
    """
    used = {*program.backward.residuals, *program.backward.statics}
    used |= {*names(*program.pushed_values)}
    used |= {
        i.name for i, group in program.groups if group is not None and len(group) != 1
    }
    if trace:
        used |= {*program.slopes, *names(*program.shown_values)}
    for kernel in program.gradient_kernels:
        used |= {*kernel.arguments, *(name.removeprefix("d") for name in kernel.names)}
    inputs = program.arguments
    ends = [*inputs, *(o.name for o in program.outputs), *program.residual_locals]
    kept = [name for name in ends if name in used]
    there = {*kept}
    for values, others in (
        (program.backward.values, {*known}),
        (program.pushed_values, set[str]()),
    ):
        for size in program.sizes:
            places = [place for place, _ in size.places]
            if size.name in names(*values) and not (there | others) & {*places}:
                kept.append(next(p for p in places if p in inputs))
    return inputs if {*kept} <= {*inputs} else list(dict.fromkeys(kept))


def value_mark(program: Program, page: Page) -> Lines:
    """The decorator of the forward pass, if a foreign function computes it."""
    kernel = program.value_kernel
    if kernel is None:
        return []
    places = [kernel.names.index(output.name) for output in program.outputs]
    order = "" if places == sorted(places) else f", order={tuple(places)}"
    return [f'@{page.foreign_mark("computes")}("{kernel.call}"{order})']


def gradient_marks(program: Program, page: Page) -> Lines:
    """The decorators of the backward pass, if foreign functions compute gradients."""
    inputs = [i.cotangent for i in program.tensor_inputs]
    return [
        f'@{page.foreign_mark("differentiates")}("{kernel.call}", '
        f"{', '.join(f'{name}={inputs.index(name)}' for name in kernel.names)})"
        for kernel in program.gradient_kernels
    ]


def residuals(program: Program, kept: list[str]) -> tuple[list[str], str]:
    """The parameters and the result of a method that gives the residuals."""
    given = [*program.arguments, *(o.name for o in program.outputs)]
    given += program.residual_locals
    parameters = [n if n in kept else f"_{n}" for n in given]
    return parameters, tuple_items(kept) if kept else "()"


def gradient(
    program: Program,
    i: Input,
    group: tuple[Term, ...] | None,
    scope: Scope,
    zeros: str,
    needs_shape: Callable[[Term], bool] | None = None,
) -> str:
    """The gradient of an input. Terms are reduced to its shape before they are added;
    those that ``needs_shape`` selects, by default those without a cotangent, get the
    shape of the outputs.
    """
    if group is None:
        return "None"
    if not group:
        return f"{zeros}({i.name})"
    selects, texts = needs_shape or program.takes_shape, []
    for part in group:
        text = render(part.value, scope)
        if selects(part):
            like = i.name if program.has_axes else ", ".join(program.cotangents)
            text = f"{scope.page.core('broadcast_full')}({text}, {like})"
        texts.append(text)
    if len(texts) == 1:
        return texts[0]
    sum_to = scope.page.core("sum_to")
    return " + ".join(f"{sum_to}({text}, {i.name})" for text in texts)


def checks(program: Program, page: Page, given: str = "") -> Lines:
    """The check of a call's assumptions, if there are any; ``given`` names the tensors."""
    if not program.assumed:
        return []
    tensors = given or ", ".join(i.name for i in program.tensor_inputs)
    statics = (f"{i.name}={i.name}" for i in program.static_inputs)
    call = f"{program.domain}({', '.join([tensors, *statics])})"
    texts = ", ".join(f'"{text}"' for text in (program.name, *program.assumed))
    return [f"{page.core('require')}({call}, {texts})"]


# --- docstrings ------------------------------------------------------------------------


_QUOTES = '"""'


def docstring(docs: Docs, extra: Iterable[str] = ()) -> str:
    """The docstring of a rule's function, as reStructuredText: the author's words, the
    rule as written, its notes, and further paragraphs.
    """
    notes = [_note(note) for note in docs.notes]
    rule = _quotation(docs.definition) if docs.definition else ""
    paragraphs = [docs.doc, rule, *notes, *extra]
    return literal("\n\n".join(part for part in paragraphs if part), 1)


def literal(text: str, depth: int) -> str:
    """``text`` as a docstring at ``depth`` levels: `help` shows the text itself,
    whatever quotes, backslashes and invisible characters it has.
    """
    lines = [line.rstrip() for line in text.strip().split("\n")] or [""]
    prefix, body = _escape("\n".join(lines))
    indent = "    " * depth
    first, *rest = body.split("\n")
    if not rest:
        return f"{indent}{prefix}{_QUOTES}{first}{_QUOTES}"
    inner = [f"{indent}{line}" if line else "" for line in rest]
    opened = f"{indent}{prefix}{_QUOTES}{first}"
    return "\n".join([opened, *inner, f"{indent}{_QUOTES}"])


def sentence(text: str, depth: int) -> str:
    """Our own text as a docstring, on several lines if one is too short."""
    longest = WIDTH - 4 * depth - 2 * len(_QUOTES)
    if len(text) > longest:
        text = textwrap.fill(text, WIDTH - 4 * depth - len(_QUOTES))
    return literal(text, depth)


def _escape(text: str) -> tuple[str, str]:
    """The prefix and the text between the quotes. The string is raw if backslashes are
    its only special characters, so that formulas in LaTeX can be read.
    """
    plain = all(not _is_hidden(char) for char in text)
    ends = text.endswith(('"', "\\")) or text.startswith('"')
    if plain and not ends and _QUOTES not in text:
        return ("r", text) if "\\" in text else ("", text)
    body = text.replace("\\", "\\\\").replace(_QUOTES, '\\"\\"\\"')
    if body.startswith('"'):
        body = f"\\{body}"
    if body.endswith('"'):
        # As a code: formatters put a space behind a quote at the end, escaped or not.
        before = body[:-1]
        is_escaped = (len(before) - len(before.rstrip("\\"))) % 2
        body = f"{before[:-1] if is_escaped else before}\\x22"
    return "", "".join(escape(char) if _is_hidden(char) else char for char in body)


def _is_hidden(char: str) -> bool:
    """Control and format characters, and line ends that are not ``\\n``."""
    return char != "\n" and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _quotation(definition: str) -> str:
    """The rule, as a literal block of reStructuredText."""
    return f"Rule::\n\n{textwrap.indent(definition, '    ')}"


def _note(note: Note) -> str:
    return textwrap.fill(f"{note.title}: {note.text}", WIDTH - 4)


# --- traces ----------------------------------------------------------------------------
#
# The values that a traced module prints, with their names.


Shown = list[tuple[str, str]]
"""Labels, each with the text of its value."""


def ends(program: Program) -> Shown:
    """Inputs and outputs of a call."""
    names = [i.name for i in program.inputs] + [o.name for o in program.outputs]
    return [(name, name) for name in names]


def terms(program: Program, name: str, gradient: str, scope: Scope) -> list[Shown]:
    """For each term of an input's gradient: the input's value, cotangents, slope and
    gradient.
    """
    found = []
    for upstream, slope in program.slopes.get(name, ()):
        values = [(name, name), *((f"upstream {d}", d) for d in upstream)]
        if slope is not None:
            values.append(("current", render(slope, scope)))
        found.append([*values, (f"downstream d{name}", gradient)])
    return found


def template(program: Program, values: Shown) -> str:
    """The arguments of a function that fills in a template."""
    words = ", ".join(f"{label} = {{}}" for label, _ in values)
    return f'"{program.name}: {words}", {", ".join(text for _, text in values)}'


def pieces(program: Program, values: Shown, equals: str) -> str:
    """The arguments of `print`, labels and values in turn."""
    parts, before = [], f"{program.name}: "
    for label, text in values:
        parts += [f'"{before}{label}{equals}"', text]
        before = ", "
    return ", ".join(parts)
