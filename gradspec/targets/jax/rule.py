"""One rule in JAX: its formulas in private functions, and the public function."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from gradspec.ir.rule import Input, Kind, Output
from gradspec.plan.array import Expr, Name, names
from gradspec.plan.plan import Nature, Term
from gradspec.plan.program import Program
from gradspec.plan.translate import operation
from gradspec.targets.docstring import docstring
from gradspec.targets.expressions import Scope, may_be_number, render
from gradspec.targets.jax.barriers import with_barriers
from gradspec.targets.jax.dialect import scope_of
from gradspec.targets.jax.layer import starts
from gradspec.targets.jax.trace import traced_backward, traced_forward
from gradspec.targets.lines import Lines, assignment, assignments, indented, tightened
from gradspec.targets.page import Page
from gradspec.targets.signature import (
    listed,
    parameters,
    pattern,
    returned,
    shaped,
    tupled,
)
from gradspec.targets.target import Definition

_FLOATS = (Kind.FLOAT, Kind.NOGRAD)
_DISCRETE = {Kind.INT: "integers", Kind.BOOL: "booleans"}
_NUMBERS = {Kind.STATIC: "number", Kind.STATIC_INT: "whole"}


class Way(Enum):
    """How the rule reaches JAX.

    PLAIN       nothing takes a gradient: no decorator
    PUSHED      a `custom_jvp`, slopes times tangents
    TRANSPOSED  a `custom_jvp`, tangents as the transpose of the backward pass: what axes
                are summed over is no slope
    PULLED      a `custom_vjp`: a backward pass that is not linear in its cotangent, or one
                that prints what goes through it
    """

    PLAIN = "plain"
    PUSHED = "pushed"
    TRANSPOSED = "transposed"
    PULLED = "pulled"


def definitions(program: Program, page: Page, *, trace: bool) -> list[Definition]:
    """``_f`` with its derivative, ``f``, and ``init_f`` if it has params."""
    page.use("import jax")
    program = with_barriers(program)
    way = _way(program, trace)
    core = page.fresh(f"_{program.name}")
    rule = _Rule(program, page, scope_of(program, page), core, way, trace)
    functions = [rule.core(), *rule.derivative()]
    found = [
        *(Definition(lines) for lines in functions),
        Definition(rule.public(), (program.name,)),
        *starts(program, page),
    ]
    if any("jnp." in line for definition in found for line in definition.lines):
        page.use("import jax.numpy as jnp")
    return found


def _way(program: Program, trace: bool) -> Way:
    groups = [group for group in program.backward.gradients if group is not None]
    if not groups:
        return Way.PLAIN
    if trace or program.pushes is None:
        return Way.PULLED
    return Way.TRANSPOSED if program.has_axes and any(groups) else Way.PUSHED


class _Rule:
    """One rule while it is written."""

    def __init__(
        self,
        program: Program,
        page: Page,
        scope: Scope,
        name: str,
        way: Way,
        trace: bool,
    ) -> None:
        self.program, self.page, self.scope = program, page, scope
        self.name, self.way, self.trace = name, way, trace
        self.tensors = [i.name for i in program.tensors]
        self.statics = [i.name for i in program.statics]
        self.outputs = [o.name for o in program.outputs]

    # --- the forward pass

    def core(self) -> Lines:
        """The forward pass, decorated."""
        block = self.program.forward
        values = [*(s.value for s in block.statements), *block.results]
        pairs = zip(self.program.outputs, block.results, strict=True)
        body = [
            *self._sizes(values, self.tensors),
            *assignments(block.statements, self.scope),
            f"return {', '.join(self._output(o, value) for o, value in pairs)}",
        ]
        inputs = ", ".join([*self.tensors, *self.statics])
        header = f"def {self.name}({inputs}):"
        return [*self._decorator(), header, *indented(tightened(body))]

    def _decorator(self) -> Lines:
        """JAX may put the bare function in place of its rule (`lasting` tells where), which
        is right if the rule is its derivative.
        """
        if self.way is Way.PLAIN:
            return []
        if self.way is Way.PULLED:
            name = "jax.custom_vjp"
        elif self.program.kind is Nature.EXACT:
            name = "jax.custom_jvp"
        else:
            name = self.page.core("lasting")
        if not self.statics:
            return [f"@{name}"]
        first = len(self.tensors)
        places = tuple(range(first, first + len(self.statics)))
        self.page.use("import functools")
        return [f"@functools.partial({name}, nondiff_argnums={places})"]

    def _output(self, output: Output, value: Expr) -> str:
        """An output as text; a number takes the shape to which its inputs broadcast."""
        text = render(value, self.scope)
        if may_be_number(value, self.program.numbers):
            like = [*self.program.floats, *self.tensors]
            reach = self.program.reach[output.name]
            like = [n for n in dict.fromkeys(like) if n in reach] or self.tensors
            text = f"{self.page.core('filled')}({text}, {', '.join(like)})"
        if output.kind is Kind.INT:
            return f"{self.page.core('counted')}({text})"
        if output.kind is Kind.BOOL and may_be_number(value, self.program.numbers):
            return f"{text}.astype(jnp.bool_)"
        if self._is_joint and output.takes_gradient:
            return (
                f"{self.page.core('batched_with')}({text}, {', '.join(self.tensors)})"
            )
        return text

    @property
    def _is_joint(self) -> bool:
        """Whether a `custom_vjp` has several arrays, some of which may be in a batch."""
        return self.way is Way.PULLED and len(self.tensors) > 1

    def _sizes(self, values: Iterable[Expr], known: Iterable[str]) -> Lines:
        """Sizes of axes that the values use, each from an array that is known."""
        used, known = names(*values), set(known)
        lines = []
        for size in self.program.sizes:
            if size.name in used and size.name not in self.statics:
                array, axis = next(place for place in size.places if place[0] in known)
                lines.append(f"{size.name} = {array}.shape[{axis}]")
        return lines

    # --- the derivative

    def derivative(self) -> list[Lines]:
        """The functions that JAX differentiates by, registered."""
        match self.way:
            case Way.PLAIN:
                return []
            case Way.PUSHED:
                return [self._jvp(self._moved_by_slopes(), self._by_slopes())]
            case Way.TRANSPOSED:
                return [self._jvp(self._moved(), self._by_transpose())]
            case Way.PULLED:
                return self._vjp()

    def _jvp(self, moved: list[str], body: Lines) -> Lines:
        primals, tangents = map(self.program.local, ("primals", "tangents"))
        name = self.page.fresh(f"{self.name}_jvp")
        register = f"@{self.name}.defjvp"
        if len(moved) > 1:  # any of them may stand still
            self.page.use("import functools")
            register = f"@functools.partial({self.name}.defjvp, symbolic_zeros=True)"
        dots = [f"{n}_dot" if n in moved else "_" for n in self.tensors]
        inputs, from_ = [_pattern(self.tensors)], [primals]
        if moved:
            inputs, from_ = [*inputs, _pattern(dots)], [*from_, tangents]
        if len(self.tensors) == 1 or not moved:
            unpacked = [f"{', '.join(inputs)} = {', '.join(from_)}"]
        else:
            pairs = zip((self.tensors, dots), from_, strict=True)
            unpacked = [f"{', '.join(n)} = {source}" for n, source in pairs]
        given = ", ".join([*self.statics, primals, tangents])
        return [register, f"def {name}({given}):", *indented([*unpacked, *body])]

    @property
    def _call(self) -> str:
        """The rule's own values: differentiated again, they follow the rule again."""
        return f"{self.name}({', '.join([*self.tensors, *self.statics])})"

    def _moved_by_slopes(self) -> list[str]:
        assert self.program.pushes is not None
        there = {s.input for s in self.program.pushes.summands}
        return [name for name in self.tensors if name in there]

    def _by_slopes(self) -> Lines:
        """Slopes, which are made before they are multiplied with tangents."""
        pushes = self.program.pushes
        assert pushes is not None
        values = [s.value for s in pushes.statements]
        values += [s.slope for s in pushes.summands]
        dots = [self._tangent(output) for output in self.program.outputs]
        lines = self._sizes(values, self.tensors)
        steps = assignments(pushes.statements, self.scope)
        comments = dict.fromkeys(s.comment for s in pushes.summands if s.comment)
        steps += [f"# {line}" for c in comments for line in c.splitlines()]
        is_used = bool({*self.outputs} & {*names(*values)})
        if len(self.outputs) == 1 and len(self.tensors) == 1 and not is_used:
            return [*lines, *steps, f"return {self._call}, {dots[0]}"]
        lines = [f"{', '.join(self.outputs)} = {self._call}", *lines, *steps]
        return [*lines, f"return {listed(self.outputs)}, {listed(dots)}"]

    def _tangent(self, output: Output) -> str:
        pushes = self.program.pushes
        assert pushes is not None
        parts = [s for s in pushes.summands if s.output == output.name]
        if not parts:
            made = output.name
            if len(self.outputs) == len(self.tensors) == 1:
                made = self._call
            return f"{self.page.core('still')}({made})"
        if len(self.tensors) == 1 and not self._lacks_shape(output):
            product = operation("mul", (parts[0].slope, Name(f"{parts[0].input}_dot")))
            return render(product, self.scope)
        pairs = [f"({render(s.slope, self.scope)}, {s.input}_dot)" for s in parts]
        return f"{self.page.core('tangent')}({', '.join([output.name, *pairs])})"

    def _lacks_shape(self, output: Output) -> bool:
        return output.shape.batch and not self.program.tensors[0].shape.batch

    def _moved(self) -> list[str]:
        """The inputs whose gradients have terms."""
        pairs = zip(self.tensors, self.program.backward.gradients, strict=True)
        return [name for name, terms in pairs if terms]

    def _by_transpose(self) -> Lines:
        moved, backward = self._moved(), self.program.local("backward")
        cotangents = self.program.cotangents
        steps, terms = self._pulled_values()
        pulled = [self._gradient(i, g) for i, g in self._groups() if i.name in moved]
        known = [*self.tensors, *self.outputs]
        dots = tupled(f"{name}_dot" for name in moved)
        dots = dots if len(moved) == 1 else f"({dots})"
        upstream = [o.name for o in self.program.outputs if o.takes_gradient]
        call = f"{self.page.core('pushed')}({', '.join([backward, dots, *upstream])})"
        lines = [
            f"{', '.join(self.outputs)} = {self._call}",
            *self._sizes([*steps, *terms], known),
            "",
            f"def {backward}({', '.join(cotangents)}):",
            *indented(assignments(self.program.backward.statements, self.scope)),
            *indented(self._comments()),
            f"    return {tupled(pulled)}",
            "",
        ]
        if upstream == self.outputs:
            made = call if len(upstream) > 1 else f"*{call}"
            return [*lines, f"return {listed(self.outputs)}, {made}"]
        made = tupled(f"{name}_dot" for name in upstream)
        still = self.page.core("still")
        dotted = [
            f"{n}_dot" if n in upstream else f"{still}({n})" for n in self.outputs
        ]
        return [
            *lines,
            f"{made} = {call}",
            f"return {listed(self.outputs)}, {listed(dotted)}",
        ]

    # --- a backward pass

    def _pulled_values(self) -> tuple[list[Expr], list[Expr]]:
        backward = self.program.backward
        terms = [t.value for group in backward.gradients for t in group or ()]
        return [s.value for s in backward.statements], terms

    def _groups(self) -> list[tuple[Input, tuple[Term, ...] | None]]:
        gradients = self.program.backward.gradients
        return list(zip(self.program.tensors, gradients, strict=True))

    def _comments(self) -> Lines:
        terms = [t for _, group in self._groups() for t in group or ()]
        comments = dict.fromkeys(t.comment for t in terms if t.comment)
        return [f"# {line}" for c in comments for line in c.splitlines()]

    def _gradient(self, i: Input, group: tuple[Term, ...] | None) -> str:
        """The gradient of an input in its shape."""
        if group is None:
            return "None"
        if not group:
            return f"jnp.zeros_like({i.name})"
        if self._is_shaped(group):
            return render(group[0].value, self.scope)
        sum_to = self.page.core("sum_to")
        texts = [f"{sum_to}({self._term(term)}, {i.name})" for term in group]
        return " + ".join(texts)

    def _is_shaped(self, group: tuple[Term, ...]) -> bool:
        """Whether the terms have the input's shape as they are."""
        alone = len(self.tensors) == 1 and not self.program.has_axes
        return alone and len(group) == 1 and not self._is_constant(group[0])

    def _is_constant(self, term: Term) -> bool:
        return not term.upstream or may_be_number(term.value, self.program.numbers)

    def _term(self, term: Term) -> str:
        """A term of a gradient; one without a cotangent has the shape of the outputs."""
        text = render(term.value, self.scope)
        if not self._is_constant(term):
            return text
        cotangents = ", ".join(self.program.cotangents)
        return f"{self.page.core('filled')}({text}, {cotangents})"

    # --- custom_vjp

    def _vjp(self) -> list[Lines]:
        forward, backward = (
            self.page.fresh(f"{self.name}_{word}") for word in ("forward", "backward")
        )
        register = f"{self.name}.defvjp({forward}, {backward})"
        last = ["", "", register]
        return [self._forward(forward), [*self._backward(backward), *last]]

    def _kept(self) -> list[str]:
        """Inputs and outputs that the backward pass uses, in the order written."""
        steps, terms = self._pulled_values()
        used = {*names(*steps, *terms)}
        for i, group in self._groups():
            if group is not None and not (group and self._is_shaped(group)):
                used.add(i.name)
        if self.trace:
            slopes = [s for parts in self.program.slopes.values() for _, s in parts]
            used |= {*self.program.slopes, *names(*(s for s in slopes if s))}
        known = {*used, *self.program.cotangents}
        for size in self.program.sizes:
            if size.name in used and not known & {place for place, _ in size.places}:
                used.add(size.places[0][0])
        return [n for n in (*self.tensors, *self.outputs) if n in used]

    def _forward(self, name: str) -> Lines:
        residual = (
            self.page.core("residual") if set(self._kept()) & {*self.tensors} else ""
        )
        kept = [f"{residual}({n})" if n in self.tensors else n for n in self._kept()]
        inputs = ", ".join([*self.tensors, *self.statics])
        made = listed(self.outputs)
        body = [f"{', '.join(self.outputs)} = {self._call}"]
        body += traced_forward(self.program) if self.trace else []
        body += [f"return {made}, {_bracketed(kept)}"]
        return [f"def {name}({inputs}):", *indented(body)]

    def _backward(self, name: str) -> Lines:
        program, kept = self.program, self._kept()
        residuals, upstream = map(program.local, ("residuals", "cotangents"))
        steps, terms = self._pulled_values()
        given = [f"d{o.name}" if o.takes_gradient else "_" for o in program.outputs]
        last = given[0] if len(given) == 1 else upstream
        body = [f"{_pattern(kept, True)} = {residuals}"] if kept else []
        body += [f"{', '.join(given)} = {upstream}"] if len(given) > 1 else []
        body += self._sizes([*steps, *terms], [*kept, *program.cotangents])
        body += [
            *assignments(program.backward.statements, self.scope),
            *self._comments(),
        ]
        found = {i.name: self._gradient(i, group) for i, group in self._groups()}
        if self.trace:
            for i, group in self._groups():
                if group is not None:
                    body += assignment(f"d{i.name}", found[i.name])
                    body += traced_backward(program, i.name, self.scope)
                    found[i.name] = f"d{i.name}"
        parameters_ = ", ".join([*self.statics, residuals, last])
        body.append(f"return {tupled(found.values())}")
        return [f"def {name}({parameters_}):", *indented(body)]

    # --- the public function

    def public(self) -> Lines:
        """Arguments converted, the rule applied, results rounded."""
        program, core = self.program, self.page.core
        result = returned(program, "jax.Array")
        dtype = self._dtype
        lines = []
        if program.floats:
            keywords = ", ".join(f"{n}={n}" for n in program.floats)
            least = [core("WIDE")] if program.is_double else []
            given = ", ".join([f'"{program.name}"', *least, keywords])
            left = ", ".join([dtype or "_", *program.floats])
            lines.append(f"{left} = {core('floats')}({given})")
        for i in program.tensors:
            if i.kind in _DISCRETE:
                function = core(_DISCRETE[i.kind])
                lines.append(
                    f'{i.name} = {function}("{program.name}", "{i.name}", {i.name})'
                )
        lines += [
            f"{i.name} = {core(_NUMBERS[i.kind])}({i.name})" for i in program.statics
        ]
        lines += self._checked()
        if self._is_joint:
            both = ", ".join(self.tensors)
            lines.append(f"{both} = {core('in_step')}({both})")
        header = f"def {program.name}({parameters(program, 'jax.typing.ArrayLike')})"
        return [
            f"{header} -> {result}:",
            docstring(program.docs),
            *indented([*lines, *self._applied(dtype)]),
        ]

    @property
    def _dtype(self) -> str:
        """The name of the type of the results, if there is a floating one."""
        kinds = {o.kind for o in self.program.outputs}
        return self.program.local("dtype") if kinds & {*_FLOATS} else ""

    def _checked(self) -> Lines:
        """Declared shapes. Sizes that a static gives come with it."""
        program = self.program
        if not shaped(program):
            return []
        axes = {axis for i in shaped(program) for axis in i.shape.axes}
        given = [f'{i.name}=({i.name}, "{pattern(i)}")' for i in shaped(program)]
        given += [f"{name}={name}" for name in self.statics if name in axes]
        function = self.page.axes("check_shapes")
        return [f'{function}("{program.name}", {", ".join(given)})']

    def _applied(self, dtype: str) -> Lines:
        call = f"{self.name}({', '.join([*map(self._argument, self.program.tensors), *self.statics])})"
        if not (dtype and self.program.floats):
            return [f"return {call}"]
        round_to = self.page.core("round_to")
        if len(self.outputs) == 1:
            return [f"return {round_to}({dtype}, {call})"]
        results = [
            f"{round_to}({dtype}, {o.name})" if o.kind in _FLOATS else o.name
            for o in self.program.outputs
        ]
        return [f"{', '.join(self.outputs)} = {call}", f"return {', '.join(results)}"]

    def _argument(self, i: Input) -> str:
        is_plain = self.way is Way.PLAIN and i.kind in _FLOATS
        return f"jax.lax.stop_gradient({i.name})" if is_plain else i.name


def _pattern(targets: list[str], bare: bool = False) -> str:
    """``(x,)`` or ``x, y``, to be assigned to."""
    if len(targets) == 1:
        return f"({targets[0]},)"
    return ", ".join(targets) if bare else f"({', '.join(targets)})"


def _bracketed(values: list[str]) -> str:
    return f"({values[0]},)" if len(values) == 1 else f"({', '.join(values)})"
